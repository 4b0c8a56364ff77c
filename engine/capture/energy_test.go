package capture

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// meter is a device with a power reading and a counter that changes only every update, with a large
// initial value.
func meter(update time.Duration, watts func(at time.Duration) float64, joules func(at time.Duration) float64) func(time.Duration) engine.GPU {
	return func(at time.Duration) engine.GPU {
		var g engine.GPU
		if watts != nil {
			g.Fields[engine.GPUPowerW] = stat.Some(watts(at))
		}
		if joules != nil {
			g.Fields[engine.GPUEnergyJ] = stat.Some(1e6 + joules(at.Truncate(update)))
		}
		return g
	}
}

func at300W(at time.Duration) float64 { return 300 * at.Seconds() }

// burst draws 100 W before and after the run, and 700 W during it.
func burst(end time.Duration) func(at time.Duration) float64 {
	return func(at time.Duration) float64 {
		in := min(max(at-time.Second, 0), end-time.Second)
		return 100*at.Seconds() + 600*in.Seconds()
	}
}

func TestGPUEnergy(t *testing.T) {
	const s = time.Second
	tests := []struct {
		name    string
		capture *Capture
		joules  stat.Opt
		within  float64 // share of joules
		how     string
		reason  string // part of it
	}{
		{"a counter that moves at every reading", run(10*s, meter(ms, nil, at300W)), stat.Some(3000), 1e-6, "energy counter", ""},
		{"one that moves every 100 ms", run(10*s, meter(100*ms, nil, at300W)), stat.Some(3000), 0.006, "energy counter", ""},
		{"one that moves every 70 ms, out of step with the readings", run(10*s, meter(70*ms, nil, at300W)), stat.Some(3000), 0.006, "energy counter", ""},
		{"a burst from idle", run(10*s, meter(100*ms, nil, burst(11*s))), stat.Some(7000), 0.006, "energy counter", ""},
		{"a short burst says how well it is known", run(s, meter(100*ms, nil, burst(2*s))), stat.Some(700), 0.06, "energy counter", "± 5 % in a run of 1.00\u00a0s"},
		{"a counter holds what happened while readings were missing",
			without(run(10*s, meter(100*ms, nil, at300W)), 4*s, 8*s), stat.Some(3000), 0.006, "energy counter", ""},
		{"shorter than the counter's update", run(90*ms, meter(20*ms, constant(300), at300W)), stat.None, 0, "",
			"the run of 90.0\u00a0ms is shorter than the energy counter's update interval of up to 100\u00a0ms; power: the run of 90.0\u00a0ms is shorter than the 1.00\u00a0s over which NVML averages it"},
		{"a few steps of the counter", run(150*ms, meter(100*ms, nil, at300W)), stat.None, 0, "", "the run is too short for the step size of the energy counter; no power reading"},
		{"the counter falls: power stands in", run(10*s, meter(ms, constant(300), func(at time.Duration) float64 {
			if at > 5*s {
				return at300W(at) - 1400
			}
			return at300W(at)
		})), stat.Some(3000), 1e-6, "integrated power", "the energy counter fell during the run"},
		{"the counter stands still under power", run(10*s, meter(ms, constant(300), constant(0))), stat.Some(3000), 1e-6, "integrated power", "did not change for 10.0\u00a0s while power was drawn"},
		{"it stops halfway", run(10*s, meter(ms, constant(300), func(at time.Duration) float64 { return at300W(min(at, 5*s)) })),
			stat.Some(3000), 1e-6, "integrated power", "did not change for 5.95\u00a0s"},
		{"a GPU that is off draws nothing", run(10*s, meter(ms, constant(0), constant(0))), stat.Some(0), 0, "integrated power", "changed less than twice"},
		{"no counter", run(10*s, meter(ms, constant(300), nil)), stat.Some(3000), 1e-6, "integrated power", ""},
		{"no counter, and a gap of half a second is not bridged", without(run(10*s, meter(ms, constant(300), nil)), 6*s, 6500*ms),
			stat.Some(3000), 1e-6, "integrated power, readings cover 94 % of the run", ""},
		{"no counter, and half of the run is missing", without(run(10*s, meter(ms, constant(300), nil)), 4*s, 9*s), stat.None, 0, "", "power: readings cover"},
		{"no counter and a run shorter than the averaging of power", run(350*ms, meter(ms, constant(300), nil)), stat.None, 0, "",
			"power: the run of 350\u00a0ms is shorter than the 1.00\u00a0s"},
		{"nothing", run(10*s, meter(ms, nil, nil)), stat.None, 0, "", "no power reading"},
		{"a single reading", without(run(10*s, meter(ms, constant(300), at300W)), 1010*ms, time.Minute), stat.None, 0, "",
			"the energy counter changed less than twice"},
		{"lost halfway", without(run(10*s, meter(ms, constant(300), at300W)), 6*s, time.Minute), stat.None, 0, "",
			"readings of the energy counter miss 5.05\u00a0s of the run; power: readings cover"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := tt.capture.gpuUsage()[0].Energy
			if got.Joules.OK != tt.joules.OK || math.Abs(got.Joules.V-tt.joules.V) > tt.within*tt.joules.V+1e-9 {
				t.Errorf("energy: got %v J, want %v within %v", got.Joules, tt.joules, tt.within)
			}
			if got.How != tt.how {
				t.Errorf("how: got %q, want %q", got.How, tt.how)
			}
			if !strings.Contains(got.Reason, tt.reason) || (tt.reason == "") != (got.Reason == "") {
				t.Errorf("reason: got %q, want %q", got.Reason, tt.reason)
			}
		})
	}
}

func TestTotalEnergy(t *testing.T) {
	counter := meter(ms, constant(300), at300W)
	powered := meter(ms, constant(100), nil)
	blind := with(engine.GPUVRAMUsed, constant(1))
	tests := []struct {
		name    string
		capture *Capture
		joules  stat.Opt
		how     string
		reason  string
	}{
		{"two counters", run(10*time.Second, counter, counter), stat.Some(6000), "energy counter", ""},
		{"a counter and power", run(10*time.Second, counter, powered), stat.Some(4000), "energy counter of some GPUs, integrated power of others", ""},
		{"one of two has no reading: the sum is not that of the other", run(10*time.Second, counter, blind), stat.None, "", "GPU 1: no power reading"},
		{"none is sampled", &Capture{End: time.Second, GPUs: GPUs{Why: "no GPU is readable"}}, stat.None, "", "no GPU is readable"},
		{"none, without a reason", &Capture{End: time.Second}, stat.None, "", "no GPU was sampled"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := tt.capture.totalEnergy(tt.capture.gpuUsage())
			near(t, "energy", got.Joules, tt.joules)
			if got.How != tt.how || got.Reason != tt.reason {
				t.Errorf("got %q, %q; want %q, %q", got.How, got.Reason, tt.how, tt.reason)
			}
		})
	}
}
