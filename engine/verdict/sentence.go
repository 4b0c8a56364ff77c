package verdict

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// signed spells a ratio in hundredths with its sign: +8.3 %, −12 %.
func signed(ratio float64) string {
	s := spelled(math.Abs(ratio))
	if ratio < 0 && s != "0" {
		return "−" + s
	}
	return "+" + s
}

// unsigned spells a ratio in hundredths.
func unsigned(ratio float64) string { return spelled(math.Abs(ratio)) + " %" }

// spelled has two digits, and as many as it needs from a hundred on.
func spelled(ratio float64) string {
	v := ratio * 100
	digits := 1
	if v >= 9.95 {
		digits = 0
	}
	if v >= 1e6 {
		return strconv.FormatFloat(v, 'g', 2, 64)
	}
	return strings.TrimSuffix(strconv.FormatFloat(v, 'f', digits, 64), ".0")
}

// noun is what the goal is read from.
func (c *comparison) noun() string {
	switch c.p.Goal {
	case Latency:
		return "the time of a request"
	case Cost:
		return "output per dollar"
	}
	return "output"
}

// say spells an effect with its interval, as a change of what the goal is read
// from.
func (c *comparison) say(e *effect) string {
	low, mid, high := math.Expm1(e.low()), math.Expm1(e.mid), math.Expm1(e.high())
	if c.p.Goal == Latency { // less of it is better
		low, mid, high = math.Expm1(-e.high()), math.Expm1(-e.mid), math.Expm1(-e.low())
	}
	return c.noun() + " " + signed(mid) + " % (" + signed(low) + " to " + signed(high) + " %)"
}

// ordinal names a quantile, or a mean.
func ordinal(q float64) string {
	switch q {
	case 0:
		return "mean"
	case 0.5:
		return "median"
	}
	return fmt.Sprintf("%.0fth percentile", 100*q)
}

func (c *comparison) longer(m *Measure) string {
	return signed(m.Change.Mid) + " % (" + seconds(m.Before.V) + " → " + seconds(m.After.V) + ")"
}

func seconds(v float64) string {
	if v < 1 {
		return strconv.FormatFloat(v*1000, 'f', 0, 64) + " ms"
	}
	return strconv.FormatFloat(v, 'f', 1, 64) + " s"
}

// mostMoved names the property of the traffic that moved most, in words.
func (c *comparison) mostMoved() string {
	most, out := 0.0, ""
	for i := range c.r.Traffic {
		s := &c.r.Traffic[i]
		if s.Name == "prefix hits" && c.p.Touch.Reuse || !s.Before.OK || !s.After.OK {
			continue
		}
		by := math.Abs(math.Log1p(s.Change.Mid))
		text := s.Name + " " + signed(s.Change.Mid) + " %"
		if s.Name == "prefix hits" {
			by = math.Abs(s.Change.Mid)
			text = s.Name + " " + spelled(s.Before.V) + " → " + spelled(s.After.V) + " %"
		}
		if by > most {
			most, out = by, text
		}
	}
	return out
}

func limitOf(h *Held) string { return h.Name + " ≤ " + seconds(h.Limit) }
