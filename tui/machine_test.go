package tui

import (
	"strings"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/loop"
	"github.com/rooftop-dev/rooftop/engine/stat"
	"github.com/rooftop-dev/rooftop/tui/cell"
	"github.com/rooftop-dev/rooftop/tui/frame"
)

// withGPU returns a run whose GPU is changed.
func withGPU(t testing.TB, by func(g *engine.GPU)) *loop.Snapshot {
	return change(t, "waiting", func(s *loop.Snapshot) { by(&s.GPU.Devices[0]) })
}

func TestMachineSays(t *testing.T) {
	for _, c := range []struct {
		name string
		s    *loop.Snapshot
		says []string
		not  []string
	}{
		{"one GPU", snapshotNamed(t, "waiting"), []string{"core clock 1,410 MHz"}, []string{" old", "throttled:"}},
		{"limits of clock and temperature", withGPU(t, func(g *engine.GPU) {
			g.Fields[engine.GPUTemperatureLimitC], g.Fields[engine.GPUSMClockMaxMHz] = some(87), some(1980)
		}), []string{"temperature 61 of 87 °C", "core clock 1,410 of 1,980 MHz"}, nil},
		{"what it does not measure is not a zero", withGPU(t, func(g *engine.GPU) {
			g.Fields = [engine.NumGPUFields]stat.Opt{}
		}), []string{"busy –", "memory –", "power –"}, []string{" 0 %", "DRAM –"}},
		{"throttled", withGPU(t, func(g *engine.GPU) {
			g.ThrottleOK, g.Throttle = true, 0x4|0x20
		}), []string{"▲ throttled: power limit, temperature (driver)"}, nil},
		{
			"no GPU says why, and what it costs", snapshotNamed(t, "nogpu"),
			[]string{"No GPU is readable: no NVML library", "Switched off: utilization, power", "– absent"}, []string{"busy"},
		},
		{
			"no processes", change(t, "waiting", func(s *loop.Snapshot) {
				s.Processes, s.Launch = nil, ""
				s.Sources[2] = loop.SourceState{Name: "processes", State: loop.SourceAbsent, Why: "the server runs on another machine"}
			}),
			[]string{"None is readable: the server runs on another machine.", "The launch command, its flags and"}, []string{"engine-core"},
		},
		{
			"old readings have their age", change(t, "waiting", func(s *loop.Snapshot) {
				s.Sources[1].State, s.Sources[1].Last, s.Sources[1].Why = loop.SourceFailing, s.Now-70*time.Second, "NVML: GPU is lost"
				s.Sources[1].Failures = 280
			}),
			[]string{"▲ 1 min 10 s old", "✖ failing", "280", "GPUs: NVML: GPU is lost."}, nil,
		},
		{"a process that does not do its part", snapshotNamed(t, "down"), []string{"▲ problem: engine-core (4188) is gone"}, nil},
		{"many GPUs are a table", snapshotNamed(t, "long"), []string{"16 GPUs", "0 A100-SXM4-80GB", "71.8 / 80.0 GiB", "287 / 400 W"}, []string{"busy 97 % █"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			says(t, drawn(machine, c.s, plainLook(), 120, 120), c.says, c.not)
		})
	}
}

// TestAThrottledGPUSaysSoAtAnyWidth draws two GPUs beside the figures.
func TestAThrottledGPUSaysSoAtAnyWidth(t *testing.T) {
	s := withGPU(t, func(g *engine.GPU) {
		g.Fields[engine.GPUTemperatureLimitC], g.Fields[engine.GPUSMClockMaxMHz] = some(87), some(1980)
	})
	hot := s.GPU.Devices[0]
	hot.Index, hot.ThrottleOK, hot.Throttle = 1, true, 0x20
	s.GPU.Devices = append(s.GPU.Devices, hot)
	for w := 52; w <= 100; w++ {
		u, c := plainLook(), cell.NewCanvas(w, 8)
		u.Column(c.Pane(), []frame.Panel{(&nowView{s: s, u: u}).gpus(w)}, false)
		if text := c.Plain(); !strings.Contains(text, "throttled: temperature") {
			t.Errorf("at %d cells:\n%s", w, text)
		}
	}
}
