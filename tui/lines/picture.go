package lines

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/page"
	"github.com/rooftop-dev/rooftop/engine/stat"
	"github.com/rooftop-dev/rooftop/tui/cell"
)

// maxValueCells is the maximum width of a value of a series, in cells.
const maxValueCells = 3

// strip is the layout of the values of a series.
type strip struct {
	column int  // where the values begin
	fold   int  // values per cell
	wide   int  // cells per value
	beside bool // notes are beside the values, not below
}

func (s *formatter) series(x *page.Series) {
	rows := slices.DeleteFunc(slices.Clone(x.Rows), func(r page.SeriesRow) bool { return r.Detail && !s.Everything })
	if len(rows) == 0 {
		return
	}
	at := s.strip(rows)
	for i := range rows {
		s.seriesRow(&rows[i], at)
	}
	s.ends(x, rows, at)
	if at.fold > 1 {
		s.paragraph(at.column, at.column, page.Toned(page.Muted, fmt.Sprintf("a column is the highest of %s", figure.Counted(at.fold, x.Noun))))
	}
}

// strip makes the values as wide as possible, with room for the notes beside them if there is
// enough.
func (s *formatter) strip(rows []page.SeriesRow) strip {
	at := strip{column: textColumn, fold: 1, wide: 1}
	most, notes := 1, 0
	for i := range rows {
		at.column = max(at.column, min(s.Width/2, indent+cell.Width(s.clean(rows[i].Label))+2))
		most = max(most, len(rows[i].Values))
		if rows[i].Note != "" {
			notes = max(notes, cell.Width(s.clean(rows[i].Note))+2)
		}
	}
	room := max(1, s.Width-at.column)
	at.beside = most+notes <= room
	if !at.beside {
		notes = 0
	}
	at.fold = (most + room - 1) / room
	if at.fold == 1 {
		at.wide = min(maxValueCells, max(1, (room-notes)/most))
	}
	return at
}

// seriesRow writes a row: its label, its levels, and its note, below if there is no room beside
// them.
func (s *formatter) seriesRow(r *page.SeriesRow, at strip) {
	label := s.safe(page.Toned(page.Muted, r.Label))
	if indent+Width(label) > at.column-2 {
		s.paragraph(indent, indent, label)
		label = nil
	}
	s.add(1, func(int) page.Text {
		line := page.Join(spaces(indent), label, spaces(at.column-indent-Width(label)))
		return append(line, s.heights(r, at)...)
	})
	if r.Note != "" && !at.beside {
		s.paragraph(at.column, at.column, page.Toned(page.Muted, r.Note))
	}
}

// heights returns the levels of a row and the note beside them.
func (s *formatter) heights(r *page.SeriesRow, at strip) page.Text {
	line := runs((len(r.Values)+at.fold-1)/at.fold, func(i int) (string, page.Tone) {
		v, tone := stat.None, s.Bars
		for j := i * at.fold; j < min(len(r.Values), (i+1)*at.fold); j++ {
			v = v.Max(r.Values[j].Finite())
			if r.Highlighted[j] {
				tone = page.Warn
			}
		}
		return strings.Repeat(s.level(v), at.wide), tone
	})
	if r.Note != "" && at.beside {
		line = page.Join(line, spaces(2), page.Toned(page.Body, s.clean(r.Note)))
	}
	return line
}

// runs joins n texts, with neighbours of the same tone in one span.
func runs(n int, cellAt func(i int) (string, page.Tone)) page.Text {
	var line page.Text
	var run strings.Builder
	for i := range n {
		text, tone := cellAt(i)
		if len(line) == 0 || line[len(line)-1].Tone != tone {
			line = append(line, page.Span{Tone: tone})
			run.Reset()
		}
		run.WriteString(text)
		line[len(line)-1].Text = run.String()
	}
	return line
}

// level returns the character for a share from 0 to 1, a space if it is unknown.
func (s *formatter) level(v stat.Opt) string {
	if !v.OK {
		return " "
	}
	levels := []string{"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"}
	if s.ASCII {
		levels = []string{"_", ".", ":", "-", "=", "+", "*", "#"}
	}
	n := len(levels)
	return levels[min(max(int((v.V-1e-9)*float64(n)), 0), n-1)]
}

