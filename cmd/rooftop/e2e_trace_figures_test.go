//go:build e2e && linux

package main_test

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/gguf"
	"github.com/rooftop-dev/rooftop/engine/optrace"
)

// cacheHeavy is a model whose cache outgrows its weights: at a context of 2,000 a token
// reads 32 MB of keys and values, and 10 MB of weights.
var cacheHeavy = gguf.Shape{Name: "cache-heavy", Layers: 4, Width: 1024, Heads: 16, KVHeads: 16, Hidden: 64, Vocab: 2048, Context: 4096, Weights: gguf.Q4_0}

// attached waits until a trace records, while the target computes: until it has told the
// cost, and then set the probes of operators.
func (r *traceRun) attached(t *testing.T, compute func()) {
	t.Helper()
	before := 0
	for !r.stderr.says("expected to cost") {
		before = max(before, r.links(t))
		compute()
	}
	deadline := time.Now().Add(3 * time.Minute)
	for last, same := 0, 0; same < 10; time.Sleep(20 * time.Millisecond) {
		n := r.links(t)
		if same++; n <= before || n != last {
			last, same = n, 0
		}
		if time.Now().After(deadline) {
			t.Fatalf("a minute after it told the cost no operator is watched: %s", r.stderr.String())
		}
	}
	compute()
}

// figures ends a trace, and reads them.
func (r *traceRun) figures(t *testing.T) *optrace.Summary {
	t.Helper()
	r.end(t)
	return readFigures(t, r.stdout.Bytes())
}

func readFigures(t *testing.T, text []byte) *optrace.Summary {
	t.Helper()
	s := &optrace.Summary{}
	if err := json.Unmarshal(text, s); err != nil {
		t.Fatalf("%v: %.400s", err, text)
	}
	if s.Coverage.Dropped > 0 {
		t.Errorf("%d of %d events were dropped", s.Coverage.Dropped, s.Coverage.Events)
	}
	return s
}

func findingOf(s *optrace.Summary, id string) *optrace.Finding {
	if i := slices.IndexFunc(s.Findings, func(f optrace.Finding) bool { return f.ID == id }); i >= 0 {
		return &s.Findings[i]
	}
	return nil
}

func phaseOf(t *testing.T, s *optrace.Summary, phase optrace.Phase) *optrace.PhaseRow {
	t.Helper()
	for i := range s.Phases {
		if s.Phases[i].Phase == phase.String() {
			return &s.Phases[i]
		}
	}
	t.Fatalf("no %v among %+v", phase, s.Phases)
	return nil
}

// TestE2ETraceAttribution is whether the figures of a real runtime add up: operators to
// the time of their graphs, their bytes and operations to what the phase moves and
// computes, layers to all operators. Of two threads, which this runtime makes anew for
// each graph, it is the time from the first operator to the last: before it they start,
// after it they are waited for, and on a busy machine that is more than one per cent.
func TestE2ETraceAttribution(t *testing.T) {
	needsRoot(t)
	for _, c := range []struct {
		threads, prompt, tokens, runs int
	}{
		{1, tracePrompt, traceTokens, 3},
		{2, tracePrompt, tokensFor(2), 2},
	} {
		t.Run(fmt.Sprint(c.threads, " threads"), func(t *testing.T) {
			d := drive(t, "npm-new", gguf.Mid, c.threads)
			r := beginTrace(t, d)
			r.attached(t, func() { d.run(t, c.prompt, c.tokens) })
			for range c.runs {
				d.run(t, c.prompt, c.tokens)
			}
			_, recording := r.end(t)
			s, around := readFigures(t, r.stdout.Bytes()), map[optrace.Phase]float64{}
			for _, g := range assembledOf(recording).graphs {
				around[g.Phase] += aroundOperators(g).Seconds()
			}
			for _, phase := range []optrace.Phase{optrace.PhasePrefill, optrace.PhaseDecode} {
				p := phaseOf(t, s, phase)
				graphs := p.Graph.Mean.Seconds() * float64(p.Graph.Count)
				t.Logf("%s: %.2f %% of %.3f s of %d graphs is before the first operator and after the last", p.Phase, 100*around[phase]/graphs, graphs, p.Graph.Count)
				computing := graphs
				if c.threads > 1 {
					computing -= around[phase]
				}
				addsUp(t, s, p, graphs, computing)
			}
		})
	}
}

