package page

import (
	"cmp"
	"slices"
	"time"

	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Table is a table of aligned columns.
type Table struct {
	Columns []Column
	Rows    [][]Cell
	// Limit is the number of rows shown unless the output is verbose; 0 shows all.
	// OmittedText returns the sentence about the rows that were left out.
	Limit       int
	Sampled     []int // indexes of the rows shown under Limit; nil shows the first ones
	OmittedText func(left [][]Cell) string
	// Sorted is the column that the rows are sorted by, counted from 1; 0 if the reader cannot
	// choose.
	Sorted int
	// KeepEmpty keeps columns without a value, for tables that are updated.
	KeepEmpty bool
}

// Column describes one column of a table.
type Column struct {
	Head string
	Left bool // left-aligned text
	// Rank orders the columns to drop on a narrow page: the largest first, 0 never. A column
	// with a rank above 0 is also dropped when no row has a value for it.
	Rank int
	Tone Tone // tone of cells without one
	Bar  bool // drawn as bars on terminals; documents leave it out, as another column has the figure
	// Legend names the parts of stacked bars: working, waiting, off CPU.
	Legend   []string
	Sort     bool // the reader may sort by this column
	Clip     bool // text may be shortened in the middle, as for names
	MaxLines int  // of a cell in the last column; 0 is unlimited
}

// Cell is one cell of a table.
type Cell struct {
	Text  string
	Value stat.Opt // raw value: the sort key and the length of a bar
	From  float64  // where a bar begins, 0 to 1
	Parts []stat.Opt
	Tone  Tone
}

// Field is a column with the function that returns its cell for a row.
type Field[R any] struct {
	Column
	Cell func(row R) Cell
}

// Left returns a left-aligned column of text. An empty text is shown as absent.
func Left[R any](head string, tone Tone, text func(R) string) Field[R] {
	return Field[R]{Column{Head: head, Left: true, Tone: tone}, func(r R) Cell { return Words(text(r)) }}
}

// Name returns a column of names, which may be shortened in the middle.
func Name[R any](head string, text func(R) string) Field[R] {
	f := Left(head, Strong, text)
	f.Clip = true
	return f
}

// Notes returns a left-aligned, muted column. An empty text stays empty.
func Notes[R any](head string, text func(R) string) Field[R] {
	return Field[R]{Column{Head: head, Left: true, Tone: Muted}, func(r R) Cell { return Cell{Text: text(r)} }}
}

// Right returns a right-aligned column of figures.
func Right[R any](head string, tone Tone, cell func(R) Cell) Field[R] {
	return Field[R]{Column{Head: head, Tone: tone}, cell}
}

// Bars returns a column of bars for shares from 0 to 1. It is dropped on a narrow page.
func Bars[R any](share func(R) stat.Opt) Field[R] {
	return Field[R]{Column{Rank: 1, Bar: true, Tone: Accent}, func(r R) Cell { return Bar(share(r)) }}
}

// Ranked returns the field with a rank; see [Column].
func (f Field[R]) Ranked(rank int) Field[R] {
	f.Rank = rank
	return f
}

// Tabulate returns a table with a row of cells for each of rows.
func Tabulate[R any](rows []R, fields []Field[R]) *Table {
	t := &Table{Columns: make([]Column, len(fields)), Rows: make([][]Cell, len(rows))}
	for i, f := range fields {
		t.Columns[i] = f.Column
	}
	for i, row := range rows {
		t.Rows[i] = make([]Cell, len(fields))
		for j, f := range fields {
			t.Rows[i][j] = f.Cell(row)
		}
	}
	return t
}

// AtMost limits the table to n rows unless the output is verbose, and returns it. noun names
// the rows, such as "request".
func (t *Table) AtMost(n int, noun string) *Table {
	t.Limit, t.OmittedText = n, func(left [][]Cell) string { return "and " + figure.Counted(len(left), noun) + " more" }
	return t
}

// Words returns a cell of text; "" is shown as absent.
func Words(s string) Cell { return Cell{Text: cmp.Or(s, figure.Absent)} }

// Amount returns a cell of a quantity in a unit known to [figure.Show].
func Amount(o stat.Opt, unit string) Cell {
	o = o.Finite()
	return Cell{Text: figure.Show(o, unit), Value: o}
}

// Share returns a cell of a ratio as a percentage.
func Share(o stat.Opt) Cell { return Amount(o, "ratio") }

// Elapsed returns a cell of a duration; zero and below is shown as absent.
func Elapsed(d time.Duration) Cell {
	if d <= 0 {
		return Words("")
	}
	return Amount(stat.Some(d.Seconds()), "s")
}

// Ratio returns a cell of a number without a unit, with three significant digits.
func Ratio(o stat.Opt) Cell {
	o = o.Finite()
	if !o.OK {
		return Words("")
	}
	return Cell{Text: figure.Significant(o.V), Value: o}
}

// Integer returns a cell of an integer.
func Integer[N ~int | ~int32 | ~int64 | ~uint32](n N) Cell {
	return Cell{Text: figure.Whole(float64(n)), Value: stat.Some(float64(n))}
}

// Bar returns a cell drawn as a bar of a share from 0 to 1.
func Bar(share stat.Opt) Cell { return Cell{Value: share.Finite()} }

// SortRows sorts rows by the field: figures with the largest first and absent ones last, texts in alphabetical order.
func (f Field[R]) SortRows(rows []R) {
	slices.SortStableFunc(rows, func(a, b R) int {
		switch x, y := f.Cell(a), f.Cell(b); {
		case x.Value.OK && y.Value.OK:
			return cmp.Compare(y.Value.V, x.Value.V)
		case x.Value.OK:
			return -1
		case y.Value.OK:
			return 1
		default:
			return cmp.Compare(x.Text, y.Text)
		}
	})
}

// Shown returns the rows to show, and a sentence about those left out, or "".
func (t *Table) Shown(everything bool) (rows [][]Cell, omitted string) {
	if everything || t.Limit <= 0 || len(t.Rows) <= t.Limit {
		return t.Rows, ""
	}
	if t.Sampled != nil {
		var left [][]Cell
		for i, row := range t.Rows {
			if slices.Contains(t.Sampled, i) {
				rows = append(rows, row)
			} else {
				left = append(left, row)
			}
		}
		return rows, t.OmittedText(left)
	}
	return t.Rows[:t.Limit], t.OmittedText(t.Rows[t.Limit:])
}

// ShownColumns returns the indexes of the columns to show: those with a value in one of rows, and
// those that are always kept.
func (t *Table) ShownColumns(rows [][]Cell) []int {
	var list []int
	for i, c := range t.Columns {
		hasValue := func(row []Cell) bool {
			return row[i].Text != "" && row[i].Text != figure.Absent || (c.Bar && (row[i].Value.OK || row[i].Parts != nil))
		}
		if c.Rank == 0 || t.KeepEmpty || slices.ContainsFunc(rows, hasValue) {
			list = append(list, i)
		}
	}
	return list
}

// Fit returns those of columns that fit into room cells, and the gap between them: 2 cells, or
// 1 where that saves a column. natural returns the width of columns without gaps. Columns of
// rank 0 are kept even when they do not fit.
func (t *Table) Fit(columns []int, room int, natural func(columns []int) int) (kept []int, gap int) {
	columns = slices.Clone(columns)
	for {
		for gap = 2; gap > 0; gap-- {
			if natural(columns)+gap*(len(columns)-1) <= room {
				return columns, gap
			}
		}
		worst := 0
		for _, c := range columns {
			worst = max(worst, t.Columns[c].Rank)
		}
		if worst == 0 {
			return columns, 1
		}
		columns = slices.DeleteFunc(columns, func(c int) bool { return t.Columns[c].Rank == worst })
	}
}

// Spread limits the table to n evenly spaced rows, 2 at least, including the first and the last,
// unless the output is verbose, and returns it.
func (t *Table) Spread(n int, noun string) *Table {
	if len(t.Rows) <= n {
		return t
	}
	t.AtMost(n, noun)
	for i := range n {
		t.Sampled = append(t.Sampled, i*(len(t.Rows)-1)/(n-1))
	}
	return t
}
