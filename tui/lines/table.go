package lines

import (
	"strings"

	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/page"
	"github.com/rooftop-dev/rooftop/engine/stat"
	"github.com/rooftop-dev/rooftop/tui/cell"
)

// Width of a bar in cells.
const (
	minBar = 8
	maxBar = 30
)

// grid is the layout of a table.
type grid struct {
	t     *page.Table
	kept  []int // columns shown
	rows  [][]page.Cell
	texts [][]string // by column of the table, the heading first
	cells []int      // width of each column of the table
	gap   int
}

func (s *formatter) table(t *page.Table) {
	rows, rest := t.Shown(s.Everything)
	g := &grid{t: t, rows: rows, texts: make([][]string, len(t.Columns)), cells: make([]int, len(t.Columns))}
	known := t.ShownColumns(rows)
	for _, c := range known {
		s.measure(g, c)
	}
	room := s.Width - indent
	natural := func(columns []int) int {
		n := 0
		for _, c := range columns {
			n += g.cells[c]
		}
		return n
	}
	g.kept, g.gap = t.Fit(known, room, natural)
	if spare := room - natural(g.kept) - g.gap*(len(g.kept)-1); spare > 0 {
		for _, c := range g.kept {
			if t.Columns[c].Bar {
				g.cells[c] = min(maxBar, g.cells[c]+spare)
			}
		}
	}
	if len(rows) > 0 {
		s.legend(g)
		s.rows(g, room)
	}
	if rest != "" {
		s.paragraph(indent, indent, page.Toned(page.Muted, rest+" (-v)"))
	}
}

// measure fills the texts and the width of a column.
func (s *formatter) measure(g *grid, c int) {
	column := &g.t.Columns[c]
	if column.Bar {
		g.texts[c], g.cells[c] = make([]string, len(g.rows)+1), minBar
		return
	}
	head := s.clean(column.Head)
	if g.t.Sorted == c+1 {
		head = s.Mark[0] + head + s.Mark[1]
	}
	g.texts[c], g.cells[c] = []string{head}, cell.Width(head)
	for _, row := range g.rows {
		text := s.clean(row[c].Text)
		if column.Clip {
			text = s.clean(Clip(text, max(12, min(maxName, s.Width/3))))
		}
		g.texts[c] = append(g.texts[c], text)
		g.cells[c] = max(g.cells[c], cell.Width(text))
	}
}

// maxName is the maximum width of a name that may be clipped, in cells.
const maxName = 30

// legend explains the parts of stacked bars.
func (s *formatter) legend(g *grid) {
	for _, c := range g.kept {
		var text page.Text
		for i, name := range g.t.Columns[c].Legend {
			sign := page.Toned(g.t.Columns[c].Tone, Parts(s.ASCII)[i])
			text = page.Join(text, sign, page.Toned(page.Muted, figure.NBSP+strings.ReplaceAll(name, " ", figure.NBSP)+"  "))
		}
		if text != nil {
			s.paragraph(indent, indent, text)
		}
	}
}

// rows writes the heading and the rows. If the other columns leave the last one less than a third
// of the width, rows are written as paragraphs.
func (s *formatter) rows(g *grid, room int) {
	last, lead := g.kept[len(g.kept)-1], 0
	for _, c := range g.kept[:len(g.kept)-1] {
		lead += g.cells[c] + g.gap
	}
	first := 0
	if g.headless() {
		first = 1
	}
	if lead+g.cells[last] <= room {
		s.add(len(g.rows)+1-first, func(i int) page.Text { return s.row(g, first+i, g.kept) })
		return
	}
	flow := room-lead < max(room/3, 12)
	g.cells[last] = room - lead
	for i := first; i <= len(g.rows); i++ {
		switch text := s.field(g, last, i); {
		case flow:
			s.flow(g, i)
		case lead+cell.Width(text.Text) <= room:
			s.line(0, s.row(g, i, g.kept))
		default:
			wrapped := s.truncate(Wrap(page.Text{text}, room-lead, room-lead), g.t.Columns[last].MaxLines, room-lead)
			before := s.row(g, i, g.kept[:len(g.kept)-1])
			s.line(0, page.Join(before, spaces(indent+lead-Width(before)), wrapped[0]))
			for _, l := range wrapped[1:] {
				s.line(indent+lead, l)
			}
		}
	}
}

