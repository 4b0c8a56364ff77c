package engine

import (
	"math"
	"slices"

	"github.com/rooftop-dev/rooftop/engine/roofline"
	"github.com/rooftop-dev/rooftop/engine/stat"
	"github.com/rooftop-dev/rooftop/engine/verdict"
)

// anchor is a configuration that was measured: the model, calibrated there, predicts
// from it. The kept one is an anchor, and so is each that lost: what it showed says
// what it lacked.
type anchor struct {
	d       *Diagnosis
	base    *Diagnosis // of the kept configuration
	changes []Change   // against that
	offset  float64    // logarithm of what they brought of the goal
}

// anchors are the kept configuration and, newest first, those that were tried under
// this load, not kept, and can still be learned from.
func (s *search) anchors() []anchor {
	out := []anchor{{d: s.d, base: s.d}}
	for _, t := range slices.Backward(s.trials) {
		near := muchOther
		if t.ending == unjudged {
			near = againLoad
		}
		if t.ending != lost && t.ending != unjudged || t.after == nil || !t.effect.OK || t.relieved() || !t.sameLoad(s.d, near) {
			continue
		}
		out = append(out, anchor{d: t.after, base: s.d, changes: t.changes, offset: t.effect.V})
		if len(out) > mostAnchors {
			break
		}
	}
	return out
}

// mostAnchors bounds how many lost trials are predicted from.
const mostAnchors = 4

// with adds changes to those of the anchor; one flag has one value, and what is as it
// was is no change.
func (a *anchor) with(changes ...Change) []Change {
	out := slices.Clone(a.changes)
	for _, c := range changes {
		i := slices.IndexFunc(out, func(o Change) bool { return o.Flag == c.Flag })
		if i < 0 {
			out = append(out, c)
			continue
		}
		out[i].To = c.To
	}
	return slices.DeleteFunc(out, func(c Change) bool { return c.From != "" && sameValue(c.From, c.To) })
}

// relative turns predictions from the anchor into such from the kept configuration.
func (a *anchor) relative(goal verdict.Goal, predicted []Prediction) []Prediction {
	if len(a.changes) == 0 {
		return predicted
	}
	out := make([]Prediction, len(predicted))
	for i, p := range predicted {
		out[i] = p
		ratio := a.d.Quantity(p.Metric).Value.Div(a.base.Quantity(p.Metric).Value)
		if p.Metric == predictTokens && goal != verdict.Latency {
			ratio = stat.Some(math.Exp(a.offset))
		}
		move := func(v stat.Opt) stat.Opt {
			if !v.OK || !ratio.OK {
				return stat.None
			}
			return stat.Some((1+v.V)*ratio.V - 1)
		}
		out[i].Low, out[i].Mid, out[i].High = move(p.Low), move(p.Mid), move(p.High)
	}
	return out
}

// predictions lists the known parts of a gain.
func predictions(g roofline.Gain) []Prediction {
	var out []Prediction
	for _, m := range []struct {
		name string
		r    roofline.Range
	}{{predictTokens, g.Throughput}, {predictTTFT, g.TTFT}, {predictITL, g.ITL}} {
		if m.r.Low.OK || m.r.Mid.OK || m.r.High.OK {
			out = append(out, Prediction{Metric: m.name, Unit: "ratio", Low: m.r.Low, Mid: m.r.Mid, High: m.r.High})
		}
	}
	return out
}

// needed is how many requests of one rank are in, and thus could run.
func (d *Diagnosis) needed() stat.Opt {
	if p := d.performance; p != nil {
		return stat.Some(p.Measured.Batch + p.Measured.Waiting.Or(0))
	}
	in := d.demand()
	return in.Times(1 / float64(max(1, d.ranks)))
}

// holds is how many sequences a pool of tokens holds to their end.
func holds(p *roofline.Performance, tokens float64) float64 {
	m := &p.Measured
	each := m.Resident.Or(m.Context)
	if m.WorkloadKnown {
		each += m.Workload.Output / 2
	}
	if each <= 0 {
		return math.Inf(1)
	}
	return tokens / each
}

// seatsFor is the least sensible number of seats for n requests, and seatsWithin the
// most that is not above n: vLLM captures CUDA graphs of 1, 2, 4, and steps of 8.
func seatsFor(n float64) int {
	for _, few := range [...]int{1, 2, 4} {
		if n <= float64(few)+0.5 {
			return few
		}
	}
	return int(math.Ceil((n-0.5)/seatStep)) * seatStep
}

func seatsWithin(n float64) int {
	switch {
	case n < 1:
		return 0
	case n < 2:
		return 1
	case n < 4:
		return 2
	case n < seatStep:
		return 4
	}
	return int(n/seatStep) * seatStep
}

const seatStep = 8
