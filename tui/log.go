package tui

import (
	"github.com/rooftop-dev/rooftop/engine/loop"
	"github.com/rooftop-dev/rooftop/engine/page"
	"github.com/rooftop-dev/rooftop/engine/page/tuning"
	"github.com/rooftop-dev/rooftop/tui/frame"
)

// logCells is the maximum width of a line of the log, in cells.
const logCells = 130

// journal returns the view of events, the newest last.
func journal(s *loop.Snapshot, u *frame.Settings, width int) frame.Content {
	list := tuning.Journal(s, true)
	list.Title = "" // the tab has it
	return frame.NewListing(u, width, logCells, u.Matching([]page.Section{list}), "")
}
