package capture

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

const ms = time.Millisecond

// run returns a capture that begins at 1 s and lasts for span, sampled every 50 ms and just before
// and just after it.
func run(span time.Duration, devices ...func(at time.Duration) engine.GPU) *Capture {
	c := &Capture{Period: 50 * ms, Begin: time.Second, End: time.Second + span}
	c.GPUs.From, c.GPUs.Averaging = "NVML", time.Second
	for at := c.Begin - 2*ms; at < c.End; at += c.Period {
		c.GPUs.Readings = append(c.GPUs.Readings, reading(at, devices...))
	}
	c.GPUs.Readings = append(c.GPUs.Readings, reading(c.End+2*ms, devices...))
	return c
}

func reading(at time.Duration, devices ...func(at time.Duration) engine.GPU) engine.GPUReading {
	r := engine.GPUReading{T: at}
	for i, d := range devices {
		g := d(at)
		g.Index = i
		r.Devices = append(r.Devices, g)
	}
	return r
}

// with returns a device with one field.
func with(f engine.GPUField, v func(at time.Duration) float64) func(time.Duration) engine.GPU {
	return func(at time.Duration) engine.GPU {
		var g engine.GPU
		g.Fields[f] = stat.Some(v(at))
		return g
	}
}

func constant(v float64) func(time.Duration) float64 {
	return func(time.Duration) float64 { return v }
}

// ramp grows by one per second.
func ramp(at time.Duration) float64 { return at.Seconds() }

// without removes the readings in a time range.
func without(c *Capture, from, to time.Duration) *Capture {
	kept := c.GPUs.Readings[:0]
	for _, r := range c.GPUs.Readings {
		if r.T < from || r.T >= to {
			kept = append(kept, r)
		}
	}
	c.GPUs.Readings = kept
	return c
}

func TestGPURows(t *testing.T) {
	tests := []struct {
		name       string
		capture    *Capture
		field      engine.GPUField
		mean, peak stat.Opt
		samples    int
		reason     string // part of it
	}{
		{"VRAM is an instant: a run of 80 ms has it", run(80*ms, with(engine.GPUVRAMUsed, constant(5e9))),
			engine.GPUVRAMUsed, stat.Some(5e9), stat.Some(5e9), 3, ""},
		{"a run that is shorter than the period has the forced readings", run(10*ms, with(engine.GPUTemperatureC, constant(40))),
			engine.GPUTemperatureC, stat.Some(40), stat.Some(40), 2, ""},
		{"the mean of a ramp is its middle", run(10*time.Second, with(engine.GPUSMClockMHz, ramp)),
			engine.GPUSMClockMHz, stat.Some(6), stat.Some(11.002), 202, ""},
		{"power over a run shorter than its averaging", run(350*ms, with(engine.GPUPowerW, constant(170))),
			engine.GPUPowerW, stat.None, stat.None, 9, "the run of 350\u00a0ms is shorter than the 1.00\u00a0s over which NVML averages it"},
		{"utilization too", run(350*ms, with(engine.GPUUtil, constant(0.5))),
			engine.GPUUtil, stat.None, stat.None, 9, "shorter"},
		{"power as long as its averaging: one reading is all of the run", run(time.Second, with(engine.GPUPowerW, constant(170))),
			engine.GPUPowerW, stat.Some(170), stat.Some(170), 2, ""},
		{"what power was before the run does not count: the mean from a step at its begin",
			run(10*time.Second, with(engine.GPUPowerW, func(at time.Duration) float64 { return 100 + 600*min(max(at-time.Second, 0), time.Second).Seconds() })),
			engine.GPUPowerW, stat.Some(700), stat.Some(700), 182, ""},
		{"instant power needs no averaging", func() *Capture {
			c := run(350*ms, with(engine.GPUPowerW, constant(170)))
			c.GPUs.InstantPower = true
			return c
		}(), engine.GPUPowerW, stat.Some(170), stat.Some(170), 9, ""},
		{"a rate of the counters needs 100 ms", run(90*ms, with(engine.GPUDRAMActive, constant(0.5))),
			engine.GPUDRAMActive, stat.None, stat.None, 3, "shorter than the 100\u00a0ms"},
		{"a field that no reading has", run(time.Second, with(engine.GPUPowerW, constant(1))),
			engine.GPUVRAMUsed, stat.None, stat.None, 0, "no reading includes it"},
		{"a missed tick is bridged", without(run(10*time.Second, with(engine.GPUSMClockMHz, ramp)), 6*time.Second, 6100*ms),
			engine.GPUSMClockMHz, stat.Some(6), stat.Some(11.002), 200, ""},
		{"a longer gap is left out of the mean, and the rest is enough",
			without(run(10*time.Second, with(engine.GPUSMClockMHz, constant(1500))), 6*time.Second, 6500*ms),
			engine.GPUSMClockMHz, stat.Some(1500), stat.Some(1500), 192, ""},
		{"lost halfway: no mean, but a peak", without(run(10*time.Second, with(engine.GPUSMClockMHz, ramp)), 6*time.Second, time.Minute),
			engine.GPUSMClockMHz, stat.None, stat.Some(5.998), 101, "readings cover 50 % of the run"},
		{"a single reading", without(run(10*time.Second, with(engine.GPUTemperatureC, constant(50))), 1100*ms, time.Minute),
			engine.GPUTemperatureC, stat.None, stat.Some(50), 3, "readings cover 1 % of the run"},
		{"only readings before the run", without(run(10*time.Second, with(engine.GPUPowerW, constant(50))), 1500*ms, time.Minute),
			engine.GPUPowerW, stat.None, stat.None, 0, "no reading lies within the run"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			row := tt.capture.gpuUsage()[0].Fields[tt.field]
			near(t, "mean", row.Mean, tt.mean)
			near(t, "peak", row.Peak, tt.peak)
			if row.Samples != tt.samples {
				t.Errorf("samples: got %d, want %d", row.Samples, tt.samples)
			}
			if !strings.Contains(row.Reason, tt.reason) || (tt.reason == "") != (row.Reason == "") {
				t.Errorf("reason: got %q, want %q", row.Reason, tt.reason)
			}
		})
	}
}

