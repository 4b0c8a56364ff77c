package tui

import (
	"time"

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
// be scrolled to. Its first line shown is look.scroll.
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
	view   viewID
	scroll [numViews]int // first line shown
	filter string        // of the evidence
	typing bool          // the filter is being typed
	frozen bool          // the display stands still

	over   overlay // what lies over the view
	yes    bool    // the answer that enter takes in a question
	ask    dialog  // what is asked, of overlayAsk
	down   int     // first line shown of the overlay
	notice remark  // stands in the footer for some seconds
	tape   *tape   // nil for a live server
}

// overlay is what lies over a view.
type overlay uint8

const (
	overlayNone overlay = iota
	overlayHelp
	overlayAsk  // a question with yes and no
	overlayText // something to read: the command that was copied
)

// remark is a sentence with its meaning.
type remark struct {
	token cell.Token
	text  string
}

// tape is where a recording stands.
type tape struct {
	now, of time.Duration
	speed   float64 // seconds of the recording in one; 0 stands still
	resume  float64 // the speed to go on with
}
