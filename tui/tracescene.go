package tui

import (
	"cmp"
	"fmt"
	"path"
	"strings"

	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/engine/stat"
	"github.com/rooftop-dev/rooftop/tui/cell"
)

// Views of a trace.
const (
	viewOperators = viewNow + 1 + iota
	viewLayers
	viewThreads
	viewExperts
	viewDetails
	numTraceViews
)

// traceSet is what the person at the keys has set beside the look.
type traceSet struct {
	phase string // "" is decode where there is any
	order order
	least bool // the least first
	names bool // operators by their tensors' names, not by their kind
}

// phaseOf is the phase that is shown.
func (t *traceSet) phaseOf(s *optrace.Summary) string {
	found := ""
	for i := range s.Phases {
		switch p := s.Phases[i].Phase; p {
		case t.phase:
			return p
		case "decode":
			found = p
		default:
			found = cmp.Or(found, p)
		}
	}
	return found
}

// traceView draws one snapshot.
type traceView struct {
	u     *look
	set   *traceSet
	live  *optrace.Live
	s     *optrace.Summary
	phase string
}

// traceFrame draws the screen of a trace at a size. l may be nil: nothing is known yet.
func traceFrame(l *optrace.Live, u *look, set *traceSet, w, h int) (*cell.Canvas, extent) {
	begun := l != nil
	if !begun {
		l = &optrace.Live{}
	}
	s := &scene{
		elapsed: l.Now, identity: tracedOf(l, u), marks: traceMarks(l, u), views: traceTabs(), stage: traceStage(l),
		banner: traceBanner(l, u), question: traceQuestion(l, u, w),
		body:  func(p cell.Pane) extent { return drawTrace(p, l, u, set, begun) },
		hints: traceHints(l, u), quit: hint{tracingKeys().Quit, "quit"},
		guide: func() guide { return traceGuide(l, u) },
		small: func(brief bool) remarks { return traceSummary(l, u, brief) },
	}
	return compose(s, u, w, h)
}

func traceTabs() []string {
	return []string{"Now", "Operators", "Layers", "Threads", "Experts", "Details"}
}

// drawTrace draws the view, or what stands in for it.
func drawTrace(p cell.Pane, l *optrace.Live, u *look, set *traceSet, begun bool) extent {
	if l.Summary == nil {
		standInFor(l, begun).draw(p)
		return extent{}
	}
	v := &traceView{u: u, set: set, live: l, s: l.Summary, phase: set.phaseOf(l.Summary)}
	list := [numTraceViews]func(*listing){
		viewOperators: v.operators, viewLayers: v.layers, viewThreads: v.threads, viewExperts: v.experts, viewDetails: v.details,
	}[u.view]
	if list == nil {
		v.now(p)
		return extent{}
	}
	w := p.Width() - 2
	if u.view == viewOperators || u.view == viewDetails {
		w = min(w, tableCells)
	}
	lines := &listing{u: u, w: w}
	list(lines)
	return scrolledView(p, u, func(p cell.Pane, u *look) int { return lines.draw(p.Sub(1, 0, w, p.Height()), u.scroll[u.view]) })
}

// tableCells is how wide views of text and figures get.
const tableCells = 150

// targetOf is what is traced, as far as it is known.
func targetOf(l *optrace.Live) *optrace.Target {
	if l.Summary != nil {
		return &l.Summary.Target
	}
	return &l.Target
}

// programOf is the name of a target's program.
func programOf(t *optrace.Target) string {
	first, _, _ := strings.Cut(t.Command, " ")
	if first == "" && len(t.Files) > 0 {
		first = t.Files[0].Path
	}
	if first == "" {
		return ""
	}
	return path.Base(first)
}

// tracedOf names the product, the target, its model and its runtime.
func tracedOf(l *optrace.Live, u *look) []part {
	t := targetOf(l)
	parts := []part{{cell.Title, "rooftop", 2, 2}, {cell.Title, "trace", 2, 1}}
	sign, token := traceSign(l, u)
	name := programOf(t)
	if t.PID > 0 {
		name = strings.TrimSpace(fmt.Sprintf("%s %d", name, t.PID))
	}
	if name == "" {
		return parts
	}
	parts = append(parts, part{token, sign, 1, 9}, part{cell.Body, name, 2, 5})
	if t.Model != "" {
		parts = append(parts, part{cell.Strong, path.Base(t.Model), 2, 6})
	}
	if t.Runtime != "" {
		parts = append(parts, part{cell.Muted, t.Runtime, 2, 3})
	}
	return parts
}

// traceSign is the sign of how the trace stands.
func traceSign(l *optrace.Live, u *look) (string, cell.Token) {
	switch {
	case l.State == optrace.LiveEnded:
		return u.glyphs.Info, cell.Muted
	case l.State == optrace.LiveAsking, l.State == optrace.LivePaused, lost(l):
		return u.glyphs.Warn, cell.Warn
	}
	return u.glyphs.Good, cell.OK
}

// lost says that events are missing from the figures.
func lost(l *optrace.Live) bool { return l.Summary != nil && l.Summary.Coverage.Dropped > 0 }

