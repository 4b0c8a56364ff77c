package optrace

import (
	"math"
	"testing"
	"time"
)

// TestComputing holds products against the rate of f32, and against that of integers only
// where kernels passed it.
func TestComputing(t *testing.T) {
	r := Roof{FlopsPerSecond: 100, Int8PerSecond: 400}
	for weights, integers := range map[string]bool{
		"q4_0": true, "q6_K": true, "q8_0": true, "iq4_nl": true, "tq1_0": true, "mxfp4": true,
		"f32": false, "f16": false, "bf16": false, "i32": false, "": false, "q": false, "iq": false, "quiet": false,
	} {
		if got, int8 := r.Computing(weights, 31); got != 100 || int8 {
			t.Errorf("%q at 31: %v, %v, want 100 of f32", weights, got, int8)
		}
		want := 100.0
		if integers {
			want = 400
		}
		if got, int8 := r.Computing(weights, 150); got != want || int8 != integers {
			t.Errorf("%q at 150: %v, %v, want %v", weights, got, int8, want)
		}
	}
	if got, int8 := (Roof{FlopsPerSecond: 100}).Computing("q4_0", 150); got != 100 || int8 {
		t.Errorf("no rate of integers: %v, %v, want that of floats", got, int8)
	}
	if got, int8 := (Roof{Int8PerSecond: 400}).Computing("q4_0", 31); got != 400 || !int8 {
		t.Errorf("no rate of floats: %v, %v, want that of integers", got, int8)
	}
}

// TestPrefillOfQuantisedWeights has the figures of a real prefill of 57 tokens on one
// thread of a CPU with 37 GB/s, 240 G operations on f32 and 960 G on integers: its kernels
// do nothing but compute at 31 % of what there is on f32. With 16 tokens it is the same.
func TestPrefillOfQuantisedWeights(t *testing.T) {
	r := Roof{BytesPerSecond: 37e9, FlopsPerSecond: 240e9, Int8PerSecond: 960e9, Threads: 1, From: RoofMeasured}
	for _, c := range []struct {
		tokens  int64
		at      float64 // G operations a second
		want    Bound
		of      float64
		ceiling bool
	}{
		{57, 75, BoundCompute, 75.0 / 240, true},
		{16, 75, BoundCompute, 75.0 / 240, true},
		{57, 400, BoundCompute, 400.0 / 960, true},    // rearranged weights
		{57, 2000, BoundCompute, 2000.0 / 960, false}, // instructions that were not measured
		{57, 15, BoundNeither, 15.0 / 240, true},
		{1, 36, BoundMemory, 36 / (2 * 1024 * 1024 / (1024*1024*34.0/32 + 8192)) / 37, true},
	} {
		m := newModel()
		x, w := tensor("ffn_norm-0", "f32", 1024, c.tokens), tensor("blk.0.ffn_up.weight", "q8_0", 1024, 1024)
		op := m.op("MUL_MAT", "", tensor("ffn_up-0", "f32", 1024, c.tokens), w, x)
		g := run([]uint32{op}, 1, 0, each(time.Duration(2*1024*1024*float64(c.tokens)/c.at)))
		g.Phase, g.Tokens = PhasePrefill, int(c.tokens)
		tally := NewTally(m.tables)
		tally.Graph(g)
		s := tally.Summary(Settings{Roof: r})
		k := s.Kinds[0]
		if k.Bound != c.want || math.Abs(k.OfRoof.V-c.of) > 0.01*c.of {
			t.Errorf("%d tokens at %v: %q at %v, want %q at %v", c.tokens, c.at, k.Bound, k.OfRoof, c.want, c.of)
		}
		ceiling := s.Phases[0].Ceiling
		if ceiling.OK != c.ceiling || ceiling.OK && ceiling.V < s.Phases[0].Rate.V {
			t.Errorf("%d tokens at %v: a ceiling of %v below %v", c.tokens, c.at, ceiling, s.Phases[0].Rate)
		}
	}
}

