package advice

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"
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
		Peak:     optrace.Peak{BytesPerSecond: 40e9, FlopsPerSecond: 400e9, Threads: 4, From: "measured"},
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

func decodeOf(s *optrace.Summary) *optrace.PhaseRow  { return phaseOf(s, "decode") }
func prefillOf(s *optrace.Summary) *optrace.PhaseRow { return phaseOf(s, "prefill") }

// reads sets the rate at which decode moves bytes.
func reads(s *optrace.Summary, rate float64) { decodeOf(s).BytesRate = stat.Some(rate) }

// lanes calls f with the row of each thread.
func lanes(s *optrace.Summary, f func(lane int, t *optrace.ThreadRow)) {
	for i := range s.Threads {
		f(i, &s.Threads[i])
	}
}

func ids(findings []optrace.Finding) []string {
	var out []string
	for _, f := range findings {
		out = append(out, f.ID)
	}
	return out
}

func stolen(s *optrace.Summary) {
	lanes(s, func(lane int, t *optrace.ThreadRow) {
		t.Busy, t.Sync, t.Off, t.Preempted = stat.Some(0.6), stat.Some(0.38), stat.Some(0.01), stat.Some(0.005)
		if lane == 2 {
			t.Busy, t.Sync, t.Off, t.Preempted = stat.Some(0.62), stat.Some(0.01), stat.Some(0.37), stat.Some(0.36)
		}
	})
	s.Preempted.Time = optrace.SomeTime(8 * time.Second)
	s.HostLoad = &optrace.HostLoad{Elapsed: 20 * time.Second, CPUs: 4, Others: 7 * time.Second, Kernel: 10 * time.Millisecond}
}

func oversubscribe(s *optrace.Summary) {
	s.Target.CPUs = 3
	lanes(s, func(_ int, t *optrace.ThreadRow) {
		t.Busy, t.Sync, t.Off, t.Preempted = stat.Some(0.4), stat.Some(0.35), stat.Some(0.25), stat.Some(0.24)
	})
}

// uneven is a server whose threads wait for CPUs, in a trace without scheduling.
func uneven(s *optrace.Summary) {
	lanes(s, func(_ int, t *optrace.ThreadRow) { t.Off, t.Preempted = stat.None, stat.None })
	d := decodeOf(s)
	d.Graph.P95 = 20 * d.Graph.P50
	d.Graph.P99, d.Graph.Max = d.Graph.P95, d.Graph.P95
}

func unevenLanes(s *optrace.Summary) {
	lanes(s, func(lane int, t *optrace.ThreadRow) {
		t.Busy, t.Sync = stat.Some(0.4), stat.Some(0.59)
		if lane == 0 {
			t.Busy, t.Sync = stat.Some(0.98), stat.Some(0.01)
		}
	})
}

