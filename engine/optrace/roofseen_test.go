package optrace

import (
	"math/rand/v2"
	"testing"
	"time"
)

// product is a decode graph of one product with weights of 32 MiB, which takes so long, on
// two lanes of which one lost its CPU for off.
func product(m *model, took, off time.Duration) *Graph {
	op := m.op("MUL_MAT", "", tensor("ffn_up-0", "f32", 4096, 1), tensor("blk.0.ffn_up.weight", "f16", 4096, 4096), tensor("x", "f32", 4096, 1))
	g := run([]uint32{op}, 2, 0, each(took))
	g.Phase, g.Tokens, g.Detail = PhaseDecode, 1, LevelSched
	l := &g.Lanes[1]
	l.Off, l.Preempted, l.Spans[0].Off, l.Spans[0].Preempted = off, off, off, off
	return g
}

const productBytes = 2.0*4096*4096 + 4096*4*2

// TestSeenRoofOfLanesThatKeptTheirCPUs holds that what was computed while a lane had no
// CPU makes no roof, and that nothing is bound by memory for want of another one.
func TestSeenRoofOfLanesThatKeptTheirCPUs(t *testing.T) {
	m := newModel()
	starved := NewTally(m.tables)
	for range 2 * fewestGraphs {
		starved.Graph(product(m, 40*time.Millisecond, 15*time.Millisecond))
	}
	s := starved.Summary(Settings{Detail: LevelSched})
	if s.Roof.From != "" || s.Kinds[0].Bound == BoundMemory || s.Kinds[0].OfRoof.OK || !s.WithoutCPU().OK {
		t.Errorf("all starved: roof %+v, bound by %q at %v, without a CPU %v", s.Roof, s.Kinds[0].Bound, s.Kinds[0].OfRoof, s.WithoutCPU())
	}
	for range seenOperators {
		starved.Graph(product(m, time.Millisecond, 0))
	}
	if s = starved.Summary(Settings{Detail: LevelSched}); s.Roof.BytesPerSecond != productBytes*1000 || s.Kinds[0].Bound == BoundMemory {
		t.Errorf("a few were not: %+v, bound by %q, want the rate of those", s.Roof, s.Kinds[0].Bound)
	}
	// The operator after one that lost its CPU may begin late on that lane.
	after := NewTally(m.tables)
	for range 2 * seenOperators {
		g, second := product(m, time.Millisecond, 500*time.Microsecond), product(m, time.Millisecond, 0)
		for l := range g.Lanes {
			next := second.Lanes[l].Spans[0]
			next.Begin, next.End, next.Addr = g.End, g.End+time.Millisecond, 2
			g.Lanes[l].Spans = append(g.Lanes[l].Spans, next)
		}
		g.End += time.Millisecond
		after.Graph(g)
	}
	if r := after.Summary(Settings{Detail: LevelSched}).Roof; r.From != "" {
		t.Errorf("after one that lost its CPU: %+v", r)
	}
	// Without scheduling nothing is known of that.
	unknown := NewTally(m.tables)
	for range 2 * fewestGraphs {
		g := product(m, 40*time.Millisecond, 0)
		g.Detail = LevelTensor
		unknown.Graph(g)
	}
	if r := unknown.Summary(Settings{Detail: LevelTensor}).Roof; r.From != RoofSeen || r.BytesPerSecond != productBytes*25 {
		t.Errorf("without scheduling: %+v", r)
	}
}

// TestSeenRoofNeverFalls holds that a best stays one while the trace goes on and operators
// become slower, and while scheduling is traced later.
func TestSeenRoofNeverFalls(t *testing.T) {
	m := newModel()
	rnd := rand.New(rand.NewPCG(11, 11))
	tally, best := NewTally(m.tables), 0.0
	for n := range 400 {
		g := product(m, time.Millisecond+time.Duration(n)*10*time.Microsecond+time.Duration(rnd.IntN(1000))*time.Microsecond, 0)
		if n < 100 {
			g.Detail = LevelTensor
		}
		tally.Graph(g)
		r := tally.Summary(Settings{Detail: LevelSched}).Roof
		if r.BytesPerSecond < best {
			t.Fatalf("after %d graphs %v, and %v before", n+1, r.BytesPerSecond, best)
		}
		best = r.BytesPerSecond
	}
	if best <= productBytes*1000/3 {
		t.Errorf("the best is %v: hardly what was reached", best)
	}
}

// TestSeenRoofIsOfProducts holds that what reads from caches makes no roof of the memory,
// and that what passed a roof that was seen is no share of it.
func TestSeenRoofIsOfProducts(t *testing.T) {
	m := newModel()
	tally := NewTally(m.tables)
	add := m.op("ADD", "", tensor("l_out-0", "f32", 1<<20), tensor("a", "f32", 1<<20), tensor("b", "f32", 1<<20))
	for range 2 * seenOperators {
		g := run([]uint32{add}, 1, 0, each(375*time.Microsecond)) // 33.6 GB/s
		g.Phase, g.Tokens = PhaseDecode, 1
		tally.Graph(g)
	}
	if r := tally.Summary(Settings{}).Roof; r.From != "" {
		t.Errorf("of additions alone: %+v", r)
	}
	for range seenOperators {
		tally.Graph(product(m, 1100*time.Microsecond, 0)) // 30.5 GB/s
	}
	s := tally.Summary(Settings{})
	if s.Roof.BytesPerSecond < 30e9 || s.Roof.BytesPerSecond > 31e9 {
		t.Errorf("with products: %+v", s.Roof)
	}
	for _, k := range s.Kinds {
		if k.OfRoof.V > 1 {
			t.Errorf("%s reached %v of the best of products", k.Op, k.OfRoof)
		}
	}
}
