package engine

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/rooftop-dev/rooftop/engine/stat"
	"github.com/rooftop-dev/rooftop/engine/verdict"
)

// level is the goal at a number of seats: a logarithm, relative to the kept
// configuration.
type level struct{ seats, gain float64 }

// seats brackets the number of seats: each sensible number gets what the model,
// calibrated on either side of it, predicts; without a model a parabola through what
// was measured does. The best of them comes into question.
func (s *search) seats(anchors []anchor) []candidate {
	now := s.d.Facts.MaxNumSeqs
	need := s.d.needed()
	if !now.Known || !need.OK {
		return nil
	}
	if s.d.performance == nil {
		return s.between(anchors, float64(now.Value))
	}
	var best *candidate
	for _, to := range ladder(max(seatsFor(need.V), now.Value)) {
		if budget := s.d.Facts.MaxNumBatchedTokens; to == now.Value || budget.Known && to > budget.Value {
			continue
		}
		c, ok := s.seated(anchors, to)
		if !ok || s.barred(&c) {
			continue
		}
		probe := c
		s.weigh(&probe)
		if _, good := s.aim.value(s.d, probe.Predicted, 0); !good || !probe.gain.OK {
			continue
		}
		c.value = probe.value
		if best == nil || c.value > best.value+leastMore {
			best = &c
		}
	}
	if best == nil {
		return nil
	}
	return []candidate{*best}
}

// leastMore is by how much more seats have to be better than fewer to be preferred.
const leastMore = 0.01

// barred says that trials speak against a candidate.
func (s *search) barred(c *candidate) bool {
	changes := c.changes()
	return slices.ContainsFunc(s.trials, func(t tried) bool { return t.speaks(changes, s.d) != "" })
}

// ladder are the sensible numbers of seats up to one.
func ladder(most int) []int {
	out := []int{1, 2, 4}
	step := seatStep
	for n := seatStep; n <= most; n += step {
		out = append(out, n)
		if n >= 8*step {
			step *= 2
		}
	}
	return slices.DeleteFunc(out, func(n int) bool { return n > most })
}

// seated predicts a number of seats from the anchors nearest to it on both sides, each
// counting the more the nearer it is.
func (s *search) seated(anchors []anchor, to int) (candidate, bool) {
	type side struct {
		a    *anchor
		from float64
		away float64
	}
	var lower, upper *side
	for i := range anchors {
		a := &anchors[i]
		seats := a.d.Facts.MaxNumSeqs
		if !seats.Known || a.d.performance == nil || len(a.changes) > 1 || len(a.changes) == 1 && a.changes[0].Flag != "--max-num-seqs" {
			continue
		}
		n := float64(seats.Value)
		x := side{a, n, math.Abs(math.Log(float64(to) / n))}
		switch {
		case n <= float64(to) && (lower == nil || x.away < lower.away):
			lower = &x
		case n > float64(to) && (upper == nil || x.away < upper.away):
			upper = &x
		}
	}
	change := Change{Flag: "--max-num-seqs", From: strconv.Itoa(s.d.Facts.MaxNumSeqs.Value), To: strconv.Itoa(to)}
	made := func(x *side) (candidate, bool) {
		p := x.a.d.performance
		g := p.RaiseSeats(to)
		if float64(to) < x.from {
			g = p.LowerSeats(to)
		}
		c, ok := s.made(x.a, SeatSaturation, g, s.seatsWhy(x.a, to), change)
		if !ok || len(x.a.changes) > 0 {
			return c, ok
		}
		crowd := *p
		crowd.Measured.Batch = min(p.Measured.Batch+p.Measured.Waiting.Or(0), float64(to))
		if tail := s.pause(x.a.d, crowd.FullStep(float64(x.a.d.Facts.MaxNumBatchedTokens.Value), p.Measured.PrefillContext)); tail.OK {
			c.Predicted = append(c.Predicted, Prediction{Metric: predictITLTail, Unit: "ratio", Low: tail, Mid: tail, High: tail})
		}
		return c, true
	}
	switch {
	case lower == nil && upper == nil:
		return candidate{}, false
	case upper == nil:
		return made(lower)
	case lower == nil:
		return made(upper)
	}
	a, okA := made(lower)
	b, okB := made(upper)
	if !okA || !okB {
		return a, okA
	}
	share := upper.away / (lower.away + upper.away) // of the lower
	a.Predicted = blend(a.Predicted, b.Predicted, share)
	a.Why = fmt.Sprintf("%s and %s seats were measured: the model, calibrated on both, finds %d between them best.", whole(lower.from), whole(upper.from), to)
	return a, true
}

func (s *search) seatsWhy(a *anchor, to int) string {
	now := a.d.Facts.MaxNumSeqs.Value
	if to < now {
		if a.d.preempts() {
			return fmt.Sprintf("%d seats overflow the pool: %d are what the model finds best.", now, to)
		}
		return fmt.Sprintf("With %d seats a step is shorter than with %d: each request's tokens come faster.", to, now)
	}
	return fmt.Sprintf("By the calibrated model %d seats are best for what is in.", to)
}

