package frame

import (
	"cmp"
	"slices"
	"strings"

	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/page"
	"github.com/rooftop-dev/rooftop/tui/cell"
)

// Block is a piece of a view with a variable height. When space is short, the blocks with the
// lowest Keep are shortened to Least lines first, then left out.
type Block struct {
	Lines int // needed to show everything
	Least int // minimum worth showing; 0 means all of Lines
	Grow  int // additional lines that it can use
	Keep  int // priority: blocks with a higher one are kept longer
	Draw  func(p cell.Pane)
}

// Priorities of the headings and of the space between panels.
const (
	keepSpace   = 1
	keepHeading = 76
)

// grant returns how many of h lines each block gets. If they do not all fit, the blocks with the
// lowest Keep are shortened, then left out. Spare lines go to blocks that can grow, the shortest
// first.
func grant(blocks []Block, h int) []int {
	got := make([]int, len(blocks))
	order := make([]int, len(blocks))
	total := 0
	for i, b := range blocks {
		got[i], order[i] = b.Lines, i
		total += b.Lines
	}
	slices.SortStableFunc(order, func(a, b int) int { return blocks[a].Keep - blocks[b].Keep })
	for _, i := range order {
		if total <= h {
			break
		}
		b := &blocks[i]
		if b.Least > 0 && b.Lines-b.Least >= total-h {
			got[i] -= total - h
			total = h
			break
		}
		total -= got[i]
		got[i] = 0
	}
	for spare := h - total; spare > 0; spare-- {
		least := -1
		for i := range blocks {
			if got[i] > 0 && got[i] < blocks[i].Lines+blocks[i].Grow && (least < 0 || got[i] < got[least]) {
				least = i
			}
		}
		if least < 0 {
			break
		}
		got[least]++
	}
	return got
}

// Panel is a titled list of blocks.
type Panel struct {
	Title  string
	Note   page.Text // at the right end of the title line
	Token  cell.Token
	Old    bool // the figures are outdated and drawn muted
	Blocks []Block
}

// Add appends blocks, except those without lines.
func (q *Panel) Add(blocks ...Block) {
	for _, b := range blocks {
		if b.Lines > 0 {
			q.Blocks = append(q.Blocks, b)
		}
	}
}

// keep returns the highest Keep of the panel's blocks.
func (q *Panel) keep() int {
	k := 0
	for _, b := range q.Blocks {
		k = max(k, b.Keep)
	}
	return k
}

// place is a panel with its position and the lines granted to it.
type place struct {
	*Panel
	y, h   int   // of the panel including its heading
	head   int   // lines of the heading
	blocks []int // lines of each block
}

// places stacks panels in h lines, with frames or with headings alone. It leaves out panels whose
// blocks were all left out.
func places(panels []Panel, h int, framed bool) []place {
	list := make([]*Panel, 0, len(panels))
	for i := range panels {
		if len(panels[i].Blocks) > 0 {
			list = append(list, &panels[i])
		}
	}
	for {
		all := stack(list, h, framed)
		full := list[:0:0]
		for _, p := range all {
			if sum(p.blocks) > 0 {
				full = append(full, p.Panel)
			}
		}
		if len(full) == len(all) {
			return all
		}
		list = full
	}
}

func sum(values []int) int {
	n := 0
	for _, v := range values {
		n += v
	}
	return n
}

// stack grants lines to all panels of the list, even if a panel gets none for its blocks.
func stack(list []*Panel, h int, framed bool) []place {
	var blocks []Block
	for i, q := range list {
		space, head := Block{}, Block{}
		if i > 0 && !framed {
			space = Block{Lines: 1, Keep: keepSpace}
		}
		switch {
		case framed:
			head = Block{Lines: 2, Keep: q.keep() + 1}
		case q.Title != "":
			head = Block{Lines: 1, Keep: min(keepHeading, q.keep())}
		}
		blocks = append(append(blocks, space, head), q.Blocks...)
	}
	got := grant(blocks, h)
	all := make([]place, 0, len(list))
	at, y := 0, 0
	for _, q := range list {
		p := place{Panel: q, y: y + got[at], head: got[at+1], blocks: got[at+2 : at+2+len(q.Blocks)]}
		p.h = p.head + sum(p.blocks)
		all = append(all, p)
		at += 2 + len(q.Blocks)
		y = p.y + p.h
	}
	return all
}

