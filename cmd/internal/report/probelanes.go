package report

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/stat"
	"github.com/rooftop-dev/rooftop/tui/chart"
)

// marks names moments above the lanes.
func (r *probePage) marks(a axisOf) {
	type mark struct {
		at   time.Duration
		text string
	}
	var list []mark
	first := time.Duration(math.MaxInt64)
	for i := range r.c.Requests {
		if k := r.c.Requests[i].Chunks; len(k) > 0 {
			first = min(first, k[0].At)
		}
	}
	if first < math.MaxInt64 {
		list = append(list, mark{first, "first token " + shownTime(first-r.c.Begin)})
	}
	if len(r.c.Requests) > 0 {
		list = append(list, mark{r.c.End, "end " + shownTime(r.c.Span())})
	}
	if len(list) == 0 {
		return
	}
	sign := r.span(accent, "▼").s
	line := make([]rune, 0, a.columns)
	pad := func(n int) {
		for len(line) < n {
			line = append(line, ' ')
		}
	}
	for i, m := range list {
		at := min(max(a.cell(m.at), 0), a.columns-1)
		label := []rune(strings.ReplaceAll(r.span(body, m.text).s, nbsp, " "))
		room := a.columns
		if i+1 < len(list) { // the end and its label stand at the right edge
			room -= len([]rune(list[i+1].text)) + 4
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
	r.raw(laneGutter, text{{string(line), accent}})
}

// lane draws one lane, its name and scale at the left.
func (r *probePage) lane(l *lane) {
	levels := []string{"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"}
	wall := "│"
	if r.o.ASCII {
		levels, wall = []string{"_", ".", ":", "-", "=", "+", "*", "#"}, "|"
	}
	for y := range l.rows {
		var b strings.Builder
		for _, v := range l.values {
			b.WriteString(l.glyph(v, y, levels))
		}
		name, top := "", ""
		switch {
		case l.rows == 1:
			name, top = l.name+", "+l.unit, ""
		case y == 0:
			name, top = l.name, l.top()
		case y == 1:
			name = l.unit
		}
		if y == l.rows-1 && l.rows > 2 {
			top = "0"
		}
		r.laneRow(name, top, wall, b.String(), l.tone)
	}
}

// laneRow writes one row behind its label and its scale.
func (r *probePage) laneRow(name, top, wall, row string, t tone) {
	name, top = r.span(body, name).s, r.span(body, top).s
	if room := laneGutter - indent - 1 - width(top); width(name) > room {
		name = fit(name, room)
	}
	gap := laneGutter - indent - 1 - width(name) - width(top)
	r.raw(indent, text{{name, muted}, {strings.Repeat(" ", max(0, gap-1)) + top, muted}, {strings.Repeat(" ", min(1, gap)) + wall, muted}, {row, t}})
}

// top is the label of the scale's end.
func (l *lane) top() string {
	switch {
	case l.marks:
		return ""
	case l.scale != "":
		return figure.Show(stat.Some(l.hi), l.scale)
	}
	return figure.Count(l.hi)
}

// glyph is what row y, from the top, shows of a value. A measured zero is the lowest
// level: it is not a gap.
func (l *lane) glyph(v stat.Opt, y int, levels []string) string {
	if !v.OK {
		return " "
	}
	if l.marks {
		return levels[len(levels)-1]
	}
	per := len(levels)
	level := int(math.Ceil(min(1, max(0, v.V/l.hi))*float64(l.rows*per-1) - 1e-9)) // a full lane does not touch the one above
	level = max(1, level) - (l.rows-1-y)*per
	if level <= 0 {
		return " "
	}
	return levels[min(level, per)-1]
}

// axis draws the time axis with round seconds.
func (r *probePage) axis(a axisOf) {
	total := (a.to - a.from).Seconds()
	step := chart.Nice(total / float64(max(1, a.columns/9)))
	corner, line, tick := "└", "─", "┬"
	if r.o.ASCII {
		corner, line, tick = "+", "-", "+"
	}
	rule := strings.Split(strings.Repeat(line, a.columns), "")
	labels := []rune(strings.Repeat(" ", a.columns))
	for i := 0; float64(i)*step <= total*(1+1e-9); i++ {
		at := min(int(float64(i)*step/total*float64(a.columns)), a.columns-1)
		label := strconv.FormatFloat(float64(i)*step, 'g', 6, 64)
		if i == 0 {
			label = "0 s"
		}
		from := min(max(at-len(label)/2, 0), a.columns-len(label))
		if i == 0 {
			from = 0
		}
		if from < 0 {
			continue
		}
		rule[at] = tick
		copy(labels[from:], []rune(label))
	}
	r.raw(laneGutter-1, text{{corner + strings.Join(rule, ""), muted}})
	r.raw(laneGutter, text{{string(labels), muted}})
}