// row writes a row in columns. Row 0 is the heading.
func (s *formatter) row(g *grid, i int, columns []int) page.Text {
	line := make(page.Text, 0, 2*len(columns))
	pad := indent
	for _, c := range columns {
		text := s.field(g, c, i)
		n := cell.Width(text.Text)
		spare := g.cells[c] - n
		left := g.t.Columns[c].Left || g.t.Columns[c].Bar
		if !left {
			pad, spare = pad+spare, 0
		}
		if n > 0 {
			line = append(line, page.Span{Text: blanks(pad)}, text)
			pad = 0
		}
		pad += spare + g.gap
	}
	return line
}

// flow writes a row as a paragraph.
func (s *formatter) flow(g *grid, i int) {
	var line page.Text
	for _, c := range g.kept {
		text := s.field(g, c, i)
		if len(line) > 0 && text.Text != "" {
			line = append(line, page.Span{Text: " "})
		}
		line = append(line, text)
	}
	most := 0
	if n := g.t.Columns[g.kept[len(g.kept)-1]].MaxLines; n > 0 {
		most = n + 1
	}
	for j, l := range s.truncate(Wrap(line, s.Width-indent, s.Width-2*indent), most, s.Width-2*indent) {
		s.line(indent+min(j, 1)*indent, l)
	}
}

// headless reports whether no visible column has a heading.
func (g *grid) headless() bool {
	for _, c := range g.kept {
		if g.texts[c][0] != "" {
			return false
		}
	}
	return true
}

// field returns the text in a row of a column. Row 0 is the heading.
func (s *formatter) field(g *grid, c, row int) page.Span {
	column := &g.t.Columns[c]
	if row == 0 {
		return page.Span{Text: g.texts[c][0], Tone: page.Muted}
	}
	x := &g.rows[row-1][c]
	tone := x.Tone
	if tone == page.Body {
		tone = column.Tone
	}
	if column.Bar && tone == page.Accent {
		tone = s.Bars
	}
	text := g.texts[c][row]
	switch {
	case column.Bar && x.Parts != nil:
		text = s.stacked(x.Parts, g.cells[c])
	case column.Bar:
		text = s.bar(x.From, x.Value, g.cells[c])
	}
	return page.Span{Text: text, Tone: tone}
}

// bar draws a share from 0 to 1. A positive share gets at least the smallest mark.
func (s *formatter) bar(from float64, share stat.Opt, cells int) string {
	v := share.Finite()
	if !v.OK || v.V <= 0 {
		return ""
	}
	if from > 0 { // whole cells, so that consecutive bars meet
		start := min(max(int(from*float64(cells)+0.5), 0), cells-1)
		end := min(max(int((from+v.V)*float64(cells)+0.5), start+1), cells)
		if v.V*float64(cells) < 0.5 { // less than a whole cell represents
			return strings.Repeat(figure.NBSP, start) + smallest(s.ASCII)
		}
		return strings.Repeat(figure.NBSP, start) + strings.Repeat(Parts(s.ASCII)[0], end-start)
	}
	eighths := max(1, int(min(1, v.V)*float64(cells*8)+0.5))
	if s.ASCII {
		return strings.Repeat("#", max(1, (eighths+4)/8))
	}
	parts := [...]string{"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"}
	return strings.Repeat("█", eighths/8) + parts[eighths%8]
}

// smallest returns the smallest mark of a bar.
func smallest(ascii bool) string {
	if ascii {
		return "|"
	}
	return "▏"
}

// Parts returns the characters for the three parts of a stacked bar.
func Parts(ascii bool) [3]string {
	if ascii {
		return [3]string{"#", "=", "."}
	}
	return [3]string{"█", "░", "·"}
}

// stacked draws parts of a whole side by side. Unknown parts get no cells.
func (s *formatter) stacked(parts []stat.Opt, cells int) string {
	marks := Parts(s.ASCII)
	var b strings.Builder
	at, drawn := 0.0, 0
	for i, part := range parts {
		v := part.Finite()
		if !v.OK || v.V <= 0 {
			continue
		}
		at += v.V
		end := min(cells, int(min(at, 1)*float64(cells)+0.5))
		b.WriteString(strings.Repeat(marks[i], max(0, end-drawn)))
		drawn = max(drawn, end)
	}
	return b.String()
}
