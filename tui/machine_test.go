package tui

import (
	"fmt"
	"math/rand/v2"
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

func TestMachineSays(t *testing.T) {
	for _, c := range []struct {
		name string
		s    *loop.Snapshot
		says []string
		not  []string
	}{
		{
			"one GPU", snapshotNamed(t, "waiting"),
			[]string{"GPU 0 NVIDIA A100-SXM4-80GB", "busy 97 %", "memory 71.8 of 80.0 GiB", "power 287 of 400 W", "temperature 61 °C", "core clock 1,410 MHz", "├ engine-core", "waits for a core", "4188 running", "0.990", "● fresh", "250 ms"},
			[]string{" old", "throttled:"},
		},
		{
			"limits of clock and temperature", change(t, "waiting", func(s *loop.Snapshot) {
				g := *fixtureGPU(s.Now)
				g.Devices[0].Fields[engine.GPUTemperatureLimitC], g.Devices[0].Fields[engine.GPUSMClockMaxMHz] = stat.Some(87), stat.Some(1980)
				s.GPU = &g
			}),
			[]string{"temp 61 of 87 °C", "clock 1,410 of 1,980 MHz"}, []string{"core clock"},
		},
		{
			"what it does not measure is not a zero", change(t, "waiting", func(s *loop.Snapshot) {
				g := *fixtureGPU(s.Now)
				g.Devices[0].Fields = [engine.NumGPUFields]stat.Opt{}
				s.GPU = &g
			}),
			[]string{"busy –", "memory –", "power –"}, []string{" 0 %", "DRAM –"},
		},
		{
			"throttled", change(t, "waiting", func(s *loop.Snapshot) {
				g := *fixtureGPU(s.Now)
				g.Devices[0].ThrottleOK, g.Devices[0].Throttle = true, 0x4|0x20
				s.GPU = &g
			}),
			[]string{"▲ throttled: power limit, temperature (driver)"}, nil,
		},
		{
			"no GPU says why, and what it costs", snapshotNamed(t, "nogpu"),
			[]string{"No GPU is readable: no NVML library", "Switched off: utilization, power", "· absent"}, []string{"busy"},
		},
		{
			"no processes", change(t, "waiting", func(s *loop.Snapshot) {
				s.Processes, s.Launch = nil, ""
				s.Sources = freshSources(s.Now)
				s.Sources[2] = loop.SourceState{Name: "processes", State: loop.SourceAbsent, Why: "the server runs on another machine"}
			}),
			[]string{"None is readable: the server runs on another machine.", "Switched off: the launch command"}, []string{"engine-core"},
		},
		{
			"old readings have their age", change(t, "waiting", func(s *loop.Snapshot) {
				s.Sources = freshSources(s.Now)
				s.Sources[1].State, s.Sources[1].Last, s.Sources[1].Why = loop.SourceFailing, s.Now-70*time.Second, "NVML: GPU is lost"
				s.Sources[1].Failures = 280
			}),
			[]string{"▲ 70 s old", "✖ failing", "280", "GPUs: NVML: GPU is lost."}, nil,
		},
		{
			"a process that does not do its part", snapshotNamed(t, "down"),
			[]string{"▲ problem: engine-core (4188) is gone"}, nil,
		},
		{"many GPUs are a table", snapshotNamed(t, "long"), []string{"16 GPUs", "0 A100-SXM4-80GB", "71.8 / 80.0 GiB", "287 / 400 W"}, []string{"busy 97 % █"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := drawn(machine, c.s, unicodeLook(), 120, 120)
			text := strings.Join(strings.Fields(strings.ReplaceAll(got, "─", "")), " ")
			for _, want := range c.says {
				if !strings.Contains(text, want) {
					t.Errorf("%q is missing", want)
				}
			}
			for _, not := range c.not {
				if strings.Contains(text, not) {
					t.Errorf("%q is there", not)
				}
			}
			if t.Failed() {
				t.Log("\n" + got)
			}
		})
	}
}

// TestGPULinesLeaveOutWhatDoesNotFit draws two GPUs beside the figures: what is left out is left out whole, and a
// throttled GPU says so at any width.
func TestGPULinesLeaveOutWhatDoesNotFit(t *testing.T) {
	s := change(t, "waiting", func(s *loop.Snapshot) {
		g := *fixtureGPU(s.Now)
		d := g.Devices[0]
		d.Fields[engine.GPUTemperatureLimitC], d.Fields[engine.GPUSMClockMaxMHz] = stat.Some(87), stat.Some(1980)
		hot := d
		hot.Index, hot.ThrottleOK, hot.Throttle = 1, true, 0x20
		g.Devices = []engine.GPU{d, hot}
		s.GPU = &g
	})
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

// TestTreeLosesNobody checks that each process is listed once, whatever the parents.
func TestTreeLosesNobody(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for range 500 {
		list := make([]loop.Process, r.IntN(9))
		for i := range list {
			list[i] = loop.Process{PID: r.IntN(7), PPID: r.IntN(7)}
		}
		seen := map[*loop.Process]int{}
		for _, b := range tree(list) {
			seen[b.process]++
		}
		for i := range list {
			if seen[&list[i]] != 1 {
				t.Fatalf("%+v is listed %d times of %+v", list[i], seen[&list[i]], list)
			}
		}
	}
}