func cold(s *optrace.Summary) {
	lanes(s, func(_ int, t *optrace.ThreadRow) {
		t.Off, t.Preempted, t.MajorFaults, t.IOBytes = stat.Some(0.3), stat.Some(0.004), stat.Some(900), stat.Some(60e6)
		t.Busy = stat.Some(0.64)
	})
	for i := range s.Tokens {
		s.Tokens[i].Off = optrace.SomeTime(20 * time.Millisecond)
	}
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

func split(s *optrace.Summary) {
	s.Backends = []optrace.BackendRow{{Name: "CUDA0", Splits: 1530}, {Name: "CPU", Splits: 1530, Seen: true}}
	s.Copies = []optrace.CopyRow{{Direction: "set", Count: 5000, Bytes: 40e9}, {Direction: "get", Count: 5000, Bytes: 20e9}}
}

func eightBits(s *optrace.Summary) {
	s.Types = []optrace.TypeRow{{Type: "q8_0", Phase: "decode", Share: stat.Some(0.92)}}
	reads(s, 35e9)
}

func mixture(s *optrace.Summary) {
	s.Experts = &optrace.Experts{Count: 8, Used: 2, Tokens: 1000, Layers: []optrace.ExpertLayer{
		{Layer: 0, Chosen: []int64{250, 250, 250, 250, 250, 250, 250, 250}, CV: stat.Some(0), Top: stat.Some(0.25)},
		{Layer: 1, Chosen: []int64{900, 600, 200, 100, 100, 50, 30, 20}, CV: stat.Some(1.22), Top: stat.Some(0.9)},
	}}
}

// TestFindings has, for each finding, a trace with it and near misses without it. want is every
// finding of the trace.
func TestFindings(t *testing.T) {
	tests := []struct {
		name string
		make func(*optrace.Summary)
		want []string
	}{
		{"the roof", func(s *optrace.Summary) { reads(s, 38e9) }, []string{"decode-at-memory-peak"}},
		{"just below the roof", func(s *optrace.Summary) { reads(s, 33.9e9) }, nil},
		{"the trace's own best is not a peak", func(s *optrace.Summary) { reads(s, 38e9); s.Peak.From = "seen" }, nil},
		{"weights in the caches", func(s *optrace.Summary) { reads(s, 60e9) }, nil},
		{"at the roof by bytes, and bound by computing", func(s *optrace.Summary) {
			reads(s, 38e9)
			s.Kinds[0].Bound = optrace.BoundCompute
		}, nil},
		{"a roof of other threads", func(s *optrace.Summary) { reads(s, 38e9); s.Peak.Threads = 8 }, nil},

		{"tokens of very different times, and scheduling not traced", uneven, []string{"uneven-graphs"}},
		{"the same with scheduling", func(s *optrace.Summary) {
			uneven(s)
			lanes(s, func(_ int, t *optrace.ThreadRow) { t.Off, t.Preempted = stat.Some(0.001), stat.Some(0.001) })
		}, nil},
		{"tokens of different times", func(s *optrace.Summary) { uneven(s); decodeOf(s).Graph.P95 = 2 * decodeOf(s).Graph.P50 }, nil},

		{"interference", stolen, []string{"preempted"}},
		{"a little preemption", func(s *optrace.Summary) {
			stolen(s)
			lanes(s, func(_ int, t *optrace.ThreadRow) { t.Preempted, t.Sync = stat.Some(0.02), stat.Some(0.06) })
		}, nil},
		{"rooftop's own reader", func(s *optrace.Summary) { stolen(s); byReader(s) }, []string{"observer-effect"}},
		{"preempted by no other process: a limit of CPU time, or another context", func(s *optrace.Summary) { stolen(s); s.HostLoad.Others = 0 }, []string{"oversubscribed"}},
		{"put off, a little by others", func(s *optrace.Summary) { stolen(s); s.HostLoad.Others = time.Second }, []string{"oversubscribed"}},
		{"preempted for a tenth, by no known process", func(s *optrace.Summary) {
			stolen(s)
			s.Threads[2].Preempted, s.HostLoad = stat.Some(0.1), nil
		}, nil},

		{"more threads than CPUs", oversubscribe, []string{"oversubscribed"}},
		{"more threads than CPUs, scheduling not traced", func(s *optrace.Summary) {
			oversubscribe(s)
			lanes(s, func(_ int, t *optrace.ThreadRow) { t.Off, t.Preempted = stat.None, stat.None })
		}, []string{"oversubscribed"}},
		{"more threads than CPUs, and none is put off", func(s *optrace.Summary) { s.Target.CPUs = 3 }, nil},
		{"CPUs not known", func(s *optrace.Summary) { s.Target.CPUs = 0 }, nil},
		{"more lanes in prefills alone", func(s *optrace.Summary) {
			for i := range 4 {
				s.Threads = append(s.Threads, optrace.ThreadRow{Thread: 4 + i, Busy: stat.Some(0.2), Sync: stat.Some(0.01), Off: stat.Some(0)})
			}
		}, nil},

		{"lanes of unequal speed", unevenLanes, []string{"sync-bound"}},
		{"waits of a healthy run", func(s *optrace.Summary) {
			lanes(s, func(_ int, t *optrace.ThreadRow) { t.Busy, t.Sync = stat.Some(0.81), stat.Some(0.19) })
		}, nil},
		{"waits because a lane was put off", stolen, []string{"preempted"}},
		{"waits of operators that are too small", func(s *optrace.Summary) {
			lanes(s, func(_ int, t *optrace.ThreadRow) { t.Busy, t.Sync = stat.Some(0.2), stat.Some(0.79) })
		}, []string{"sync-bound"}},

		{"cold weights", cold, []string{"mmap-cold"}},
		{"a few faults of a start", func(s *optrace.Summary) {
			cold(s)
			lanes(s, func(_ int, t *optrace.ThreadRow) { t.MajorFaults = stat.Some(9) })
		}, nil},
		{"faults that cost nothing", func(s *optrace.Summary) {
			cold(s)
			lanes(s, func(_ int, t *optrace.ThreadRow) { t.Off = stat.Some(0.012) })
		}, nil},
		{"faults, and the time off the CPU not traced", func(s *optrace.Summary) {
			cold(s)
			lanes(s, func(_ int, t *optrace.ThreadRow) { t.Off, t.Preempted = stat.None, stat.None })
		}, nil},

		{"small batches", smallBatches, []string{"prefill-batch-too-small"}},
		{"short prompts, not cut", func(s *optrace.Summary) { smallBatches(s); prefillOf(s).FirstToken = even(200, time.Second) }, nil},
		{"small batches that compute enough", func(s *optrace.Summary) { smallBatches(s); prefillOf(s).Flops = stat.Some(0.9e12) }, nil},
		{"batches of the usual size", func(s *optrace.Summary) { smallBatches(s); prefillOf(s).Tokens = 200 * 256 }, nil},
		{"prefill does not matter", func(s *optrace.Summary) { smallBatches(s); prefillOf(s).Call = even(200, 4*time.Millisecond) }, nil},

		{"attention grows", longContext, []string{"attention-grows"}},
		{"a long context with little attention", func(s *optrace.Summary) { longContext(s); s.Context[1].Share = stat.Some(0.2) }, nil},
		{"much attention that does not grow", func(s *optrace.Summary) { longContext(s); s.Context[0].Attention = 15 * time.Millisecond }, nil},
		{"one long graph", func(s *optrace.Summary) { longContext(s); s.Context[1].Graphs = 2 }, nil},

		{"no repacking", func(s *optrace.Summary) { s.Target.Command += " --no-repack" }, []string{"repacking-unused"}},
		{"no repacking of what cannot be", func(s *optrace.Summary) {
			s.Target.Command += " --no-repack"
			s.Types = []optrace.TypeRow{{Type: "q5_1", Phase: "decode", Share: stat.Some(0.9)}}
		}, nil},

		{"copies", split, []string{"offload-copies"}},
		{"copies of logits", func(s *optrace.Summary) { split(s); s.Copies = []optrace.CopyRow{{Bytes: 510 * 128e3}} }, nil},
		{"a CPU alone", func(s *optrace.Summary) { split(s); s.Backends = s.Backends[1:] }, nil},
		{"a graph in one part", func(s *optrace.Summary) { split(s); s.Backends[0].Splits, s.Backends[1].Splits = 510, 510 }, nil},

		{"time between calls", func(s *optrace.Summary) { decodeOf(s).Between = even(490, 8*time.Millisecond) }, []string{"time-between-calls"}},
		{"long waits for requests", func(s *optrace.Summary) {
			decodeOf(s).Between = stat.Distribution{Count: 490, Mean: time.Second, P50: 400 * time.Microsecond, P95: time.Second, P99: time.Minute, Max: time.Hour}
		}, nil},
		{"just short enough between", func(s *optrace.Summary) { decodeOf(s).Between = even(490, 3800*time.Microsecond) }, nil},

		{"three of 22 layers attend, the others have a state", func(s *optrace.Summary) {
			for _, l := range []int{6, 13, 20} {
				s.Layers[l].Slow, s.Layers[l].Share, s.Layers[l].Make = stat.Some(1.8), stat.Some(0.07), "attention"
			}
		}, nil},
		{"a slow layer among those of the same make", func(s *optrace.Summary) {
			for l := range 11 {
				s.Layers[2*l].Slow, s.Layers[2*l].Make = stat.Some(1.5), "attention"
			}
			s.Layers[8].Slow, s.Layers[8].Share = stat.Some(3), stat.Some(0.12)
		}, []string{"slow-layer"}},
		{"a first request that reads the weights", func(s *optrace.Summary) { cold(s); s.Tokens = s.Tokens[:5] }, []string{"mmap-cold"}},
		{"a slow layer", func(s *optrace.Summary) { s.Layers[7].Slow, s.Layers[7].Share = stat.Some(2), stat.Some(0.08) }, []string{"slow-layer"}},
		{"a layer in a larger type", func(s *optrace.Summary) { s.Layers[7].Slow = stat.Some(1.22) }, nil},
		{"every second layer is another", func(s *optrace.Summary) {
			for i := range s.Layers {
				s.Layers[i].Slow = stat.Some(0.75 + float64(i%2))
			}
		}, nil},
		{"layers that scatter", func(s *optrace.Summary) {
			for i := range s.Layers {
				s.Layers[i].Slow = stat.Some(0.9 + 0.05*float64(i%5))
			}
			s.Layers[7].Slow = stat.Some(1.4)
		}, nil},
		{"few layers", func(s *optrace.Summary) {
			s.Layers = s.Layers[:5]
			s.Layers[3].Slow, s.Layers[3].Share = stat.Some(2), stat.Some(0.3)
		}, nil},

		{"eight bits at the roof", eightBits, []string{"quantisation", "decode-at-memory-peak"}},
		{"eight bits, not bound by memory", func(s *optrace.Summary) { eightBits(s); s.Kinds[0].Bound = optrace.BoundCompute }, nil},
		{"eight bits far below the roof", func(s *optrace.Summary) { eightBits(s); reads(s, 20e9) }, nil},
		{"eight bits in the output alone", func(s *optrace.Summary) { eightBits(s); s.Types[0].Share = stat.Some(0.3) }, []string{"decode-at-memory-peak"}},

		{"uneven experts", mixture, []string{"experts-uneven"}},
		{"a few choices, uneven by chance", func(s *optrace.Summary) {
			mixture(s)
			s.Experts.Layers[1] = optrace.ExpertLayer{Layer: 1, Chosen: []int64{4, 3, 2, 1, 0, 0, 0, 0}, CV: stat.Some(1.2)}
		}, nil},
		{"slightly uneven experts", func(s *optrace.Summary) { mixture(s); s.Experts.Layers[1].CV = stat.Some(0.45) }, nil},

		{"tracing measured to be dear", func(s *optrace.Summary) {
			s.Observer.Measured, s.Observer.MeasuredLow, s.Observer.MeasuredHigh, s.Observer.Windows = 0.13, 0.11, 0.18, 40
		}, []string{"observer-effect"}},
		{"tracing that may be dear", func(s *optrace.Summary) {
			s.Observer.Measured, s.Observer.MeasuredLow, s.Observer.MeasuredHigh, s.Observer.Windows = 0.06, 0.01, 0.18, 40
		}, nil},
		{"tracing expected to be dear and measured to be cheap", func(s *optrace.Summary) {
			s.Observer = optrace.Observer{Expected: 0.3, Measured: 0.02, MeasuredLow: 0.01, MeasuredHigh: 0.03, Windows: 40}
		}, nil},
		{"tracing expected to be dear", func(s *optrace.Summary) { s.Observer.Expected = 0.3 }, []string{"observer-effect"}},
		{"events lost", func(s *optrace.Summary) { s.Coverage.Dropped = 2e5 }, []string{"events-lost"}},
		{"a few events lost", func(s *optrace.Summary) { s.Coverage.Dropped = 2e4 }, nil},
		{"a short trace with two partial graphs", func(s *optrace.Summary) { s.Coverage.Graphs = 21 }, nil},

		{"a healthy trace", func(*optrace.Summary) {}, nil},
		{"nothing at all", func(s *optrace.Summary) { *s = optrace.Summary{} }, nil},
		{"too short", func(s *optrace.Summary) { reads(s, 38e9); decodeOf(s).Graph.Count = 10 }, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := healthy()
			test.make(s)
			findings, advice := Diagnose(s)
			if got := ids(findings); !slices.Equal(got, test.want) {
				t.Errorf("findings %q, want %q", got, test.want)
			}
			checkFindings(t, findings)
			checkAdvice(t, findings, &advice)
		})
	}
}

