package tui

import (
	"strings"

	"github.com/rooftop-dev/rooftop/engine/effect"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/loop"
	"github.com/rooftop-dev/rooftop/engine/page/tuning"
	"github.com/rooftop-dev/rooftop/tui/cell"
	"github.com/rooftop-dev/rooftop/tui/frame"
)

// summary returns the run in a few words, the most urgent first.
func summary(s *loop.Snapshot, u *frame.Settings, brief bool) frame.Remarks {
	list, whole := frame.Overlaid(u, hintsFor(s, u))
	if whole {
		return list
	}
	add := list.Add
	if s.Ask != "" {
		add(cell.Bad, u.Glyphs.Bad+" "+s.Ask)
		add(cell.Key, "r revert, c continue")
	}
	phase := phaseOf(s)
	var words []string
	for _, m := range marksOf(s, u) {
		words = append(words, strings.TrimSpace(m.Text))
	}
	if brief {
		words = append(words, phase.Word+phase.Progress(false))
	} else {
		words = append(words, phase.Words+phase.Progress(true))
	}
	add(phase.Token, strings.Join(words, " "))
	if !s.Attached {
		add(cell.Body, s.Watch)
		add(cell.Warn, s.AttachWhy)
		return list
	}
	if s.Auto {
		switch {
		case s.Held:
			add(cell.Warn, u.Glyphs.Warn+" autopilot paused: x resumes")
		case s.Pending.Text != "":
			add(cell.Accent, pendingWords(s)+"; x pauses")
		}
	}
	addTrial(&list, s.Trial)
	if brief {
		add(cell.Strong, figures(s, 0))
	} else {
		add(cell.Strong, figures(s, 0, 3, 4))
	}
	switch {
	case s.Advice != nil && s.Preliminary != "":
		add(cell.Muted, "preliminary: "+tuning.Action(s.Advice))
	case s.Advice != nil:
		add(cell.Accent, tuning.Action(s.Advice))
	case s.Quiet != "":
		add(cell.Body, s.Quiet)
	}
	add(cell.Body, figures(s, 1, 2, 5))
	if s.Advice != nil {
		add(cell.Muted, s.Advice.Why)
	}
	return list
}

// addTrial adds the result so far of a change on trial, and when the next look is.
func addTrial(list *frame.Remarks, t *loop.Trial) {
	if t == nil {
		return
	}
	if r := lastResult(t.Results); r != nil {
		text := "so far " + effect.Verdict{Result: r}.Effect()
		if q, ok := effect.PredictionOf(t.Predicted, r.Goal); ok {
			text += ", predicted " + figure.ChangeRange(q.Low.V, q.High.V)
		}
		list.Add(cell.Trial, text)
		list.Add(cell.Body, nextLook(t))
	}
}

// figures returns some of the headline numbers of the latest window.
func figures(s *loop.Snapshot, which ...int) string {
	if outdated(s) || len(s.Points) == 0 {
		return ""
	}
	var parts []string
	for _, i := range which {
		n := headlines()[i]
		at := n.read(s)
		parts = append(parts, strings.TrimSpace(n.label+" "+at.figure+figure.NBSP+at.unit))
	}
	return strings.Join(parts, ", ")
}
