package chrometrace

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// counterNames are the counters of a thread with the names of their growth in a span.
var counterNames = []struct {
	counter optrace.Counter
	key     string
}{
	{optrace.Instructions, "instructions"}, {optrace.Cycles, "cycles"}, {optrace.LLCMisses, "llc_misses"}, {optrace.BranchMisses, "branch_misses"},
	{optrace.TaskClock, "task_clock_ns"}, {optrace.ContextSwitches, "context_switches"}, {optrace.Migrations, "migrations"},
	{optrace.MinorFaults, "minor_faults_counted"}, {optrace.MajorFaults, "major_faults_counted"},
}

// longestPause is the time between two calls beyond which the target is idle: the rate
// of tokens is then 0.
const longestPause = time.Second

// rates draws tokens a second, from the begin of a call to that of the next.
func (p *operatorPainter) rates(calls []*optrace.Call) {
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
		p.counter(p.pid, "tokens", "tokens/s", c.Begin, stat.Some(float64(c.Tokens)/(until-c.Begin).Seconds()))
		if pause {
			p.counter(p.pid, "tokens", "tokens/s", until, stat.Some(0))
		}
	}
}

// work draws what graphs did, a reading for each: the growth of counters over its time.
func (p *operatorPainter) work(graphs []*optrace.Graph) {
	graphs = slices.Clone(graphs)
	slices.SortStableFunc(graphs, func(a, b *optrace.Graph) int { return cmp.Compare(a.Begin, b.Begin) })
	for i, g := range graphs {
		if g.End <= g.Begin {
			continue
		}
		over := (g.End - g.Begin).Seconds()
		sums := graphCounters(g)
		var drawn []string
		for _, x := range counterNames {
			if v := sums[x.counter]; v.OK {
				name := strings.ReplaceAll(x.key, "_", " ")
				p.counter(p.pid, name, x.key+"/s", g.Begin, stat.Some(v.V/over))
				drawn = append(drawn, name)
			}
		}
		if i+1 < len(graphs) && graphs[i+1].Begin-g.End < longestPause {
			continue
		}
		for _, name := range drawn {
			p.counter(p.pid, name, strings.ReplaceAll(name, " ", "_")+"/s", g.End, stat.Some(0))
		}
	}
}

// graphCounters are the sums of the counters over all spans of a graph.
func graphCounters(g *optrace.Graph) (sums [optrace.NumCounters]stat.Opt) {
	for i := range g.Lanes {
		for j := range g.Lanes[i].Spans {
			c := g.Lanes[i].Spans[j].Counters
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
