package search

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/lever"
	"github.com/rooftop-dev/rooftop/engine/roofline"
	"github.com/rooftop-dev/rooftop/engine/stat"
	"github.com/rooftop-dev/rooftop/engine/verdict"
)

// level is the goal at a number of slots, as a logarithm relative to the kept configuration.
type level struct{ slots, gain float64 }

// slotCandidates returns the best candidate for the number of slots. Each sensible number is predicted by the
// model, calibrated on either side of it; without a model, by a parabola through the measurements.
func (s *Search) slotCandidates(anchors []anchor) []candidate {
	now := s.Baseline.Facts.MaxNumSeqs
	need := lever.NeededSlots(s.Baseline)
	if !now.Known || !need.OK {
		return nil
	}
	if s.Baseline.Performance == nil {
		return s.bracketSlots(anchors, float64(now.Value))
	}
	return s.bestSlots(&anchors[0], need.V, func(to int) candidate { return s.withSlots(anchors, to) })
}

// bestSlots returns the best of the sensible numbers of slots for need requests at an anchor.
func (s *Search) bestSlots(a *anchor, need float64, at func(to int) candidate) []candidate {
	now, budget := a.d.Facts.MaxNumSeqs.Value, a.d.Facts.MaxNumBatchedTokens
	var list []candidate
	for _, to := range ladder(max(engine.SlotsFor(need), now)) {
		if to != now && (!budget.Known || to <= budget.Value) {
			list = append(list, at(to))
		}
	}
	return s.bestOf(list)
}

// bestOf returns the candidate with the highest value that no trial excludes and that breaks no
// objective, or none. A later candidate must be better by leastMore.
func (s *Search) bestOf(list []candidate) []candidate {
	var best *candidate
	for i := range list {
		c := &list[i]
		if c.Flag == "" || s.excluded(c.Changes()) != "" {
			continue
		}
		weighed := *c
		s.weigh(&weighed)
		if _, good := s.Goal.value(s.Baseline, weighed.Predicted, 0); !good || !weighed.gain.OK {
			continue
		}
		if c.value = weighed.value; best == nil || c.value > best.value+minImprovement {
			best = c
		}
	}
	if best == nil {
		return nil
	}
	return []candidate{*best}
}

// minImprovement is the least difference by which a later number must exceed an earlier one.
const minImprovement = 0.01

// excluded returns why a trial excludes changes, or "".
func (s *Search) excluded(changes []engine.Change) string {
	for i := range s.Trials {
		if why := s.Trials[i].excludes(changes, s.Baseline); why != "" {
			return why
		}
	}
	return ""
}

// ladder returns the sensible numbers of slots up to most.
func ladder(most int) []int {
	out := []int{1, 2, 4}
	step := engine.SlotStep
	for n := engine.SlotStep; n <= most; n += step {
		out = append(out, n)
		if n >= 8*step {
			step *= 2
		}
	}
	return slices.DeleteFunc(out, func(n int) bool { return n > most })
}

// withSlots predicts a number of slots from the nearest anchors on both sides, weighted by their
// proximity; a zero candidate if there is none.
func (s *Search) withSlots(anchors []anchor, to int) candidate {
	var lower, upper *anchor
	slots := func(a *anchor) int { return a.d.Facts.MaxNumSeqs.Value }
	for i := range anchors {
		a := &anchors[i]
		if !a.d.Facts.MaxNumSeqs.Known || a.d.Performance == nil || len(a.changes) > 1 || len(a.changes) == 1 && !a.changes[0].Sets(lever.Slots.Flag) {
			continue
		}
		switch n := slots(a); {
		case n <= to && (lower == nil || n > slots(lower)):
			lower = a
		case n > to && (upper == nil || n < slots(upper)):
			upper = a
		}
	}
	switch {
	case lower == nil && upper == nil:
		return candidate{}
	case upper == nil:
		return s.slotsAt(lower, to)
	case lower == nil:
		return s.slotsAt(upper, to)
	}
	a, b := s.slotsAt(lower, to), s.slotsAt(upper, to)
	if a.Flag == "" || b.Flag == "" {
		return a
	}
	away := func(a *anchor) float64 { return math.Abs(math.Log(float64(to) / float64(slots(a)))) }
	a.Predicted = blend(a.Predicted, b.Predicted, away(upper)/(away(lower)+away(upper)))
	a.Why = fmt.Sprintf("%s and %s slots were measured: %d between them suit the load best, by the model calibrated on both.", whole(float64(slots(lower))), whole(float64(slots(upper))), to)
	return a
}

// slotsAt predicts a number of slots from one anchor.
func (s *Search) slotsAt(a *anchor, to int) candidate {
	p := a.d.Performance
	c := s.propose(a, lever.GainOfSlots(a.d, to), s.slotsWhy(a, to), a.d.Facts.Change("--max-num-seqs", strconv.Itoa(s.Baseline.Facts.MaxNumSeqs.Value), strconv.Itoa(to)))
	if len(a.changes) > 0 {
		return c
	}
	full := *p
	full.Measured.Batch = min(p.Measured.Batch+p.Measured.Waiting.Or(0), float64(to))
	c.predictPause(a.d, full.FullStep(float64(a.d.Facts.MaxNumBatchedTokens.Value), p.Measured.PrefillContext))
	return c
}

