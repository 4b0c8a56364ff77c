package trace

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/engine/page"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Default numbers of rows in tables of operators.
const (
	mostSteps = 8
	mostKinds = 6
)

type operator = *optrace.OperatorRow

// operatorFields returns the columns of every table of operators, after the name, for reports
// and documents.
func operatorFields(most stat.Opt) []page.Field[operator] {
	fields := []page.Field[operator]{
		page.Bars(func(o operator) stat.Opt { return o.Share.Finite().Div(most) }).Ranked(3),
		page.Right("share", page.Body, func(o operator) page.Cell { return page.Share(o.Share) }),
		page.Right("each", page.Body, func(o operator) page.Cell { return page.Elapsed(o.Each.Mean) }),
		page.Right("each p95", page.Body, func(o operator) page.Cell { return page.Elapsed(o.Each.P95) }).Ranked(11),
		page.Right("count", page.Body, func(o operator) page.Cell { return page.Integer(o.Count) }).Ranked(10),
		page.Right("time", page.Body, func(o operator) page.Cell { return page.Elapsed(o.Time) }).Ranked(9),
		page.Right("GB/s", page.Body, func(o operator) page.Cell { return rate(o.BytesRate, o.Estimated) }).Ranked(2),
		page.Right("GFLOP/s", page.Body, func(o operator) page.Cell { return rate(o.FlopsRate, o.Estimated) }).Ranked(4),
		page.Right("of"+figure.NBSP+"peak", page.Body, shareOfPeak).Ranked(5),
		page.Right("waits each", page.Body, func(o operator) page.Cell { return forEach(o.Sync, o.Count) }).Ranked(12),
		page.Right("off CPU each", page.Body, func(o operator) page.Cell { return forEach(o.Off, o.Count) }).Ranked(13),
		page.Right("IPC", page.Body, func(o operator) page.Cell { return page.Ratio(o.IPC) }).Ranked(7),
		page.Right("LLC/instr", page.Body, func(o operator) page.Cell { return page.Ratio(o.MissRate) }).Ranked(8),
		page.Right("bound", page.Body, bound).Ranked(1),
	}
	for i := range fields {
		c := &fields[i].Column
		c.Left = c.Bar || c.Head == "bound"
		c.Sort = slices.Contains([]string{"time", "count", "each", "GB/s", "GFLOP/s", "of" + figure.NBSP + "peak"}, c.Head)
	}
	return fields
}

// forEach returns a cell of the time per operator.
func forEach(t optrace.OptTime, n int64) page.Cell {
	if n <= 0 || !t.OK {
		return page.Words("")
	}
	return page.Amount(stat.Some((t.D / time.Duration(n)).Seconds()), "s")
}

// shareOfPeak returns a cell of the share of the machine peak that an operator reached. A rate above the peak,
// from operands in caches or instructions that were not measured, is not a share of it.
func shareOfPeak(o operator) page.Cell {
	c := page.Share(o.OfPeak)
	if c.Value.OK && c.Value.V > 1 {
		c.Text = "above" + figure.NBSP + "it"
	}
	return c
}

// bound returns a cell of what limits an operator. Estimates are marked.
func bound(o operator) page.Cell {
	switch {
	case o.Bound == optrace.BoundUnknown:
		return page.Words("")
	case strings.Contains(o.BoundFrom, "est"):
		return page.Words(string(o.Bound) + figure.NBSP + "(est)")
	}
	return page.Words(string(o.Bound))
}

// namedFields returns the columns of a table of operators with their names.
func namedFields(rows []operator, head string, name func(operator) string, more ...page.Field[operator]) []page.Field[operator] {
	most := stat.None
	for _, o := range rows {
		most = most.Max(o.Share.Finite())
	}
	fields := []page.Field[operator]{page.Name(head, name)}
	fields = append(fields, operatorFields(most)...)
	return slices.Insert(fields, len(fields)-1, more...) // the bound stays last
}

// operatorTable returns a table of operators of one phase.
func operatorTable(rows []operator, head string, name func(operator) string, more ...page.Field[operator]) *page.Table {
	t := page.Tabulate(rows, namedFields(rows, head, name, more...))
	share := slices.IndexFunc(t.Columns, func(c page.Column) bool { return c.Head == "share" })
	t.OmittedText = func(left [][]page.Cell) string {
		rest := stat.None
		for _, row := range left {
			rest = rest.Plus(row[share].Value)
		}
		return "and " + figure.Counted(len(left), "row") + " more, " + figure.Show(rest, "ratio")
	}
	return t
}

// typeField returns the column of the type of an operator's weights.
func typeField() page.Field[operator] {
	return page.Left("type", page.Body, func(o operator) string { return o.Type }).Ranked(6)
}

// operatorSections returns the operators of a phase: by computed tensor, then by kind of operator.
func (b *builder) operatorSections(phase string) []page.Section {
	note := cmp.Or(phase, unknownPhase) + "; share of the time of its operators"
	var out []page.Section
	if rows := ofPhase(b.s.Steps, phase); len(rows) > 0 {
		t := operatorTable(rows, "", tensorNames(rows), typeField())
		t.Limit = mostSteps
		out = append(out, page.Section{ID: "operators-" + phase, Title: "Operators by tensor", Note: note, Nodes: []page.Node{t}})
	}
	if rows := ofPhase(b.s.Kinds, phase); len(rows) > 0 {
		t := operatorTable(rows, "", kindName)
		t.Limit = mostKinds
		out = append(out, page.Section{ID: "kinds-" + phase, Title: "Operators by kind", Note: note, Nodes: []page.Node{t}})
	}
	return out
}

// ofPhase returns the operators of a phase, those with the most time first.
func ofPhase(rows []optrace.OperatorRow, phase string) []operator {
	var out []operator
	for i := range rows {
		if rows[i].Phase == phase {
			out = append(out, &rows[i])
		}
	}
	slices.SortStableFunc(out, func(a, b operator) int { return cmp.Compare(b.Time, a.Time) })
	return out
}

// kindName returns GGML's name of an operator, with its function and the type of weights.
func kindName(o *optrace.OperatorRow) string {
	return cmp.Or(strings.Join(strings.Fields(o.Op+" "+o.Sub+" "+o.Type), " "), "(name withheld)")
}

// stepName returns the name of what an operator computes, or else its kind.
func stepName(o operator) string { return cmp.Or(o.Name, kindName(o)) }

// tensorNames returns a function that names rows by what they compute, adding the operator if several rows
// compute the same.
func tensorNames(rows []operator) func(operator) string {
	counts := map[string]int{}
	for _, o := range rows {
		counts[stepName(o)]++
	}
	return func(o operator) string {
		if counts[stepName(o)] > 1 && !strings.HasPrefix(o.Op, "MUL_MAT") && o.Op != "" {
			return stepName(o) + " " + o.Op
		}
		return stepName(o)
	}
}
