package tui

import (
	"fmt"
	"strings"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/tui/cell"
)

// drawSmall is what fits on a terminal too small for the screen: what happens, how
// fast, what to do, and which size shows the rest. Keys work as they do on the
// large one.
func drawSmall(p cell.Pane, s *scene) {
	need := fmt.Sprintf("needs %dx%d, has %dx%d", leastWidth, leastHeight, p.Width(), p.Height())
	if p.Cells(need) > p.Width() {
		need = fmt.Sprintf("needs %dx%d", leastWidth, leastHeight)
	}
	last := p.Height() - 1
	p.Text(0, last, cell.Muted, p.Cut(need, p.Width()))
	y := 0
	for _, m := range s.small(p.Width() < narrow) {
		for _, text := range p.Wrap(m.text, p.Width()) {
			if y >= max(1, last) {
				return // the most urgent came first
			}
			p.Text(0, y, m.token, p.Cut(text, p.Width()))
			y++
		}
	}
}

// narrow is the width below which the summary keeps to the shortest words.
const narrow = 36

// summary is the run in a few words, the most urgent first.
func summary(s *engine.Snapshot, u *look, brief bool) remarks {
	var list remarks
	add := func(t cell.Token, text string) {
		if text != "" {
			list = append(list, remark{t, text})
		}
	}
	switch {
	case u.over == overlayAsk:
		add(cell.Strong, u.ask.title)
		add(cell.Key, "y yes, n no")
		return append(list, u.ask.lines...)
	case u.over == overlayText:
		add(cell.Key, "esc closes")
		return append(list, u.ask.lines...)
	case u.over == overlayHelp:
		for _, h := range hintsFor(s, u) {
			add(cell.Key, h.binding.Help().Key+" "+h.word)
		}
		add(cell.Key, "q closes this, ctrl+c quits")
		return list
	case u.typing:
		add(cell.Key, "/"+u.filter+"_")
	case u.notice.text != "":
		add(u.notice.token, u.notice.text)
	}
	if s.Ask != "" {
		add(cell.Bad, u.glyphs.Bad+" "+s.Ask)
		add(cell.Key, "r revert, c continue")
	}
	phase := phaseOf(s)
	var words []string
	for _, m := range marksOf(s, u) {
		words = append(words, strings.TrimSpace(m.text))
	}
	if brief {
		words = append(words, phase.word+phase.progress(false))
	} else {
		words = append(words, phase.words+phase.progress(true))
	}
	add(phase.token, strings.Join(words, " "))
	if !s.Attached {
		add(cell.Body, s.Watch)
		add(cell.Warn, s.AttachWhy)
		return list
	}
	if s.Auto {
		switch {
		case s.Held:
			add(cell.Warn, u.glyphs.Warn+" autopilot held: x goes on")
		case s.Pending.Text != "":
			add(cell.Accent, pendingWords(s)+"; x stops it")
		}
	}
	if t := s.Trial; t != nil {
		if r := lastResult(t.Results); r != nil {
			text := "so far " + engine.Proof{Result: r}.Effect()
			if q, ok := engine.PredictionOf(t.Predicted, r.Goal); ok {
				text += ", predicted " + engine.SpellRange(q.Low.V, q.High.V)
			}
			add(cell.Trial, text)
			add(cell.Body, nextLook(t))
		}
	}
	add(cell.Strong, pace(s, brief))
	switch {
	case s.Advice != nil:
		add(cell.Accent, adviceOf(s.Advice))
	case s.Quiet != "":
		add(cell.Body, s.Quiet)
	}
	add(cell.Body, waits(s))
	if s.Advice != nil {
		add(cell.Muted, s.Advice.Why)
	}
	return list
}

// waits is how long requests of the latest window waited.
func waits(s *engine.Snapshot) string {
	if outdated(s) || len(s.Points) == 0 {
		return ""
	}
	p := s.Points[len(s.Points)-1]
	return "TTFT p99 " + figure.Show(p.TTFT, "s") + ", ITL p99 " + figure.Show(p.ITL, "s") + ", KV" + figure.NBSP + figure.Show(p.KV, "ratio")
}

// pace is the output of the latest window and the queue.
func pace(s *engine.Snapshot, brief bool) string {
	if outdated(s) || len(s.Points) == 0 {
		return ""
	}
	p := s.Points[len(s.Points)-1]
	if brief {
		return figure.Show(p.Tokens, "tok/s")
	}
	return figure.Show(p.Tokens, "tok/s") + ", " + figure.Show(p.Running, "") + " running, " + figure.Show(p.Waiting, "") + " waiting"
}

// adviceOf is a recommendation in one line.
func adviceOf(a *engine.Recommendation) string {
	if a.Changeable() {
		switch {
		case a.To == "on":
			return a.Flag
		case a.To == "off", a.To == "":
			return "without " + a.Flag
		case a.From != "":
			return a.Flag + " " + a.From + " → " + a.To
		}
		return a.Flag + " " + a.To
	}
	if a.Command != "" {
		return a.Command
	}
	return a.Why
}
