package gpu

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// amdCard locates the files of one GPU.
type amdCard struct {
	dir, hwmon string // relative to the root; hwmon is "" if there is none
	busID      string
	// Names of the numbered hwmon files, found by their labels.
	temperature, sclk, mclk string
}

// amdCards lists the GPUs of the amdgpu driver in PCI order. It skips partitions of a GPU,
// which are cards too but have none of the files of a PCI device.
func amdCards(root fs.FS) ([]amdCard, error) {
	entries, err := fs.ReadDir(root, drmClass)
	if err != nil {
		return nil, errors.New("no AMD GPU: /" + drmClass + " cannot be listed")
	}
	var cards []amdCard
	for _, e := range entries {
		digits, isCard := strings.CutPrefix(e.Name(), "card")
		if _, err := strconv.Atoi(digits); !isCard || err != nil {
			continue // a connector ("card0-DP-1"), a render node
		}
		c := amdCard{dir: path.Join(drmClass, e.Name(), "device")}
		if readText(root, path.Join(c.dir, "vendor")) != "0x1002" {
			continue
		}
		uevent := readText(root, path.Join(c.dir, "uevent"))
		if uevent != "" && !strings.Contains(uevent, "DRIVER=amdgpu") {
			continue // the older radeon driver has other files
		}
		c.busID = busOf(uevent)
		c.findSensors(root)
		cards = append(cards, c)
	}
	if len(cards) == 0 {
		return nil, errors.New("no AMD GPU in /" + drmClass)
	}
	slices.SortStableFunc(cards, func(a, b amdCard) int { return cmp.Compare(a.busID, b.busID) })
	return cards, nil
}

func busOf(uevent string) string {
	for line := range strings.Lines(uevent) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), "PCI_SLOT_NAME="); ok {
			return strings.ToLower(value)
		}
	}
	return ""
}

// findSensors finds the hwmon directory and its files by label:
// "edge" is the die, "junction" its hottest spot, which is all that some have;
// "sclk" and "mclk" are the clocks of the cores and the memory (kernel,
// Documentation/gpu/amdgpu/thermal.rst).
func (c *amdCard) findSensors(root fs.FS) {
	monitors, err := fs.ReadDir(root, path.Join(c.dir, "hwmon"))
	if err != nil || len(monitors) == 0 {
		return
	}
	c.hwmon = path.Join(c.dir, "hwmon", monitors[0].Name())
	labelled := map[string]string{}
	files, err := fs.ReadDir(root, c.hwmon)
	if err != nil {
		return
	}
	for _, f := range files {
		if sensor, ok := strings.CutSuffix(f.Name(), "_label"); ok {
			labelled[readText(root, path.Join(c.hwmon, f.Name()))] = sensor + "_input"
		}
	}
	c.temperature = cmp.Or(labelled["edge"], labelled["junction"], "temp1_input")
	c.sclk = cmp.Or(labelled["sclk"], "freq1_input")
	c.mclk = cmp.Or(labelled["mclk"], "freq2_input")
}

func (c *amdCard) describe(root fs.FS, index int) Device {
	d := Device{Index: index, GI: -1, Minor: -1, BusID: c.busID}
	d.Name = readText(root, path.Join(c.dir, "product_name"))
	if d.Name == "" {
		d.Name = "AMD GPU " + cmp.Or(readText(root, path.Join(c.dir, "device")), "of an unknown kind")
	}
	d.UUID = amdUUID(readText(root, path.Join(c.dir, "unique_id")), c.busID, index)
	if total, _ := readNumber(root, path.Join(c.dir, "mem_info_vram_total")); total.OK {
		d.VRAMBytes = total
	}
	// Only processors with graphics have a northbridge voltage (thermal.rst).
	d.Integrated = c.hwmon != "" && readText(root, path.Join(c.hwmon, "in1_label")) == "vddnb"
	nodes, err := fs.ReadDir(root, path.Join(c.dir, "drm"))
	if err != nil {
		return d
	}
	for _, n := range nodes {
		if digits, ok := strings.CutPrefix(n.Name(), "renderD"); ok {
			d.Render, _ = strconv.Atoi(digits)
		}
	}
	return d
}

// amdUUID returns the ID of a device: its unique ID in the form of ROCR_VISIBLE_DEVICES,
// else its PCI address, else its number.
func amdUUID(unique, busID string, number int) string {
	unique = strings.TrimPrefix(strings.ToLower(unique), "0x")
	if n, err := strconv.ParseUint(unique, 16, 64); err == nil && n != 0 {
		return fmt.Sprintf("GPU-%016x", n)
	}
	if busID == "" {
		return "AMD-" + strconv.Itoa(number)
	}
	return "PCI-" + busID
}

// amdFile is a file with one number.
type amdFile struct {
	field engine.GPUField
	names []string // alternatives, the preferred one first
	unit  float64  // the file's units in one of the field's
}

