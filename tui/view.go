package tui

import (
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/tui/cell"
)

// viewID names a view; digits choose it.
type viewID uint8

const (
	viewNow viewID = iota
	viewRoofline
	viewHistory
	viewEvidence
	viewMachine
	viewLog
	numViews
)

// view is one of the numbered views: it draws a snapshot into a pane and returns
// how many lines it would need to show everything, so that what does not fit can
// be scrolled to.
type view struct {
	name string // as the tabs show it
	draw func(p cell.Pane, s *engine.Snapshot, u *look) (lines int)
}

func views() [numViews]view {
	return [numViews]view{
		viewNow:      {"Now", drawNow},
		viewRoofline: {"Roofline", drawRoofline},
		viewHistory:  {"History", drawHistory},
		viewEvidence: {"Evidence", drawEvidence},
		viewMachine:  {"GPU", drawMachine},
		viewLog:      {"Log", drawLog},
	}
}

// look is what the person at the keys has set.
type look struct {
	glyphs cell.Glyphs
	scroll [numViews]int // first line shown
	filter string        // of the evidence
}