// Column draws panels below each other.
func (u *Settings) Column(p cell.Pane, panels []Panel, framed bool) {
	for _, at := range places(panels, p.Height(), framed) {
		box := p.Sub(0, at.y, p.Width(), at.h)
		switch {
		case at.head == 0:
		case framed:
			box = u.Frame(box, at.Panel)
		default:
			u.Heading(box, at.Panel)
			box = box.Sub(0, 1, box.Width(), box.Height()-1)
		}
		y := 0
		for i, h := range at.blocks {
			if h > 0 {
				at.Panel.Blocks[i].Draw(box.Sub(0, y, box.Width(), h))
			}
			y += h
		}
		if at.Panel.Old {
			box.Tint(cell.Muted)
		}
	}
}

// height returns how many lines the panels need, with what is optional if whole is set.
func height(panels []Panel, framed, whole bool) int {
	n := 0
	for _, q := range panels {
		for _, b := range q.Blocks {
			n += b.Lines
			if whole {
				n += b.Grow
			}
		}
		if len(q.Blocks) > 0 {
			n++
			if framed {
				n++
			}
		}
	}
	return n
}

// Inner returns the width inside a panel that is w cells wide.
func Inner(w int, framed bool) int {
	if framed {
		return max(1, w-4)
	}
	return max(1, w)
}

// Heading draws a rule with the panel's title and note in it.
func (u *Settings) Heading(p cell.Pane, q *Panel) {
	g := u.Glyphs
	p.Sub(0, 0, p.Width(), 1).Fill(cell.Border, g.Horizontal)
	u.titles(p, q, 2)
}

// Frame draws a box around a panel and returns the pane inside.
func (u *Settings) Frame(p cell.Pane, q *Panel) cell.Pane {
	g, w, h := u.Glyphs, p.Width(), p.Height()
	p.Sub(1, 0, w-2, 1).Fill(cell.Border, g.Horizontal)
	p.Sub(1, h-1, w-2, 1).Fill(cell.Border, g.Horizontal)
	p.Sub(0, 1, 1, h-2).Fill(cell.Border, g.Vertical)
	p.Sub(w-1, 1, 1, h-2).Fill(cell.Border, g.Vertical)
	p.Text(0, 0, cell.Border, g.TopLeft)
	p.Text(w-1, 0, cell.Border, g.TopRight)
	p.Text(0, h-1, cell.Border, g.BottomLeft)
	p.Text(w-1, h-1, cell.Border, g.BottomRight)
	u.titles(p, q, 2)
	return p.Sub(2, 1, w-4, h-2)
}

// titles writes the title at column x of the first line, and the note at its right end.
func (u *Settings) titles(p cell.Pane, q *Panel, x int) {
	if q.Title == "" {
		return
	}
	token := q.Token
	if token == cell.Body {
		token = cell.Title
	}
	space := page.Toned(cell.Body, " ")
	title := u.Cut(page.Toned(token, q.Title), p.Width()-2*x-2)
	end := p.Line(x, 0, page.Join(space, title, space))
	note := u.Cut(q.Note, p.Width()-x-end-4)
	if n := u.Width(note); n > 0 && p.Width()-x-end-4 > 8 {
		p.Line(p.Width()-x-n-2, 0, page.Join(space, note, space))
	}
}

// Paragraph returns a block with a paragraph that is indented by the width of its label. If it gets
// fewer lines than it needs, the last one is marked as cut. Without body text the block has no
// lines.
func (u *Settings) Paragraph(w, keep int, label, body page.Text) Block {
	if body.String() == "" {
		return Block{}
	}
	lead := u.Width(label)
	lines := u.Wrap(body, w-lead)
	return Block{Lines: len(lines), Least: 1, Keep: keep, Draw: func(p cell.Pane) {
		p.Line(0, 0, label)
		u.DrawLines(p.Sub(lead, 0, p.Width()-lead, p.Height()), lines)
	}}
}

// Shorten limits a block to maxLines lines, the rest becoming optional.
func Shorten(b Block, maxLines int) Block {
	b.Grow += max(0, b.Lines-maxLines)
	b.Lines = min(b.Lines, maxLines)
	b.Least = min(b.Least, b.Lines)
	return b
}