func (c *amdCard) files() []amdFile {
	in := func(name string) string { return path.Join(c.dir, name) }
	files := []amdFile{
		{engine.GPUUtil, []string{in("gpu_busy_percent")}, 100},
		{engine.GPUMemUtil, []string{in("mem_busy_percent")}, 100},
		{engine.GPUVRAMTotal, []string{in("mem_info_vram_total")}, 1},
		{engine.GPUVRAMUsed, []string{in("mem_info_vram_used")}, 1},
	}
	mon := func(name string) string { return path.Join(c.hwmon, name) }
	if c.hwmon == "" {
		return files
	}
	return append(files,
		amdFile{engine.GPUPowerW, []string{mon("power1_input"), mon("power1_average")}, 1e6},
		amdFile{engine.GPUPowerLimitW, []string{mon("power1_cap")}, 1e6},
		amdFile{engine.GPUTemperatureC, []string{mon(c.temperature)}, 1e3},
		amdFile{engine.GPUSMClockMHz, []string{mon(c.sclk)}, 1e6},
		amdFile{engine.GPUMemClockMHz, []string{mon(c.mclk)}, 1e6},
		amdFile{engine.GPUEnergyJ, []string{mon("energy1_input")}, 1e6},
	)
}

// read reads every file of the card. It does not touch a suspended card, because most
// files would wake it.
func (c *amdCard) read(root fs.FS) amdOutcome {
	var out amdOutcome
	if readText(root, path.Join(c.dir, "power", "runtime_status")) == "suspended" {
		out.lost = errAsleep
		return out
	}
	out.why = allFor("the amdgpu driver does not report it")
	out.why[clockEvents] = untranslatedThrottle
	gone := true
	for _, file := range c.files() {
		v, name, err := firstNumber(root, file.names)
		if err != nil {
			gone = gone && errors.Is(err, fs.ErrNotExist)
			out.why[file.field] = whyUnread(file.names, err)
			continue
		}
		gone = false
		if !plausible(file.field, v/file.unit) {
			out.why[file.field] = fmt.Sprintf("the driver says %g in %s, which is impossible", v, path.Base(name))
			continue
		}
		out.gpu.Fields[file.field] = stat.Some(v / file.unit)
		out.why[file.field] = ""
		if file.field == engine.GPUPowerW {
			out.instant = path.Base(name) == "power1_input"
		}
	}
	if gone {
		out.lost = errors.New("its files under /" + c.dir + " are gone")
		return out
	}
	c.clocksByLevel(root, &out)
	return out
}

// clocksByLevel reads clocks that hwmon lacks from the lists of levels, where a star marks
// the current level.
func (c *amdCard) clocksByLevel(root fs.FS, out *amdOutcome) {
	for f, name := range map[engine.GPUField]string{engine.GPUSMClockMHz: "pp_dpm_sclk", engine.GPUMemClockMHz: "pp_dpm_mclk"} {
		if out.gpu.Fields[f].OK {
			continue
		}
		if mhz, ok := presentLevel(readText(root, path.Join(c.dir, name))); ok {
			out.gpu.Fields[f] = stat.Some(mhz)
			out.why[f] = ""
		}
	}
}

// presentLevel returns the clock in MHz of the line marked with a star: "1: 2100Mhz *".
func presentLevel(levels string) (mhz float64, ok bool) {
	for line := range strings.Lines(levels) {
		fields := strings.Fields(line)
		if len(fields) < 3 || fields[len(fields)-1] != "*" {
			continue
		}
		v, err := strconv.ParseFloat(strings.TrimSuffix(strings.ToLower(fields[1]), "mhz"), 64)
		return v, err == nil && v >= 0 && !math.IsInf(v, 0)
	}
	return 0, false
}

func whyUnread(names []string, err error) string {
	bases := make([]string, len(names))
	for i, n := range names {
		bases[i] = path.Base(n)
	}
	files := strings.Join(bases, " or ")
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "the driver has no " + files + " for this GPU"
	case errors.Is(err, fs.ErrPermission):
		return "no permission to read " + files + ": run rooftop as root, or in the groups video and render"
	}
	return "the driver does not answer for " + files
}

// firstNumber returns the number in the first file that has one, and the name of that
// file.
func firstNumber(root fs.FS, names []string) (v float64, name string, err error) {
	for _, n := range names {
		o, e := readNumber(root, n)
		if e == nil {
			return o.V, n, nil
		}
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			err = e
		}
	}
	return 0, "", err
}

func readNumber(root fs.FS, name string) (stat.Opt, error) {
	text, err := fs.ReadFile(root, name)
	if err != nil {
		return stat.None, err
	}
	v, err := strconv.ParseFloat(strings.TrimSpace(string(text)), 64)
	if err != nil || v < 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		return stat.None, fmt.Errorf("%s holds no number", path.Base(name))
	}
	return stat.Some(v), nil
}

// readText reads a small file and trims blanks; "" if it cannot be read.
func readText(root fs.FS, name string) string {
	text, err := fs.ReadFile(root, name)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// plausible reports whether a value in the field's unit is possible: a utilization cannot
// exceed 1.
func plausible(f engine.GPUField, v float64) bool {
	return v <= 1 || f != engine.GPUUtil && f != engine.GPUMemUtil
}
