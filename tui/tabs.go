package tui

import (
	"fmt"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/tui/cell"
)

// drawTabs names the views with their digits, the one that is shown in brackets,
// and the phase at the other end. Where both do not fit, other views keep their
// digit only.
func drawTabs(p cell.Pane, s *scene, u *look) {
	phase := s.stage
	names := tabNames(s, u, true)
	room := p.Width() - 2 - p.Cells(strings.Join(names, ""))
	text := phase.words + phase.progress(true)
	if p.Cells(text) > room {
		text = phase.word + phase.progress(false)
	}
	if p.Cells(text) > room {
		names = tabNames(s, u, false)
		if long := phase.words + phase.progress(true); p.Cells(long) <= p.Width()-2-p.Cells(strings.Join(names, "")) {
			text = long
		}
	}
	x := 0
	for v, name := range names {
		token := cell.Body
		if viewID(v) == u.view {
			token = cell.Selected
		}
		x = p.Text(x, 0, token, name)
	}
	right := p.Width() - 1
	p.Right(right, 0, phase.token, text)
	right -= p.Cells(text) + 2
	if bar := 12; phase.of > 0 && right-bar > x+2 {
		phase.bar(p.Sub(right-bar, 0, bar, 1), u)
	}
}

func tabNames(s *scene, u *look, all bool) []string {
	var names []string
	for i, name := range s.views {
		text := fmt.Sprintf("%d %s", i+1, name)
		switch {
		case viewID(i) == u.view:
			text = "[" + text + "]"
		case all:
			text = " " + text + " "
		default:
			text = fmt.Sprintf(" %d ", i+1)
		}
		names = append(names, text)
	}
	return names
}

// stage is a phase in words.
type stage struct {
	words, word string
	token       cell.Token
	elapsed, of time.Duration
	counts      bool // its words say how long
}

func phaseOf(s *engine.Snapshot) stage {
	g := stages()[min(s.Phase, engine.PhaseDone)]
	switch {
	case s.Phase == engine.PhaseAttach && s.Attached:
		g.words, g.word = "reading the server's settings", "reading"
	case s.Phase == engine.PhaseWaiting && s.Advice == nil:
		g.words, g.word = "watching", "watching"
	case s.Phase == engine.PhaseWaiting && s.Advice.Kind != engine.KindFlag:
		g.words, g.word = "watching", "watching"
	}
	if s.Auto {
		g = autoStage(s, g)
	}
	if g.counts {
		return g
	}
	g.elapsed, g.of = s.Progress.Elapsed, s.Progress.Of
	if g.elapsed == 0 {
		g.elapsed = max(0, s.Now-s.Since)
	}
	if t := s.Trial; t != nil && g.of > 0 && len(t.Results) < len(t.Looks) { // looks come by what was measured
		g.of = t.Looks[len(t.Results)]
		g.elapsed = min(t.Measured, g.of)
	}
	if s.Phase == engine.PhaseDone {
		g.elapsed, g.of = 0, 0
	}
	return g
}

func stages() [engine.PhaseDone + 1]stage {
	return [...]stage{
		engine.PhaseAttach:    {words: "looking for a server", word: "looking", token: cell.Strong},
		engine.PhaseBaseline:  {words: "measuring the baseline", word: "baseline", token: cell.Accent},
		engine.PhaseWaiting:   {words: "waiting for your change", word: "your move", token: cell.Strong},
		engine.PhaseApplying:  {words: "restarting the server", word: "restarting", token: cell.Accent},
		engine.PhaseDown:      {words: "server down", word: "down", token: cell.Bad},
		engine.PhaseSettling:  {words: "settling", word: "settling", token: cell.Accent},
		engine.PhaseMeasuring: {words: "measuring the change", word: "measuring", token: cell.Accent},
		engine.PhaseWorse:     {words: "worse: your decision", word: "worse", token: cell.Bad},
		engine.PhaseReverting: {words: "waiting for the old settings", word: "reverting", token: cell.Strong},
		engine.PhaseDone:      {words: "finished", word: "finished", token: cell.Strong},
	}
}

// progress is how far the phase is.
func (g stage) progress(long bool) string {
	switch {
	case g.of > 0 && long:
		return fmt.Sprintf(" %2d of %d s", seconds(g.elapsed), seconds(g.of))
	case g.of > 0:
		return fmt.Sprintf(" %2d/%d s", seconds(g.elapsed), seconds(g.of))
	case g.elapsed > 0:
		return " " + clock(g.elapsed)
	}
	return ""
}

func seconds(d time.Duration) int { return int(d / time.Second) }

// bar fills the pane by how much of the phase is over.
func (g stage) bar(p cell.Pane, u *look) {
	p.Fill(cell.Border, u.glyphs.Rest)
	n := int(float64(p.Width()) * min(1, float64(g.elapsed)/float64(g.of)))
	p.Sub(0, 0, n, 1).Fill(g.token, u.glyphs.Bar)
}