// OneLine returns a block of one line that is cut if it does not fit.
func (u *Settings) OneLine(keep int, l page.Text) Block {
	return Block{Lines: 1, Keep: keep, Draw: func(p cell.Pane) { p.Line(0, 0, u.Cut(l, p.Width())) }}
}

// Beside returns a block with text at the left and end at the right of one line, and true. If there
// is no room for both, it returns text alone, and false.
func (u *Settings) Beside(w, keep int, text, end page.Text) (b Block, ok bool) {
	n := u.Width(end)
	if u.Width(text)+3+n > w {
		return u.Paragraph(w, keep, nil, text), false
	}
	return Block{Lines: 1, Keep: keep, Draw: func(p cell.Pane) {
		p.Line(0, 0, text)
		p.Line(p.Width()-n, 0, end)
	}}, true
}

// DrawLines writes as many lines as fit. If some do not, the last one drawn ends in an ellipsis.
func (u *Settings) DrawLines(p cell.Pane, lines []page.Text) {
	for y := range min(len(lines), p.Height()) {
		l := lines[y]
		if y == p.Height()-1 && y < len(lines)-1 {
			l = u.Cut(page.Join(l, page.Toned(cell.Body, " "), page.Join(lines[y+1:]...)), p.Width())
		}
		p.Line(0, y, l)
	}
}

// FieldCells is the width of the label column of labelled paragraphs, in cells.
const FieldCells = 8

// Field returns a labelled paragraph.
func (u *Settings) Field(w, keep int, label string, body page.Text) Block {
	name := page.Toned(cell.Muted, label+strings.Repeat(" ", max(1, FieldCells-len(label))))
	return u.Paragraph(w, keep, name, body)
}

// Key formats a key and its description, without places to break the line.
func (u *Settings) Key(k, description string) page.Text {
	return page.Join(page.Toned(cell.Key, "["+k+"]"), page.Toned(cell.Body, figure.NBSP+strings.ReplaceAll(description, " ", figure.NBSP)))
}

// Sizes at which the layout of a view changes.
const (
	TwoColumns   = 100
	ThreeColumns = 170
	Widest       = 100 // maximum width of a text column, in cells
	FrameLines   = 20  // minimum height for frames around panels
	timesLines   = 36  // minimum height for time series below the panels
	leastTimes   = 10  // lines for the time series
	leastColumns = 24  // lines for the columns above the time series
)

// Columns draws panels side by side. If the pane is tall enough, below draws a part over the whole
// width under them. The panels of more, which are made for the width of a column, fill what the
// columns leave empty.
func (u *Settings) Columns(p cell.Pane, list []PanelColumn, framed bool, below func(cell.Pane), more ...func(w int) Panel) {
	h := p.Height()
	if h >= timesLines && below != nil {
		need := 0
		for _, c := range list {
			need = max(need, height(c.Panels, framed, true))
		}
		h = min(max(need, leastColumns), h-leastTimes)
		below(p.Sub(0, h, p.Width(), p.Height()-h))
	}
	for _, make := range more {
		addTo(list, make, h, framed)
	}
	x := 0
	for _, c := range list {
		u.Column(p.Sub(x, 0, c.Width, h), c.Panels, framed)
		x += c.Width + 1
	}
}

// addTo adds a panel to the column with the most empty lines, if it has room for the smallest part
// of the panel.
func addTo(list []PanelColumn, make func(w int) Panel, h int, framed bool) {
	spare := func(c PanelColumn) int { return h - height(c.Panels, framed, false) }
	at := 0
	for i := range list {
		if spare(list[i]) > spare(list[at]) {
			at = i
		}
	}
	q := make(Inner(list[at].Width, framed))
	if len(q.Blocks) == 0 {
		return
	}
	edges, least := height([]Panel{q}, framed, false), q.Blocks[0].Lines
	for _, b := range q.Blocks {
		edges -= b.Lines
		least = min(least, cmp.Or(b.Least, b.Lines))
	}
	if spare(list[at]) >= edges+least {
		list[at].Panels = append(list[at].Panels, q)
	}
}

// PanelColumn is a column of panels and its width in cells.
type PanelColumn struct {
	Width  int
	Panels []Panel
}
