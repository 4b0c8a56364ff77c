package tally

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// groupKey identifies a group of operators: a step has a name, a kind has none.
type groupKey struct {
	phase                  optrace.Phase
	op, sub, weights, name string
}

// groups are operators summed up by key.
type groups struct{ bounded[groupKey, group] }

// group sums up operators.
type group struct {
	key       groupKey
	each      stat.Durations
	sync, off time.Duration
	idle      time.Duration // as in step, but the mean over threads
	threads   int
	cost      costSum
	count     counts
	pace      pace
}

// costSum sums up costs with the time that they took.
type costSum struct {
	bytes, flops float64
	weights      float64 // the part of bytes that is weights
	time         time.Duration
	known        bool
	inexact      bool // a cost was not exact
	guessed      bool // a cost was guessed
}

// add adds the cost of an operator with its time, unless it is unknown.
func (s *costSum) add(took time.Duration, c *optrace.Cost) {
	if !c.Known {
		return
	}
	s.known = true
	s.inexact = s.inexact || !c.Exact
	s.guessed = s.guessed || c.Guessed
	s.bytes += c.ReadBytes + c.WrittenBytes
	s.flops += c.Flops
	s.weights += c.WeightBytes
	s.time = stat.AddSaturating(s.time, took)
}

// amounts returns the sums, absent if no cost was known.
func (s *costSum) amounts() (bytes, flops stat.Opt) {
	if !s.known {
		return stat.None, stat.None
	}
	return stat.Finite(s.bytes), stat.Finite(s.flops)
}

// group returns the group of a key, and whether it is the one for keys beyond the limit.
func (s *groups) group(key groupKey) (g *group, over bool) {
	rest := groupKey{phase: key.phase, op: others, name: others}
	if g, over = s.getOr(key, rest); over {
		key = rest
	}
	g.key = key
	return g, over
}

// add adds an operator of a graph.
func (g *group) add(s *step, took time.Duration, c *optrace.Cost) {
	g.each.Add(took)
	threads := max(s.threads, 1)
	g.sync, g.off = stat.AddSaturating(g.sync, s.sync/asTime(threads)), stat.AddSaturating(g.off, s.off/asTime(threads))
	g.idle = stat.AddSaturating(g.idle, s.idle/asTime(threads))
	g.threads = max(g.threads, threads)
	g.cost.add(took, c)
	g.count.merge(&s.count)
	if !s.lostCPU {
		g.pace.add(took, c)
	}
}

// asTime converts a number to divide a time by it.
func asTime(n int) time.Duration { return time.Duration(n) }

// rows returns the groups by phase, those with the most time first.
func (s *groups) rows(t *Tally, r optrace.Peak, d optrace.Detail) []optrace.OperatorRow {
	rows := make([]optrace.OperatorRow, 0, len(s.of))
	for _, g := range s.of {
		rows = append(rows, g.row(t, r, d))
	}
	slices.SortFunc(rows, func(a, b optrace.OperatorRow) int {
		return cmp.Or(
			cmp.Compare(phaseRank(a.Phase), phaseRank(b.Phase)), cmp.Compare(b.Time, a.Time),
			strings.Compare(a.Op, b.Op), strings.Compare(a.Sub, b.Sub), strings.Compare(a.Name, b.Name), strings.Compare(a.Type, b.Type),
		)
	})
	return rows
}

// row returns the figures of a group.
func (g *group) row(t *Tally, r optrace.Peak, d optrace.Detail) optrace.OperatorRow {
	row := optrace.OperatorRow{
		Phase: g.key.phase.String(), Op: g.key.op, Sub: g.key.sub, Name: g.key.name, Type: g.key.weights,
		Count: int64(g.each.Count), Time: g.each.Sum, Each: g.each.Distribution(),
		Share: stat.Ratio(g.each.Sum, t.phases[g.key.phase].operators), Estimated: g.cost.inexact,
	}
	row.Sync, row.Off = optrace.RecordedTime(d&optrace.DetailBarrier != 0, g.sync), optrace.RecordedTime(d&optrace.DetailSched != 0, g.off)
	row.Bytes, row.Flops = g.cost.amounts()
	if g.cost.known {
		row.BytesRate, row.FlopsRate = stat.PerSecond(g.cost.bytes, g.cost.time), stat.PerSecond(g.cost.flops, g.cost.time)
	}
	row.IPC, row.MissRate = g.count.rates()
	row.Bound, row.BoundFrom = g.bound(r)
	row.OfPeak = r.ShareOf(g.work(), row.Bound, row.Estimated)
	return row
}

// bound returns what bounds the operators, and the evidence for it. Counters include waits that
// spin, but not the time off the CPU; a roofline uses only elapsed time.
func (g *group) bound(r optrace.Peak) (optrace.Bound, string) {
	waited := float64(g.sync) > MostlyIdle*float64(g.each.Sum)
	if b := g.count.bound(); b != optrace.BoundUnknown && !waited {
		return b, optrace.FromCounters
	}
	if float64(g.idle) > MostlyIdle*float64(g.each.Sum) {
		return optrace.BoundWaiting, optrace.FromThreads
	}
	w := g.work()
	b := r.BoundOf(w)
	least, most := g.undisturbed()
	reached := r.NearestShare(w, b)
	bytes, _ := w.Rates()
	switch {
	case g.cost.guessed, b == optrace.BoundUnknown, b == optrace.BoundMemory && bytes > optrace.NearRidge*r.BytesPerSecond:
		return optrace.BoundUnknown, "" // faster than the memory, so the operands are in caches
	case reached < optrace.FarBelow*least:
		return optrace.BoundNeither, optrace.FromRoofline
	case reached < optrace.FarBelow*most:
		return optrace.BoundUnknown, "" // far below the peak, or delayed by what had the CPUs
	}
	return b, optrace.FromRoofline
}

// undisturbed returns the least and the largest share of the operators' time in which no thread
// was off its CPU: an operator is not to blame for the remainder.
func (g *group) undisturbed() (least, most float64) {
	off := stat.Ratio(g.off, g.each.Sum).Or(0)
	return 1 - min(off*float64(max(g.threads, 1)), 1), 1 - min(off, 1)
}

// phaseRank returns the position of a phase in a document.
func phaseRank(name string) int {
	return slices.IndexFunc(phaseOrder[:], func(p optrace.Phase) bool { return p.String() == name })
}

// order returns the keys in a deterministic order.
func (s *groups) order() []groupKey {
	keys := make([]groupKey, 0, len(s.of))
	for key := range s.of {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b groupKey) int {
		return cmp.Or(
			cmp.Compare(a.phase, b.phase), strings.Compare(a.op, b.op), strings.Compare(a.sub, b.sub),
			strings.Compare(a.weights, b.weights), strings.Compare(a.name, b.name),
		)
	})
	return keys
}
