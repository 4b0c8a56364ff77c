package optrace

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

// groupKey names a group of operators: a kind has no name, a step has one.
type groupKey struct {
	phase                  Phase
	op, sub, weights, name string
}

// groups are operators added up by a key.
type groups struct {
	limit int
	of    map[groupKey]*group
}

// group adds operators up.
type group struct {
	key       groupKey
	each      durations
	sync, off time.Duration
	idle      time.Duration // as in step, mean over lanes
	// Of operators whose barriers, scheduling, either were recorded.
	synced, offed         int64
	syncOf, offOf, idleOf time.Duration
	lanes                 int
	cost                  costSum
	count                 counts
	paces                 [numPaces]pace
}

// costSum adds costs up with the time that they took.
type costSum struct {
	bytes, flops float64
	weights      float64 // of bytes, those of weights
	time         time.Duration
	known        bool
	reckoned     bool // a cost was not exact
	guessed      bool // of one it is not known what it computes
}

// add adds the cost of an operator that took some time.
func (s *costSum) add(took time.Duration, c *Cost) {
	if !c.Known {
		return
	}
	s.known = true
	s.reckoned = s.reckoned || !c.Exact
	s.guessed = s.guessed || c.Guessed
	s.bytes += c.ReadBytes + c.WrittenBytes
	s.flops += c.Flops
	s.weights += c.WeightBytes
	s.time = plus(s.time, took)
}

// amounts are the sums, absent where nothing was known.
func (s *costSum) amounts() (bytes, flops stat.Opt) {
	if !s.known {
		return stat.None, stat.None
	}
	return finite(s.bytes), finite(s.flops)
}

// group is the group of a key, and whether it stands for others too.
func (s *groups) group(key groupKey) (g *group, over bool) {
	if s.of == nil {
		s.of = map[groupKey]*group{}
	}
	if g := s.of[key]; g != nil {
		return g, false
	}
	if len(s.of) >= s.limit {
		key, over = groupKey{phase: key.phase, op: others, name: others}, true
		if g := s.of[key]; g != nil {
			return g, true
		}
	}
	g = &group{key: key}
	s.of[key] = g
	return g, over
}

// add adds an operator of a graph.
func (g *group) add(s *step, took time.Duration, c *Cost) {
	g.each.add(took)
	lanes := max(s.lanes, 1)
	g.sync, g.off = plus(g.sync, s.sync/asTime(lanes)), plus(g.off, s.off/asTime(lanes))
	g.idle = plus(g.idle, s.idle/asTime(lanes))
	if s.barriers {
		g.synced, g.syncOf = g.synced+1, plus(g.syncOf, took)
	}
	if s.sched {
		g.offed, g.offOf = g.offed+1, plus(g.offOf, took)
	}
	if s.barriers || s.sched {
		g.idleOf = plus(g.idleOf, took)
	}
	g.lanes = max(g.lanes, lanes)
	g.cost.add(took, c)
	g.count.merge(&s.count)
	switch {
	case !s.sched:
		g.paces[cpusUnknown].add(took, c)
	case !s.lostCPU:
		g.paces[cpusKept].add(took, c)
	}
}

// asTime is a number to divide a time by.
func asTime(n int) time.Duration { return time.Duration(n) }

// rows are the groups by phase, the ones with the most time first.
func (s *groups) rows(t *Tally, r Roof, d Detail) []OperatorRow {
	rows := make([]OperatorRow, 0, len(s.of))
	for _, g := range s.of {
		rows = append(rows, g.row(t, r, d))
	}
	slices.SortFunc(rows, func(a, b OperatorRow) int {
		return cmp.Or(
			cmp.Compare(phaseRank(a.Phase), phaseRank(b.Phase)), cmp.Compare(b.Time, a.Time),
			strings.Compare(a.Op, b.Op), strings.Compare(a.Sub, b.Sub), strings.Compare(a.Name, b.Name), strings.Compare(a.Type, b.Type),
		)
	})
	return rows
}

// row is what a group came to.
func (g *group) row(t *Tally, r Roof, d Detail) OperatorRow {
	row := OperatorRow{
		Phase: g.key.phase.String(), Op: g.key.op, Sub: g.key.sub, Name: g.key.name, Type: g.key.weights,
		Count: int64(g.each.count), Time: g.each.sum, Each: g.each.distribution(),
		Share: ratio(g.each.sum, t.phases[g.key.phase].operators), Estimated: g.cost.reckoned,
	}
	row.Sync, row.Off = recordedTime(d&DetailBarrier != 0, g.sync), recordedTime(d&DetailSched != 0, g.off)
	row.Synced, row.Offed = g.synced, g.offed
	row.Bytes, row.Flops = g.cost.amounts()
	if g.cost.known {
		row.BytesRate, row.FlopsRate = rate(g.cost.bytes, g.cost.time), rate(g.cost.flops, g.cost.time)
	}
	row.IPC, row.MissRate = g.count.rates()
	row.Bound, row.BoundFrom = g.bound(r)
	row.OfRoof = r.share(g.work(), row.Bound, row.Estimated)
	return row
}

// bound is what bounds the operators, and by what that was judged. Counters count what
// ran, also waits that spin, but not what was off the CPU; a roofline goes by the clock
// alone.
func (g *group) bound(r Roof) (Bound, string) {
	waited := float64(g.sync) > mostlyIdle*float64(g.syncOf)
	if b := g.count.bound(); b != BoundUnknown && !waited {
		return b, FromCounters
	}
	if float64(g.idle) > mostlyIdle*float64(g.idleOf) {
		return BoundWaiting, FromLanes
	}
	w := g.work()
	b := r.bound(w)
	least, most := g.undisturbed()
	reached := r.nearest(w, b)
	bytes, _ := w.rates()
	switch {
	case g.cost.guessed, b == BoundUnknown, b == BoundMemory && bytes > nearRidge*r.BytesPerSecond:
		return BoundUnknown, "" // faster than the memory: its operands are in caches
	case reached < farBelow*least:
		return BoundNeither, FromRoofline
	case reached < farBelow*most:
		return BoundUnknown, "" // far below, or held up by what had the CPUs meanwhile
	}
	return b, FromRoofline
}

// undisturbed are the least and the largest share of the operators' time in which no
// lane was off its CPU: what it was off is no matter of the operator's.
func (g *group) undisturbed() (least, most float64) {
	if g.offOf <= 0 {
		return 1, 1
	}
	off := float64(g.off) / float64(g.offOf)
	return 1 - min(off*float64(max(g.lanes, 1)), 1), 1 - min(off, 1)
}

// phaseRank is the place of a phase in a document.
func phaseRank(name string) int {
	return slices.IndexFunc(phaseOrder[:], func(p Phase) bool { return p.String() == name })
}

// order are the keys in an order that is the same each time.
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
