package frame

import (
	"fmt"
	"strings"

	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/page"
	"github.com/rooftop-dev/rooftop/tui/cell"
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

// Listing is a view of lines below each other, indented by one cell. Only visible lines are drawn.
type Listing struct {
	Settings *Settings
	Width    int // of the lines, in cells
	rows     []rows
	height   int
}

// rows are n lines drawn by one function, which gets the index of each.
type rows struct {
	n    int
	draw func(p cell.Pane, i int)
}

// NewListing returns an empty listing for a pane of the given width. Its lines have at maxWidth
// maxWidth cells.
func NewListing(u *Settings, width, maxWidth int) *Listing {
	return &Listing{Settings: u, Width: max(1, min(width-2, maxWidth))}
}

// Lines returns the number of lines, whatever the height of the pane.
func (l *Listing) Lines(int) int { return l.height }

// Draw draws the lines from line first on.
func (l *Listing) Draw(p cell.Pane, first int) {
	p = p.Sub(1, 0, l.Width, p.Height())
	y := -first
	for _, r := range l.rows {
		for i := max(0, -y); i < r.n && y+i < p.Height(); i++ {
			r.draw(p.Sub(0, y+i, p.Width(), 1), i)
		}
		y += r.n
	}
}

// Rows adds n lines. draw gets the index of each.
func (l *Listing) Rows(n int, draw func(p cell.Pane, i int)) {
	l.rows, l.height = append(l.rows, rows{n, draw}), l.height+n
}

// Row adds a line.
func (l *Listing) Row(draw func(p cell.Pane)) { l.Rows(1, func(p cell.Pane, _ int) { draw(p) }) }

// Block adds n lines that are drawn together.
func (l *Listing) Block(n int, draw func(p cell.Pane)) {
	var c *cell.Canvas
	l.Rows(n, func(p cell.Pane, i int) {
		if c == nil {
			c = cell.NewCanvas(p.Width(), n)
			if l.Settings.Glyphs.ASCII {
				c.ASCII()
			}
			draw(c.Pane())
		}
		p.Paste(c, i)
	})
}

// Keep limits the listing to the lines that contain a text, below a line with their number.
func (l *Listing) Keep(text string) {
	if text == "" {
		return
	}
	all, total := l.rows, l.height
	l.rows, l.height = nil, 0
	for _, r := range all {
		for i := range r.n {
			c := cell.NewCanvas(l.Width, 1)
			r.draw(c.Pane(), i)
			if strings.Contains(strings.ToLower(c.Plain()), strings.ToLower(text)) {
				l.Row(func(p cell.Pane) { r.draw(p, i) })
			}
		}
	}
	found := l.rows
	l.rows = nil
	l.Prose(Matches(len(found), total, "line", text))
	l.rows, l.height = append(l.rows, found...), len(l.rows)+len(found)
}

// Matches states how many of all entries contain a text.
func Matches(n, all int, what, text string) page.Text {
	head := page.Toned(page.Accent, fmt.Sprintf("%d of %s match %q", n, figure.Counted(all, what), text))
	return page.Join(head, page.Toned(page.Muted, ": esc clears it"))
}

// Pair shows two listings side by side, which scroll together.
type Pair struct{ Left, Right *Listing }

// Lines returns the number of lines of the longer listing.
func (b Pair) Lines(h int) int { return max(b.Left.Lines(h), b.Right.Lines(h)) }

// Draw draws both from line first on.
func (b Pair) Draw(p cell.Pane, first int) {
	b.Left.Draw(p, first)
	w := b.Left.Width + 2
	b.Right.Draw(p.Sub(w, 0, p.Width()-w, p.Height()), first)
}

// Prose adds a wrapped paragraph.
func (l *Listing) Prose(text page.Text) {
	for _, part := range l.Settings.Wrap(text, l.Width) {
		l.Row(func(p cell.Pane) { p.Line(0, 0, part) })
	}
}

// Space adds an empty line.
func (l *Listing) Space() { l.Row(func(cell.Pane) {}) }

// Title adds a heading with a note at its right end.
func (l *Listing) Title(text string, note page.Text) {
	q := Panel{Title: text, Note: note}
	l.Row(func(p cell.Pane) { l.Settings.Heading(p, &q) })
}

// Sections adds sections of a page with all details.
func (l *Listing) Sections(list []page.Section) {
	all := l.Settings.Lines(list, l.Width)
	l.Rows(all.Height(), func(p cell.Pane, i int) { l.Settings.Text(p, 0, all.From(i, 1)) })
}
