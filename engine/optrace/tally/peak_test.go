package tally

import (
	"math"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/engine/optrace"
)

// TestPrefillOfQuantisedWeights has the figures of a real prefill of 57 tokens on one thread of
// a CPU with 37 GB/s, 240 G operations per second on f32 and 960 G on integers: its kernels
// only compute, at 31 % of the f32 rate, with 16 tokens too.
func TestPrefillOfQuantisedWeights(t *testing.T) {
	r := optrace.Peak{BytesPerSecond: 37e9, FlopsPerSecond: 240e9, Int8PerSecond: 960e9, Threads: 1, From: optrace.PeakMeasured}
	for _, c := range []struct {
		tokens  int64
		at      float64 // G operations a second
		want    optrace.Bound
		of      float64
		ceiling bool
	}{
		{57, 75, optrace.BoundCompute, 75.0 / 240, true},
		{16, 75, optrace.BoundCompute, 75.0 / 240, true},
		{57, 400, optrace.BoundCompute, 400.0 / 960, true},    // rearranged weights
		{57, 2000, optrace.BoundCompute, 2000.0 / 960, false}, // instructions that were not measured
		{57, 15, optrace.BoundNeither, 15.0 / 240, true},
		{1, 36, optrace.BoundMemory, 36 / (2 * 1024 * 1024 / (1024*1024*34.0/32 + 8192)) / 37, true},
	} {
		m := newModel()
		x, w := tensor("ffn_norm-0", "f32", 1024, c.tokens), tensor("blk.0.ffn_up.weight", "q8_0", 1024, 1024)
		op := m.op("MUL_MAT", "", tensor("ffn_up-0", "f32", 1024, c.tokens), w, x)
		g := run([]uint32{op}, 1, 0, each(time.Duration(2*1024*1024*float64(c.tokens)/c.at)))
		g.Phase, g.Tokens = optrace.PhasePrefill, int(c.tokens)
		tally := New(m.tables)
		tally.Graph(g)
		s := tally.Summary(Settings{Peak: r})
		k := s.Kinds[0]
		if k.Bound != c.want || math.Abs(k.OfPeak.V-c.of) > 0.01*c.of {
			t.Errorf("%d tokens at %v: %q at %v, want %q at %v", c.tokens, c.at, k.Bound, k.OfPeak, c.want, c.of)
		}
		ceiling := s.Phases[0].Ceiling
		if ceiling.OK != c.ceiling || ceiling.OK && ceiling.V < s.Phases[0].Rate.V {
			t.Errorf("%d tokens at %v: a ceiling of %v below %v", c.tokens, c.at, ceiling, s.Phases[0].Rate)
		}
	}
}

// TestCeilingByOrigin checks that a measured peak and one of the catalog give ceilings, and
// that those that were seen, or measured beside other load, do not.
func TestCeilingByOrigin(t *testing.T) {
	for from, want := range map[string]bool{optrace.PeakMeasured: true, optrace.PeakCatalog: true, optrace.PeakSeen: false} {
		m := newModel()
		tally := New(m.tables)
		decode := run(m.decoder(2, 1, 64), 1, 0, each(time.Millisecond))
		decode.Phase, decode.Tokens = optrace.PhaseDecode, 1
		tally.Graph(decode)
		s := tally.Summary(Settings{Peak: optrace.Peak{BytesPerSecond: 20e9, FlopsPerSecond: 100e9, From: from}})
		if len(s.Phases) == 0 || s.Phases[len(s.Phases)-1].Ceiling.OK != want {
			t.Errorf("%s: %+v", from, s.Phases)
		}
	}
}

// TestNoShareOfARoofThatIsTooLow has a peak that was measured beside other load, and a model
// with its weights in caches: neither has a share, or a ceiling that was exceeded.
func TestNoShareOfARoofThatIsTooLow(t *testing.T) {
	m := newModel()
	w := tensor("blk.0.ffn_up.weight", "f16", 256, 256)
	g := run([]uint32{m.op("MUL_MAT", "", tensor("ffn_up-0", "f32", 256), w, tensor("x", "f32", 256))}, 1, 0, each(10*time.Microsecond))
	g.Phase, g.Tokens = optrace.PhaseDecode, 1
	tally := New(m.tables)
	tally.Graph(g)
	tally.Call(&optrace.Call{Index: 9, Phase: optrace.PhaseDecode, Tokens: 1, Begin: g.Begin, End: g.End})
	// 2 x 65536 + 2048 bytes in 10 us are 13.3 GB/s.
	for _, c := range []struct {
		bytes          float64
		from           string
		share, ceiling bool
	}{
		{20e9, optrace.PeakMeasured, true, true},
		{9e9, optrace.PeakMeasured, false, false}, // faster than the memory
	} {
		s := tally.Summary(Settings{Peak: optrace.Peak{BytesPerSecond: c.bytes, FlopsPerSecond: 100e9, Threads: 1, From: c.from}})
		if k := s.Kinds[0]; k.OfPeak.OK != c.share || s.Phases[0].Ceiling.OK != c.ceiling {
			t.Errorf("%v %s: %v of the roof, a ceiling of %v at %v tokens a second", c.bytes, c.from, k.OfPeak, s.Phases[0].Ceiling, s.Phases[0].Rate)
		}
	}
}