// amounts are what rows of operators add up to.
type amounts struct{ seconds, share, bytes, flops, moved, computed float64 }

func (a *amounts) add(row *optrace.OperatorRow) {
	seconds := row.Time.Seconds()
	a.seconds += seconds
	a.share += row.Share.V
	a.bytes += row.Bytes.V
	a.flops += row.Flops.V
	a.moved += row.BytesRate.V * seconds
	a.computed += row.FlopsRate.V * seconds
}

// aroundOperators is the time of a graph before its first operator and after its last.
func aroundOperators(g *optrace.Graph) time.Duration {
	first, last := g.End, g.Begin
	for _, lane := range g.Threads {
		if n := len(lane.Spans); n > 0 {
			first, last = min(first, lane.Spans[0].Begin), max(last, lane.Spans[n-1].End)
		}
	}
	return (g.End - g.Begin) - max(last-first, 0)
}

// addsUp checks the sums of a phase: seconds of its graphs, and of these from their first
// operator to their last.
func addsUp(t *testing.T, s *optrace.Summary, p *optrace.PhaseRow, graphs, computing float64) {
	t.Helper()
	for what, rows := range map[string][]optrace.OperatorRow{"kinds": s.Kinds, "steps": s.Steps} {
		var a amounts
		for i := range rows {
			if rows[i].Phase == p.Phase {
				a.add(&rows[i])
			}
		}
		t.Logf("%s %s: %.4f s of operators in %.4f s of %d graphs, %.3f GB, %.3f GFLOP", p.Phase, what, a.seconds, graphs, p.Graph.Count, a.bytes/1e9, a.flops/1e9)
		adds(t, p.Phase+" "+what+": operators of graphs", a.seconds, computing, 0.01)
		adds(t, p.Phase+" "+what+": shares", a.share, 1, 1e-6)
		adds(t, p.Phase+" "+what+": bytes", a.bytes, p.Bytes.V, 1e-6)
		adds(t, p.Phase+" "+what+": operations", a.flops, p.Flops.V, 1e-6)
		// Rates by the time that each took are what all moved in the time of graphs.
		adds(t, p.Phase+" "+what+": bandwidth", a.moved, p.BytesRate.V*graphs, 1e-3)
		adds(t, p.Phase+" "+what+": arithmetic", a.computed, p.FlopsRate.V*graphs, 1e-3)
	}
	layers, parts := 0.0, 0.0
	for i := range s.Layers {
		if l := &s.Layers[i]; l.Phase == p.Phase {
			layers += l.Share.V
			for _, took := range l.Parts {
				parts += took.Seconds()
			}
		}
	}
	adds(t, p.Phase+": layers", layers, 1, 1e-6)
	adds(t, p.Phase+": parts of layers of graphs", parts, computing, 0.01)
}

// adds holds a figure against what it should be, with a relative error.
func adds(t *testing.T, what string, got, want, within float64) {
	t.Helper()
	if !(math.Abs(got-want) <= within*math.Abs(want)) || want == 0 {
		t.Errorf("%s: %v, want %v within %v", what, got, want, within)
	}
}

// most is the row with the largest share of a phase.
func most(rows []optrace.OperatorRow, phase optrace.Phase) *optrace.OperatorRow {
	var best *optrace.OperatorRow
	for i := range rows {
		if r := &rows[i]; r.Phase == phase.String() && (best == nil || r.Time > best.Time) {
			best = r
		}
	}
	return best
}

