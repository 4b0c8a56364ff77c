package tui

import (
	"strings"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/stat"
	"github.com/rooftop-dev/rooftop/tui/cell"
)

// changeOf spells what an iteration changed.
func changeOf(it *engine.Iteration) string {
	var parts []string
	for _, c := range it.Changes {
		switch {
		case c.From == "" && c.To == "":
			parts = append(parts, c.Flag)
		case c.From == "":
			parts = append(parts, c.Flag+" "+c.To)
		case c.To == "":
			parts = append(parts, c.String())
		default:
			parts = append(parts, c.Flag+" "+c.From+" → "+c.To)
		}
	}
	switch {
	case len(parts) > 0:
		return strings.Join(parts, ", ")
	case it.Noticed != "":
		return string(it.Noticed)
	}
	return "restart"
}

// endWord is what became of an iteration.
func endWord(it *engine.Iteration) string {
	if it.End == engine.IterationOpen {
		return "open"
	}
	return string(it.End)
}

// verdictSign is an iteration's direction in a sign and a word.
func (u *look) verdictSign(it *engine.Iteration) (sign, word string, t cell.Token) {
	g := u.glyphs
	switch {
	case it.Failure != "":
		return g.Bad, "failed", cell.Bad
	case it.End == engine.IterationBroken:
		return g.Bad, "broken", cell.Bad
	case it.Delta == nil:
		return g.Info, "open", cell.Muted
	case it.End == engine.IterationNoise:
		return g.Flat, "noise", cell.Muted
	}
	switch it.Delta.Direction {
	case engine.Better:
		return g.Good, string(engine.Better), cell.OK
	case engine.Worse:
		return g.Bad, string(engine.Worse), cell.Bad
	case engine.Plateau:
		return g.Flat, string(engine.Plateau), cell.Warn
	case engine.NotComparable:
		return g.Info, "not comparable", cell.Warn
	}
	return g.Info, string(it.Delta.Direction), cell.Warn
}

// beforeAfter spells a quantity before and after, the unit once where it is one.
func beforeAfter(it *engine.Iteration, name, unit string) string {
	var b, a engine.Quantity
	if it.Before != nil {
		b = it.Before.Quantity(name)
	}
	if it.After != nil {
		a = it.After.Quantity(name)
	}
	switch {
	case !b.Value.OK && !a.Value.OK:
		return figure.Absent
	case !b.Value.OK || !a.Value.OK:
		return overLimit(b) + figure.Show(b.Value, unit) + " → " + overLimit(a) + figure.Show(a.Value, unit)
	}
	x, xu := figure.Amount(b.Value.V, unit)
	y, yu := figure.Amount(a.Value.V, unit)
	if xu != yu {
		return overLimit(b) + figure.Show(b.Value, unit) + " → " + overLimit(a) + figure.Show(a.Value, unit)
	}
	return strings.TrimSpace(overLimit(b) + x + " → " + overLimit(a) + y + " " + yu)
}

// overLimit stands before a value that is known to be larger.
func overLimit(q engine.Quantity) string {
	if q.AtLeast && q.Value.OK {
		return ">"
	}
	return ""
}

// changeShown spells a relative change in percent.
func changeShown(ratio stat.Opt) string {
	if !ratio.OK {
		return figure.Absent
	}
	return figure.Change(ratio.V) + " %"
}

// expectationOf says what was predicted of the goal, and whether it came so where that
// is known.
func expectationOf(it *engine.Iteration, p engine.Proof) string {
	q, ok := engine.PredictionOf(it.Predicted, p.Result.Goal)
	if !ok {
		return ""
	}
	text := "predicted " + engine.SpellRange(q.Low.V, q.High.V)
	switch _, _, held, known := p.Outcome(it.Predicted); {
	case !known:
		return text
	case held:
		return text + ": held"
	}
	return text + ": missed"
}

// expectation says what was predicted of the throughput and whether it came so;
// "" where nothing was.
func expectation(it *engine.Iteration) string {
	if p, ok := engine.ProofOf(it.Delta); ok {
		return expectationOf(it, p)
	}
	for _, p := range it.Predicted {
		if p.Metric != "generation_tokens_per_s" || p.Unit != "ratio" && p.Unit != "" {
			continue
		}
		var text string
		switch {
		case p.Low.OK && p.High.OK:
			text = "predicted " + figure.Change(p.Low.V) + " to " + changeShown(p.High)
		case p.Low.OK:
			text = "predicted at least " + changeShown(p.Low)
		case p.High.OK:
			text = "predicted at most " + changeShown(p.High)
		case p.Mid.OK:
			return "predicted " + changeShown(p.Mid)
		default:
			continue
		}
		if it.Delta == nil {
			return text
		}
		switch held, known := p.Held(it.Delta.Throughput); {
		case !known:
			return text
		case held:
			return text + ": held"
		}
		return text + ": missed"
	}
	return ""
}
