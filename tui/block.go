package tui

import (
	"slices"

	"github.com/rooftop-dev/rooftop/tui/cell"
)

// block is a piece of a view, as high as it is granted. What matters less gives
// way first: it is shortened to its least lines, then left out.
type block struct {
	lines int // to show everything
	least int // fewer say nothing; 0 is all of them
	grow  int // lines beyond, of use where there is room
	keep  int // the higher, the longer it stays
	draw  func(p cell.Pane)
}

// How long headings and the space between panels stay.
const (
	keepSpace   = 1
	keepHeading = 76
)

// grant says how many lines each block gets of h: all at first, then the ones
// that matter least are shortened and left out, until the rest fits; lines that
// are over go to those that can grow, the shortest first.
func grant(blocks []block, h int) []int {
	got := make([]int, len(blocks))
	order := make([]int, len(blocks))
	total := 0
	for i, b := range blocks {
		got[i], order[i] = b.lines, i
		total += b.lines
	}
	slices.SortStableFunc(order, func(a, b int) int { return blocks[a].keep - blocks[b].keep })
	for _, i := range order {
		if total <= h {
			break
		}
		b := &blocks[i]
		if b.least > 0 && b.lines-b.least >= total-h {
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
			if got[i] > 0 && got[i] < blocks[i].lines+blocks[i].grow && (least < 0 || got[i] < got[least]) {
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

// panel is a titled list of blocks.
type panel struct {
	title  string
	note   prose // at the other end of the title's line
	token  cell.Token
	old    bool // its figures are not of now: they are drawn muted
	blocks []block
}

// keep is that of the block that stays longest.
func (q *panel) keep() int {
	k := 0
	for _, b := range q.blocks {
		k = max(k, b.keep)
	}
	return k
}

// place is a panel with the lines that it got.
type place struct {
	*panel
	y, h   int   // of the panel with its heading
	head   int   // lines of the heading
	blocks []int // lines of each block
}

// places stacks panels in h lines, with frames or with headings alone. Panels of
// which nothing is left are not among the places.
func places(panels []panel, h int, framed bool) []place {
	list := make([]*panel, 0, len(panels))
	for i := range panels {
		if len(panels[i].blocks) > 0 {
			list = append(list, &panels[i])
		}
	}
	for {
		all := stack(list, h, framed)
		full := list[:0:0]
		for _, p := range all {
			if sum(p.blocks) > 0 {
				full = append(full, p.panel)
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

// stack is places for panels all of which are to be tried.
func stack(list []*panel, h int, framed bool) []place {
	var blocks []block
	for i, q := range list {
		space, head := block{}, block{}
		if i > 0 && !framed {
			space = block{lines: 1, keep: keepSpace}
		}
		switch {
		case framed:
			head = block{lines: 2, keep: q.keep() + 1}
		case q.title != "":
			head = block{lines: 1, keep: min(keepHeading, q.keep())}
		}
		blocks = append(append(blocks, space, head), q.blocks...)
	}
	got := grant(blocks, h)
	all := make([]place, 0, len(list))
	at, y := 0, 0
	for _, q := range list {
		p := place{panel: q, y: y + got[at], head: got[at+1], blocks: got[at+2 : at+2+len(q.blocks)]}
		p.h = p.head + sum(p.blocks)
		all = append(all, p)
		at += 2 + len(q.blocks)
		y = p.y + p.h
	}
	return all
}

// column draws panels one below the other.
func (u *look) column(p cell.Pane, panels []panel, framed bool) {
	for _, at := range places(panels, p.Height(), framed) {
		box := p.Sub(0, at.y, p.Width(), at.h)
		switch {
		case at.head == 0:
		case framed:
			box = u.frame(box, at.panel)
		default:
			u.heading(box, at.panel)
			box = box.Sub(0, 1, box.Width(), box.Height()-1)
		}
		y := 0
		for i, h := range at.blocks {
			if h > 0 {
				at.panel.blocks[i].draw(box.Sub(0, y, box.Width(), h))
			}
			y += h
		}
		if at.panel.old {
			box.Tint(cell.Muted)
		}
	}
}

// height is how many lines panels take where nothing gives way and all is shown.
func height(panels []panel, framed bool) int {
	n := 0
	for _, q := range panels {
		for _, b := range q.blocks {
			n += b.lines + b.grow
		}
		if len(q.blocks) > 0 {
			n++
			if framed {
				n++
			}
		}
	}
	return n
}

// inner is the width inside of a panel of a width.
func inner(w int, framed bool) int {
	if framed {
		return max(1, w-4)
	}
	return max(1, w)
}

// heading draws a title into a rule.
func (u *look) heading(p cell.Pane, q *panel) {
	g := u.glyphs
	p.Sub(0, 0, p.Width(), 1).Fill(cell.Border, g.Horizontal)
	u.titles(p, q, 2)
}

// frame draws a box around a panel and returns its inside.
func (u *look) frame(p cell.Pane, q *panel) cell.Pane {
	g, w, h := u.glyphs, p.Width(), p.Height()
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

// titles writes the title at x of the first line, and the note where it ends.
func (u *look) titles(p cell.Pane, q *panel, x int) {
	if q.title == "" {
		return
	}
	token := q.token
	if token == cell.Body {
		token = cell.Title
	}
	room := p.Width() - 2*x - 2
	title := u.say(token, q.title).cut(room, u.glyphs.Ellipsis)
	end := line(u.say(cell.Body, " "), title, u.say(cell.Body, " ")).draw(p, x, 0)
	if note := q.note; len(note) > 0 {
		room := p.Width() - x - end - 4
		if note = note.cut(room, u.glyphs.Ellipsis); room > 8 {
			line(u.say(cell.Body, " "), note, u.say(cell.Body, " ")).draw(p, p.Width()-x-note.width()-2, 0)
		}
	}
}

// text makes a block of a paragraph, set in by lead cells after its first line's
// label. Where it gets fewer lines than it needs the last is marked as cut.
func (u *look) text(w, keep int, label, body prose) block {
	lead := label.width()
	lines := body.wrap(w - lead)
	return block{lines: len(lines), least: 1, keep: keep, draw: func(p cell.Pane) {
		label.draw(p, 0, 0)
		u.drawLines(p.Sub(lead, 0, p.Width()-lead, p.Height()), lines)
	}}
}

// short makes a text of at most some lines, the last of them marked where more
// would follow; it has all of them where there is room to spare.
func short(b block, most int) block {
	b.grow += max(0, b.lines-most)
	b.lines = min(b.lines, most)
	b.least = min(b.least, b.lines)
	return b
}

// one makes a block of a line that is cut where it does not fit.
func (u *look) one(keep int, l prose) block {
	return block{lines: 1, keep: keep, draw: func(p cell.Pane) { l.cut(p.Width(), u.glyphs.Ellipsis).draw(p, 0, 0) }}
}

// drawLines writes lines as far as there is room; the last is marked where more
// would follow.
func (u *look) drawLines(p cell.Pane, lines []prose) {
	for y := range min(len(lines), p.Height()) {
		l := lines[y]
		if y == p.Height()-1 && y < len(lines)-1 {
			l = line(l, u.say(cell.Body, " "), line(lines[y+1:]...)).cut(p.Width(), u.glyphs.Ellipsis)
		}
		l.draw(p, 0, y)
	}
}