// ends writes as many column names as fit below the columns, and marks below the columns that stand
// out.
func (s *formatter) ends(x *page.Series, rows []page.SeriesRow, at strip) {
	if len(x.Ends) == 0 {
		return
	}
	const apart = 4 // columns from one name to the next
	steps := [...]int{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000}
	step := steps[len(steps)-1]
	for _, n := range steps {
		if n*at.wide >= apart*at.fold {
			step = n
			break
		}
	}
	line := ""
	for i := 0; i < len(x.Ends); i += step {
		if place := i / at.fold * at.wide; place >= len(line) && at.column+place+len(x.Ends[i]) <= s.Width {
			line += strings.Repeat(" ", place-len(line)) + x.Ends[i] + " "
		}
	}
	s.line(at.column, page.Toned(page.Muted, strings.TrimRight(line, " ")))
	var marks []rune
	for i := range rows {
		for j, marked := range rows[i].Highlighted {
			place := j / at.fold * at.wide
			for marked && len(marks) <= place {
				marks = append(marks, ' ')
			}
			if marked {
				marks[place] = []rune(s.clean(page.Warn.Sign()))[0]
			}
		}
	}
	if marks != nil {
		s.line(at.column, page.Toned(page.Warn, string(marks)))
	}
}

// States of a lane in one column.
const (
	laneNone = iota
	laneBusy
	laneWait
	laneOff
	numLaneStates
)

// laneSigns returns the characters of the states, which differ without colour.
func laneSigns(ascii bool) [numLaneStates]string {
	if ascii {
		return [...]string{" ", "#", ".", "x"}
	}
	return [...]string{" ", "█", "░", "╳"}
}

func laneTones() [numLaneStates]page.Tone {
	return [...]page.Tone{page.Body, page.OK, page.Warn, page.Bad}
}

// timeline draws one line per lane, and a legend.
func (s *formatter) timeline(x *page.Timeline) {
	if len(x.Lanes) == 0 {
		return
	}
	signs, tones := laneSigns(s.ASCII), laneTones()
	var legend page.Text
	for i, state := range x.States {
		legend = page.Join(legend, page.Toned(tones[i+1], signs[i+1]), page.Toned(page.Muted, " "+strings.ReplaceAll(state, " ", figure.NBSP)+figure.NBSP+"  "))
	}
	column, notes := 0, 0
	for i := range x.Lanes {
		column = max(column, cell.Width(s.clean(x.Lanes[i].Label)))
		notes = max(notes, cell.Width(s.clean(x.Lanes[i].Note)))
	}
	column = min(indent+column+1+notes+2, s.Width/2)
	s.paragraph(indent, indent, legend)
	s.add(len(x.Lanes), func(i int) page.Text {
		l := &x.Lanes[i]
		label, note := s.clean(l.Label), s.clean(l.Note)
		between := column - 2 - indent - cell.Width(label) - cell.Width(note)
		states := laneColumns(l.Stretches(), x.Total, s.Width-column)
		return page.Join(spaces(indent), page.Toned(page.Muted, label), spaces(between), page.Toned(page.Body, note), spaces(2),
			runs(len(states), func(i int) (string, page.Tone) { return signs[states[i]], tones[states[i]] }))
	})
}

// offShare is the share of a column's time from which the column shows the thread off the CPU: that
// is rare, and worse than any other state.
const offShare = 0.25

// laneColumns returns the state of a lane in each of n columns.
func laneColumns(list []page.Stretch, whole time.Duration, n int) []int {
	if n <= 0 || whole <= 0 {
		return nil
	}
	covered := make([][numLaneStates]float64, n)
	add := func(state int, from, to time.Duration) {
		a, b := float64(from)/float64(whole)*float64(n), float64(to)/float64(whole)*float64(n)
		a, b = min(max(0, a), float64(n)), min(float64(n), b)
		for i := int(a); i < n && float64(i) < b; i++ {
			covered[i][state] += min(b, float64(i+1)) - max(a, float64(i))
		}
	}
	for i := range list {
		x := &list[i]
		if x.To <= x.From || x.From < 0 || x.From >= whole {
			continue
		}
		all := x.To - x.From
		wait := min(max(0, x.Wait), all)
		off := min(max(0, x.Off), all-wait)
		add(laneBusy, x.From, x.To-wait-off)
		add(laneOff, x.To-wait-off, x.To-wait)
		add(laneWait, x.To-wait, x.To)
	}
	out := make([]int, n)
	for i, c := range covered {
		seen := c[laneBusy] + c[laneWait] + c[laneOff]
		switch {
		case seen < 0.01:
			out[i] = laneNone
		case c[laneOff] >= offShare*seen:
			out[i] = laneOff
		case c[laneWait] > c[laneBusy]:
			out[i] = laneWait
		default:
			out[i] = laneBusy
		}
	}
	return out
}