// TestE2ETraceProducts is a load of products: a long prompt computes them, a token only
// reads their weights.
func TestE2ETraceProducts(t *testing.T) {
	needsRoot(t)
	const prompt, tokens = 256, 25
	d := drive(t, "npm-new", gguf.Mid, 1)
	r := beginTrace(t, d)
	r.attached(t, func() { d.run(t, tracePrompt, tokens) })
	for range 2 {
		d.run(t, prompt, tokens)
	}
	s := r.figures(t)
	for phase, want := range map[optrace.Phase]optrace.Bound{optrace.PhasePrefill: optrace.BoundCompute, optrace.PhaseDecode: optrace.BoundMemory} {
		row := most(s.Kinds, phase)
		t.Logf("%v: %s of %s has %.1f %%, %.1f GB/s, %.1f GFLOP/s, bound by %q from %q; roof %+v", phase, row.Op, row.Type, 100*row.Share.V, row.BytesRate.V/1e9, row.FlopsRate.V/1e9, row.Bound, row.BoundFrom, s.Peak)
		if row.Op != "MUL_MAT" || row.Type != "q8_0" || !(row.Share.V > 0.5) || row.Bound != want || row.BoundFrom == "" {
			t.Errorf("%v is mostly %s of %s, %.1f %%, bound by %q (%s); want products of q8_0, bound by %s", phase, row.Op, row.Type, 100*row.Share.V, row.Bound, row.BoundFrom, want)
		}
	}
}

// TestE2ETraceAttention is a load of attention: it takes most of a token at a context
// near 2,000, it is bound by memory, and its share grows with the context.
func TestE2ETraceAttention(t *testing.T) {
	needsRoot(t)
	const short, long, tokens = 24, 1900, 40
	d := drive(t, "npm-new", cacheHeavy, 1)
	r := beginTrace(t, d)
	r.attached(t, func() { d.run(t, short, tokens) })
	for range 3 {
		d.run(t, short, tokens)
		d.run(t, long, tokens)
	}
	s := r.figures(t)
	row := most(s.Kinds, optrace.PhaseDecode)
	t.Logf("decode: %s has %.1f %%, bound by %q from %q; roof %+v", row.Op, 100*row.Share.V, row.Bound, row.BoundFrom, s.Peak)
	// A last-level cache that keeps the 11 MB of weights sets a peak that the KV cache,
	// which does not fit, may be far below: that is "neither", and right.
	want := optrace.BoundMemory
	if row.BytesRate.V < optrace.FarBelow*s.Peak.BytesPerSecond {
		want = optrace.BoundNeither
	}
	if row.Op != "FLASH_ATTN_EXT" || row.Bound != want {
		t.Errorf("decode is mostly %s at %.1f GB/s, bound by %q; want attention, bound by %q", row.Op, row.BytesRate.V/1e9, row.Bound, want)
	}
	if len(s.Context) < 2 {
		t.Fatalf("contexts of the lengths %+v, want short and long ones", s.Context)
	}
	first, last := s.Context[0], s.Context[len(s.Context)-1]
	for _, c := range s.Context {
		t.Logf("context %d: attention %v of %v, %.1f %%, %d graphs", c.Length, c.Attention, c.Graph, 100*c.Share.V, c.Graphs)
	}
	if first.Length > 512 || last.Length < long || last.Length > 2048 {
		t.Errorf("contexts from %d to %d, want from %d tokens to %d as the runtime pads them", first.Length, last.Length, short, long+tokens)
	}
	if !(last.Share.V > 0.5 && last.Share.V > 2*first.Share.V) || last.Attention < 2*first.Attention {
		t.Errorf("attention takes %.1f %% at %d tokens and %.1f %% at %d: want most there, and twice the share at least", 100*first.Share.V, first.Length, 100*last.Share.V, last.Length)
	}
	if findingOf(s, "attention-grows") == nil {
		t.Errorf("that attention grows is not among the findings: %+v", s.Findings)
	}
}
