package tui

import (
	"cmp"
	"slices"
	"strings"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/loop"
	"github.com/rooftop-dev/rooftop/engine/page"
	"github.com/rooftop-dev/rooftop/engine/page/tuning"
	"github.com/rooftop-dev/rooftop/tui/cell"
	"github.com/rooftop-dev/rooftop/tui/frame"
)

// advice returns the panel of the recommended change, or of the reason why there is none.
func (v *nowView) advice(w int) frame.Panel {
	s, u := v.s, v.u
	r := s.Advice
	if !v.advisesNow() {
		return v.quiet(w)
	}
	q := frame.Panel{Title: "Recommendation", Token: cell.Accent}
	switch {
	case s.Preliminary != "":
		q.Title, q.Note = "Recommendation so far", page.Toned(cell.Muted, "preliminary "+s.Preliminary)
	case s.Baseline != nil: // the panel of load and latency beside it shows the latest windows
		q.Note = page.Toned(cell.Muted, "from the baseline of "+figure.Elapsed(s.Baseline.Duration))
	}
	action, keys := page.Toned(cell.Accent, tuning.Action(r)), v.keysOfAdvice(r)
	headline, beside := u.Beside(w, 94, action, keys)
	q.Add(headline)
	q.Add(frame.Shorten(u.Field(w, 81, "why", page.Toned(cell.Body, r.Why)), 5))
	q.Add(v.expectations(w, r)...)
	q.Add(u.Field(w, 73, "costs", page.Toned(cell.Body, strings.Join(tuning.Costs(r), "; "))))
	q.Add(u.Field(w, 80, "fix by", page.Toned(cell.Body, tuning.FixBy(r.Kind))))
	switch {
	case s.Preliminary != "": // a command would be copied with the mouse
	case r.Launch != "":
		q.Add(frame.Shorten(u.Field(w, 83, "command", launchText(u, r)), 6))
	case r.Kind == engine.KindFlag:
		q.Add(u.Field(w, 83, "how", page.Toned(cell.Body, r.Command)))
	}
	if !beside {
		q.Add(u.Field(w, 85, "keys", keys))
	}
	if r.Kind == engine.KindFlag && s.Firm && !s.Can[loop.CommandApply].OK && !s.Auto {
		q.Add(u.Field(w, 84, "then", page.Toned(cell.Body, "Restart with this command; rooftop notices and compares.")))
	}
	return q
}

// advisesNow reports whether there is a recommendation to act on now.
func (v *nowView) advisesNow() bool { return v.s.Advice != nil && v.advising() }

// advising reports whether a recommendation can be acted on, rather than being about a
// configuration that is being replaced.
func (v *nowView) advising() bool {
	switch v.s.Phase {
	case loop.PhaseBaseline, loop.PhaseWaiting, loop.PhaseDone, loop.PhaseAttach, loop.PhaseDown:
		n := len(v.s.Iterations)
		return n == 0 || v.s.Iterations[n-1].End != loop.IterationOpen
	}
	return false
}

// launchText returns the whole launch command with the changed flag highlighted.
func launchText(u *frame.Settings, r *engine.Recommendation) page.Text {
	text := u.Spell(r.Launch)
	for _, mark := range [...]string{r.Flag + " " + r.To, r.Flag + "=" + r.To, r.Flag} {
		if at := strings.Index(text, mark); at >= 0 && r.Flag != "" {
			return page.Join(page.Toned(cell.Body, text[:at]), page.Toned(cell.Accent, mark), page.Toned(cell.Body, text[at+len(mark):]))
		}
	}
	return page.Toned(cell.Body, text)
}

// keysOfAdvice lists the keys that act on the recommendation.
func (v *nowView) keysOfAdvice(r *engine.Recommendation) page.Text {
	u, can := v.u, &v.s.Can
	var keys page.Text
	add := func(on bool, key, description string) {
		if !on {
			return
		}
		if len(keys) > 0 {
			keys = page.Join(keys, page.Toned(cell.Body, figure.NBSP+" "))
		}
		keys = page.Join(keys, u.Key(key, description))
	}
	flag := r.Kind == engine.KindFlag
	add(flag && can[loop.CommandApply].OK, "a", "apply")
	add(flag && v.s.Preliminary == "" && (r.Launch != "" || r.Command != ""), "y", "copy the command")
	add(can[loop.CommandSkip].OK, "s", "another")
	return keys
}

