package verdict

import (
	"fmt"
	"math"

	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// String formats a relative change with its interval: "+31 % (+29 to +33 %)".
func (i Interval) String() string {
	if !i.Finite() {
		return figure.Absent
	}
	return figure.ChangeSign(i.Mid) + " (" + figure.ChangeRange(i.Low, i.High) + ")"
}

// Finite reports whether all values of the interval are finite.
func (i Interval) Finite() bool {
	return stat.IsFinite(i.Low) && stat.IsFinite(i.Mid) && stat.IsFinite(i.High)
}

// widest is the ratio of the ends of an effect beyond which it is too wide to confirm a prediction or to refute it.
const widest = 3

// Wide reports whether an effect, measured or predicted, is so wide that only its lower end says something.
func (i Interval) Wide() bool { return 1+i.High > widest*(1+i.Low) }

// Inverse returns the change of 1/x for a change i of x.
func (i Interval) Inverse() Interval {
	return Interval{Low: 1/(1+i.High) - 1, Mid: 1/(1+i.Mid) - 1, High: 1/(1+i.Low) - 1}
}

// Noun returns the quantity of the goal. For the time of a request smaller is better, for the
// others larger.
func (g Goal) Noun() string {
	switch g {
	case Latency:
		return "the time of a request"
	case Cost:
		return "output per dollar"
	}
	return "output"
}

func (c *decision) noun() string { return c.p.Goal.Noun() }

// effectText formats an effect with its interval, as a change of the goal's quantity.
func (c *decision) effectText(e *effect) string {
	change := interval(e.low(), e.mid, e.high())
	if c.p.Goal == Latency { // smaller is better
		change = change.Inverse()
	}
	return c.noun() + " " + change.String()
}

// quantileName returns the name of a quantile, or of a mean if q is 0.
func quantileName(q float64) string {
	switch q {
	case 0:
		return "mean"
	case 0.5:
		return "median"
	}
	return fmt.Sprintf("%.0fth percentile", 100*q)
}

func (c *decision) longer(m *Measure) string {
	return figure.ChangeSign(m.Change.Mid) + " (" + figure.ShowWithin(m.Before, m.Buckets[0].Width(), "s") + " → " + figure.ShowWithin(m.After, m.Buckets[1].Width(), "s") + ")"
}

// mostMoved returns the property of the traffic that changed most, in words.
func (c *decision) mostMoved() string {
	most, out := 0.0, ""
	for i := range c.r.Traffic {
		s := &c.r.Traffic[i]
		if s.Name == "prefix hits" && c.p.Touch.Reuse || !s.Before.OK || !s.After.OK {
			continue
		}
		by := math.Abs(math.Log1p(s.Change.Mid))
		text := s.Name + " " + figure.ChangeSign(s.Change.Mid)
		if s.Name == "prefix hits" {
			by = math.Abs(s.Change.Mid)
			text = s.Name + " " + figure.Percent(s.Before.V) + " → " + figure.PercentSign(s.After.V)
		}
		if by > most {
			most, out = by, text
		}
	}
	return out
}

func limitOf(h *ObjectiveResult) string { return h.Name + " ≤ " + figure.Value(h.Limit, "s") }
