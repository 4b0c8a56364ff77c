package frame

import "image"

// Size of the smallest terminal for the whole screen. Smaller ones show a summary of a few lines.
const (
	LeastWidth  = 60
	LeastHeight = 16
	// roomyHeight is the minimum height for rules around the body.
	roomyHeight = 30
)

// tabsLine is the line of the tabs.
const tabsLine = 1

// bars are the lines that the optional parts of the screen need.
type bars struct{ banner, question, tape int }

// layout holds the positions of the parts of the screen. A part with an empty rectangle is not
// drawn.
type layout struct {
	header   image.Rectangle // product, target, model, GPU, marks
	tabs     image.Rectangle // the views and the phase
	upper    image.Rectangle // a rule
	banner   image.Rectangle // problems with what is shown
	body     image.Rectangle // the view
	question image.Rectangle // what waits for an answer
	tape     image.Rectangle // position in a recording
	lower    image.Rectangle // a rule
	footer   image.Rectangle // keys, or a notice
}

// arrange lays out a terminal of at least LeastWidth by LeastHeight cells.
func arrange(w, h int, want bars) layout {
	var l layout
	top, bottom := 0, h
	fromTop := func(r *image.Rectangle, n int) {
		*r = image.Rect(0, top, w, top+n)
		top += n
	}
	fromBottom := func(r *image.Rectangle, n int) {
		*r = image.Rect(0, bottom-n, w, bottom)
		bottom -= n
	}
	rule := 0
	if h >= roomyHeight {
		rule = 1
	}
	fromTop(&l.header, 1)
	fromTop(&l.tabs, 1)
	fromTop(&l.upper, rule)
	fromTop(&l.banner, min(want.banner, 2))
	fromBottom(&l.footer, 1)
	fromBottom(&l.lower, rule)
	fromBottom(&l.tape, min(want.tape, 1))
	fromBottom(&l.question, min(want.question, 3))
	l.body = image.Rect(0, top, w, bottom)
	return l
}
