package tui

import (
	"github.com/rooftop-dev/rooftop/engine/loop"
	"github.com/rooftop-dev/rooftop/tui/cell"
	"github.com/rooftop-dev/rooftop/tui/frame"
)

// drawRun draws the main screen on a canvas of w by h cells. The result depends only on the
// arguments. s is nil before the first snapshot.
func drawRun(s *loop.Snapshot, u *frame.Settings, w, h int) (*cell.Canvas, frame.Extent) {
	if s == nil {
		s = &loop.Snapshot{}
	}
	return frame.Compose(sceneOf(s, u, w), u, w, h)
}

func sceneOf(s *loop.Snapshot, u *frame.Settings, w int) *frame.Scene {
	k := frame.Keys()
	return &frame.Scene{
		Elapsed: s.Now, Identity: identity(s, u), Marks: marksOf(s, u), Views: viewNames(), Stage: phaseOf(s),
		Banner: bannerOf(s, u), Question: questionOf(s, u, w),
		Body:  func(p cell.Pane) frame.Extent { return drawView(p, s, u) },
		Hints: hintsFor(s, u), Quit: frame.Hint{Binding: k.Quit, Word: "quit"},
		Guide: func() frame.Guide { return guideTo(s, u) },
		Small: func(brief bool) frame.Remarks { return summary(s, u, brief) },
	}
}

// viewNames returns the names of the views in their order.
func viewNames() []string {
	names := make([]string, 0, numViews)
	for _, v := range views() {
		names = append(names, v.name)
	}
	return names
}

// drawView draws the current view, or a placeholder if no server was found.
func drawView(p cell.Pane, s *loop.Snapshot, u *frame.Settings) frame.Extent {
	if !s.Attached && u.View != viewLog {
		return frame.Placeholder(p, u, lookingFor(s))
	}
	return frame.Scrolled(p, u, views()[u.View].content(s, u, p.Width()))
}

// outdated reports whether the latest figures are from before an outage.
func outdated(s *loop.Snapshot) bool {
	return s.Phase == loop.PhaseDown || len(s.Sources) > 0 && s.Sources[0].State == loop.SourceFailing
}

// Options control how a screen is drawn.
type Options = frame.Options

// Playback controls a recording.
type Playback = frame.Playback

const (
	viewNow frame.ViewID = iota
	viewRoofline
	viewHistory
	viewEvidence
	viewMachine
	viewLog
	numViews
)

// view is one of the numbered views.
type view struct {
	name string // as shown in the tabs
	// content returns the contents of the view for a pane of the given width.
	content func(s *loop.Snapshot, u *frame.Settings, width int) frame.Content
}

// views returns all views in the order of their digits.
func views() [numViews]view {
	return [numViews]view{
		viewNow:      {"Now", now},
		viewRoofline: {"Roofline", rooflineOf},
		viewHistory:  {"History", history},
		viewEvidence: {"Evidence", evidence},
		viewMachine:  {"GPU", machine},
		viewLog:      {"Log", journal},
	}
}
