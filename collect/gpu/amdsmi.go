package gpu

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// amdRow holds amd-smi's output for one GPU.
type amdRow struct {
	number    int // amd-smi's GPU number
	partition int // partition of the GPU; only the first, 0, has readings of its own
	device    Device
	gpu       engine.GPU
	why       why
}

// amdObject is one object of amd-smi's output, whose keys and forms differ
// between releases: a value is a number, a text with or without its unit, "N/A",
// or an object of "value" and "unit" (ROCm/amdsmi, CHANGELOG.md and
// docs/how-to/amdsmi-cli-tool.md).
type amdObject map[string]any

// amdEntries parses the objects of all GPUs, a list or a list under "gpu_data". It skips
// lines before the JSON, which are warnings about groups that the user is not in.
func amdEntries(text []byte) ([]amdObject, error) {
	for len(text) > 0 && text[0] != '[' && text[0] != '{' {
		i := bytes.IndexByte(text, '\n')
		if i < 0 {
			return nil, errors.New("the output holds no JSON")
		}
		text = bytes.TrimLeft(text[i+1:], " \t\r\n")
	}
	if len(text) == 0 {
		return nil, errors.New("the output is empty")
	}
	var list []amdObject
	decoder := json.NewDecoder(bytes.NewReader(text))
	if text[0] == '{' {
		var wrapped struct {
			Data []amdObject `json:"gpu_data"`
		}
		if err := decoder.Decode(&wrapped); err != nil {
			return nil, fmt.Errorf("read amd-smi's JSON: %w", err)
		}
		list = wrapped.Data
	} else if err := decoder.Decode(&list); err != nil {
		return nil, fmt.Errorf("read amd-smi's JSON: %w", err)
	}
	var entries []amdObject
	for _, e := range list {
		if _, ok := e.value("gpu"); ok {
			entries = append(entries, e)
		}
	}
	if len(entries) == 0 {
		return nil, errors.New("amd-smi lists no GPU")
	}
	return entries, nil
}

// at returns the value at a path of keys; nil if one is missing.
func (o amdObject) at(keys ...string) any {
	var v any = map[string]any(o)
	for _, k := range keys {
		inner, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = inner[k]
	}
	return v
}

func (o amdObject) text(keys ...string) string {
	s, ok := o.at(keys...).(string)
	if !ok || s == "N/A" {
		return ""
	}
	return s
}

func (o amdObject) value(keys ...string) (float64, bool) {
	v, _, ok := quantity(o.at(keys...))
	return v, ok
}

// quantity parses a value in any of its forms. ok is false also for negative, infinite
// and NaN values.
func quantity(v any) (value float64, unit string, ok bool) {
	switch v := v.(type) {
	case float64:
		value, ok = v, true
	case string:
		number, rest, _ := strings.Cut(strings.TrimSpace(v), " ")
		f, err := strconv.ParseFloat(number, 64)
		value, unit, ok = f, strings.TrimSpace(rest), err == nil
	case map[string]any:
		if _, nested := v["value"].(map[string]any); nested {
			return 0, "", false
		}
		value, unit, ok = quantity(v["value"])
		if u, has := v["unit"].(string); has {
			unit = u
		}
	}
	if value < 0 || math.IsNaN(value) || math.IsInf(value, 0) {
		return 0, "", false
	}
	return value, unit, ok
}

// amdReading says where amd-smi's output may have a field.
type amdReading struct {
	field engine.GPUField
	paths [][]string         // key paths, the preferred one first
	units map[string]float64 // factors to the field's unit; "" is a value without a unit
}

// amdReadings are the readings of "amd-smi metric --json". Its megabytes are
// 2^20 bytes: 196592 of them are an MI300X's 192 GiB.
func amdReadings() []amdReading {
	share := map[string]float64{"": 0.01, "%": 0.01}
	watts := map[string]float64{"": 1, "W": 1, "mW": 1e-3, "uW": 1e-6}
	memory := map[string]float64{"": 1 << 20, "MB": 1 << 20, "GB": 1 << 30, "KB": 1 << 10, "B": 1}
	degrees := map[string]float64{"": 1, "C": 1, "°C": 1}
	clock := map[string]float64{"": 1, "MHz": 1, "GHz": 1e3}
	paths := func(p ...string) [][]string {
		var out [][]string
		for _, one := range p {
			out = append(out, strings.Split(one, "."))
		}
		return out
	}
	return []amdReading{
		{engine.GPUUtil, paths("usage.gfx_activity"), share},
		{engine.GPUMemUtil, paths("usage.umc_activity"), share},
		{engine.GPUPowerW, paths("power.socket_power", "power.current_socket_power", "power.average_socket_power"), watts},
		{engine.GPUVRAMTotal, paths("mem_usage.total_vram"), memory},
		{engine.GPUVRAMUsed, paths("mem_usage.used_vram"), memory},
		{engine.GPUTemperatureC, paths("temperature.edge", "temperature.hotspot"), degrees},
		{engine.GPUSMClockMHz, paths("clock.gfx_0.clk", "clock.gfx.clk"), clock},
		{engine.GPUMemClockMHz, paths("clock.mem_0.clk", "clock.mem.clk"), clock},
		{engine.GPUEnergyJ, paths("energy.total_energy_consumption"), map[string]float64{"": 1, "J": 1, "mJ": 1e-3, "uJ": 1e-6}},
	}
}