// TestRoofWith takes a roof that was kept to another number of threads.
func TestRoofWith(t *testing.T) {
	kept := Roof{BytesPerSecond: 40, FlopsPerSecond: 800, Int8PerSecond: 1600, Threads: 8, From: RoofMeasured, MeasuredOn: "2026-11-22", ByThreads: []RoofPoint{
		{Threads: 1, BytesPerSecond: 10, FlopsPerSecond: 100, Int8PerSecond: 200},
		{Threads: 4, BytesPerSecond: 40, FlopsPerSecond: 400, Int8PerSecond: 800},
		{Threads: 8, BytesPerSecond: 40, FlopsPerSecond: 800, Int8PerSecond: 1600},
	}}
	for threads, want := range map[int]RoofPoint{
		0: {8, 40, 800, 1600}, 1: {1, 10, 100, 200}, 2: {2, 20, 200, 400}, 4: {4, 40, 400, 800}, 8: {8, 40, 800, 1600},
	} {
		r, ok := kept.With(threads)
		if got := (RoofPoint{r.Threads, r.BytesPerSecond, r.FlopsPerSecond, r.Int8PerSecond}); !ok || got != want {
			t.Errorf("%d threads: %v, %v, want %v", threads, got, ok, want)
		}
		if r.Origin() != "measured 2026-11-22 on this machine" || len(r.ByThreads) != 3 {
			t.Errorf("%d threads: %q, %d points", threads, r.Origin(), len(r.ByThreads))
		}
	}
	if r, ok := kept.With(9); ok {
		t.Errorf("more threads than were measured: %v", r)
	}
	for _, from := range []string{RoofSeen, RoofDisturbed, ""} {
		if _, ok := (Roof{BytesPerSecond: 1, Threads: 1, From: from}).With(1); ok {
			t.Errorf("%q is a roof to compare with", from)
		}
	}
	if got := (Roof{From: RoofCatalog}).Origin(); got != "catalog (est)" {
		t.Errorf("origin %q", got)
	}
}

// TestCeilingByOrigin has a measured roof and one of the catalog give ceilings, and the
// best that was seen, or was measured beside other load, none.
func TestCeilingByOrigin(t *testing.T) {
	for from, want := range map[string]bool{RoofMeasured: true, RoofPlain: true, RoofCatalog: true, RoofSeen: false, RoofDisturbed: false} {
		m := newModel()
		tally := NewTally(m.tables)
		decode := run(m.decoder(2, 1, 64), 1, 0, each(time.Millisecond))
		decode.Phase, decode.Tokens = PhaseDecode, 1
		tally.Graph(decode)
		s := tally.Summary(Settings{Roof: Roof{BytesPerSecond: 20e9, FlopsPerSecond: 100e9, From: from}})
		if len(s.Phases) == 0 || s.Phases[len(s.Phases)-1].Ceiling.OK != want {
			t.Errorf("%s: %+v", from, s.Phases)
		}
	}
}

// TestNoShareOfARoofThatIsTooLow has a roof that was measured beside other load, and a
// model whose weights lie in caches: neither has a share or a ceiling that was passed.
func TestNoShareOfARoofThatIsTooLow(t *testing.T) {
	m := newModel()
	w := tensor("blk.0.ffn_up.weight", "f16", 256, 256)
	g := run([]uint32{m.op("MUL_MAT", "", tensor("ffn_up-0", "f32", 256), w, tensor("x", "f32", 256))}, 1, 0, each(10*time.Microsecond))
	g.Phase, g.Tokens = PhaseDecode, 1
	tally := NewTally(m.tables)
	tally.Graph(g)
	tally.Call(&Call{Index: 9, Phase: PhaseDecode, Tokens: 1, Begin: g.Begin, End: g.End})
	// 2 x 65536 + 2048 bytes in 10 us are 13.3 GB/s.
	for _, c := range []struct {
		bytes          float64
		from           string
		share, ceiling bool
	}{
		{20e9, RoofMeasured, true, true},
		{20e9, RoofDisturbed, false, false},
		{9e9, RoofMeasured, false, false}, // faster than the memory
	} {
		s := tally.Summary(Settings{Roof: Roof{BytesPerSecond: c.bytes, FlopsPerSecond: 100e9, Threads: 1, From: c.from}})
		if k := s.Kinds[0]; k.OfRoof.OK != c.share || s.Phases[0].Ceiling.OK != c.ceiling {
			t.Errorf("%v %s: %v of the roof, a ceiling of %v at %v tokens a second", c.bytes, c.from, k.OfRoof, s.Phases[0].Ceiling, s.Phases[0].Rate)
		}
	}
}