// adviser returns the diagnosis that the recommendation comes from, nil if there is none.
func adviser(s *loop.Snapshot) *engine.Diagnosis {
	if s.Phase == loop.PhaseBaseline {
		return s.Live
	}
	return cmp.Or(s.Baseline, s.Live)
}

// expected returns the predicted effects of the change: the goal, what gets worse, and the others.
func (v *nowView) expected(r *engine.Recommendation) []tuning.Expectation {
	list := tuning.Expectations(r.Predicted, adviser(v.s), v.s.Objectives...)
	rank := map[cell.Token]int{cell.Bad: -1}
	slices.SortStableFunc(list[min(1, len(list)):], func(a, b tuning.Expectation) int { return rank[a.Tone] - rank[b.Tone] })
	return list
}

// expectations returns the predicted effects of the change, one metric per line. Throughput comes
// first and is kept longest on a small screen.
func (v *nowView) expectations(w int, r *engine.Recommendation) []frame.Block {
	blocks := tableRows(v.u, w-frame.FieldCells, page.Tabulate(v.expected(r), []page.Field[tuning.Expectation]{
		page.Left("", cell.Body, func(e tuning.Expectation) string { return e.Metric }),
		page.Right("", cell.Body, func(e tuning.Expectation) page.Cell { return page.Cell{Text: e.FromTo} }).Ranked(2),
		page.Right("", cell.Body, func(e tuning.Expectation) page.Cell { return page.Cell{Text: e.Change, Tone: e.Tone} }),
		page.Notes("", func(e tuning.Expectation) string { return e.Range }).Ranked(1),
	}), func(i int) int { return max(40, 82-10*i) })
	for i, b := range blocks {
		blocks[i].Draw = func(p cell.Pane) {
			p.Text(0, 0, cell.Muted, map[bool]string{true: "expect"}[i == 0])
			b.Draw(p.Sub(frame.FieldCells, 0, p.Width(), 1))
		}
	}
	return blocks
}

// spaces returns n spaces, none if n is negative.
func spaces(n int) string { return strings.Repeat(" ", max(0, n)) }

// quiet returns the panel that explains why nothing should be changed, and what would help.
func (v *nowView) quiet(w int) frame.Panel {
	s, u := v.s, v.u
	if s.Quiet == "" || s.Phase == loop.PhaseWorse || noLoad(s) {
		return frame.Panel{}
	}
	d := v.latest()
	q := frame.Panel{Title: "Answer", Token: cell.Accent}
	if !s.Firm && s.Phase == loop.PhaseBaseline {
		q.Title = "Answer so far"
	}
	state, help := cell.OK, ""
	sign, word := u.Glyphs.Good, "ok"
	switch {
	case s.Condition.Ill():
		q.Title, q.Token = s.Condition.Title(), cell.Bad
		state, sign, word = cell.Bad, u.Glyphs.Bad, "unhealthy"
		help = figure.Stopped(tuning.UnhealthyAction(d))
	case d == nil:
		state, sign, word = cell.Muted, u.Glyphs.Info, "nothing yet"
	case d.Outcome == engine.OutcomeNotEvaluable:
		state, sign, word = cell.Warn, u.Glyphs.Warn, "not judged"
		help = figure.Stopped(tuning.DoctorHint)
	case d.Overload != "":
		state, sign, word = cell.Warn, u.Glyphs.Warn, "overloaded"
		help = tuning.Sentence(tuning.OverloadAction)
	case d.Outcome == engine.OutcomeRecommendation: // tried or skipped
		state, sign, word = cell.Muted, u.Glyphs.Info, "nothing left"
		help = "[m] measures again. With other load, or other settings, there may be more to gain."
	case s.Can[loop.CommandRemeasure].OK:
		help = "rooftop keeps watching and reports when something limits the server."
	}
	q.Add(u.Paragraph(w, 94, nil, page.Join(page.Toned(state, sign+figure.NBSP+strings.ReplaceAll(word, " ", figure.NBSP)+figure.NBSP+" "), page.Toned(cell.Strong, tuning.Sentence(s.Quiet)))))
	if d != nil && d.Doubt != "" && !strings.Contains(s.Quiet, d.Doubt) {
		q.Add(u.Field(w, 70, "open", page.Toned(cell.Body, d.Doubt)))
	}
	q.Add(u.Field(w, 60, "next", page.Toned(cell.Body, help)))
	return q
}