func checkFindings(t *testing.T, findings []optrace.Finding) {
	t.Helper()
	for _, f := range findings {
		if len(f.Evidence) == 0 || f.Title == "" || severityRank(f.Severity) < 0 {
			t.Errorf("%+v: no evidence, title or severity", f)
		}
		if f.Cost.OK && (f.Cost.V < 0 || f.Cost.V > 1) {
			t.Errorf("%s costs %v of the time", f.ID, f.Cost.V)
		}
		for _, e := range append(f.Evidence, f.Title) {
			if strings.Contains(e, "NaN") || strings.Contains(e, "%!") || strings.Contains(e, "Inf") {
				t.Errorf("%s: %s", f.ID, e)
			}
		}
	}
}

func checkAdvice(t *testing.T, findings []optrace.Finding, a *optrace.Advice) {
	t.Helper()
	if a.Do == "" || a.Why == "" || a.Price == "" || a.Rejected == nil {
		t.Errorf("advice without do, why, price or rejected: %+v", a)
	}
	if a.Finding != "" && !slices.Contains(ids(findings), a.Finding) {
		t.Errorf("the advice follows from %q, which was not found", a.Finding)
	}
	if a.Finding != "" && a.Check == "" {
		t.Error("no command that checks it")
	}
	if a.Gain.OK && !(a.GainLow.V <= a.Gain.V && a.Gain.V <= a.GainHigh.V) {
		t.Errorf("gain %v to %v, expected %v", a.GainLow.V, a.GainHigh.V, a.Gain.V)
	}
}

