package tally

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/engine/optrace"
)

// product returns a decode graph of one product with weights of 32 MiB on two threads, one of
// which was off its CPU for off.
func product(m *model, took, off time.Duration) *optrace.Graph {
	op := m.op("MUL_MAT", "", tensor("ffn_up-0", "f32", 4096, 1), tensor("blk.0.ffn_up.weight", "f16", 4096, 4096), tensor("x", "f32", 4096, 1))
	g := run([]uint32{op}, 2, 0, each(took))
	g.Phase, g.Tokens = optrace.PhaseDecode, 1
	l := &g.Threads[1]
	l.Off, l.Preempted, l.Spans[0].Off, l.Spans[0].Preempted = off, off, off, off
	return g
}

const productBytes = 2.0*4096*4096 + 4096*4*2

// TestSeenRoofOfLanesThatKeptTheirCPUs checks that operators whose threads lost a CPU give no
// peak, and that nothing is called memory-bound without one.
func TestSeenRoofOfLanesThatKeptTheirCPUs(t *testing.T) {
	m := newModel()
	starved := New(m.tables)
	for range 2 * optrace.FewestGraphs {
		starved.Graph(product(m, 40*time.Millisecond, 15*time.Millisecond))
	}
	s := starved.Summary(Settings{Detail: optrace.LevelSched})
	if s.Peak.From != "" || s.Kinds[0].Bound == optrace.BoundMemory || s.Kinds[0].OfPeak.OK || !optrace.MaxPreempted(s).OK {
		t.Errorf("all starved: roof %+v, bound by %q at %v, without a CPU %v", s.Peak, s.Kinds[0].Bound, s.Kinds[0].OfPeak, optrace.MaxPreempted(s))
	}
	for range seenOperators {
		starved.Graph(product(m, time.Millisecond, 0))
	}
	if s = starved.Summary(Settings{Detail: optrace.LevelSched}); s.Peak.BytesPerSecond != productBytes*1000 || s.Kinds[0].Bound == optrace.BoundMemory {
		t.Errorf("a few were not: %+v, bound by %q, want the rate of those", s.Peak, s.Kinds[0].Bound)
	}
	// The operator after one that lost its CPU may begin late on that thread.
	after := New(m.tables)
	for range 2 * seenOperators {
		g, second := product(m, time.Millisecond, 500*time.Microsecond), product(m, time.Millisecond, 0)
		for l := range g.Threads {
			next := second.Threads[l].Spans[0]
			next.Begin, next.End, next.Addr = g.End, g.End+time.Millisecond, 2
			g.Threads[l].Spans = append(g.Threads[l].Spans, next)
		}
		g.End += time.Millisecond
		after.Graph(g)
	}
	if r := after.Summary(Settings{Detail: optrace.LevelSched}).Peak; r.From != "" {
		t.Errorf("after one that lost its CPU: %+v", r)
	}
	// Without scheduling nothing is known of that.
	unknown := New(m.tables)
	for range 2 * optrace.FewestGraphs {
		g := product(m, 40*time.Millisecond, 0)
		unknown.Graph(g)
	}
	if r := unknown.Summary(Settings{Detail: optrace.LevelTensor}).Peak; r.From != optrace.PeakSeen || r.BytesPerSecond != productBytes*25 {
		t.Errorf("without scheduling: %+v", r)
	}
}

// TestSeenRoofNeverFalls checks that the peak stays when operators become slower.
func TestSeenRoofNeverFalls(t *testing.T) {
	m := newModel()
	rnd := rand.New(rand.NewPCG(11, 11))
	tally, best := New(m.tables), 0.0
	for n := range 400 {
		g := product(m, time.Millisecond+time.Duration(n)*10*time.Microsecond+time.Duration(rnd.IntN(1000))*time.Microsecond, 0)
		tally.Graph(g)
		r := tally.Summary(Settings{Detail: optrace.LevelSched}).Peak
		if r.BytesPerSecond < best {
			t.Fatalf("after %d graphs %v, and %v before", n+1, r.BytesPerSecond, best)
		}
		best = r.BytesPerSecond
	}
	if best <= productBytes*1000/3 {
		t.Errorf("the best is %v: hardly what was reached", best)
	}
}

// TestSeenRoofIsOfProducts checks that reads from caches give no memory peak, and that there is
// no share above a seen peak.
func TestSeenRoofIsOfProducts(t *testing.T) {
	m := newModel()
	tally := New(m.tables)
	add := m.op("ADD", "", tensor("l_out-0", "f32", 1<<20), tensor("a", "f32", 1<<20), tensor("b", "f32", 1<<20))
	for range 2 * seenOperators {
		g := run([]uint32{add}, 1, 0, each(375*time.Microsecond)) // 33.6 GB/s
		g.Phase, g.Tokens = optrace.PhaseDecode, 1
		tally.Graph(g)
	}
	if r := tally.Summary(Settings{}).Peak; r.From != "" {
		t.Errorf("of additions alone: %+v", r)
	}
	for range seenOperators {
		tally.Graph(product(m, 1100*time.Microsecond, 0)) // 30.5 GB/s
	}
	s := tally.Summary(Settings{})
	if s.Peak.BytesPerSecond < 30e9 || s.Peak.BytesPerSecond > 31e9 {
		t.Errorf("with products: %+v", s.Peak)
	}
	for _, k := range s.Kinds {
		if k.OfPeak.V > 1 {
			t.Errorf("%s reached %v of the best of products", k.Op, k.OfPeak)
		}
	}
}
