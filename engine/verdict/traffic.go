package verdict

import (
	"math"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

const (
	// queued is how many requests must wait on the mean, and queuedShare which share
	// of those that are in, for a server to be called limited by its capacity. A
	// burst leaves a few waiting for a moment on a server that has room.
	queued      = 1
	queuedShare = 0.10
	// suspicion is the error rate at which a difference of the traffic is reckoned
	// with, at each look: to overlook one makes a false verdict, to see one where
	// there is none costs a part of an effect.
	suspicion = 0.05
	// leastShift is the relative difference of traffic that is not reckoned with.
	leastShift = 0.005
	// promptPower bounds how throughput follows the length of prompts: a server that
	// does nothing but prefill halves its output with twice the prompt, attention
	// and a fuller pool add a little.
	promptPower = 1.25
	// leastLengths is how many requests on each side a comparison of lengths needs.
	leastLengths = 20
)

// load is where the columns of a side's traffic are.
type load struct {
	running, waiting, inside     int
	prompt, output, hits, shares int
	arrivals                     int
}

// loads adds the columns that tell the traffic.
func (s *sample) loads() {
	s.load.running = s.ratio(mean(func(v *Slice) stat.Opt { return v.Running }))
	s.load.waiting = s.ratio(mean(func(v *Slice) stat.Opt { return v.Waiting }))
	s.load.inside = s.ratio(mean(inside))
	s.load.prompt = s.either(each(func(v *Slice) *stat.Delta { return &v.PromptLen }), per(func(v *Slice) stat.Opt { return v.Prompt }, finished))
	s.load.output = s.either(each(func(v *Slice) *stat.Delta { return &v.OutputLen }), per(tokens, finished))
	s.load.hits = s.ratio(per(func(v *Slice) stat.Opt { return v.Hits }, func(v *Slice) stat.Opt { return v.Queries }))
	s.load.shares = s.either(
		per(func(v *Slice) stat.Opt { return v.Computed }, func(v *Slice) stat.Opt { return v.Prompt }),
		func(v *Slice) (float64, float64, bool) {
			return v.Queries.V - v.Hits.V, v.Queries.V, v.Queries.OK && v.Hits.OK && v.Hits.V <= v.Queries.V
		})
	s.load.arrivals = s.arrivals()
	s.limit = s.limited()
}

// either adds the first ratio that has a value.
func (s *sample) either(list ...ratio) int {
	for _, f := range list[:len(list)-1] {
		if _, under, _ := s.sum(f); under > 0 {
			return s.ratio(f)
		}
	}
	return s.ratio(list[len(list)-1])
}

// arrivals adds the rate of arrivals: what finished, and what the number of
// requests that are in grew by.
func (s *sample) arrivals() int {
	at := s.ratio(over(finished))
	c := &s.columns[at]
	if !c.value.OK || s.time <= 0 {
		return at
	}
	grown := 0.0
	for i := range s.lives {
		l := &s.lives[i]
		first, last := inside(&l.slices[0]), inside(&l.slices[len(l.slices)-1])
		if first.OK && last.OK {
			grown += l.factor * (last.V - first.V)
		}
	}
	if v := c.value.V + grown/s.time; v > 0 {
		c.value = stat.Some(v)
	}
	return at
}

// limited says what bounded a side's throughput.
func (s *sample) limited() Limit {
	running, waiting := s.columns[s.load.running].value, s.columns[s.load.waiting].value
	switch {
	case !running.OK || !waiting.OK:
		return LimitUnknown
	case waiting.V >= queued && waiting.V >= queuedShare*(running.V+waiting.V):
		return ByCapacity
	}
	return ByDemand
}

// shift is a difference of traffic, as a difference of logarithms.
type shift struct {
	effect
	sure bool // beyond suspicion
}

// by returns what is reckoned with: 0 where nothing is suspected, and of a
// difference what is left of it with its standard error the other way: those that
// are suspected without being there are the large ones of many.
func (s *shift) by() float64 {
	if !s.sure {
		return 0
	}
	return math.Copysign(max(0, math.Abs(s.mid)-s.se), s.mid)
}

// shifted compares one property of the traffic and lists it.
func (c *comparison) shifted(name string, at func(*sample) int, least float64) shift {
	b, a := &c.side[0].estimates[at(c.side[0])], &c.side[1].estimates[at(c.side[1])]
	out := Shift{Name: name, Before: b.value, After: a.value}
	var s shift
	if b.value.OK && a.value.OK && b.value.V > 0 && a.value.V > 0 && min(b.count, a.count) >= least {
		s.effect = difference(b, a)
		half := s.se * stat.StudentQuantile(1-movedError/2, s.dof)
		out.Change = interval(s.mid-half, s.mid, s.mid+half)
		out.Moved = math.Abs(s.mid) > max(half, leastShift)
		s.sure = math.Abs(s.mid) > max(s.se*stat.StudentQuantile(1-suspicion/2, s.dof), leastShift)
	}
	if b.value.OK || a.value.OK {
		c.r.Traffic = append(c.r.Traffic, out)
	}
	return s
}

// traffic compares the load of both sides and bounds what it explains.
func (c *comparison) traffic() {
	c.r.Limited = [2]Limit{c.side[0].limit, c.side[1].limit}
	prompt := c.shifted("prompt tokens", func(s *sample) int { return s.load.prompt }, leastLengths)
	output := c.shifted("output tokens", func(s *sample) int { return s.load.output }, leastLengths)
	in := c.shifted("requests in", func(s *sample) int { return s.load.inside }, 0)
	arrivals := c.shifted("arrivals", func(s *sample) int { return s.load.arrivals }, 0)
	computed := c.hits()
	spread := [2]float64{c.spreads("prompt tokens", &prompt, func(s *Slice) *stat.Delta { return &s.PromptLen }), c.spreads("output tokens", &output, func(s *Slice) *stat.Delta { return &s.OutputLen })}
	// With as many requests in, or as many arriving, the load is equal, and the other
	// of the two follows from the server.
	c.loadMoved = in.sure && (arrivals.sure || !arrivals.known)

	longer := max(prompt.by(), prompt.by()+computed, 0)
	shorter := max(-prompt.by(), -(prompt.by() + computed), 0)
	c.low -= promptPower*longer + spread[0]
	c.high += promptPower*shorter + spread[0]
	out := max(math.Abs(output.by()), spread[1])
	if c.p.Goal == Latency {
		c.low -= promptPower * max(output.by(), spread[1])
		c.high += promptPower * max(-output.by(), spread[1])
		if c.loadMoved {
			c.low -= max(in.mid, 0)
			c.high += max(-in.mid, 0)
		}
		return
	}
	c.low -= out
	c.high += out
	c.demand(in.by())
}

// demand bounds what more or fewer requests explain of the throughput: nothing
// where the side that did less had requests waiting, and at most their ratio where
// it did what was asked of it.
func (c *comparison) demand(more float64) {
	before, after := c.side[0].limit, c.side[1].limit
	preempted := func(side int) bool {
		for i := range c.meters {
			if m := &c.meters[i]; m.metric == MetricPreempts {
				return c.side[side].estimates[m.at[side]].value.V > 0
			}
		}
		return false
	}
	switch {
	case more > 0:
		if before != ByCapacity {
			c.high += more
		}
		if preempted(1) {
			c.low -= more // too many at once undo each other's work
		}
	case more < 0:
		if after != ByCapacity {
			c.low += more
		}
		if preempted(0) {
			c.high -= more
		}
	}
}

// hits compares the share of prompts that was computed and returns the difference
// that the change itself does not make, as one of logarithms.
func (c *comparison) hits() float64 {
	b, a := &c.side[0].estimates[c.side[0].load.hits], &c.side[1].estimates[c.side[1].load.hits]
	listed := Shift{Name: "prefix hits", Before: b.value, After: a.value}
	share := c.quiet(func(s *sample) int { return s.load.shares })
	if b.value.OK && a.value.OK {
		// A ratio's error from its logarithm's.
		se := math.Hypot(math.Sqrt(b.variance)*b.value.V, math.Sqrt(a.variance)*a.value.V)
		half := se * stat.StudentQuantile(1-movedError/2, max(1, min(b.dof, a.dof)))
		mid := a.value.V - b.value.V
		listed.Change = Interval{mid - half, mid, mid + half}
		listed.Moved = math.Abs(mid) > max(half, leastShift)
	}
	if b.value.OK || a.value.OK {
		c.r.Traffic = append(c.r.Traffic, listed)
	}
	by := share.by()
	if !c.p.Touch.Reuse {
		return by
	}
	// What a cold cache lacks is not the change's own doing.
	c.filling = [2]bool{by < 0 && c.side[0].filling(), by > 0 && c.side[1].filling()}
	if c.filling[0] || c.filling[1] {
		return by
	}
	return 0
}

// filling says that the prefix cache of a side still filled after a start: that its hit
// rate rises beyond its scatter.
func (s *sample) filling() bool {
	for i := range s.lives {
		l := &s.lives[i]
		var rates []float64
		for j := range l.slices {
			if v := &l.slices[j]; v.Hits.OK && v.Queries.V > 0 {
				rates = append(rates, min(1, v.Hits.V/v.Queries.V))
			}
		}
		if len(rates) < leastSlices {
			continue
		}
		if drift(rates) > 0 {
			return true
		}
	}
	return false
}

// quiet compares without listing.
func (c *comparison) quiet(at func(*sample) int) shift {
	n := len(c.r.Traffic)
	s := c.shifted("", at, 0)
	c.r.Traffic = c.r.Traffic[:n]
	return s
}

// spreads compares the distribution of lengths where their mean did not move, by
// the two-sample test of Kolmogorov and Smirnov on the buckets (conservative for
// what is not continuous: Noether, Ann. Math. Stat. 34, 1963). It returns how far the lengths
// moved apart, relative to their mean; 0 where they did not.
func (c *comparison) spreads(name string, mean *shift, pick func(*Slice) *stat.Delta) float64 {
	var all [2]stat.Delta
	for i, s := range c.side {
		for j := range s.lives {
			l := &s.lives[j]
			for k := range l.slices {
				all[i].Merge(pick(&l.slices[k]))
			}
		}
	}
	b, a := &all[0], &all[1]
	if mean.sure || b.Count < leastLengths || a.Count < leastLengths {
		return 0
	}
	union := *b
	union.Bounds = append([]float64(nil), b.Bounds...)
	union.Counts = append([]float64(nil), b.Counts...)
	union.Merge(a)
	apart, distance, lower, seen := 0.0, 0.0, 0.0, [2]float64{}
	for _, bound := range union.Bounds {
		for i, d := range [...]*stat.Delta{b, a} {
			seen[i] = below(d, bound) / d.Count
		}
		gap := math.Abs(seen[0] - seen[1])
		apart = max(apart, gap)
		if !math.IsInf(bound, 1) {
			distance += gap * (bound - lower)
			lower = bound
		}
	}
	// 1.63 is the limit at an error of 1 in 100.
	if apart <= 1.63*math.Sqrt(1/b.Count+1/a.Count) || !(b.Sum > 0) {
		return 0
	}
	for i := range c.r.Traffic {
		if c.r.Traffic[i].Name == name {
			c.r.Traffic[i].Moved = true
		}
	}
	return distance / max(b.Sum/b.Count, a.Sum/a.Count)
}