func (s *Search) slotsWhy(a *anchor, to int) string {
	now := a.d.Facts.MaxNumSeqs.Value
	if to < now {
		if Preempts(a.d) {
			return fmt.Sprintf("%d slots overflow the KV pool: %d suit it best, by the calibrated model.", now, to)
		}
		return fmt.Sprintf("With %d slots a step is shorter than with %d: each request's tokens come faster.", to, now)
	}
	return fmt.Sprintf("%d slots suit the current load best, by the calibrated model.", to)
}

// blend mixes two sets of predictions of one change in logarithms. The ends are the outer ends of
// both.
func blend(a, b []engine.Prediction, share float64) []engine.Prediction {
	out := slices.Clone(a)
	for i := range out {
		p := &out[i]
		q := engine.PredictionOf(b, p.Metric)
		if p.Mid.OK && q.Mid.OK {
			p.Mid = Ratio(stat.Some(share*Log(p.Mid, 1).V + (1-share)*Log(q.Mid, 1).V))
		}
		if p.Low.OK && q.Low.OK {
			p.Low.V = min(p.Low.V, q.Low.V)
		}
		if p.High.OK && q.High.OK {
			p.High.V = max(p.High.V, q.High.V)
		}
	}
	return out
}

// bracketSlots brackets the slots without a model: by a parabola over the logarithm of the slots
// through the measured levels, or by the middle of two if the farther one overflowed the pool.
func (s *Search) bracketSlots(anchors []anchor, now float64) []candidate {
	points := s.levels(now)
	if len(points) < 2 || s.Goal.Metric == verdict.Latency {
		return nil
	}
	best := slices.MaxFunc(points, func(a, b level) int { return cmp.Compare(a.gain, b.gain) })
	i := slices.Index(points, best)
	var out []candidate
	add := func(at float64, gain, most stat.Opt, why string) {
		to := engine.SlotsFor(at)
		if to > int(at)+engine.SlotStep/2 {
			to = engine.SlotsWithin(at)
		}
		if slices.ContainsFunc(points, func(p level) bool { return int(p.slots) == to }) || to < 1 {
			return
		}
		c := s.propose(&anchors[0], roofline.Gain{}, why, lever.Slots.Change(&s.Baseline.Facts, strconv.Itoa(to)))
		p := engine.Prediction{Metric: engine.QuantityThroughput, Unit: "ratio", Mid: Ratio(gain), High: Ratio(most)}
		if gain.OK {
			p.Low = Ratio(stat.Some(gain.V - leastBand))
		}
		c.Predicted = []engine.Prediction{p}
		out = append(out, c)
	}
	if i > 0 && i < len(points)-1 {
		if at, gain, ok := vertex(points[i-1], points[i], points[i+1]); ok {
			add(math.Exp(at), stat.Some(gain), stat.Some(gain+leastBand),
				fmt.Sprintf("%s, %s and %s slots were measured: the best lies near this value.", whole(points[i-1].slots), whole(points[i].slots), whole(points[i+1].slots)))
		}
		return out
	}
	// At an end: use the middle towards the neighbour if that one overflowed.
	for _, a := range anchors[1:] {
		if slots := a.d.Facts.MaxNumSeqs; len(a.changes) == 1 && a.changes[0].Sets(lever.Slots.Flag) && slots.Known && Preempts(a.d) && float64(slots.Value) > 2*now {
			at := math.Sqrt(now * float64(slots.Value))
			add(at, stat.None, stat.None, fmt.Sprintf("%d slots overflowed the KV pool, and %s are too few: the best lies between them.", slots.Value, whole(now)))
		}
	}
	return out
}

// leastBand is the half width of a parabola's prediction.
const leastBand = 0.1

// levels returns the measured goals by ascending slots, for which no other relevant setting has
// changed since.
func (s *Search) levels(now float64) []level {
	points := []level{{now, 0}}
	sum := 0.0
	for _, t := range slices.Backward(s.Trials) {
		one := len(t.Changes) == 1 && t.Changes[0].Sets(lever.Slots.Flag)
		if !t.Effect.OK || t.dependencyChanged() || !t.sameLoad(s.Baseline, OtherLoad) {
			if t.Ending == Gained {
				break
			}
			continue
		}
		from, okFrom := lever.ParseNumber(t.Changes[0].From)
		to, okTo := lever.ParseNumber(t.Changes[0].To)
		switch {
		case t.Ending == Gained:
			sum -= t.Effect.V // the level before the change
			if one && okFrom {
				points = append(points, level{from, sum})
			}
		case one && okTo && t.Ending == Lost:
			points = append(points, level{to, sum + t.Effect.V})
		}
	}
	slices.SortFunc(points, func(a, b level) int { return cmp.Compare(a.slots, b.slots) })
	return slices.CompactFunc(points, func(a, b level) bool { return a.slots == b.slots })
}

// vertex returns the maximum of the parabola through three levels over the logarithm of the slots,
// with its gain; ok is false if it has none between them.
func vertex(a, b, c level) (at, gain float64, ok bool) {
	x0, x1, x2 := math.Log(a.slots), math.Log(b.slots), math.Log(c.slots)
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