// blend mixes two sets of predictions of one change on the scale of logarithms; the
// ends reach as far as either's.
func blend(a, b []Prediction, share float64) []Prediction {
	out := make([]Prediction, 0, len(a))
	for _, p := range a {
		q := predictionOf(b, p.Metric)
		if p.Mid.OK && q.Mid.OK {
			mid := share*logOf(p.Mid, 1).V + (1-share)*logOf(q.Mid, 1).V
			p.Mid = ratioOf(stat.Some(mid))
		}
		if p.Low.OK && q.Low.OK {
			p.Low.V = min(p.Low.V, q.Low.V)
		}
		if p.High.OK && q.High.OK {
			p.High.V = max(p.High.V, q.High.V)
		}
		out = append(out, p)
	}
	return out
}

// between brackets the seats without a model: a parabola over the logarithm of the
// seats through the measured levels, or the middle of two where the farther one
// overflowed.
func (s *search) between(anchors []anchor, now float64) []candidate {
	points := s.levels(now)
	if len(points) < 2 || s.aim.goal == verdict.Latency {
		return nil
	}
	best := slices.MaxFunc(points, func(a, b level) int {
		if a.gain < b.gain {
			return -1
		}
		return 1
	})
	i := slices.Index(points, best)
	var out []candidate
	add := func(at float64, gain, most stat.Opt, why string) {
		to := seatsFor(at)
		if to > int(at)+seatStep/2 {
			to = seatsWithin(at)
		}
		if slices.ContainsFunc(points, func(p level) bool { return int(p.seats) == to }) || to < 1 {
			return
		}
		c := candidate{Recommendation: Recommendation{Finding: SeatSaturation}}
		c.set([]Change{{Flag: "--max-num-seqs", From: strconv.Itoa(int(now)), To: strconv.Itoa(to)}})
		c.Why, c.Risk, c.Price = why, 1, []string{oneRestart}
		p := Prediction{Metric: predictTokens, Unit: "ratio", Mid: ratioOf(gain), High: ratioOf(most)}
		if gain.OK {
			p.Low = ratioOf(stat.Some(gain.V - leastBand))
		}
		c.Predicted = []Prediction{p}
		out = append(out, c)
	}
	if i > 0 && i < len(points)-1 {
		if at, gain, ok := vertex(points[i-1], points[i], points[i+1]); ok {
			add(math.Exp(at), stat.Some(gain), stat.Some(gain+leastBand),
				fmt.Sprintf("%s, %s and %s seats were measured: the best lies about here.", whole(points[i-1].seats), whole(points[i].seats), whole(points[i+1].seats)))
		}
		return out
	}
	// At an end: the middle towards the neighbour, where that one overflowed.
	for _, a := range anchors[1:] {
		if seats := a.d.Facts.MaxNumSeqs; len(a.changes) == 1 && a.changes[0].Flag == "--max-num-seqs" && seats.Known && a.d.preempts() && float64(seats.Value) > 2*now {
			at := math.Sqrt(now * float64(seats.Value))
			add(at, stat.None, stat.None, fmt.Sprintf("%d seats overflowed the pool, and %s are too few: between them.", seats.Value, whole(now)))
		}
	}
	return out
}

// leastBand is the half width of what a parabola through measurements predicts.
const leastBand = 0.1

// levels are the measured goals by seats, ascending, where nothing else that matters
// for them was changed since.
func (s *search) levels(now float64) []level {
	points := []level{{now, 0}}
	sum := 0.0
	for _, t := range slices.Backward(s.trials) {
		one := len(t.changes) == 1 && t.changes[0].Flag == "--max-num-seqs"
		if !t.effect.OK || t.relieved() || !t.sameLoad(s.d, muchOther) {
			if t.ending == gained {
				break
			}
			continue
		}
		from, okFrom := number(t.changes[0].From)
		to, okTo := number(t.changes[0].To)
		switch {
		case t.ending == gained:
			sum -= t.effect.V // the level before it
			if one && okFrom {
				points = append(points, level{from, sum})
			}
		case one && okTo && t.ending == lost:
			points = append(points, level{to, sum + t.effect.V})
		}
	}
	slices.SortFunc(points, func(a, b level) int { return int(a.seats - b.seats) })
	return slices.CompactFunc(points, func(a, b level) bool { return a.seats == b.seats })
}

// vertex is the highest point of the parabola through three levels over the logarithm
// of the seats, with its gain; ok is false where it has none between them.
func vertex(a, b, c level) (at, gain float64, ok bool) {
	x0, x1, x2 := math.Log(a.seats), math.Log(b.seats), math.Log(c.seats)
	first, second := (b.gain-a.gain)/(x1-x0), (c.gain-b.gain)/(x2-x1)
	bend := (second - first) / (x2 - x0)
	if !(bend < 0) {
		return 0, 0, false
	}
	at = (x0+x1)/2 - first/(2*bend)
	if at <= x0 || at >= x2 {
		return 0, 0, false
	}
	gain = a.gain + first*(at-x0) + bend*(at-x0)*(at-x1)
	return at, gain, true
}
