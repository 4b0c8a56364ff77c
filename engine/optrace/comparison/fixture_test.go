package comparison

import (
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// even returns a distribution without scatter.
func even(n int, d time.Duration) stat.Distribution {
	return stat.Distribution{Count: n, Mean: d, P50: d, P95: d, P99: d, Max: d}
}

// healthy returns a trace of four threads on eight CPUs that decode q4_0 weights at 70 % of the
// memory's rate: below the peak, and well configured.
func healthy() *optrace.Summary {
	some := stat.Some
	s := &optrace.Summary{
		Target: optrace.Target{PID: 100, Command: "/usr/bin/llama-server -m model.gguf", CPUs: 4, Arch: "amd64"},
		Coverage: optrace.Coverage{Seconds: 20, Detail: "barriers+sched", Events: 1e6, Graphs: 510, Partial: 2, Calls: 510,
			OpShare: some(0.999), OpsPerToken: some(379)},
		Observer: optrace.Observer{HitsPerToken: 3900, CostPerHit: 585 * time.Nanosecond, Expected: 0.016},
		Peak: optrace.Peak{BytesPerSecond: 40e9, FlopsPerSecond: 400e9, Threads: 4, From: "measured", ByThreads: []optrace.PeakPoint{
			{Threads: 1, BytesPerSecond: 20e9, FlopsPerSecond: 100e9},
			{Threads: 2, BytesPerSecond: 32e9, FlopsPerSecond: 200e9},
			{Threads: 4, BytesPerSecond: 40e9, FlopsPerSecond: 400e9},
		}},
		Phases: []optrace.PhaseRow{
			{Phase: "prefill", Calls: 10, Tokens: 3000, Call: even(10, 400*time.Millisecond), Graph: even(10, 398*time.Millisecond), Rate: some(750),
				FirstToken: even(10, 420*time.Millisecond), Bytes: some(10e9), Flops: some(1e12), BytesRate: some(2.5e9), FlopsRate: some(250e9)},
			{Phase: "decode", Calls: 500, Tokens: 500, Call: even(500, 22*time.Millisecond), Graph: even(500, 21900*time.Microsecond), Rate: some(45),
				Between: even(490, 400*time.Microsecond), Bytes: some(310e9), Flops: some(1e12), BytesRate: some(28e9), FlopsRate: some(91e9)},
		},
		Kinds: []optrace.OperatorRow{
			{Phase: "decode", Op: "MUL_MAT", Type: "q4_0", Share: some(0.9), Bound: optrace.BoundMemory},
			{Phase: "decode", Op: "FLASH_ATTN_EXT", Share: some(0.06), Bound: optrace.BoundMemory},
			{Phase: "decode", Op: "ADD", Share: some(0.04), Bound: optrace.BoundMixed},
		},
		Types: []optrace.TypeRow{{Type: "q4_0", Phase: "decode", Share: some(0.9)}, {Type: "q4_0", Phase: "prefill", Share: some(0.9)}},
	}
	for lane := range 4 {
		s.Threads = append(s.Threads, optrace.ThreadRow{Thread: lane, ThreadIDs: 1, Busy: some(0.93), Sync: some(0.06), Off: some(0.008), Preempted: some(0.004),
			MajorFaults: some(0), MinorFaults: some(100)})
	}
	for layer := range 22 {
		s.Layers = append(s.Layers, optrace.LayerRow{Phase: "decode", Layer: layer, Share: some(0.042), Slow: some(1 + 0.01*float64(layer%3-1)),
			Parts: map[string]time.Duration{"attention": 10, "feed-forward": 20}})
	}
	for range 40 {
		s.Tokens = append(s.Tokens, optrace.TokenRow{Phase: "decode", Tokens: 1, Time: 22 * time.Millisecond, Graph: 21900 * time.Microsecond})
	}
	s.Others = []optrace.OtherRow{{PID: 7, Name: "kworker/0:1", Time: 10 * time.Millisecond, Share: some(0.001)}}
	s.Context = []optrace.ContextRow{
		{Length: 256, Graphs: 250, Attention: time.Millisecond, Graph: 22 * time.Millisecond, Share: some(0.045)},
		{Length: 512, Graphs: 250, Attention: 1900 * time.Microsecond, Graph: 23 * time.Millisecond, Share: some(0.083)},
	}
	return s
}

func phaseOf(s *optrace.Summary, name string) *optrace.PhaseRow {
	for i := range s.Phases {
		if s.Phases[i].Phase == name {
			return &s.Phases[i]
		}
	}
	return nil
}

func decodeOf(s *optrace.Summary) *optrace.PhaseRow { return phaseOf(s, "decode") }

// lanes calls f with the row of each thread.
func lanes(s *optrace.Summary, f func(lane int, t *optrace.ThreadRow)) {
	for i := range s.Threads {
		f(i, &s.Threads[i])
	}
}

func stolen(s *optrace.Summary) {
	lanes(s, func(lane int, t *optrace.ThreadRow) {
		t.Busy, t.Sync, t.Off, t.Preempted = stat.Some(0.6), stat.Some(0.38), stat.Some(0.01), stat.Some(0.005)
		if lane == 2 {
			t.Busy, t.Sync, t.Off, t.Preempted = stat.Some(0.62), stat.Some(0.01), stat.Some(0.37), stat.Some(0.36)
		}
	})
	s.Others = []optrace.OtherRow{{PID: 4242, Name: "stress", Time: 7 * time.Second, Share: stat.Some(0.35)}}
}

func smallBatches(s *optrace.Summary) {
	p := prefillOf(s)
	p.Calls, p.Tokens = 200, 3200
	p.Call, p.Graph = even(200, 40*time.Millisecond), even(200, 39*time.Millisecond)
	p.Bytes, p.Flops = stat.Some(126e9), stat.Some(0.5e12) // 4 operations a byte, the ridge is at 10
}

func longContext(s *optrace.Summary) {
	s.Context = []optrace.ContextRow{
		{Length: 512, Graphs: 100, Attention: time.Millisecond, Graph: 22 * time.Millisecond, Share: stat.Some(0.05)},
		{Length: 8192, Graphs: 100, Attention: 16 * time.Millisecond, Graph: 37 * time.Millisecond, Share: stat.Some(0.43)},
	}
	s.Kinds[1].BytesRate = stat.Some(30e9)
}

func prefillOf(s *optrace.Summary) *optrace.PhaseRow { return phaseOf(s, "prefill") }

// reads sets the rate at which decode moves bytes.
func reads(s *optrace.Summary, rate float64) { decodeOf(s).BytesRate = stat.Some(rate) }

// crowdedOut is two threads on two CPUs, one of which another program uses all the time: the
// threads take turns on the other one and preempt each other.
func crowdedOut(s *optrace.Summary) {
	s.Target.CPUs = 2
	reads(s, 15e9)
	s.Threads = s.Threads[:2]
	lanes(s, func(_ int, t *optrace.ThreadRow) {
		t.Busy, t.Sync, t.Off, t.Preempted = stat.Some(0.3), stat.Some(0.2), stat.Some(0.5), stat.Some(0.49)
	})
	s.Others = []optrace.OtherRow{{Name: optrace.SiblingName, Time: 8 * time.Second, Share: stat.Some(0.45)}, {PID: 31, Name: "engine.test", Time: 600 * time.Millisecond, Share: stat.Some(0.029)}}
	s.Preempted = optrace.Preempted{Time: optrace.SomeTime(20 * time.Second), OwnCPUs: stat.Some(1.02), Threads: stat.Some(1.01)}
	s.HostLoad = &optrace.HostLoad{
		Elapsed: 20 * time.Second, CPUs: 2, Target: 20 * time.Second, Rooftop: 200 * time.Millisecond, Others: 19600 * time.Millisecond, Idle: 200 * time.Millisecond,
		Processes: []optrace.ProcessLoad{{PID: 31, Name: "engine.test", Time: 19400 * time.Millisecond}, {PID: 32, Name: "sh", Time: 150 * time.Millisecond}},
		Throttled: stat.Some(0),
	}
}

// spaced is a sentence with plain spaces in its figures.
func spaced(s string) string { return strings.ReplaceAll(s, figure.NBSP, " ") }
