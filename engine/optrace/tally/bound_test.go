package tally

import (
	"math"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// TestBoundOfCounters compares the limits with the examples of the paper.
func TestBoundOfCounters(t *testing.T) {
	for _, c := range []struct {
		name                         string
		instructions, cycles, misses uint64
		have                         uint16
		want                         optrace.Bound
	}{
		{"mul_mat: IPC 3.41, misses 0.0002", 341_000_000, 100_000_000, 68_200, 7, optrace.BoundCompute},
		{"soft_max: IPC 0.87, misses 0.018", 87_000_000, 100_000_000, 1_566_000, 7, optrace.BoundMemory},
		{"rope: IPC 1.24, misses 0.009", 124_000_000, 100_000_000, 1_116_000, 7, optrace.BoundMixed},
		{"fast, but it misses", 300_000_000, 100_000_000, 3_000_000, 7, optrace.BoundMixed},
		{"no misses could be counted", 300_000_000, 100_000_000, 0, 3, optrace.BoundUnknown},
		{"nothing ran", 0, 0, 0, 7, optrace.BoundUnknown},
	} {
		t.Run(c.name, func(t *testing.T) {
			var n counts
			s := optrace.Counted{Have: c.have}
			s.Value[optrace.Instructions], s.Value[optrace.Cycles], s.Value[optrace.LLCMisses] = c.instructions, c.cycles, c.misses
			n.add(&s)
			if got := n.bound(); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// TestBoundOfRoofline goes along the ridge of a machine with 20 GB/s and 100 GFLOP/s,
// five operations a byte, and 400 G operations a second on eight-bit integers, which
// count for kernels that do more than 100.
func TestBoundOfRoofline(t *testing.T) {
	r := optrace.Peak{BytesPerSecond: 20e9, FlopsPerSecond: 100e9, Int8PerSecond: 400e9, From: "measured"}
	for _, c := range []struct {
		bytes, flops float64
		weights      string
		at           float64 // G operations a second that it reached
		want         optrace.Bound
	}{
		{100, 100, "f32", 9, optrace.BoundMemory}, {100, 390, "f32", 9, optrace.BoundMemory}, {100, 450, "f32", 9, optrace.BoundMixed}, {100, 600, "f32", 9, optrace.BoundMixed},
		{100, 640, "f32", 9, optrace.BoundCompute}, {100, 100, "q4_0", 9, optrace.BoundMemory}, {100, 1500, "q4_0", 30, optrace.BoundCompute},
		{100, 1500, "q4_0", 200, optrace.BoundMemory}, {100, 2600, "q4_0", 200, optrace.BoundCompute}, {100, 1500, "f16", 200, optrace.BoundCompute},
		{100, 0, "", 0, optrace.BoundMemory}, {0, 0, "", 0, optrace.BoundUnknown},
	} {
		w := optrace.Work{Bytes: 1e9 * c.bytes, Flops: 1e9 * c.flops, Weights: c.weights}
		if c.at > 0 {
			w.Took = time.Duration(c.flops / c.at * 1e9)
		}
		if got := r.BoundOf(w); got != c.want {
			t.Errorf("%v operations on %v bytes of %q: %q, want %q", c.flops, c.bytes, c.weights, got, c.want)
		}
	}
	if got := (optrace.Peak{BytesPerSecond: 20e9}).BoundOf(optrace.Work{Bytes: 100, Flops: 100}); got != optrace.BoundUnknown {
		t.Errorf("half a roof: %q", got)
	}
}

// TestFasterThanMemory has an operator whose operands come from caches, to which the memory's
// peak does not apply.
func TestFasterThanMemory(t *testing.T) {
	m := newModel()
	g := run([]uint32{m.op("ADD", "", tensor("l_out-0", "f32", 1024), tensor("a", "f32", 1024), tensor("b", "f32", 1024))}, 1, 0, each(100))
	tally := New(m.tables)
	tally.Graph(g)
	// 12288 bytes in 100 ns are 123 GB/s.
	for bandwidth, want := range map[float64]optrace.Bound{50e9: optrace.BoundUnknown, 120e9: optrace.BoundMemory, 1e12: optrace.BoundNeither} {
		k := tally.Summary(Settings{Peak: optrace.Peak{BytesPerSecond: bandwidth, FlopsPerSecond: 1e12, From: "measured"}}).Kinds[0]
		if k.Bound != want || k.OfPeak.OK == (want == optrace.BoundUnknown) {
			t.Errorf("memory of %v: %q, of the roof %v", bandwidth, k.Bound, k.OfPeak)
		}
	}
}

// TestRoofSeen uses the best rates of a trace as its peak, and only the side that the trace has
// reached.
func TestRoofSeen(t *testing.T) {
	m := newModel()
	big := func(tokens int64) uint32 {
		return m.op("MUL_MAT", "", tensor("ffn_up-0", "f32", 4096, tokens), tensor("blk.0.ffn_up.weight", "f16", 4096, 4096), tensor("x", "f32", 4096, tokens))
	}
	decode := run([]uint32{big(1)}, 2, 0, each(time.Millisecond))
	decode.Phase, decode.Tokens = optrace.PhaseDecode, 1
	tally := New(m.tables)
	for range seenOperators {
		tally.Graph(decode)
	}
	s := tally.Summary(Settings{})
	bytes := 2.0*4096*4096 + 4096*4*2
	if s.Peak.From != "seen" || s.Peak.Threads != 2 || s.Peak.FlopsPerSecond != 0 || s.Kinds[0].Bound != optrace.BoundUnknown {
		t.Errorf("decode alone: %+v, %+v", s.Peak, s.Kinds)
	}
	if s.Phases[0].Ceiling.OK {
		t.Errorf("a ceiling of %v, which is what the trace itself reached", s.Phases[0].Ceiling)
	}
	measured := optrace.Peak{BytesPerSecond: bytes * 2000, FlopsPerSecond: 1e15, From: "measured"}
	near(t, "ceiling", tally.Summary(Settings{Peak: measured}).Phases[0].Ceiling, 2000)
	near(t, "rate", s.Kinds[0].BytesRate, bytes*1000)
	prefill := run([]uint32{big(512)}, 2, 0, each(10*time.Millisecond))
	prefill.Phase, prefill.Tokens = optrace.PhasePrefill, 512
	for range seenOperators {
		tally.Graph(prefill)
	}
	s = tally.Summary(Settings{})
	if s.Peak.FlopsPerSecond != 2*4096*4096*512*100 || s.Peak.BytesPerSecond != bytes*1000 {
		t.Errorf("with a prefill: %+v", s.Peak)
	}
	bounds := map[string]optrace.Bound{}
	for _, k := range s.Kinds {
		bounds[k.Phase] = k.Bound
	}
	if bounds["prefill"] != optrace.BoundCompute || bounds["decode"] != optrace.BoundMemory {
		t.Errorf("bounds: %v", bounds)
	}
	if got := New(&optrace.Tables{}).Summary(Settings{}).Peak; got.From != "" {
		t.Errorf("nothing seen: %+v", got)
	}
}

// TestBoundOfWhatIsFarBelow checks that an operator which uses a fifth of the memory's rate is
// not called memory-bound.
func TestBoundOfWhatIsFarBelow(t *testing.T) {
	r := optrace.Peak{BytesPerSecond: 20e9, FlopsPerSecond: 100e9}
	for _, test := range []struct {
		name         string
		bytes, flops float64 // in a millisecond
		off          time.Duration
		reckoned     bool
		want         optrace.Bound
		of           stat.Opt
	}{
		{"half of the memory", 10e6, 10e6, 0, false, optrace.BoundMemory, stat.Some(0.5)},
		{"a fifth of the memory", 4e6, 4e6, 0, false, optrace.BoundNeither, stat.Some(0.2)},
		{"a fifth of the memory, and off the CPU for half of the time", 4e6, 4e6, time.Millisecond / 2, false, optrace.BoundMemory, stat.Some(0.2)},
		{"a fifth of the operations", 1e5, 20e6, 0, false, optrace.BoundNeither, stat.Some(0.2)},
		{"all of the operations", 1e5, 100e6, 0, false, optrace.BoundCompute, stat.Some(1)},
		{"more than all of the operations, as reckoned", 1e5, 110e6, 0, true, optrace.BoundCompute, stat.None},
	} {
		g := group{}
		g.add(&step{threads: 1, off: test.off}, time.Millisecond, &optrace.Cost{ReadBytes: test.bytes, Flops: test.flops, Known: true, Exact: !test.reckoned})
		row := g.row(New(&optrace.Tables{}), r, optrace.LevelAll)
		fast := r
		fast.Int8PerSecond = 700e9
		g.key.weights = "q8_0"
		if test.want == optrace.BoundCompute && g.row(New(&optrace.Tables{}), fast, optrace.LevelAll).Bound != optrace.BoundCompute {
			t.Errorf("%s: not bound by computing where bare products of integers are seven times as fast", test.name)
		}
		if row.Bound != test.want || row.OfPeak.OK != test.of.OK || math.Abs(row.OfPeak.V-test.of.V) > 1e-9 {
			t.Errorf("%s: %q at %v of the roof, want %q at %v", test.name, row.Bound, row.OfPeak, test.want, test.of)
		}
	}
}

// TestBoundOfWhatIsNotKnown checks that an unknown operator is not called memory-bound for lack
// of operations.
func TestBoundOfWhatIsNotKnown(t *testing.T) {
	m := newModel()
	g := run([]uint32{m.op("LIGHTNING_INDEXER", "", tensor("scores", "f32", 1024), tensor("q", "f32", 1024), tensor("k", "f32", 1024))}, 1, 0, each(time.Microsecond))
	tally := New(m.tables)
	tally.Graph(g)
	// 12 KiB in a microsecond are 12 GB/s.
	k := tally.Summary(Settings{Peak: optrace.Peak{BytesPerSecond: 20e9, FlopsPerSecond: 100e9, From: optrace.PeakMeasured}}).Kinds[0]
	if k.Bound != optrace.BoundUnknown || k.BoundFrom != "" || k.OfPeak.OK || !k.Estimated {
		t.Errorf("%q from %q at %v of the roof", k.Bound, k.BoundFrom, k.OfPeak)
	}
}

// TestBoundWhileWaiting checks that an operator whose threads hardly computed is bound by
// neither memory nor computing. With a peak of 20 GB/s, 10 MB in a millisecond are half.
func TestBoundWhileWaiting(t *testing.T) {
	r := optrace.Peak{BytesPerSecond: 20e9, FlopsPerSecond: 100e9}
	type lane struct{ sync, off time.Duration } // in microseconds
	for _, test := range []struct {
		name  string
		bytes float64
		lanes []lane
		count bool // counters that say compute
		want  optrace.Bound
		from  string
	}{
		{"two lanes that compute", 10e6, []lane{{}, {}}, false, optrace.BoundMemory, optrace.FromRoofline},
		{"one lane of two waits for the other", 10e6, []lane{{}, {sync: 900}}, false, optrace.BoundMemory, optrace.FromRoofline},
		{"three of four wait for the one that computes", 10e6, []lane{{}, {sync: 900}, {sync: 900}, {sync: 900}}, false, optrace.BoundWaiting, optrace.FromThreads},
		{"both off the CPU for more than half of it", 10e6, []lane{{off: 520}, {off: 510}}, false, optrace.BoundWaiting, optrace.FromThreads},
		{"one off the CPU, the other waits for it", 10e6, []lane{{off: 600}, {sync: 600}}, false, optrace.BoundWaiting, optrace.FromThreads},
		// 0.3 + 0.3 may be the same 300 us, in a barrier that sleeps.
		{"what is off the CPU in a barrier counts once", 10e6, []lane{{sync: 300, off: 300}, {sync: 300, off: 300}}, false, optrace.BoundMemory, optrace.FromRoofline},
		// Undisturbed for 20 to 60 % of the time: 0.25 of the peak is at least 0.25/0.6 = 0.42 then.
		{"a quarter of the memory, off for two fifths each", 5e6, []lane{{off: 400}, {off: 400}}, false, optrace.BoundMemory, optrace.FromRoofline},
		// 0.1 of the peak in 20 to 60 %: 0.17 to 0.5, on both sides of a third.
		{"a tenth of the memory, off for two fifths each", 2e6, []lane{{off: 400}, {off: 400}}, false, optrace.BoundUnknown, ""},
		{"a fiftieth of the memory, off for two fifths each", 4e5, []lane{{off: 400}, {off: 400}}, false, optrace.BoundNeither, optrace.FromRoofline},
		{"counters see no time off the CPU", 10e6, []lane{{off: 600}, {off: 600}}, true, optrace.BoundCompute, optrace.FromCounters},
		{"counters count waits that spin", 10e6, []lane{{sync: 600}, {sync: 600}}, true, optrace.BoundWaiting, optrace.FromThreads},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := step{}
			for _, l := range test.lanes {
				p := optrace.Span{End: time.Millisecond, Sync: l.sync * time.Microsecond, Off: l.off * time.Microsecond}
				if test.count {
					p.Counters = &optrace.Counted{Have: 7}
					p.Counters.Value[optrace.Instructions], p.Counters.Value[optrace.Cycles], p.Counters.Value[optrace.LLCMisses] = 3000, 1000, 1
				}
				s.add(&p)
			}
			g := group{}
			g.add(&s, time.Millisecond, &optrace.Cost{ReadBytes: test.bytes, Flops: test.bytes, Known: true, Exact: true})
			row := g.row(New(&optrace.Tables{}), r, optrace.LevelAll)
			if row.Bound != test.want || row.BoundFrom != test.from {
				t.Errorf("%q from %q, want %q from %q", row.Bound, row.BoundFrom, test.want, test.from)
			}
			if row.Bound == optrace.BoundWaiting && row.OfPeak.OK {
				t.Errorf("%v of a roof that does not bound it", row.OfPeak.V)
			}
		})
	}
}