// FuzzDiagnose checks that no figures cause a panic, a cost above the whole time, or an invalid
// range.
func FuzzDiagnose(f *testing.F) {
	f.Add(38e9, 0.3, 0.9, 0.2, int64(500), 4, 1.5)
	f.Add(0.0, -1.0, 2.0, 0.0, int64(-1), 0, 0.0)
	f.Add(math.NaN(), math.Inf(1), math.NaN(), math.NaN(), int64(math.MaxInt64), -3, math.Inf(-1))
	f.Fuzz(func(t *testing.T, rate, preempted, share, sync float64, count int64, cpus int, slow float64) {
		s := healthy()
		reads(s, rate)
		s.Target.CPUs = cpus
		decodeOf(s).Graph.Count, decodeOf(s).Tokens = int(count), count
		prefillOf(s).Tokens = count
		lanes(s, func(lane int, t *optrace.ThreadRow) {
			t.Sync = stat.Some(sync * float64(lane))
			if lane%2 == 0 {
				t.Preempted, t.MajorFaults = stat.Some(preempted), stat.Some(rate)
			}
		})
		s.Context[1].Share, s.Types[0].Share = stat.Some(share), stat.Some(share)
		s.HostLoad = &optrace.HostLoad{CPUs: cpus, Others: time.Duration(count), Elapsed: time.Duration(rate), Throttled: stat.Some(slow)}
		s.Layers[3].Slow, s.Layers[3].Share = stat.Some(slow), stat.Some(share)
		s.Findings, s.Advice = Diagnose(s)
		checkAdvice(t, s.Findings, &s.Advice)
		for _, found := range s.Findings {
			if found.Cost.OK && !(found.Cost.V >= 0 && found.Cost.V <= 1) {
				t.Errorf("%s costs %v", found.ID, found.Cost.V)
			}
		}
		for _, part := range []any{s.Findings, s.Advice} {
			if _, err := json.Marshal(part); err != nil {
				t.Error(err)
			}
		}
	})
}

// byReader attributes the lost time to the reader of the trace.
func byReader(s *optrace.Summary) {
	s.Observer.Reader, s.Observer.ReaderTime = stat.Some(0.35), s.Preempted.Time.D
	s.HostLoad.Others = 0
}

// spaced joins sentences, with plain spaces in their figures.
func spaced(list ...string) string {
	return strings.ReplaceAll(strings.Join(list, " "), figure.NBSP, " ")
}
