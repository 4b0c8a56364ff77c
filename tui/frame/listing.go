package frame

import (
	"fmt"
	"slices"

	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/page"
	"github.com/rooftop-dev/rooftop/tui/cell"
	"github.com/rooftop-dev/rooftop/tui/lines"
)

// Content is what a view shows: lines, some of which may be outside the pane.
type Content interface {
	// Lines returns the number of lines for a pane of height h.
	Lines(h int) int
	// Draw draws the content from line first on.
	Draw(p cell.Pane, first int)
}

// Fitted is a view that fills its pane and never scrolls.
type Fitted func(p cell.Pane)

// Lines returns h.
func (Fitted) Lines(h int) int { return h }

// Draw fills the pane.
func (f Fitted) Draw(p cell.Pane, _ int) { f(p) }

// Listing is a view of sections below each other, with a cell of space at either side. On a wide
// pane it has two columns, which scroll together. Charts below them stay in place.
type Listing struct {
	settings *Settings
	columns  []*lines.Lines
	width    int // of a column
	room     int // of its lines
	charts   Charts
}

// Charts are drawn in the lines that they get: at least Least, at most Most.
type Charts struct {
	Least, Most int
	Share       int // of the height that they get in any case: 2 is a half
	Draw        func(p cell.Pane)
}

// NewListing returns a listing for a pane of the given width, with lines of at most maxWidth cells.
// The section with the ID right begins the second column of a wide pane; "" allows only one.
func NewListing(u *Settings, width, maxWidth int, list []page.Section, right string) *Listing {
	parts := [][]page.Section{list}
	if at := slices.IndexFunc(list, func(s page.Section) bool { return s.ID == right }); right != "" && at > 0 && width >= ThreeColumns {
		parts = [][]page.Section{list[:at], list[at:]}
	}
	l := &Listing{settings: u, width: width / len(parts)}
	l.room = max(1, min(l.width-2, maxWidth))
	for _, part := range parts {
		l.columns = append(l.columns, u.Lines(part, l.room))
	}
	return l
}

// Below adds charts, and returns the listing.
func (l *Listing) Below(c Charts) *Listing {
	l.charts = c
	return l
}

// height returns the number of lines of the longest column.
func (l *Listing) height() int {
	n := 0
	for _, c := range l.columns {
		n = max(n, c.Height())
	}
	return n
}

// rooms divides h lines between the columns and the charts, which get what the columns leave, but at
// least their share of h, unless that is too small to show anything.
func (l *Listing) rooms(h int) (list, charts int) {
	if l.charts.Draw == nil || h < l.charts.Least+3 {
		return h, 0
	}
	charts = min(max(h-l.height()-1, h/l.charts.Share), l.charts.Most)
	return min(h-charts, l.height()+1), charts
}

// Lines returns the number of lines of the columns and the charts.
func (l *Listing) Lines(h int) int {
	list, _ := l.rooms(h)
	return h - list + l.height()
}

// Draw draws the columns from line first on, and the charts.
func (l *Listing) Draw(p cell.Pane, first int) {
	list, charts := l.rooms(p.Height())
	first = max(0, min(first, l.height()-list))
	for i, c := range l.columns {
		l.settings.Text(p.Sub(1+i*l.width, 0, l.room, list), 0, c.From(first, list))
	}
	if charts > 0 {
		l.charts.Draw(p.Sub(1, list, p.Width()-2, charts))
	}
}

// Matches states how many of all entries contain a text.
func Matches(n, all int, what, text string) page.Text {
	head := page.Toned(page.Accent, fmt.Sprintf("%d of %s match %q", n, figure.Counted(all, what), text))
	return page.Join(head, page.Toned(page.Muted, ": esc clears it"))
}
