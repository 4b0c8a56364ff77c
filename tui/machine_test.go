package tui

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

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
		}), []string{"temp 61 of 87 °C", "clock 1,410 of 1,980 MHz"}, []string{"core clock"}},
		{"what it does not measure is not a zero", withGPU(t, func(g *engine.GPU) {
			g.Fields = [engine.NumGPUFields]stat.Opt{}
		}), []string{"busy –", "memory –", "power –"}, []string{" 0 %", "DRAM –"}},
		{"throttled", withGPU(t, func(g *engine.GPU) {
			g.ThrottleOK, g.Throttle = true, 0x4|0x20
		}), []string{"▲ throttled: power limit, temperature (driver)"}, nil},
		{
			"no GPU says why, and what it costs", snapshotNamed(t, "nogpu"),
			[]string{"No GPU is readable: no NVML library", "Switched off: utilization, power", "· absent"}, []string{"busy"},
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

// TestGPULinesLeaveOutWhatDoesNotFit draws two GPUs beside the figures: what is left out is left out whole, and a
// throttled GPU says so at any width.
func TestGPULinesLeaveOutWhatDoesNotFit(t *testing.T) {
	s := withGPU(t, func(g *engine.GPU) {
		g.Fields[engine.GPUTemperatureLimitC], g.Fields[engine.GPUSMClockMaxMHz] = some(87), some(1980)
	})
	hot := s.GPU.Devices[0]
	hot.Index, hot.ThrottleOK, hot.Throttle = 1, true, 0x20
	s.GPU.Devices = append(s.GPU.Devices, hot)
	for w := 40; w <= 70; w++ {
		u, c := plainLook(), cell.NewCanvas(w, 8)
		u.Column(c.Pane(), []frame.Panel{(&nowView{s: s, u: u}).gpus(w)}, false)
		text := c.Plain()
		if strings.Contains(text, "…") || !strings.Contains(text, "throttled: temperature") {
			t.Errorf("at %d cells:\n%s", w, text)
		}
	}
}

func TestTree(t *testing.T) {
	p := func(pid, ppid int) loop.Process { return loop.Process{PID: pid, PPID: ppid} }
	for _, c := range []struct {
		name string
		list []loop.Process
		want string
	}{
		{"a launcher, its server, two workers", []loop.Process{p(12, 11), p(10, 1), p(11, 10), p(13, 11)}, "0:10 1:11 2:12 2:13"},
		{"two roots", []loop.Process{p(20, 1), p(10, 1), p(21, 20)}, "0:10 0:20 1:21"},
		{"its own parent", []loop.Process{p(5, 5)}, "0:5"},
		{"a circle", []loop.Process{p(5, 6), p(6, 5)}, "0:5 1:6"},
		{"none", nil, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			for _, b := range tree(c.list) {
				got = append(got, fmt.Sprintf("%d:%d", b.depth, b.process.PID))
			}
			if diff := cmp.Diff(c.want, strings.Join(got, " ")); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}