func near(t *testing.T, what string, got, want stat.Opt) {
	t.Helper()
	if got.OK != want.OK || math.Abs(got.V-want.V) > 1e-3*math.Abs(want.V) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// A plain mean would favour times with closely spaced readings.
func TestGPUMeanWeighsByTime(t *testing.T) {
	c := &Capture{Period: 50 * ms, End: 4 * time.Second}
	for _, p := range []struct {
		at time.Duration
		v  float64
	}{{0, 1000}, {50 * ms, 1000}, {100 * ms, 1000}, {150 * ms, 1000}, {200 * ms, 1000}, {1200 * ms, 2000}, {2200 * ms, 2000}, {3200 * ms, 2000}, {4000 * ms, 2000}} {
		c.GPUs.Readings = append(c.GPUs.Readings, reading(p.at, with(engine.GPUSMClockMHz, constant(p.v))))
	}
	// 0.2 s at 1000, a ramp of 1 s, 2.8 s at 2000.
	near(t, "mean", c.gpuUsage()[0].Fields[engine.GPUSMClockMHz].Mean, stat.Some((0.2*1000+1*1500+2.8*2000)/4))
}

func TestGPUDevices(t *testing.T) {
	c := &Capture{Period: 50 * ms, End: time.Second}
	for i := range 21 {
		r := engine.GPUReading{T: time.Duration(i) * 50 * ms}
		a := engine.GPU{Index: 0, Name: "A", UUID: "GPU-a", Throttle: 4, ThrottleOK: true}
		b := engine.GPU{Index: 0, Name: "B", UUID: "MIG-b"}
		if i == 10 {
			a.Throttle = 0x20
		}
		if i > 10 {
			a.Throttle, a.ThrottleOK = 0, false
		}
		r.Devices = []engine.GPU{a, b}
		if i%2 == 1 {
			r.Devices = []engine.GPU{b, a} // another order is not another device
		}
		c.GPUs.Readings = append(c.GPUs.Readings, r)
	}
	got := c.gpuUsage()
	if len(got) != 2 || got[0].UUID != "GPU-a" || got[1].UUID != "MIG-b" || got[0].Name != "A" {
		t.Fatalf("devices: got %+v", got)
	}
	if got[0].Throttle != 0x24 || !got[0].ThrottleOK {
		t.Errorf("throttle: got %#x, %v, want every reason seen, 0x24", got[0].Throttle, got[0].ThrottleOK)
	}
	if got[1].ThrottleOK {
		t.Error("a device that never reported its reasons has some")
	}
}
