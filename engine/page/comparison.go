package page

import (
	"cmp"
	"strings"

	"github.com/rooftop-dev/rooftop/engine/compare"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// NotComparable returns the nodes that state why two recordings cannot be compared.
func NotComparable(reasons []string) []Node {
	nodes := []Node{Prose{Lead: true, Text: Mark(Bad, "not comparable")}}
	for _, why := range reasons {
		nodes = append(nodes, Prose{Inset: true, Text: Toned(Body, figure.Absent+" "+why)})
	}
	return nodes
}

// Differences returns a comma-separated list of the differences, or "" if there are none.
func Differences(list []compare.Difference) string {
	var parts []string
	for _, d := range list {
		parts = append(parts, d.What+" "+cmp.Or(d.A, "none")+" → "+cmp.Or(d.B, "none"))
	}
	return strings.Join(parts, ", ")
}

// maxPercentRatio is the largest relative change written as a percentage. Above it, figures such
// as +51,282 % are hard to read.
const maxPercentRatio = 10

// ChangeOrMultiple formats a relative change: in percent, or as a multiple if it is large.
func ChangeOrMultiple(change float64) string {
	if change > maxPercentRatio {
		return "×" + figure.Significant(1+change)
	}
	return figure.ChangeSign(change)
}

// ChangeRange formats an interval of relative changes: in percent, or as multiples if it reaches large ones.
func ChangeRange(low, high float64) string {
	if high <= maxPercentRatio {
		return figure.ChangeRange(low, high)
	}
	from, to := ChangeOrMultiple(low), ChangeOrMultiple(high)
	if from == to {
		return to
	}
	return from + " to " + to
}

// Multiple returns a cell of a ratio: as a change in percent, or as a multiple if it is large.
func Multiple(o stat.Opt) Cell {
	if v := o.Finite(); v.OK {
		return Words(ChangeOrMultiple(v.V - 1))
	}
	return Words("")
}

// Interval returns a cell of the 95 % confidence interval of a change.
func Interval(c *compare.Change) Cell {
	end := func(ratio float64) string {
		if ratio-1 > maxPercentRatio {
			return ">" + figure.Change(maxPercentRatio)
		}
		return figure.Change(ratio - 1)
	}
	low, high := c.Low.Finite(), c.High.Finite()
	if !low.OK || !high.OK {
		return Words("")
	}
	return Words(end(low.V) + figure.NBSP + "to" + figure.NBSP + end(high.V) + figure.NBSP + "%")
}

// Verdict returns a cell of a verdict with its sign.
func Verdict(v compare.Verdict) Cell {
	mark := func(t Tone) Cell { return Cell{Text: Mark(t, string(v)).String(), Tone: t} }
	switch v {
	case compare.Faster:
		return mark(OK)
	case compare.Slower:
		return mark(Warn)
	case compare.Equal:
		return Cell{Text: "no" + figure.NBSP + "difference", Tone: Muted}
	case compare.Unresolved:
		return Words(string(v))
	}
	return Cell{Text: figure.Absent, Tone: Muted}
}
