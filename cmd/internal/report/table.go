package report

import "strings"

// cell is one field of a table.
type cell struct {
	t     text
	right bool // aligned to the right
}

// table is rows of aligned columns, two cells apart. The last column takes the
// rest of the line and wraps there.
type table struct {
	rows [][]cell
	gap  int // cells between columns; 0 is 2
}

func (t *table) add(cells ...cell) { t.rows = append(t.rows, cells) }

func (t *table) between() int {
	if t.gap > 0 {
		return t.gap
	}
	return 2
}

// columns returns the widths of the columns, without rows of a single cell.
func (t *table) columns() []int {
	var widths []int
	for _, row := range t.rows {
		if len(row) == 1 {
			continue
		}
		for i, c := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], c.t.width())
		}
	}
	return widths
}

// natural returns the width of the table where nothing wraps.
func (t *table) natural() int {
	n := 0
	for _, w := range t.columns() {
		n += w + t.between()
	}
	n -= t.between()
	for _, row := range t.rows {
		if len(row) == 1 {
			n = max(n, row[0].t.width())
		}
	}
	return max(n, 0)
}

// lines lays the table out in a width: a list of lines, none wider. Where the
// fixed columns leave less than a third for the last one, rows are flowed as
// paragraphs instead.
func (t *table) lines(limit int) []text {
	widths := t.columns()
	lead := 0
	for _, w := range widths[:max(0, len(widths)-1)] {
		lead += w + t.between()
	}
	last := 0
	if len(widths) > 0 {
		last = widths[len(widths)-1]
	}
	flow := lead+last > limit && limit-lead < max(limit/3, 12)
	var out []text
	for _, row := range t.rows {
		switch {
		case len(row) == 1:
			out = append(out, wrap(row[0].t, limit, limit)...)
		case flow:
			out = append(out, flowed(row, limit)...)
		default:
			out = append(out, t.aligned(row, widths, lead, limit)...)
		}
	}
	return out
}

func (t *table) aligned(row []cell, widths []int, lead, limit int) []text {
	var line text
	for i, c := range row[:len(row)-1] {
		pad := span{strings.Repeat(" ", widths[i]-c.t.width()), body}
		if c.right {
			line = append(append(line, pad), c.t...)
		} else {
			line = append(append(line, c.t...), pad)
		}
		line = append(line, span{strings.Repeat(" ", t.between()), body})
	}
	final := row[len(row)-1]
	if i := len(row) - 1; i < len(widths)-1 { // a short row: its last cell is a column like others
		lead = line.width()
	} else if pad := min(widths[i], limit-lead) - final.t.width(); final.right && pad > 0 {
		line = append(line, span{strings.Repeat(" ", pad), body})
		lead += pad
	}
	wrapped := wrap(final.t, limit-lead, limit-lead)
	out := []text{append(line, wrapped[0]...)}
	for _, l := range wrapped[1:] {
		out = append(out, append(text{{strings.Repeat(" ", lead), body}}, l...))
	}
	return out
}

func flowed(row []cell, limit int) []text {
	var t text
	for _, c := range row {
		if len(c.t) > 0 {
			t = append(append(t, c.t...), span{" ", body})
		}
	}
	lines := wrap(t, limit, limit-2)
	for i := range lines[1:] {
		lines[i+1] = append(text{{"  ", body}}, lines[i+1]...)
	}
	return lines
}

// table writes t behind an indent.
func (p *page) table(indent int, t *table) {
	for _, l := range t.lines(p.width - indent) {
		p.raw(indent, l)
	}
}

// beside writes blocks of lines next to each other, each column as wide as
// given.
func (p *page) beside(indent int, widths []int, blocks ...[]text) {
	height := 0
	for _, b := range blocks {
		height = max(height, len(b))
	}
	for y := range height {
		var line text
		for i, b := range blocks {
			var t text
			if y < len(b) {
				t = b[y]
			}
			line = append(line, t...)
			if i < len(blocks)-1 {
				line = append(line, span{strings.Repeat(" ", max(0, widths[i]-t.width())), body})
			}
		}
		p.raw(indent, line)
	}
}