// parseAMDMetric parses the output of "amd-smi metric --json".
func parseAMDMetric(text []byte) ([]amdRow, error) {
	entries, err := amdEntries(text)
	if err != nil {
		return nil, err
	}
	rows := make([]amdRow, len(entries))
	for i, e := range entries {
		r := &rows[i]
		r.number = e.index("gpu")
		r.why = allFor("amd-smi does not report it")
		r.why[clockEvents] = untranslatedThrottle
		for _, reading := range amdReadings() {
			v, ok := e.read(reading)
			if !ok {
				continue
			}
			r.gpu.Fields[reading.field] = stat.Some(v)
			r.why[reading.field] = ""
		}
	}
	return rows, nil
}

func (o amdObject) read(r amdReading) (float64, bool) {
	for _, p := range r.paths {
		v, unit, ok := quantity(o.at(p...))
		factor, known := r.units[unit]
		if ok && known && !markedAbsent(r.field, v) && plausible(r.field, v*factor) {
			return v * factor, true
		}
	}
	return 0, false
}

// markedAbsent reports whether a value is the largest number of its type, which the
// library uses for "no value" and older releases of amd-smi print. Bytes and joules
// have wider types, so 65535 is a valid value for them.
func markedAbsent(f engine.GPUField, v float64) bool {
	switch f {
	case engine.GPUVRAMTotal, engine.GPUVRAMUsed, engine.GPUEnergyJ:
		return v == math.MaxUint32 || v >= math.MaxUint64
	}
	return v == math.MaxUint16 || v == math.MaxUint32 || v >= math.MaxUint64
}

// plausible reports whether a value in the field's unit is possible: a utilization cannot
// exceed 1.
func plausible(f engine.GPUField, v float64) bool {
	return v <= 1 || f != engine.GPUUtil && f != engine.GPUMemUtil
}

// index returns a small integer, -1 if there is none.
func (o amdObject) index(keys ...string) int {
	v, ok := o.value(keys...)
	if !ok || v > 1<<30 || v != math.Trunc(v) {
		return -1
	}
	return int(v)
}

// parseAMDStatic parses the output of "amd-smi static --json".
func parseAMDStatic(text []byte) ([]amdRow, error) {
	entries, err := amdEntries(text)
	if err != nil {
		return nil, err
	}
	rows := make([]amdRow, len(entries))
	for i, e := range entries {
		r := &rows[i]
		r.number, r.partition = e.index("gpu"), max(e.index("partition", "partition_id"), 0)
		r.device = Device{
			Index: r.number, GI: -1, CI: -1, Minor: -1,
			Name:   firstText(e.text("asic", "market_name"), e.text("board", "product_name")),
			BusID:  strings.ToLower(e.text("bus", "bdf")),
			Driver: firstText(e.text("driver", "version"), e.text("driver", "driver_version")),
		}
		r.device.UUID = amdUUID(e.text("asic", "asic_serial"), r.device.BusID, r.number)
		if v, unit, ok := quantity(e.at("vram", "size")); ok && (unit == "MB" || unit == "") {
			r.device.VRAMBytes = stat.Some(v * (1 << 20))
		}
		for _, p := range [][]string{{"limit", "ppt0", "socket_power_limit"}, {"limit", "socket_power"}, {"limit", "max_power"}} {
			if v, unit, ok := quantity(e.at(p...)); ok && (unit == "W" || unit == "") {
				r.gpu.Fields[engine.GPUPowerLimitW] = stat.Some(v)
				break
			}
		}
	}
	return rows, nil
}

func firstText(a, b string) string {
	if text := cmp.Or(a, b); text != "" {
		return printable(text)
	}
	return ""
}

// parseAMDProcesses parses the output of "amd-smi process --json": the PIDs on each
// GPU, by amd-smi's number. An idle GPU has a sentence in place of a process, which
// is skipped.
func parseAMDProcesses(text []byte) (map[int][]int, error) {
	entries, err := amdEntries(text)
	if err != nil {
		return nil, err
	}
	held := map[int][]int{}
	for _, e := range entries {
		list, ok := e.at("process_list").([]any)
		if !ok {
			continue
		}
		for _, p := range list {
			process, ok := p.(map[string]any)
			if !ok {
				continue
			}
			if info, nested := process["process_info"].(map[string]any); nested {
				process = info
			}
			if pid := amdObject(process).index("pid"); pid > 0 {
				held[e.index("gpu")] = append(held[e.index("gpu")], pid)
			}
		}
	}
	return held, nil
}