func traceMarks(l *optrace.Live, u *look) []remark {
	var marks []remark
	if u.frozen {
		marks = append(marks, remark{cell.Selected, " FROZEN "})
	}
	if l.State == optrace.LivePaused {
		marks = append(marks, remark{cell.Selected, " PAUSED "})
	}
	if l.Detail != 0 {
		const most = 24 // a set that is no level is spelt bit by bit
		marks = append(marks, remark{cell.Accent, "detail " + cell.Cut(l.Detail.String(), most, u.glyphs.Ellipsis)})
	}
	return marks
}

func traceStage(l *optrace.Live) stage {
	g := [...]stage{
		optrace.LiveAttaching: {words: "attaching", word: "attaching", token: cell.Accent},
		optrace.LiveWaiting:   {words: "waiting for work", word: "waiting", token: cell.Strong},
		optrace.LiveWeighing:  {words: "weighing the cost", word: "weighing", token: cell.Accent},
		optrace.LiveAsking:    {words: "your answer", word: "your answer", token: cell.Bad},
		optrace.LiveTracing:   {words: "tracing", word: "tracing", token: cell.OK},
		optrace.LivePaused:    {words: "paused", word: "paused", token: cell.Strong},
		optrace.LiveEnded:     {words: "ended", word: "ended", token: cell.Strong},
	}[min(l.State, optrace.LiveEnded)]
	g.elapsed = l.Since
	return g
}

// traceBanner says what is wrong with what is shown, and what to do about it.
func traceBanner(l *optrace.Live, u *look) remarks {
	if l.Summary == nil {
		return nil
	}
	t, c := &l.Summary.Target, &l.Summary.Coverage
	switch {
	case l.State == optrace.LiveEnded:
		return remarks{{cell.Strong, u.glyphs.Info + " The trace has ended: " + sentence(cmp.Or(l.Notice, "rooftop has detached")) + " e exports it, q quits."}}
	case l.State == optrace.LivePaused:
		return remarks{{cell.Strong, u.glyphs.Info + " Nothing is recorded now: p goes on. Figures are from before."}}
	case t.Withheld != "" && !t.Verified:
		return remarks{{cell.Warn, u.glyphs.Warn + " Names and shapes are withheld: " + sentence(t.Withheld)}}
	case c.Dropped > 0:
		return remarks{{cell.Warn, u.glyphs.Warn + " " + lostWords(c) + " Graphs with gaps are in no figure. Press - to trace less."}}
	case l.State == optrace.LiveWaiting:
		return remarks{{cell.Strong, u.glyphs.Info + " The target computes nothing: send it a request. Figures are from before."}}
	case l.State == optrace.LiveWeighing:
		return remarks{{cell.Strong, u.glyphs.Info + " Only graphs are traced for some seconds, to reckon what more would cost."}}
	}
	return nil
}

// lostWords say how much was lost.
func lostWords(c *optrace.Coverage) string {
	text := counted(int(c.Dropped), "event") + " lost"
	if all := c.Events + c.Dropped; all > 0 {
		text += ", " + figure.Show(stat.Some(float64(c.Dropped)/float64(all)), "ratio") + " of all"
	}
	return text + "."
}

// traceQuestion is what waits for an answer, with the keys that give one.
func traceQuestion(l *optrace.Live, u *look, w int) remarks {
	if l.State != optrace.LiveAsking {
		return nil
	}
	ask := u.glyphs.Bad + " " + cmp.Or(strings.TrimSpace(l.Question), "Go on?")
	if len(cell.Wrap(u.spell(ask), w-4)) > 2 {
		return remarks{{cell.Bad, ask}} // the footer names the keys
	}
	return remarks{{cell.Bad, ask}, {cell.Key, " [y] yes  [n] no"}}
}

// traceSummary is the trace in a few words, the most urgent first.
func traceSummary(l *optrace.Live, u *look, brief bool) remarks {
	var list remarks
	add := func(t cell.Token, text string) {
		if strings.TrimSpace(text) != "" {
			list = append(list, remark{t, text})
		}
	}
	if u.over == overlayHelp {
		for _, h := range traceHints(l, u) {
			add(cell.Key, h.binding.Help().Key+" "+h.word)
		}
		add(cell.Key, "q closes this, ctrl+c quits")
		return list
	}
	if u.typing {
		add(cell.Key, "/"+u.filter+"_")
	} else {
		add(u.notice.token, u.notice.text)
	}
	if l.State == optrace.LiveAsking {
		add(cell.Bad, u.glyphs.Bad+" "+cmp.Or(l.Question, "Go on?"))
		add(cell.Key, "y yes, n no")
	}
	g := traceStage(l)
	words := g.words
	if u.frozen {
		words = "FROZEN " + words
	}
	add(g.token, words+g.progress(!brief))
	if l.Summary == nil {
		add(cell.Body, standInFor(l, true).what)
		return list
	}
	for _, p := range l.Summary.Phases {
		text := p.Phase + " " + figure.Show(p.Rate, "tok/s")
		if p.Apart() {
			text = p.Phase + " " + figure.Show(p.Paced, "tok/s") + " in answers, " + figure.Show(p.Rate, "tok/s") + " in calls"
		}
		if !brief && p.Call.Count > 0 {
			text += ", " + show(p.Call.Mean.Seconds()) + " a call"
		}
		add(cell.Strong, text)
	}
	add(cell.Accent, l.Summary.Advice.Do)
	add(cell.Warn, map[bool]string{true: u.glyphs.Warn + " " + lostWords(&l.Summary.Coverage)}[lost(l)])
	add(cell.Muted, l.Summary.Advice.Why)
	return list
}
