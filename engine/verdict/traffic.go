package verdict

import (
	"math"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

const (
	// queued is the least mean number of waiting requests, and queuedShare their least share of the
	// requests in the server, for a server limited by its capacity. A burst briefly leaves a few
	// waiting on a server with room.
	queued      = 1
	queuedShare = 0.10
	// suspicion is the error rate for assuming a difference in the traffic, at each look: missing
	// one makes a false verdict, while a false one only costs a part of an effect.
	suspicion = 0.05
	// leastShift is the relative difference in the traffic that is ignored.
	leastShift = 0.005
	// promptPower bounds the effect of the length of prompts on throughput: a server that only
	// prefills halves its output with twice the prompt, and attention and a fuller pool add a little.
	promptPower = 1.25
	// leastLengths is the least number of requests on each side for comparing lengths.
	leastLengths = 20
)

// load has the columns of a side's traffic.
type load struct {
	running, waiting, inside     int
	prompt, output, hits, shares int
	arrivals                     int
}

// loads adds the columns that describe the traffic.
func (s *sample) loads() {
	s.load.running = s.ratio(timeMean(func(v *Slice) stat.Opt { return v.Running }))
	s.load.waiting = s.ratio(timeMean(func(v *Slice) stat.Opt { return v.Waiting }))
	s.load.inside = s.ratio(timeMean(requestsInServer))
	s.load.prompt = s.firstKnown(observationMean(func(v *Slice) *stat.Delta { return &v.PromptLen }), perCount(func(v *Slice) stat.Opt { return v.Prompt }, finished))
	s.load.output = s.firstKnown(observationMean(func(v *Slice) *stat.Delta { return &v.OutputLen }), perCount(tokens, finished))
	s.load.hits = s.ratio(perCount(func(v *Slice) stat.Opt { return v.Hits }, func(v *Slice) stat.Opt { return v.Queries }))
	s.load.shares = s.firstKnown(
		perCount(func(v *Slice) stat.Opt { return v.Computed }, func(v *Slice) stat.Opt { return v.Prompt }),
		func(v *Slice) (float64, float64, bool) {
			return v.Queries.V - v.Hits.V, v.Queries.V, v.Queries.OK && v.Hits.OK && v.Hits.V <= v.Queries.V
		})
	s.load.arrivals = s.arrivals()
	s.limit = s.limited()
}

// firstKnown adds the first ratio that has a value.
func (s *sample) firstKnown(list ...ratio) int {
	for _, f := range list[:len(list)-1] {
		if _, under, _ := s.sum(f); under > 0 {
			return s.ratio(f)
		}
	}
	return s.ratio(list[len(list)-1])
}

// arrivals adds the rate of arrivals: finished requests plus the growth of the number in the server.
func (s *sample) arrivals() int {
	at := s.ratio(perSecond(finished))
	c := &s.columns[at]
	if !c.value.OK || s.time <= 0 {
		return at
	}
	grown := 0.0
	for i := range s.starts {
		l := &s.starts[i]
		first, last := requestsInServer(&l.slices[0]), requestsInServer(&l.slices[len(l.slices)-1])
		if first.OK && last.OK {
			grown += l.factor * (last.V - first.V)
		}
	}
	if v := c.value.V + grown/s.time; v > 0 {
		c.value = stat.Some(v)
	}
	return at
}

// Queued reports whether requests wait for capacity. waiting and inside are the mean numbers of
// waiting requests and of all requests in the server. Throughput then does not follow arrivals.
func Queued(waiting, inside float64) bool {
	return waiting >= queued && waiting >= queuedShare*inside
}

// limited returns what limited a side's throughput.
func (s *sample) limited() Limit {
	running, waiting := s.columns[s.load.running].value, s.columns[s.load.waiting].value
	switch {
	case !running.OK || !waiting.OK:
		return LimitUnknown
	case Queued(waiting.V, running.V+waiting.V):
		return ByCapacity
	}
	return ByDemand
}

// shift is a difference in the traffic, as a difference of logarithms.
type shift struct {
	effect
	sure   bool // certain, not only suspected
	paired bool // between sides measured at the same time
}

// assumed returns the assumed size of the shift: 0 unless suspected, else the difference reduced by its
// standard error, because falsely suspected differences are the largest of many. Between sides measured at
// the same time any difference is suspected: the effect of one that is not certain may be.
func (s *shift) assumed() float64 {
	if !s.sure && !s.paired {
		return 0
	}
	return math.Copysign(max(0, math.Abs(s.mid)-s.se), s.mid)
}

// shifted compares one property of the traffic and lists it.
func (c *comparison) shifted(name string, at func(*sample) int, least float64) shift {
	columns := [2]int{at(c.side[0]), at(c.side[1])}
	b, a := &c.side[0].estimates[columns[0]], &c.side[1].estimates[columns[1]]
	out := Shift{Name: name, Before: b.value, After: a.value}
	var s shift
	if b.value.OK && a.value.OK && b.value.V > 0 && a.value.V > 0 && min(b.count, a.count) >= least {
		s.effect, s.paired = c.difference(columns), c.p.Paired
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

// traffic compares the load of both sides and bounds its effect.
func (c *comparison) traffic() {
	c.r.Limited = [2]Limit{c.side[0].limit, c.side[1].limit}
	prompt := c.shifted("prompt tokens", func(s *sample) int { return s.load.prompt }, leastLengths)
	output := c.shifted("output tokens", func(s *sample) int { return s.load.output }, leastLengths)
	in := c.shifted("requests in", func(s *sample) int { return s.load.inside }, 0)
	arrivals := c.shifted("arrivals", func(s *sample) int { return s.load.arrivals }, 0)
	computed := c.hits()
	spread := [2]float64{c.lengthSpread("prompt tokens", &prompt, func(s *Slice) *stat.Delta { return &s.PromptLen }), c.lengthSpread("output tokens", &output, func(s *Slice) *stat.Delta { return &s.OutputLen })}
	// With as many requests in the server, or as many arriving, the load is equal, and the other
	// quantity follows from the server.
	c.loadMoved = in.sure && (arrivals.sure || !arrivals.known) && !c.p.Touch.Front

	longer := max(prompt.assumed(), prompt.assumed()+computed, 0)
	shorter := max(-prompt.assumed(), -(prompt.assumed() + computed), 0)
	c.low -= promptPower*longer + spread[0]
	c.high += promptPower*shorter + spread[0]
	out := max(math.Abs(output.assumed()), spread[1])
	if c.p.Goal == Latency {
		c.low -= promptPower * max(output.assumed(), spread[1])
		c.high += promptPower * max(-output.assumed(), spread[1])
		if c.loadMoved {
			c.low -= max(in.mid, 0)
			c.high += max(-in.mid, 0)
		}
		return
	}
	c.low -= out
	c.high += out
	if !c.p.Touch.Front {
		c.demand(in.assumed())
	}
}

// demand bounds how much of the throughput a different number of requests explains: nothing if
// requests waited on the side with the lower throughput, and at most their ratio if that side met its
// demand.
func (c *comparison) demand(more float64) {
	before, after := c.side[0].limit, c.side[1].limit
	preempts := c.meter(MetricPreempts, 0)
	preempted := func(side int) bool { return c.side[side].estimates[preempts.at[side]].value.V > 0 }
	switch {
	case more > 0:
		if before != ByCapacity {
			c.high += more
		}
		if preempted(1) {
			c.low -= more // too many at once slow each other down
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

// hits compares the share of prompts that was computed and returns the difference not caused by the
// change itself, as a difference of logarithms.
func (c *comparison) hits() float64 {
	b, a := &c.side[0].estimates[c.side[0].load.hits], &c.side[1].estimates[c.side[1].load.hits]
	listed := Shift{Name: "prefix hits", Before: b.value, After: a.value}
	share := c.shiftUnlisted(func(s *sample) int { return s.load.shares })
	if b.value.OK && a.value.OK {
		// The error of a ratio from that of its logarithm. A load common to both sides does not cancel
		// here: it only marks the line that is listed.
		se := math.Hypot(math.Sqrt(b.variance)*b.value.V, math.Sqrt(a.variance)*a.value.V)
		half := se * stat.StudentQuantile(1-movedError/2, max(1, min(b.dof, a.dof)))
		mid := a.value.V - b.value.V
		listed.Change = Interval{mid - half, mid, mid + half}
		listed.Moved = math.Abs(mid) > max(half, leastShift)
	}
	if b.value.OK || a.value.OK {
		c.r.Traffic = append(c.r.Traffic, listed)
	}
	by := share.assumed()
	if !c.p.Touch.Reuse {
		return by
	}
	// The misses of a cold cache are not due to the change.
	c.filling = [2]bool{by < 0 && c.side[0].filling(), by > 0 && c.side[1].filling()}
	if c.filling[0] || c.filling[1] {
		return by
	}
	return 0
}

// filling reports whether the prefix cache of a side was still filling after a start: its hit rate
// rises beyond its scatter.
func (s *sample) filling() bool {
	for i := range s.starts {
		l := &s.starts[i]
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

// shiftUnlisted compares without listing.
func (c *comparison) shiftUnlisted(at func(*sample) int) shift {
	n := len(c.r.Traffic)
	s := c.shifted("", at, 0)
	c.r.Traffic = c.r.Traffic[:n]
	return s
}

// lengthSpread compares the distribution of lengths if their mean did not change, by the two-sample test of
// Kolmogorov and Smirnov on the buckets (conservative for discrete values: Noether, Ann. Math.
// Stat. 34, 1963). It returns the distance of the lengths relative to their mean, or 0.
func (c *comparison) lengthSpread(name string, mean *shift, pick func(*Slice) *stat.Delta) float64 {
	b, a := c.side[0].pooled(pick), c.side[1].pooled(pick)
	if mean.sure || b.Count < leastLengths || a.Count < leastLengths {
		return 0
	}
	var union stat.Delta
	union.Merge(&b)
	union.Merge(&a)
	apart, distance, lower, seen := 0.0, 0.0, 0.0, [2]float64{}
	for _, bound := range union.Bounds {
		for i, d := range [...]*stat.Delta{&b, &a} {
			seen[i] = countUpTo(d, bound) / d.Count
		}
		gap := math.Abs(seen[0] - seen[1])
		apart = max(apart, gap)
		if !math.IsInf(bound, 1) {
			distance += gap * (bound - lower)
			lower = bound
		}
	}
	// 1.63 is the limit for an error rate of 1 in 100.
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
