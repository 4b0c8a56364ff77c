package lines

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/page"
	"github.com/rooftop-dev/rooftop/engine/stat"
	"github.com/rooftop-dev/rooftop/tui/cell"
)

// gutter is the number of cells left of a lane of levels, including its border.
const gutter = 20

// levels draws lanes of levels over a shared time axis in seconds.
func (s *formatter) levels(x *page.Timeline) {
	columns := s.Width - gutter - 1
	if columns < 1 || x.Total <= 0 {
		return
	}
	s.moments(x, columns)
	for i := range x.Lanes {
		if l := &x.Lanes[i]; l.Level != nil {
			s.levelLane(l, columns)
		}
	}
	s.secondsAxis(x.Total, columns)
	step := x.Total / time.Duration(max(1, columns))
	s.paragraph(gutter, gutter, page.Toned(page.Muted, "a column is "+figure.Duration(step)))
}

// moments writes the labels of moments above the lanes. The last is at the right edge.
func (s *formatter) moments(x *page.Timeline, columns int) {
	sign := s.clean("▼")
	line := make([]rune, 0, columns)
	pad := func(n int) {
		for len(line) < n {
			line = append(line, ' ')
		}
	}
	for i, m := range x.Moments {
		at := min(max(int(float64(m.At)/float64(x.Total)*float64(columns)), 0), columns-1)
		label := []rune(strings.ReplaceAll(s.clean(m.Text), figure.NBSP, " "))
		room := columns
		if i+1 < len(x.Moments) {
			room -= len([]rune(x.Moments[i+1].Text)) + 4
		}
		switch {
		case at+2+len(label) <= room:
			pad(at)
			line = append(append(line, []rune(sign+" ")...), label...)
		case at-1-len(label) >= len(line):
			pad(at - 1 - len(label))
			line = append(append(line, label...), []rune(" "+sign)...)
		case at >= len(line):
			pad(at)
			line = append(line, []rune(sign)...)
		}
	}
	if len(line) > 0 {
		s.line(gutter, page.Toned(page.Accent, string(line)))
	}
}

// levelLane draws one lane, with its name and scale at the left.
func (s *formatter) levelLane(l *page.Lane, columns int) {
	values := l.Level.Values(columns)
	largest := 0.0
	for _, v := range values {
		largest = max(largest, v.Or(0))
	}
	full, scale := l.Level.Scale(largest)
	for y := range l.Level.Rows {
		var b strings.Builder
		for _, v := range values {
			b.WriteString(s.levelAt(v.Times(1/full), y, l.Level.Rows))
		}
		name, top := "", ""
		switch {
		case l.Level.Rows == 1:
			name = l.Label + ", " + l.Note
		case y == 0:
			name, top = l.Label, scale
		case y == 1:
			name = l.Note
		}
		if y == l.Level.Rows-1 && l.Level.Rows > 2 {
			top = "0"
		}
		name, top = s.clean(name), s.clean(top)
		room := gutter - indent - 1 - cell.Width(top)
		if cell.Width(name) > room {
			name, _ = cell.Split(name, room)
		}
		gap := strings.Repeat(" ", max(0, room-cell.Width(name)-1)) + top + " "
		if room-cell.Width(name) <= 0 {
			gap = top
		}
		s.line(indent, page.Join(page.Toned(page.Muted, name+gap+s.clean("│")), page.Toned(l.Level.Tone, b.String())))
	}
}

// levelAt returns what row y, counted from the top, shows of a value. A measured zero has the
// lowest level; it is not a gap.
func (s *formatter) levelAt(v stat.Opt, y, rows int) string {
	if !v.OK {
		return " "
	}
	const steps = 8                                                       // levels per row
	n := int(math.Ceil(min(1, max(0, v.V))*float64(rows*steps-1) - 1e-9)) // a full lane does not touch the one above
	if rows == 1 {
		n = steps
	}
	n = max(1, n) - (rows-1-y)*steps
	if n <= 0 {
		return " "
	}
	return s.level(stat.Some(float64(min(n, steps)) / steps))
}

// secondsAxis draws a time axis with ticks at round seconds.
func (s *formatter) secondsAxis(whole time.Duration, columns int) {
	total := whole.Seconds()
	step := Nice(total / float64(max(1, columns/9)))
	corner, line, tick := "└", "─", "┬"
	if s.ASCII {
		corner, line, tick = "+", "-", "+"
	}
	rule := strings.Split(strings.Repeat(line, columns), "")
	labels := []rune(strings.Repeat(" ", columns))
	for i := 0; float64(i)*step <= total*(1+1e-9); i++ {
		at := min(int(float64(i)*step/total*float64(columns)), columns-1)
		label := strconv.FormatFloat(float64(i)*step, 'g', 6, 64)
		from := min(max(at-len(label)/2, 0), columns-len(label))
		if i == 0 {
			label, from = "0 s", 0
		}
		if from >= 0 {
			rule[at] = tick
			copy(labels[from:], []rune(label))
		}
	}
	s.line(gutter-1, page.Toned(page.Muted, corner+strings.Join(rule, "")))
	s.line(gutter, page.Toned(page.Muted, string(labels)))
}
