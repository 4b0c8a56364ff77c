package tui

import (
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/tui/cell"
)

// autopilot is the panel of what a run without keys is about to do, when, and which
// key stops it; nothing where a person decides.
func (v *nowView) autopilot(w int) panel {
	s, u := v.s, v.u
	if !s.Auto || s.Phase == engine.PhaseDone {
		return panel{}
	}
	if !s.Held && s.Pending.Text == "" && s.Phase != engine.PhaseWaiting {
		return panel{} // the phase says what happens
	}
	q := panel{title: "Autopilot", token: cell.Accent, note: u.say(cell.Muted, s.Limits.Told())}
	switch {
	case s.Held:
		q.title = "Autopilot held"
		q.blocks = append(q.blocks, u.text(w, 98, nil, line(u.say(cell.Warn, u.glyphs.Warn+figure.NBSP+"HELD "), u.say(cell.Strong, "Nothing more is changed until you let it go on. "), v.holdKey("go on"))))
		if s.Pending.Text != "" {
			q.blocks = append(q.blocks, v.field(w, 90, "then", u.say(cell.Body, told(pendingDeed(s)))))
		}
	case s.Pending.Text != "":
		says := u.say(cell.Accent, pendingWords(s))
		keys := v.holdKey("stop it")
		if says.width()+3+keys.width() <= w {
			q.blocks = append(q.blocks, block{lines: 1, keep: 98, draw: func(p cell.Pane) {
				says.draw(p, 0, 0)
				keys.draw(p, p.Width()-keys.width(), 0)
			}})
			break
		}
		q.blocks = append(q.blocks, u.text(w, 98, nil, line(says, u.say(cell.Body, " "), keys)))
	default:
		if s.Progress.Text == "" {
			q.note = nil
			q.blocks = append(q.blocks, u.text(w, 68, nil, u.say(cell.Muted, told("Watching: "+s.Limits.Told()))))
			break
		}
		q.blocks = append(q.blocks, u.text(w, 97, nil, u.say(cell.Body, told(s.Progress.Text))))
		if r := s.Advice; s.Hands && r != nil && r.Kind == engine.KindFlag && r.Flag != "" {
			q.blocks = append(q.blocks, v.field(w, 81, "then", line(u.say(cell.Body, "restart with "+adviceOf(r)+"  "), v.holdKey("stop it"))))
		}
	}
	if text := s.Score.Told(); text != "" {
		q.blocks = append(q.blocks, u.text(w, 59, nil, u.say(cell.Muted, told(text))))
	}
	return q
}

// holdKey is the key that holds the autopilot or lets it go on, where it does.
func (v *nowView) holdKey(does string) prose {
	if !v.s.Can[engine.CommandHold].OK {
		return nil
	}
	return v.u.key(keys().Hold.Help().Key, does)
}

// pendingWords says when something is about to be done, and what.
func pendingWords(s *engine.Snapshot) string {
	if left := countdown(s); left > 0 {
		return "In" + figure.NBSP + engine.SpellTime(left) + ": " + pendingDeed(s)
	}
	return "Now: " + pendingDeed(s)
}

// pendingDeed is what is about to be done: of a change by itself, that it restarts
// the server.
func pendingDeed(s *engine.Snapshot) string {
	what := strings.TrimSuffix(strings.TrimSpace(s.Pending.Text), ".")
	if strings.HasPrefix(what, "-") {
		return "restart with " + what
	}
	return what
}

// countdown is the time left before something is done, in whole seconds begun.
func countdown(s *engine.Snapshot) time.Duration {
	return max(0, (s.Pending.At-s.Now+time.Second-1)/time.Second*time.Second)
}

// autopilotDoes says what the autopilot does in a phase, and what it will do then.
func autopilotDoes(s *engine.Snapshot) string {
	switch s.Phase {
	case engine.PhaseBaseline:
		return "Measures what runs, then makes the change that promises most."
	case engine.PhaseApplying:
		return "Waits until it is up again; if it does not come up, what was kept is put back."
	case engine.PhaseSettling, engine.PhaseMeasuring:
		return "Keeps the change if it is better; else it is taken back."
	case engine.PhaseDown:
		return "Waits for the server; if it stays away, what was kept is put back."
	}
	return ""
}

// waitWords says in a word what an automatic run waits for.
func waitWords(text string) string {
	for _, word := range [...]string{"measuring", "waiting"} {
		if strings.HasPrefix(text, word) {
			return word
		}
	}
	return "watching"
}

// badge is the mark of the header that says who decides.
func badge(s *engine.Snapshot) (remark, bool) {
	switch {
	case !s.Auto:
		return remark{}, false
	case s.Held:
		return remark{cell.Selected, " AUTO HELD "}, true
	}
	return remark{cell.Accent, "AUTO"}, true
}

// autoStage gives a phase the words of a run that needs no keys.
func autoStage(s *engine.Snapshot, g stage) stage {
	switch {
	case s.Held && s.Phase == engine.PhaseWaiting:
		g.words, g.word, g.token = "autopilot held", "held", cell.Warn
	case s.Pending.Text != "":
		left := "in" + figure.NBSP + engine.SpellTime(countdown(s))
		g.words, g.word, g.token = "autopilot acts "+left, left, cell.Accent
		g.counts = true
	case s.Phase == engine.PhaseWaiting:
		g.words = waitWords(s.Progress.Text)
		g.word = g.words
	case s.Phase == engine.PhaseReverting:
		g.words, g.word = "putting back", "putting back"
	}
	return g
}
