package trace

import (
	"cmp"
	"path"
	"strings"

	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/engine/page/trace"
	"github.com/rooftop-dev/rooftop/engine/stat"
	"github.com/rooftop-dev/rooftop/tui/cell"
	"github.com/rooftop-dev/rooftop/tui/frame"
)

// Views of a trace.
const (
	viewNow frame.ViewID = iota
	viewOperators
	viewLayers
	viewThreads
	viewExperts
	viewDetails
	numViews
)

// choices are the user's settings for the contents of views.
type choices struct {
	phase string // "" is decode, or else the first phase
	order int    // index of the operators' sort column among the sortable ones
	least bool   // lowest values first
	names bool   // group operators by tensor name instead of kind
}

// phaseOf returns the phase to show, "" if there is none.
func (t *choices) phaseOf(s *optrace.Summary) string {
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

// snapshot draws one snapshot.
type snapshot struct {
	u     *frame.Settings
	set   *choices
	live  *optrace.Live
	s     *optrace.Summary
	phase string
}

// drawScreen draws the trace screen on a canvas of w by h cells. l is nil before the first
// snapshot.
func drawScreen(l *optrace.Live, u *frame.Settings, set *choices, w, h int) (*cell.Canvas, frame.Extent) {
	begun := l != nil
	if !begun {
		l = &optrace.Live{}
	}
	s := &frame.Scene{
		Elapsed: l.Now, Identity: identity(l, u), Marks: marks(l, u), Views: tabs(), Stage: stage(l),
		Banner: banner(l, u), Question: question(l, u, w),
		Body:  func(p cell.Pane) frame.Extent { return drawTrace(p, l, u, set, begun) },
		Hints: hints(l, u), Quit: frame.Hint{Binding: boundKeys().Quit, Word: "quit"},
		Guide: func() frame.Guide { return guide(l, u) },
		Small: func(brief bool) frame.Remarks { return summary(l, u, brief) },
	}
	return frame.Compose(s, u, w, h)
}

// tabs returns the names of the views.
func tabs() []string {
	return []string{"Now", "Operators", "Layers", "Threads", "Experts", "Details"}
}

// drawTrace draws the view, or a placeholder if there are no figures.
func drawTrace(p cell.Pane, l *optrace.Live, u *frame.Settings, set *choices, begun bool) frame.Extent {
	if l.Summary == nil {
		placeholder(l, begun).Draw(p)
		return frame.Extent{}
	}
	v := &snapshot{u: u, set: set, live: l, s: l.Summary, phase: set.phaseOf(l.Summary)}
	if u.View == viewNow {
		v.now(p)
		return frame.Extent{}
	}
	return v.scroll(p)
}

// targetOf returns the target as far as it is known.
func targetOf(l *optrace.Live) *optrace.Target {
	if l.Summary != nil {
		return &l.Summary.Target
	}
	return &l.Target
}

// identity returns the header's parts: product, target, model and runtime.
func identity(l *optrace.Live, u *frame.Settings) []frame.Part {
	t := targetOf(l)
	parts := []frame.Part{{Token: cell.Title, Text: "rooftop", Gap: 2, Keep: 2}, {Token: cell.Title, Text: "trace", Gap: 2, Keep: 1}}
	sign, token := sign(l, u)
	name := trace.Process(t)
	if name == "" {
		return parts
	}
	parts = append(parts, frame.Part{Token: token, Text: sign, Gap: 1, Keep: 9}, frame.Part{Token: cell.Body, Text: name, Gap: 2, Keep: 5})
	if t.Model != "" {
		parts = append(parts, frame.Part{Token: cell.Strong, Text: path.Base(t.Model), Gap: 2, Keep: 6})
	}
	if t.Runtime != "" {
		parts = append(parts, frame.Part{Token: cell.Muted, Text: t.Runtime, Gap: 2, Keep: 3})
	}
	return parts
}

// sign returns the symbol for the state of the trace.
func sign(l *optrace.Live, u *frame.Settings) (string, cell.Token) {
	switch {
	case l.State >= optrace.LiveEnded:
		return u.Glyphs.Info, cell.Muted
	case l.State == optrace.LiveAsking, l.State == optrace.LivePaused, lostEvents(l):
		return u.Glyphs.Warn, cell.Warn
	}
	return u.Glyphs.Good, cell.OK
}

// lostEvents reports whether events are missing from the figures.
func lostEvents(l *optrace.Live) bool { return l.Summary != nil && l.Summary.Coverage.Dropped > 0 }

// marks returns the marks of the header.
func marks(l *optrace.Live, u *frame.Settings) []frame.Remark {
	var marks []frame.Remark
	if u.Frozen {
		marks = append(marks, frame.Remark{Token: cell.Selected, Text: " FROZEN "})
	}
	if l.State == optrace.LivePaused {
		marks = append(marks, frame.Remark{Token: cell.Selected, Text: " PAUSED "})
	}
	if l.Detail != 0 {
		const most = 24 // a set of details that is not a level has a long name
		marks = append(marks, frame.Remark{Token: cell.Accent, Text: "detail " + cell.Cut(l.Detail.String(), most, u.Glyphs.Ellipsis)})
	}
	return marks
}

// stage returns the state of the trace in words.
func stage(l *optrace.Live) frame.Stage {
	g := [...]frame.Stage{
		optrace.LiveAttaching: {Words: "attaching", Word: "attaching", Token: cell.Accent},
		optrace.LiveWaiting:   {Words: "waiting for work", Word: "waiting", Token: cell.Strong},
		optrace.LiveWeighing:  {Words: "estimating the cost", Word: "estimating", Token: cell.Accent},
		optrace.LiveAsking:    {Words: "your answer", Word: "your answer", Token: cell.Bad},
		optrace.LiveTracing:   {Words: "tracing", Word: "tracing", Token: cell.OK},
		optrace.LivePaused:    {Words: "paused", Word: "paused", Token: cell.Strong},
		optrace.LiveEnded:     {Words: "ended", Word: "ended", Token: cell.Strong},
		optrace.LiveRecorded:  {Words: "recording", Word: "recording", Token: cell.Strong},
	}[min(l.State, optrace.LiveRecorded)]
	g.Elapsed = l.Since
	return g
}

// banner returns the problems of what is shown, and what to do about them.
func banner(l *optrace.Live, u *frame.Settings) frame.Remarks {
	if l.Summary == nil {
		return nil
	}
	t, c := &l.Summary.Target, &l.Summary.Coverage
	switch {
	case l.State == optrace.LiveEnded:
		return frame.Remarks{{Token: cell.Strong, Text: u.Glyphs.Info + " The trace has ended: " + figure.Stopped(cmp.Or(l.Notice, "rooftop has detached")) + " e exports it, q quits."}}
	case l.State == optrace.LivePaused:
		return frame.Remarks{{Token: cell.Strong, Text: u.Glyphs.Info + " Recording is paused: p resumes. Showing the last values."}}
	case t.Withheld != "" && !t.Verified:
		return frame.Remarks{{Token: cell.Warn, Text: u.Glyphs.Warn + " Names and shapes are withheld: " + figure.Stopped(t.Withheld)}}
	case c.Dropped > 0:
		return frame.Remarks{{Token: cell.Warn, Text: u.Glyphs.Warn + " " + lostWords(c) + " Graphs with gaps are left out of all figures. Press - to trace less."}}
	case l.State == optrace.LiveWaiting:
		return frame.Remarks{{Token: cell.Strong, Text: u.Glyphs.Info + " The target computes nothing: send it a request. Showing the last values."}}
	case l.State == optrace.LiveWeighing:
		return frame.Remarks{{Token: cell.Strong, Text: u.Glyphs.Info + " Only graphs are traced for some seconds, to estimate the cost of more detail."}}
	}
	return nil
}

// lostWords describes how much was lost.
func lostWords(c *optrace.Coverage) string {
	text := figure.Counted(c.Dropped, "event") + " lost"
	if all := c.Events + c.Dropped; all > 0 {
		text += ", " + figure.Show(stat.Some(float64(c.Dropped)/float64(all)), "ratio") + " of all"
	}
	return text + "."
}

// question returns the open question, with the keys that answer it.
func question(l *optrace.Live, u *frame.Settings, w int) frame.Remarks {
	if l.State != optrace.LiveAsking {
		return nil
	}
	ask := u.Glyphs.Bad + " " + cmp.Or(strings.TrimSpace(l.Question), "Go on?")
	if len(cell.Wrap(u.Spell(ask), w-4)) > 2 {
		return frame.Remarks{{Token: cell.Bad, Text: ask}} // the footer names the keys
	}
	return frame.Remarks{{Token: cell.Bad, Text: ask}, {Token: cell.Key, Text: " [y] yes  [n] no"}}
}

// summary returns the trace in a few words, the most urgent first.
func summary(l *optrace.Live, u *frame.Settings, brief bool) frame.Remarks {
	list, whole := frame.Overlaid(u, hints(l, u))
	if whole {
		return list
	}
	add := list.Add
	if l.State == optrace.LiveAsking {
		add(cell.Bad, u.Glyphs.Bad+" "+cmp.Or(l.Question, "Go on?"))
		add(cell.Key, "y yes, n no")
	}
	g := stage(l)
	words := g.Words
	if u.Frozen {
		words = "FROZEN " + words
	}
	add(g.Token, words+g.Progress(!brief))
	if l.Summary == nil {
		add(cell.Body, placeholder(l, true).What)
		return list
	}
	for _, p := range l.Summary.Phases {
		text := p.Phase + " " + figure.Show(p.Rate, "tok/s")
		if p.PaceDiffers() {
			text = p.Phase + " " + figure.Show(p.Paced, "tok/s") + " in answers, " + figure.Show(p.Rate, "tok/s") + " in calls"
		}
		if !brief && p.Call.Count > 0 {
			text += ", " + figure.Duration(p.Call.Mean) + " a call"
		}
		add(cell.Strong, text)
	}
	add(cell.Accent, l.Summary.Advice.Do)
	if lostEvents(l) {
		add(cell.Warn, u.Glyphs.Warn+" "+lostWords(&l.Summary.Coverage))
	}
	add(cell.Muted, l.Summary.Advice.Why)
	return list
}
