package tui

import "image"

// Smallest terminal that the whole screen is drawn on. Below it there is a
// summary of a few lines.
const (
	leastWidth  = 60
	leastHeight = 16
	// roomyHeight is where lines are left for rules around the body.
	roomyHeight = 30
)

// bars are how many lines the parts of the screen want that are not always there.
type bars struct{ banner, question, tape int }

// layout is where the parts of the screen lie. An empty rectangle is not drawn.
type layout struct {
	header   image.Rectangle // product, target, model, GPU, marks
	tabs     image.Rectangle // the views and the phase
	upper    image.Rectangle // a rule
	banner   image.Rectangle // what is wrong with what is shown
	body     image.Rectangle // the view
	question image.Rectangle // what waits for an answer
	tape     image.Rectangle // where a recording stands
	lower    image.Rectangle // a rule
	footer   image.Rectangle // keys, or a notice
}

// arrange lays out a terminal of at least leastWidth by leastHeight cells.
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
