package capture

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// minCovered is the share of the run that readings must cover for a valid mean.
const minCovered = 0.9

// rateAveraging is the minimum time between two samples of NVML's performance counters, which give
// mean rates between samples (nvml.h, nvmlGpmSampleGet).
const rateAveraging = 100 * time.Millisecond

// gpuUsage returns the usage of each sampled GPU over the run, in order of first appearance.
//
// Means weight each reading by the time that it represents, so that missed readings do not favour
// the ones before or after. A reading that is itself a mean over the last second includes a second
// before it: for such fields only readings count whose own second lies within the run, and a run
// shorter than that has none.
func (c *Capture) gpuUsage() []GPUUsage {
	devices := c.gpuSeries()
	usage := make([]GPUUsage, 0, len(devices))
	for _, d := range devices {
		u := GPUUsage{Index: d.index, Name: d.name, UUID: d.uuid, Throttle: d.throttle, ThrottleOK: d.throttleOK}
		for f := range engine.NumGPUFields {
			u.Fields[f] = c.gpuRow(f, d)
		}
		u.Energy = c.gpuEnergy(d)
		usage = append(usage, u)
	}
	return usage
}

// gpuReadings has the readings of one device by field.
type gpuReadings struct {
	index      int
	name, uuid string
	fields     [engine.NumGPUFields]series
	every      time.Duration // distance between the capture's readings
	throttle   uint64
	throttleOK bool
}

// gpuSeries collects the readings of each device. Devices are identified by UUID, or by index
// without one.
func (c *Capture) gpuSeries() []*gpuReadings {
	type identity struct {
		uuid  string
		index int
	}
	known := map[identity]*gpuReadings{}
	points := map[*gpuReadings]*[engine.NumGPUFields][]point{}
	var devices []*gpuReadings
	for _, r := range c.GPUs.Readings {
		around := r.T >= c.Begin-c.Period && r.T <= c.End+c.Period
		for i := range r.Devices {
			g := &r.Devices[i]
			id := identity{g.UUID, g.Index}
			if g.UUID != "" {
				id.index = 0
			}
			d := known[id]
			if d == nil {
				d = &gpuReadings{index: g.Index, name: g.Name, uuid: g.UUID}
				known[id], points[d] = d, &[engine.NumGPUFields][]point{}
				devices = append(devices, d)
			}
			for f, v := range g.Fields {
				if v.Finite().OK {
					points[d][f] = append(points[d][f], point{r.T, v.V})
				}
			}
			if g.ThrottleOK && around {
				d.throttle |= g.Throttle
				d.throttleOK = true
			}
		}
	}
	all := make([]point, len(c.GPUs.Readings))
	for i, r := range c.GPUs.Readings {
		all[i].at = r.T
	}
	every := newSeries(all).pace(c.Period)
	for _, d := range devices {
		d.every = every
		for f := range d.fields {
			d.fields[f] = newSeries(points[d][f])
		}
	}
	return devices
}

// averaging returns the time over which a reading of a field is itself a mean.
func (c *Capture) averaging(f engine.GPUField) time.Duration {
	switch f {
	case engine.GPUPowerW:
		if c.GPUs.InstantPower {
			return 0
		}
		return c.GPUs.Averaging
	case engine.GPUUtil, engine.GPUMemUtil:
		return c.GPUs.Averaging
	case engine.GPUDRAMActive, engine.GPUTensorUtil, engine.GPUSMActive,
		engine.GPUPCIeTxBps, engine.GPUPCIeRxBps, engine.GPUNVLinkTxBps, engine.GPUNVLinkRxBps:
		return rateAveraging
	}
	return 0
}

// pace returns the distance between readings of a field if none is missed. A field that the source
// reads in turns with others has a longer one, but at most a second unless all fields have.
func (d *gpuReadings) pace(s series) time.Duration {
	return min(s.pace(d.every), max(time.Second, d.every))
}

// gpuRow returns the mean and peak of one field over the run.
func (c *Capture) gpuRow(f engine.GPUField, d *gpuReadings) Row {
	s := d.fields[f]
	switch {
	case len(s) == 0:
		return Row{Reason: "no reading includes it"}
	case f == engine.GPUEnergyJ:
		return Row{Samples: len(s.within(c.Begin, c.End, c.Period)), Reason: "a counter: see energy for its growth"}
	}
	w := c.window(f, d)
	row := Row{Samples: len(w.readings), Reason: w.reason}
	if w.tooShort || len(w.readings) == 0 {
		return row
	}
	row.Peak = stat.Some(w.readings.peak())
	row.Mean = w.mean
	return row
}

// window is the evaluation of a series over the run.
type window struct {
	readings series
	mean     stat.Opt
	covered  float64 // share of the run, 0..1
	tooShort bool
	reason   string // why there is no mean
}

func (c *Capture) window(f engine.GPUField, d *gpuReadings) window {
	s := d.fields[f]
	averaging, pace := c.averaging(f), d.pace(s)
	if c.Span() < averaging {
		return window{
			readings: s.within(c.Begin, c.End, pace), tooShort: true,
			reason: fmt.Sprintf("the run of %s is shorter than the %s over which %s averages it",
				figure.Duration(c.Span()), figure.Duration(averaging), c.source()),
		}
	}
	lo, hi, reach := c.Begin+averaging, c.End, pace
	if averaging > 0 {
		reach = averaging / 10 // maximum part of the averaging time outside the run
	}
	w := window{readings: s.within(lo, hi, reach)}
	if len(w.readings) == 0 {
		w.reason = "no reading lies within the run"
		return w
	}
	if hi-lo < pace {
		// Two readings cannot be expected, so use the plain mean.
		w.mean, w.covered = w.readings.mean(), 1
		return w
	}
	sum, covered := w.readings.integral(lo, hi, pace)
	w.covered = covered.Seconds() / (hi - lo).Seconds()
	if w.covered < minCovered {
		w.reason = fmt.Sprintf("readings cover %.0f %% of the run", 100*w.covered)
		return w
	}
	w.mean = stat.Some(sum / covered.Seconds())
	return w
}

// source names the source of the GPU readings, for a sentence.
func (c *Capture) source() string {
	if c.GPUs.From == "" {
		return "the source"
	}
	return c.GPUs.From
}

// GPUNames returns the names of the GPUs, with equal names counted: "2 × NVIDIA L4, NVIDIA H100".
// It returns "" if there are none.
func (s *Summary) GPUNames() string {
	var names []string
	n := map[string]int{}
	for i := range s.GPUs {
		if n[s.GPUs[i].Name]++; n[s.GPUs[i].Name] == 1 {
			names = append(names, s.GPUs[i].Name)
		}
	}
	for i, name := range names {
		names[i] = cmp.Or(name, "unnamed")
		if n[name] > 1 {
			names[i] = strconv.Itoa(n[name]) + " × " + names[i]
		}
	}
	return strings.Join(names, ", ")
}
