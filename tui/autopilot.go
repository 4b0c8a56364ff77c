package tui

import (
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/loop"
	"github.com/rooftop-dev/rooftop/engine/page"
	"github.com/rooftop-dev/rooftop/engine/page/tuning"
	"github.com/rooftop-dev/rooftop/tui/cell"
	"github.com/rooftop-dev/rooftop/tui/frame"
)

// autopilot returns the panel of what an automatic run does next, when, and which key stops it. The
// panel is empty if the user decides.
func (v *nowView) autopilot(w int) frame.Panel {
	s, u := v.s, v.u
	if !s.Auto || s.Phase == loop.PhaseDone {
		return frame.Panel{}
	}
	if !s.Held && s.Pending.Text == "" && s.Phase != loop.PhaseWaiting {
		return frame.Panel{} // the phase shows what happens
	}
	q := frame.Panel{Title: "Autopilot", Token: cell.Accent, Note: page.Toned(cell.Muted, s.Limits.Summary())}
	switch {
	case s.Held:
		q.Title = "Autopilot paused"
		q.Add(u.Paragraph(w, 98, nil, page.Join(page.Toned(cell.Warn, u.Glyphs.Warn+figure.NBSP+"PAUSED "), page.Toned(cell.Strong, "No more changes until you resume. "), v.pauseKey("resume"))))
		q.Add(u.Field(w, 90, "then", page.Toned(cell.Body, tuning.Sentence(pendingAction(s)))))
	case s.Pending.Text != "":
		says, keys := page.Toned(cell.Accent, pendingWords(s)), v.pauseKey("pause")
		b, beside := u.Beside(w, 98, says, keys)
		if !beside {
			b = u.Paragraph(w, 98, nil, page.Join(says, page.Toned(cell.Body, " "), keys))
		}
		q.Add(b)
	default:
		if s.Progress.Text == "" {
			q.Note = nil
			q.Add(u.Paragraph(w, 68, nil, page.Toned(cell.Muted, tuning.Sentence("Watching: "+s.Limits.Summary()))))
			break
		}
		q.Add(u.Paragraph(w, 97, nil, page.Toned(cell.Body, tuning.Sentence(s.Progress.Text))))
		if r := s.Advice; s.CanApply && r != nil && r.Kind == engine.KindFlag && r.Flag != "" {
			q.Add(u.Field(w, 81, "then", page.Join(page.Toned(cell.Body, "restart with "+tuning.Action(r)+"  "), v.pauseKey("pause"))))
		}
	}
	q.Add(u.Paragraph(w, 59, nil, page.Toned(cell.Muted, tuning.Sentence(s.Score.Summary()))))
	return q
}

// pauseKey returns the key that pauses or resumes the autopilot, nil if it does nothing now.
func (v *nowView) pauseKey(does string) page.Text {
	if !v.s.Can[loop.CommandHold].OK {
		return nil
	}
	return v.u.Key(frame.Keys().Hold.Help().Key, does)
}

// pendingWords returns the pending action and when it happens.
func pendingWords(s *loop.Snapshot) string {
	if left := countdown(s); left > 0 {
		return "In" + figure.NBSP + figure.Elapsed(left) + ": " + pendingAction(s)
	}
	return "Now: " + pendingAction(s)
}

// pendingAction describes the pending action. A change is described as a restart with that change.
func pendingAction(s *loop.Snapshot) string {
	what := strings.TrimSuffix(strings.TrimSpace(s.Pending.Text), ".")
	if strings.HasPrefix(what, "-") {
		return "restart with " + what
	}
	return what
}

// countdown returns the time left before the pending action, rounded up to seconds.
func countdown(s *loop.Snapshot) time.Duration {
	return max(0, (s.Pending.At-s.Now+time.Second-1)/time.Second*time.Second)
}

// autopilotDoes describes what the autopilot does in the current phase and after it.
func autopilotDoes(s *loop.Snapshot) string {
	keeps := "Keeps the change if it is better; otherwise reverts it."
	if n := len(s.Iterations); n > 0 && s.Iterations[n-1].Noticed == loop.SameSettings {
		keeps = "Nothing to keep or revert: the difference shows the effect of a restart alone."
	}
	return map[loop.Phase]string{
		loop.PhaseBaseline: "Measures the current configuration, then makes the most promising change.",
		loop.PhaseApplying: "Waits for the server; if it does not come up, reverts the change.",
		loop.PhaseSettling: keeps, loop.PhaseMeasuring: keeps,
		loop.PhaseCanary: "Makes the change to all servers if the canary is better than those beside it; otherwise removes the canary.",
		loop.PhaseDown:   "Waits for the server; if it stays down, reverts the change.",
	}[s.Phase]
}

// waitWords returns what an automatic run waits for, in one word.
func waitWords(text string) string {
	for _, word := range [...]string{"measuring", "waiting"} {
		if strings.HasPrefix(text, word) {
			return word
		}
	}
	return "watching"
}

// badge returns the header's mark for an automatic run, and false for other runs.
func badge(s *loop.Snapshot) (frame.Remark, bool) {
	switch {
	case !s.Auto:
		return frame.Remark{}, false
	case s.Held:
		return frame.Remark{Token: cell.Selected, Text: " AUTO PAUSED "}, true
	}
	return frame.Remark{Token: cell.Accent, Text: "AUTO"}, true
}

// autoStage changes the words of a phase to those of an automatic run.
func autoStage(s *loop.Snapshot, g frame.Stage) frame.Stage {
	switch {
	case s.Held && s.Phase == loop.PhaseWaiting:
		g.Words, g.Word, g.Token = "autopilot paused", "paused", cell.Warn
	case s.Pending.Text != "":
		left := "in" + figure.NBSP + figure.Elapsed(countdown(s))
		g.Words, g.Word, g.Token = "autopilot acts "+left, left, cell.Accent
		g.Counts = true
	case s.Phase == loop.PhaseWaiting:
		g.Words = waitWords(s.Progress.Text)
		g.Word = g.Words
	case s.Phase == loop.PhaseReverting:
		g.Words, g.Word = "reverting", "reverting"
	}
	return g
}
