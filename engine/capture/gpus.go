package capture

import (
	"fmt"
	"math"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// minCovered is the share of the run that readings must cover for a mean of them
// to be one of the run.
const minCovered = 0.9

// The rates that NVML's performance counters give are means between two of its
// samples, which lie 100 ms apart at least (nvml.h, nvmlGpmSampleGet).
const rateAveraging = 100 * time.Millisecond

// gpuUsage says what each sampled GPU did over the run, in order of first
// appearance.
//
// Means weigh each reading by the time it stands for, so that ticks that were
// missed do not favour what came before or after them. A reading that is itself
// a mean of the last second holds a second of what came before it: of such
// fields only the readings count whose own second lies inside the run, and a run
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

// gpuReadings are one device's, by field.
type gpuReadings struct {
	index      int
	name, uuid string
	fields     [engine.NumGPUFields]series
	every      time.Duration // how far apart the capture's readings lie
	throttle   uint64
	throttleOK bool
}

// gpuSeries gathers the readings of each device. A device is known by its UUID,
// by its index where it has none.
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
				if v.OK && !math.IsNaN(v.V) && !math.IsInf(v.V, 0) {
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

// averaging is over how long a reading of a field is itself a mean.
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

// pace is how far apart readings of a field lie when none is missed. A field
// that the source tells in turns has a longer one than the others, but no more
// than a second unless all have.
func (d *gpuReadings) pace(s series) time.Duration {
	return min(s.pace(d.every), max(time.Second, d.every))
}

// gpuRow is the mean and peak of one field over the run.
func (c *Capture) gpuRow(f engine.GPUField, d *gpuReadings) Row {
	s := d.fields[f]
	switch {
	case len(s) == 0:
		return Row{Reason: "no reading has it"}
	case f == engine.GPUEnergyJ:
		return Row{Samples: len(s.within(c.Begin, c.End, c.Period)), Reason: "a counter: its growth is the energy"}
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

// window is what a series says of the run.
type window struct {
	readings series
	mean     stat.Opt
	covered  float64 // 0..1 of the run
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
				rounded(c.Span()), rounded(averaging), c.source()),
		}
	}
	lo, hi, reach := c.Begin+averaging, c.End, pace
	if averaging > 0 {
		reach = averaging / 10 // of what it averages lies outside of the run, at most
	}
	w := window{readings: s.within(lo, hi, reach)}
	if len(w.readings) == 0 {
		w.reason = "no reading falls into the run"
		return w
	}
	if hi-lo < pace {
		// Two readings cannot be expected: the plain mean of what there is.
		w.mean, w.covered = stat.Some(plainMean(w.readings)), 1
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

func plainMean(s series) float64 {
	sum := 0.0
	for _, p := range s {
		sum += p.v
	}
	return sum / float64(len(s))
}

// source names what the GPUs were read from, for a sentence.
func (c *Capture) source() string {
	if c.GPUs.From == "" {
		return "the source"
	}
	return c.GPUs.From
}

// rounded shortens a duration for a sentence.
func rounded(d time.Duration) time.Duration {
	if d < time.Second {
		return d.Round(time.Millisecond)
	}
	return d.Round(10 * time.Millisecond)
}
