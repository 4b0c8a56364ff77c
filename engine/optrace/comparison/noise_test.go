package comparison

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/engine/compare"
	"github.com/rooftop-dev/rooftop/engine/longtest"
	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// neighbour is the other load of a simulated machine.
type neighbour struct {
	bursts float64 // interruptions per second, of 2 to 20 ms
	share  bool    // programs come and go, and take turns with the thread
	traced bool    // which processes had the CPUs
}

const (
	simulatedOps    = 10
	simulatedLayers = 8
)

// simulated returns a trace of a single-threaded runtime beside a neighbour; slow is by how
// much longer operators take.
func simulated(r *rand.Rand, n neighbour, graphs int, slow map[string]float64) *optrace.Summary {
	s := stepped()
	s.Phases, s.Steps, s.Layers, s.Tokens, s.Threads = s.Phases[1:], nil, nil, nil, s.Threads[:1]
	var each [simulatedOps]stat.Durations
	var layers [simulatedLayers]time.Duration
	var all stat.Durations
	var now, off time.Duration
	exp := func(mean time.Duration) time.Duration { return time.Duration(r.ExpFloat64() * float64(mean)) }
	taken, turn, others := exp(time.Second), 3*time.Millisecond, 0
	if n.share {
		others = r.IntN(4)
	}
	for range graphs {
		var graph time.Duration
		for l := range simulatedLayers {
			for o := range simulatedOps {
				took := float64((5 + 20*o)) * 1e3 * (1 + 0.05*r.NormFloat64()) * (1 + 0.05*float64(others))
				if f := slow[opName(o)]; f > 0 {
					took *= f
				}
				d := time.Duration(max(took, 1e3))
				var lost time.Duration
				if n.bursts > 0 && r.Float64() < n.bursts*d.Seconds() {
					lost += time.Duration(2+r.IntN(18)) * time.Millisecond
				}
				if taken -= d; n.share && taken <= 0 {
					taken, others = exp(time.Second), r.IntN(4)
				}
				if turn -= d; turn <= 0 {
					turn = 3 * time.Millisecond
					lost += time.Duration(others) * (2*time.Millisecond + exp(2*time.Millisecond))
					taken -= lost
				}
				d, off = d+lost, off+lost
				each[o].Add(d)
				layers[l] += d
				graph += d
			}
		}
		now += graph
		all.Add(graph)
		s.Tokens = append(s.Tokens, optrace.TokenRow{Phase: "decode", Tokens: 1, Time: graph, Graph: graph})
	}
	s.Tokens = s.Tokens[max(0, len(s.Tokens)-512):]
	p := decodeOf(s)
	p.Calls, p.Tokens, p.Call, p.Graph = graphs, int64(graphs), all.Distribution(), all.Distribution()
	p.Rate = stat.Some(float64(graphs) / now.Seconds())
	for o := range each {
		s.Steps = append(s.Steps, optrace.OperatorRow{Phase: "decode", Op: "MUL_MAT", Name: opName(o), Count: int64(each[o].Count), Time: each[o].Sum, Each: each[o].Distribution()})
	}
	for l, d := range layers {
		s.Layers = append(s.Layers, optrace.LayerRow{Phase: "decode", Layer: l, Time: d})
	}
	lost := stat.None
	if n.traced {
		lost = stat.Some(off.Seconds() / now.Seconds())
	}
	t := &s.Threads[0]
	t.Busy, t.Sync, t.Off, t.Preempted = stat.None, stat.None, lost, lost
	return s
}

func opName(o int) string { return fmt.Sprintf("op%d", o) }

// directed returns the rows of a comparison that are called faster or slower.
func directed(c *Comparison) (rows []string) {
	add := func(name string, x *compare.Change) {
		if x.Verdict == compare.Faster || x.Verdict == compare.Slower {
			rows = append(rows, fmt.Sprintf("%s %s ×%.3g (%.3g to %.3g)", name, x.Verdict, x.Ratio.V, x.Low.V, x.High.V))
		}
	}
	for i := range c.Phases {
		add(c.Phases[i].Phase, &c.Phases[i].Rate)
		add("first token", &c.Phases[i].FirstToken)
	}
	for i := range c.Operators {
		add(c.Operators[i].Name, &c.Operators[i].PerToken)
	}
	for i := range c.Layers {
		add(fmt.Sprintf("layer %d", c.Layers[i].Layer), &c.Layers[i].PerToken)
	}
	return rows
}

// TestCompareOfTheSameTwice checks that two traces of one process have a wrong verdict anywhere
// in at most about one comparison of twenty, whatever else ran.
func TestCompareOfTheSameTwice(t *testing.T) {
	pairs := 60
	if !longtest.Tests {
		pairs = 20
	}
	r := rand.New(rand.NewPCG(8, 9))
	for _, n := range []neighbour{
		{}, {traced: true}, {bursts: 0.5}, {bursts: 2}, {bursts: 2, traced: true}, {bursts: 10}, {bursts: 10, traced: true}, {share: true}, {share: true, traced: true},
	} {
		wrong := 0
		var last []string
		for range pairs {
			graphs := 50 + r.IntN(250)
			if d := directed(Compare(simulated(r, n, graphs, nil), simulated(r, n, graphs, nil))); len(d) > 0 {
				wrong, last = wrong+1, d
			}
		}
		t.Logf("%+v: %d of %d", n, wrong, pairs)
		if wrong > pairs/20 {
			t.Errorf("%+v: %d of %d comparisons of the same have a direction, the last %q", n, wrong, pairs, last)
		}
	}
}

// TestCompareFindsOneSlowerOperator checks that a slowdown by a fifth is found on a quiet
// machine, in the right operator only.
func TestCompareFindsOneSlowerOperator(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, n := range []neighbour{{}, {traced: true}} {
		for range 10 {
			c := Compare(simulated(r, n, 250, nil), simulated(r, n, 250, map[string]float64{"op6": 1.2}))
			if w := row(t, c, "op6").PerToken; w.Verdict != compare.Slower {
				t.Errorf("%+v: a fifth slower is %q: %+v", n, w.Verdict, w)
			}
			for _, o := range []string{"op3", "op9"} {
				if w := row(t, c, o).PerToken.Verdict; w == compare.Slower || w == compare.Faster {
					t.Errorf("%+v: %s is %q", n, o, w)
				}
			}
		}
	}
}
