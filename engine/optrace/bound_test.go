package optrace

import (
	"math"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

// TestBoundOfCounters holds the limits against the examples of the method's own page.
func TestBoundOfCounters(t *testing.T) {
	for _, c := range []struct {
		name                         string
		instructions, cycles, misses uint64
		have                         uint16
		want                         Bound
	}{
		{"mul_mat: IPC 3.41, misses 0.0002", 341_000_000, 100_000_000, 68_200, 7, BoundCompute},
		{"soft_max: IPC 0.87, misses 0.018", 87_000_000, 100_000_000, 1_566_000, 7, BoundMemory},
		{"rope: IPC 1.24, misses 0.009", 124_000_000, 100_000_000, 1_116_000, 7, BoundMixed},
		{"fast, but it misses", 300_000_000, 100_000_000, 3_000_000, 7, BoundMixed},
		{"no misses could be counted", 300_000_000, 100_000_000, 0, 3, BoundUnknown},
		{"nothing ran", 0, 0, 0, 7, BoundUnknown},
	} {
		t.Run(c.name, func(t *testing.T) {
			var n counts
			s := Counted{Have: c.have}
			s.Value[Instructions], s.Value[Cycles], s.Value[LLCMisses] = c.instructions, c.cycles, c.misses
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
	r := Roof{BytesPerSecond: 20e9, FlopsPerSecond: 100e9, Int8PerSecond: 400e9, From: "measured"}
	for _, c := range []struct {
		bytes, flops float64
		weights      string
		at           float64 // G operations a second that it reached
		want         Bound
	}{
		{100, 100, "f32", 9, BoundMemory}, {100, 390, "f32", 9, BoundMemory}, {100, 450, "f32", 9, BoundMixed}, {100, 600, "f32", 9, BoundMixed},
		{100, 640, "f32", 9, BoundCompute}, {100, 100, "q4_0", 9, BoundMemory}, {100, 1500, "q4_0", 30, BoundCompute},
		{100, 1500, "q4_0", 200, BoundMemory}, {100, 2600, "q4_0", 200, BoundCompute}, {100, 1500, "f16", 200, BoundCompute},
		{100, 0, "", 0, BoundMemory}, {0, 0, "", 0, BoundUnknown},
	} {
		w := work{1e9 * c.bytes, 1e9 * c.flops, c.weights, 0}
		if c.at > 0 {
			w.took = time.Duration(c.flops / c.at * 1e9)
		}
		if got := r.bound(w); got != c.want {
			t.Errorf("%v operations on %v bytes of %q: %q, want %q", c.flops, c.bytes, c.weights, got, c.want)
		}
	}
	if got := (Roof{BytesPerSecond: 20e9}).bound(work{bytes: 100, flops: 100}); got != BoundUnknown {
		t.Errorf("half a roof: %q", got)
	}
}

// TestMatmulAndAttention classifies a prefill of 512 tokens, whose matmuls compute, and
// a decode over a long cache, whose attention moves memory.
func TestMatmulAndAttention(t *testing.T) {
	m := newModel()
	tally := NewTally(m.tables)
	roof := Roof{BytesPerSecond: 20e9, FlopsPerSecond: 100e9, From: "measured"}
	// Every operator takes half as long again as the roof allows.
	near := func(refs []uint32) func(int, int) time.Duration {
		return func(step, _ int) time.Duration {
			c := CostOf(m.tables, m.tables.Operator(refs[step]), ExpertChoice{})
			moving, computing := roof.times(work{bytes: c.Bytes(), flops: c.Flops})
			return time.Duration(1.5e9*moving.Max(computing).V) + 1
		}
	}
	prompt, token := m.decoder(2, 512, 512), m.decoder(2, 1, 65536)
	prefill := run(prompt, 1, 0, near(prompt))
	prefill.Phase, prefill.Tokens = PhasePrefill, 512
	tally.Graph(prefill)
	decode := run(token, 1, prefill.End, near(token))
	decode.Phase, decode.Tokens = PhaseDecode, 1
	tally.Graph(decode)
	s := tally.Summary(Settings{Roof: roof})
	seen := map[string]Bound{}
	for _, k := range s.Kinds {
		if k.BoundFrom != FromRoofline {
			t.Errorf("%s: bound from %q", k.Op, k.BoundFrom)
		}
		seen[k.Phase+" "+k.Op+" "+k.Type] = k.Bound
	}
	for what, want := range map[string]Bound{"prefill MUL_MAT q4_0": BoundCompute, "decode MUL_MAT q4_0": BoundMemory, "decode FLASH_ATTN_EXT ": BoundMemory, "decode ADD ": BoundMemory} {
		if seen[what] != want {
			t.Errorf("%s: %q, want %q", what, seen[what], want)
		}
	}
	// The same from counters, which are believed before the roof.
	for l := range decode.Lanes {
		for k := range decode.Lanes[l].Spans {
			c := &Counted{Have: 7}
			c.Value[Instructions], c.Value[Cycles], c.Value[LLCMisses] = 3000, 1000, 1
			decode.Lanes[l].Spans[k].Counters = c
		}
	}
	tally = NewTally(m.tables)
	tally.Graph(decode)
	for _, k := range tally.Summary(Settings{Roof: s.Roof}).Kinds {
		if k.Bound != BoundCompute || k.BoundFrom != FromCounters || k.IPC.V != 3 {
			t.Errorf("%s: %q from %q, IPC %v", k.Op, k.Bound, k.BoundFrom, k.IPC)
		}
	}
}

// TestFasterThanMemory is an operator whose operands come from caches: a roof of the
// memory says nothing about it.
func TestFasterThanMemory(t *testing.T) {
	m := newModel()
	g := run([]uint32{m.op("ADD", "", tensor("l_out-0", "f32", 1024), tensor("a", "f32", 1024), tensor("b", "f32", 1024))}, 1, 0, each(100))
	tally := NewTally(m.tables)
	tally.Graph(g)
	// 12288 bytes in 100 ns are 123 GB/s.
	for bandwidth, want := range map[float64]Bound{50e9: BoundUnknown, 120e9: BoundMemory, 1e12: BoundNeither} {
		k := tally.Summary(Settings{Roof: Roof{BytesPerSecond: bandwidth, FlopsPerSecond: 1e12, From: "measured"}}).Kinds[0]
		if k.Bound != want || k.OfRoof.OK == (want == BoundUnknown) {
			t.Errorf("memory of %v: %q, of the roof %v", bandwidth, k.Bound, k.OfRoof)
		}
	}
}

// TestRoofSeen takes the best rates of a trace for a roof, and only the side of it that
// the trace has touched.
func TestRoofSeen(t *testing.T) {
	m := newModel()
	big := func(tokens int64) uint32 {
		return m.op("MUL_MAT", "", tensor("ffn_up-0", "f32", 4096, tokens), tensor("blk.0.ffn_up.weight", "f16", 4096, 4096), tensor("x", "f32", 4096, tokens))
	}
	decode := run([]uint32{big(1)}, 2, 0, each(time.Millisecond))
	decode.Phase, decode.Tokens = PhaseDecode, 1
	tally := NewTally(m.tables)
	for range seenOperators {
		tally.Graph(decode)
	}
	s := tally.Summary(Settings{})
	bytes := 2.0*4096*4096 + 4096*4*2
	if s.Roof.From != "seen" || s.Roof.Threads != 2 || s.Roof.FlopsPerSecond != 0 || s.Kinds[0].Bound != BoundUnknown {
		t.Errorf("decode alone: %+v, %+v", s.Roof, s.Kinds)
	}
	if s.Phases[0].Ceiling.OK {
		t.Errorf("a ceiling of %v, which is what the trace itself reached", s.Phases[0].Ceiling)
	}
	measured := Roof{BytesPerSecond: bytes * 2000, FlopsPerSecond: 1e15, From: "measured"}
	near(t, "ceiling", tally.Summary(Settings{Roof: measured}).Phases[0].Ceiling, 2000)
	near(t, "rate", s.Kinds[0].BytesRate, bytes*1000)
	prefill := run([]uint32{big(512)}, 2, 0, each(10*time.Millisecond))
	prefill.Phase, prefill.Tokens = PhasePrefill, 512
	for range seenOperators {
		tally.Graph(prefill)
	}
	s = tally.Summary(Settings{})
	if s.Roof.FlopsPerSecond != 2*4096*4096*512*100 || s.Roof.BytesPerSecond != bytes*1000 {
		t.Errorf("with a prefill: %+v", s.Roof)
	}
	bounds := map[string]Bound{}
	for _, k := range s.Kinds {
		bounds[k.Phase] = k.Bound
	}
	if bounds["prefill"] != BoundCompute || bounds["decode"] != BoundMemory {
		t.Errorf("bounds: %v", bounds)
	}
	if got := NewTally(&Tables{}).Summary(Settings{}).Roof; got.From != "" {
		t.Errorf("nothing seen: %+v", got)
	}
}

// TestBoundOfWhatIsFarBelow holds that what is slow for another reason is not said to be
// bound by memory, which it uses a fifth of.
func TestBoundOfWhatIsFarBelow(t *testing.T) {
	r := Roof{BytesPerSecond: 20e9, FlopsPerSecond: 100e9}
	for _, test := range []struct {
		name         string
		bytes, flops float64 // in a millisecond
		off          time.Duration
		reckoned     bool
		want         Bound
		of           stat.Opt
	}{
		{"half of the memory", 10e6, 10e6, 0, false, BoundMemory, stat.Some(0.5)},
		{"a fifth of the memory", 4e6, 4e6, 0, false, BoundNeither, stat.Some(0.2)},
		{"a fifth of the memory, and off the CPU for half of the time", 4e6, 4e6, time.Millisecond / 2, false, BoundMemory, stat.Some(0.2)},
		{"a fifth of the operations", 1e5, 20e6, 0, false, BoundNeither, stat.Some(0.2)},
		{"all of the operations", 1e5, 100e6, 0, false, BoundCompute, stat.Some(1)},
		{"more than all of the operations, as reckoned", 1e5, 110e6, 0, true, BoundCompute, stat.None},
	} {
		g := group{}
		g.add(&step{lanes: 1, off: test.off, sched: true}, time.Millisecond, &Cost{ReadBytes: test.bytes, Flops: test.flops, Known: true, Exact: !test.reckoned})
		row := g.row(NewTally(&Tables{}), r, LevelAll)
		fast := r
		fast.Int8PerSecond = 700e9
		g.key.weights = "q8_0"
		if test.want == BoundCompute && g.row(NewTally(&Tables{}), fast, LevelAll).Bound != BoundCompute {
			t.Errorf("%s: not bound by computing where bare products of integers are seven times as fast", test.name)
		}
		if row.Bound != test.want || row.OfRoof.OK != test.of.OK || math.Abs(row.OfRoof.V-test.of.V) > 1e-9 {
			t.Errorf("%s: %q at %v of the roof, want %q at %v", test.name, row.Bound, row.OfRoof, test.want, test.of)
		}
	}
}

// TestBoundOfWhatIsNotKnown holds that an operator of tomorrow, of which it is not known
// what it computes, is not bound by memory for want of operations.
func TestBoundOfWhatIsNotKnown(t *testing.T) {
	m := newModel()
	g := run([]uint32{m.op("LIGHTNING_INDEXER", "", tensor("scores", "f32", 1024), tensor("q", "f32", 1024), tensor("k", "f32", 1024))}, 1, 0, each(time.Microsecond))
	tally := NewTally(m.tables)
	tally.Graph(g)
	// 12 KiB in a microsecond are 12 GB/s.
	k := tally.Summary(Settings{Roof: Roof{BytesPerSecond: 20e9, FlopsPerSecond: 100e9, From: RoofMeasured}}).Kinds[0]
	if k.Bound != BoundUnknown || k.BoundFrom != "" || k.OfRoof.OK || !k.Estimated {
		t.Errorf("%q from %q at %v of the roof", k.Bound, k.BoundFrom, k.OfRoof)
	}
}

// TestBoundWhileWaiting holds that nothing is said to be bound by memory or by computing
// where its lanes hardly computed. Of a roof of 20 GB/s, 10 MB in a millisecond are half.
func TestBoundWhileWaiting(t *testing.T) {
	r := Roof{BytesPerSecond: 20e9, FlopsPerSecond: 100e9}
	type lane struct{ sync, off time.Duration } // in microseconds
	for _, test := range []struct {
		name  string
		bytes float64
		lanes []lane
		count bool // counters that say compute
		want  Bound
		from  string
	}{
		{"two lanes that compute", 10e6, []lane{{}, {}}, false, BoundMemory, FromRoofline},
		{"one lane of two waits for the other", 10e6, []lane{{}, {sync: 900}}, false, BoundMemory, FromRoofline},
		{"three of four wait for the one that computes", 10e6, []lane{{}, {sync: 900}, {sync: 900}, {sync: 900}}, false, BoundWaiting, FromLanes},
		{"both off the CPU for more than half of it", 10e6, []lane{{off: 520}, {off: 510}}, false, BoundWaiting, FromLanes},
		{"one off the CPU, the other waits for it", 10e6, []lane{{off: 600}, {sync: 600}}, false, BoundWaiting, FromLanes},
		// 0.3 + 0.3 may be the same 300 us, in a barrier that sleeps.
		{"what is off the CPU in a barrier counts once", 10e6, []lane{{sync: 300, off: 300}, {sync: 300, off: 300}}, false, BoundMemory, FromRoofline},
		// Undisturbed for 20 to 60 % of it: 0.25 of the roof is at least 0.25/0.6 = 0.42 of it then.
		{"a quarter of the memory, off for two fifths each", 5e6, []lane{{off: 400}, {off: 400}}, false, BoundMemory, FromRoofline},
		// 0.1 of the roof in 20 to 60 %: 0.17 to 0.5, on both sides of a third.
		{"a tenth of the memory, off for two fifths each", 2e6, []lane{{off: 400}, {off: 400}}, false, BoundUnknown, ""},
		{"a fiftieth of the memory, off for two fifths each", 4e5, []lane{{off: 400}, {off: 400}}, false, BoundNeither, FromRoofline},
		{"counters see no time off the CPU", 10e6, []lane{{off: 600}, {off: 600}}, true, BoundCompute, FromCounters},
		{"counters count waits that spin", 10e6, []lane{{sync: 600}, {sync: 600}}, true, BoundWaiting, FromLanes},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := step{barriers: true, sched: true}
			for _, l := range test.lanes {
				p := Span{End: time.Millisecond, Sync: l.sync * time.Microsecond, Off: l.off * time.Microsecond}
				if test.count {
					p.Counters = &Counted{Have: 7}
					p.Counters.Value[Instructions], p.Counters.Value[Cycles], p.Counters.Value[LLCMisses] = 3000, 1000, 1
				}
				s.add(&p)
			}
			g := group{}
			g.add(&s, time.Millisecond, &Cost{ReadBytes: test.bytes, Flops: test.bytes, Known: true, Exact: true})
			row := g.row(NewTally(&Tables{}), r, LevelAll)
			if row.Bound != test.want || row.BoundFrom != test.from {
				t.Errorf("%q from %q, want %q from %q", row.Bound, row.BoundFrom, test.want, test.from)
			}
			if row.Bound == BoundWaiting && row.OfRoof.OK {
				t.Errorf("%v of a roof that does not bound it", row.OfRoof.V)
			}
		})
	}
}
