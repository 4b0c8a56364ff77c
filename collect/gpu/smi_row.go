package gpu

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// column is one field of an nvidia-smi query.
type column struct {
	names []string // spellings, newest first; nvidia-smi rejects names that it does not know
	read  func(r *smiRow, text string) (ok bool)
	field engine.GPUField // noField if the column is not a reading
}

const noField = clockEvents + 1

// smiRow is one line of nvidia-smi about one GPU.
type smiRow struct {
	device Device
	gpu    engine.GPU
	mig    bool
	why    why
}

// smiColumns returns the columns of a query, in order.
func smiColumns() []column {
	reading := func(f engine.GPUField, unit float64, names ...string) column {
		return column{names, func(r *smiRow, text string) bool {
			v, ok := smiNumber(text)
			if ok {
				r.gpu.Fields[f] = stat.Some(v / unit)
			}
			return ok
		}, f}
	}
	return []column{
		{[]string{"index"}, func(r *smiRow, text string) bool {
			n, err := strconv.Atoi(text)
			r.device.Index = n
			return err == nil && n >= 0
		}, noField},
		{[]string{"uuid"}, func(r *smiRow, text string) bool { r.device.UUID = text; return true }, noField},
		{[]string{"name"}, func(r *smiRow, text string) bool { r.device.Name = text; return true }, noField},
		{[]string{"pci.bus_id"}, func(r *smiRow, text string) bool { r.device.BusID = strings.ToLower(text); return true }, noField},
		{[]string{"driver_version"}, func(r *smiRow, text string) bool { r.device.Driver = text; return true }, noField},
		{[]string{"mig.mode.current"}, func(r *smiRow, text string) bool { r.mig = text == "Enabled"; return true }, noField},
		reading(engine.GPUUtil, percent, "utilization.gpu"),
		reading(engine.GPUMemUtil, percent, "utilization.memory"),
		reading(engine.GPUPowerW, 1, "power.draw"),
		reading(engine.GPUPowerLimitW, 1, "enforced.power.limit", "power.limit"),
		reading(engine.GPUVRAMTotal, perMiB, "memory.total"),
		reading(engine.GPUVRAMUsed, perMiB, "memory.used"),
		reading(engine.GPUTemperatureC, 1, "temperature.gpu"),
		reading(engine.GPUSMClockMHz, 1, "clocks.current.sm", "clocks.sm"),
		reading(engine.GPUMemClockMHz, 1, "clocks.current.memory", "clocks.mem"),
		{[]string{"clocks_event_reasons.active", "clocks_throttle_reasons.active"}, func(r *smiRow, text string) bool {
			mask, err := strconv.ParseUint(text, 0, 64)
			r.gpu.Throttle, r.gpu.ThrottleOK = mask, err == nil
			return err == nil
		}, clockEvents},
	}
}

// smiNumber parses a number as nvidia-smi prints it. A unit may follow if nounits is not
// honoured, and the decimal mark may be a comma. It reports false for words in
// brackets ("[N/A]", "[Not Supported]") and negative numbers.
func smiNumber(text string) (float64, bool) {
	text, _, _ = strings.Cut(text, " ")
	text = strings.TrimSuffix(text, "%")
	v, err := strconv.ParseFloat(strings.Replace(text, ",", ".", 1), 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) || v < 0 {
		return 0, false
	}
	return v, true
}

// parseSMIRow parses one line with the given columns. It reports false if the line is not
// a row: nvidia-smi prints its errors to the same stream.
func parseSMIRow(line string, columns []column) (smiRow, bool) {
	r := smiRow{device: Device{GI: -1, Minor: -1}, why: allFor("nvidia-smi does not report it")}
	// Only ", " separates: a comma alone may be a decimal mark.
	cells := strings.Split(strings.TrimSpace(line), ", ")
	if len(cells) != len(columns) {
		return r, false
	}
	for i, c := range columns {
		text := strings.TrimSpace(cells[i])
		ok := c.read(&r, text)
		switch {
		case c.field == noField && !ok:
			return r, false
		case c.field == noField:
		case ok:
			r.why[c.field] = ""
		default:
			r.why[c.field] = "nvidia-smi says " + printable(text)
		}
	}
	if !strings.HasPrefix(r.device.UUID, "GPU-") {
		return r, false
	}
	r.device.VRAMBytes = r.gpu.Fields[engine.GPUVRAMTotal]
	r.gpu.Index, r.gpu.Name, r.gpu.UUID = r.device.Index, r.device.Name, r.device.UUID
	return r, true
}

// printable prepares foreign text for a sentence: one line, at most 120 characters, no
// control characters; "nothing" if it is blank.
func printable(text string) string {
	const limit = 120
	text = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, text)
	if text = strings.TrimSpace(text); text == "" {
		return "nothing"
	}
	if runes := []rune(text); len(runes) > limit {
		return string(runes[:limit]) + "…"
	}
	return text
}

// refusedColumn returns the position of the column that nvidia-smi's output rejects.
func refusedColumn(output string, columns []column) (int, bool) {
	_, rest, found := strings.Cut(output, `Field "`)
	name, _, closed := strings.Cut(rest, `" is not a valid field`)
	if !found || !closed {
		return 0, false
	}
	i := slices.IndexFunc(columns, func(c column) bool { return c.names[0] == name })
	return i, i >= 0
}

// withoutSpelling returns columns with the next spelling of the i-th, or without that
// column if it has no other spelling.
func withoutSpelling(columns []column, i int) []column {
	next := slices.Clone(columns)
	if next[i].names = next[i].names[1:]; len(next[i].names) == 0 {
		return slices.Delete(next, i, i+1)
	}
	return next
}
