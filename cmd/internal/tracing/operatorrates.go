package tracing

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// counterNames are the counters of a thread with the argument names of their growth in a span.
var counterNames = []struct {
	counter optrace.Counter
	key     string
}{
	{optrace.Instructions, "instructions"}, {optrace.Cycles, "cycles"}, {optrace.LLCMisses, "llc_misses"}, {optrace.BranchMisses, "branch_misses"},
	{optrace.TaskClock, "task_clock_ns"}, {optrace.ContextSwitches, "context_switches"}, {optrace.Migrations, "migrations"},
	{optrace.MinorFaults, "minor_faults_counted"}, {optrace.MajorFaults, "major_faults_counted"},
}

// longestPause is the time between two calls beyond which the target is idle, so that the rate
// of tokens is 0.
const longestPause = time.Second

// rates draws tokens per second, from the start of a call to that of the next.
func (p *painter) rates(calls []*optrace.Call) {
	calls = slices.DeleteFunc(slices.Clone(calls), func(c *optrace.Call) bool { return c.Tokens <= 0 })
	slices.SortStableFunc(calls, func(a, b *optrace.Call) int { return cmp.Compare(a.Begin, b.Begin) })
	for i, c := range calls {
		_, until := callTime(c)
		pause := true
		if i+1 < len(calls) && calls[i+1].Begin-until < longestPause {
			until, pause = calls[i+1].Begin, false
		}
		if until <= c.Begin {
			continue
		}
		p.counter("tokens", "tokens/s", c.Begin, stat.Some(float64(c.Tokens)/(until-c.Begin).Seconds()))
		if pause {
			p.counter("tokens", "tokens/s", until, stat.Some(0))
		}
	}
}

// work draws rates over each graph: the bytes and operations of its operators by their shapes,
// and the growth of counters.
func (p *painter) work(graphs []*optrace.Graph) {
	graphs = slices.Clone(graphs)
	slices.SortStableFunc(graphs, func(a, b *optrace.Graph) int { return cmp.Compare(a.Begin, b.Begin) })
	costs := map[uint32]optrace.Cost{}
	for i, g := range graphs {
		if g.End <= g.Begin {
			continue
		}
		pause := i+1 == len(graphs) || graphs[i+1].Begin-g.End >= longestPause
		read := func(name, unit string, v stat.Opt) {
			if !v.OK {
				return
			}
			p.counter(name, unit, g.Begin, v.Times(1/(g.End-g.Begin).Seconds()))
			if pause {
				p.counter(name, unit, g.End, stat.Some(0))
			}
		}
		bytes, flops := p.moved(g, costs)
		read("memory moved (est)", "bytes/s", bytes)
		read("operations (est)", "FLOP/s", flops)
		sums := graphCounters(g)
		for _, x := range counterNames {
			read(strings.ReplaceAll(x.key, "_", " "), x.key+"/s", sums[x.counter])
		}
	}
}

// moved returns the bytes and operations of a graph's operators, as far as their shapes are
// known. Thread 0 takes part in each operator.
func (p *painter) moved(g *optrace.Graph, costs map[uint32]optrace.Cost) (bytes, flops stat.Opt) {
	if len(g.Threads) == 0 {
		return stat.None, stat.None
	}
	for i := range g.Threads[0].Spans {
		s := &g.Threads[0].Spans[i]
		var cost optrace.Cost
		if x := p.t.Choice(s.Experts); x != nil {
			cost = optrace.CostOf(p.t, p.t.Operator(s.Operator), *x)
		} else {
			var seen bool
			if cost, seen = costs[s.Operator]; !seen {
				cost = optrace.CostOf(p.t, p.t.Operator(s.Operator), optrace.ExpertChoice{})
				costs[s.Operator] = cost
			}
		}
		if cost.Known {
			bytes, flops = bytes.Plus(stat.Some(cost.Bytes())), flops.Plus(stat.Some(cost.Flops))
		}
	}
	return bytes, flops
}

// graphCounters returns the sums of the counters over all spans of a graph.
func graphCounters(g *optrace.Graph) (sums [optrace.NumCounters]stat.Opt) {
	for i := range g.Threads {
		for j := range g.Threads[i].Spans {
			c := g.Threads[i].Spans[j].Counters
			if c == nil {
				continue
			}
			for n := range sums {
				if c.Have&(1<<n) != 0 {
					sums[n] = sums[n].Plus(stat.Some(float64(c.Value[n])))
				}
			}
		}
	}
	return sums
}
