package report

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Rows of the tables of operators without -v.
const (
	mostSteps = 8
	mostKinds = 6
)

// operators lists what takes the time: by the tensor that is computed, then by kind,
// the phase with most time first.
func (r *tracePage) operators() {
	for _, phase := range phasesByTime(r.s) {
		r.operatorTable(phase, "by tensor", of(r.s.Steps, phase), mostSteps, stepName)
		r.operatorTable(phase, "by kind", of(r.s.Kinds, phase), mostKinds, kindName)
	}
}

// phasesByTime are the phases of operators, the one with most time first.
func phasesByTime(s *optrace.Summary) []string {
	times := map[string]time.Duration{}
	var names []string
	for _, rows := range [...][]optrace.OperatorRow{s.Kinds, s.Steps} {
		for i := range rows {
			if !slices.Contains(names, rows[i].Phase) {
				names = append(names, rows[i].Phase)
			}
		}
	}
	for i := range s.Kinds {
		times[s.Kinds[i].Phase] += s.Kinds[i].Time
	}
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(times[b], times[a]) })
	return names
}

// of are the rows of a phase, those with most time first.
func of(rows []optrace.OperatorRow, phase string) []*optrace.OperatorRow {
	var out []*optrace.OperatorRow
	for i := range rows {
		if rows[i].Phase == phase {
			out = append(out, &rows[i])
		}
	}
	slices.SortStableFunc(out, func(a, b *optrace.OperatorRow) int { return cmp.Compare(b.Time, a.Time) })
	return out
}

// stepName is what an operator computes, kindName what it does.
func stepName(o *optrace.OperatorRow) string { return cmp.Or(o.Name, kindName(o)) }
func kindName(o *optrace.OperatorRow) string {
	return cmp.Or(strings.TrimSpace(o.Op+" "+o.Sub), "operator without a name")
}

// distinct names rows: by what they compute, and by their operator too where several
// compute the same.
func distinct(rows []*optrace.OperatorRow) func(*optrace.OperatorRow) string {
	counts := map[string]int{}
	for _, o := range rows {
		counts[stepName(o)]++
	}
	return func(o *optrace.OperatorRow) string {
		if counts[stepName(o)] > 1 && !strings.HasPrefix(o.Op, "MUL_MAT") && o.Op != "" {
			return stepName(o) + " " + o.Op
		}
		return stepName(o)
	}
}

// longestName is the most cells that a name takes in a table: runtimes' names are much
// shorter.
const longestName = 30

// clipped is a name that fits in a table, its middle left out where it is long.
func clipped(s string, cells int) string {
	if width(s) <= cells {
		return s
	}
	runes := []rune(s)
	tail := ""
	for i := len(runes) - 1; i > 0 && width(string(runes[i:])) <= cells/2-1; i-- {
		tail = string(runes[i:])
	}
	return fit(s, cells-width(tail)-1) + "…" + tail
}

func (r *tracePage) operatorTable(phase, title string, rows []*optrace.OperatorRow, some int, name func(*optrace.OperatorRow) string) {
	if len(rows) == 0 {
		return
	}
	n := r.most(len(rows), some)
	if title == "by tensor" {
		name = distinct(rows)
	}
	r.section("Operators "+title, cmp.Or(phase, "unknown phase")+"; share of the time of its operators")
	r.grid(n, r.operatorColumns(rows[:n], name))
	rest := stat.None
	for _, o := range rows[n:] {
		rest = rest.Plus(finite(o.Share))
	}
	if n < len(rows) {
		r.line(indent, r.text(muted, "and "+plural(len(rows)-n, "row")+" more, "+percent(rest)+" (-v)"))
	}
}

// operatorColumns are the columns of a table of operators. What is left out first on a
// narrow page has the largest rank.
func (r *tracePage) operatorColumns(rows []*optrace.OperatorRow, name func(*optrace.OperatorRow) string) []column {
	cells := 8
	if r.width >= 100 {
		cells = 16
	}
	text := func(f func(*optrace.OperatorRow) string) func(int) string {
		return func(i int) string { return f(rows[i]) }
	}
	most := stat.None
	for _, o := range rows {
		most = most.Max(finite(o.Share))
	}
	perCount := func(i int, t optrace.OptTime, of int64) string {
		if of = cmp.Or(of, rows[i].Count); of <= 0 || !t.OK {
			return absent
		}
		return shownTime(t.D / time.Duration(of))
	}
	return []column{
		{head: "", left: true, of: func(i int) string { return clipped(r.span(body, name(rows[i])).s, min(longestName, r.width/3)) }, tone: strong},
		{head: "", rank: 3, left: true, of: func(i int) string { return r.bar(finite(rows[i].Share).Div(most), cells) }, tone: accent},
		{head: "share", of: text(func(o *optrace.OperatorRow) string { return percent(o.Share) })},
		{head: "each", of: text(func(o *optrace.OperatorRow) string { return phaseTime(&o.Each, meanOf) })},
		{head: "p95", rank: 9, of: text(func(o *optrace.OperatorRow) string { return phaseTime(&o.Each, p95Of) })},
		{head: "count", rank: 8, of: text(func(o *optrace.OperatorRow) string { return figure.Whole(float64(o.Count)) })},
		{head: "time", rank: 7, of: text(func(o *optrace.OperatorRow) string { return shownTime(o.Time) })},
		{head: "GB/s", rank: 2, of: text(func(o *optrace.OperatorRow) string { return about(o) + inBillions(o.BytesRate) })},
		{head: "GFLOP/s", rank: 4, of: text(func(o *optrace.OperatorRow) string { return about(o) + inBillions(o.FlopsRate) })},
		{head: "of" + nbsp + "roof", rank: 5, of: text(shareOfRoof)},
		{head: "waits", rank: 10, of: func(i int) string { return perCount(i, rows[i].Sync, rows[i].Synced) }},
		{head: "off" + nbsp + "CPU", rank: 11, of: func(i int) string { return perCount(i, rows[i].Off, rows[i].Offed) }},
		{head: "IPC", rank: 6, of: text(func(o *optrace.OperatorRow) string { return ratioFigure(o.IPC) })},
		{head: "LLC/instr", rank: 6, of: text(func(o *optrace.OperatorRow) string { return ratioFigure(o.MissRate) })},
		{head: "type", rank: 6, left: true, of: text(func(o *optrace.OperatorRow) string { return cmp.Or(o.Type, absent) })},
		{head: "bound", rank: 1, left: true, of: text(shownBound)},
	}
}

// shareOfRoof is the share of the roof that an operator reached. What passed the roof, with
// operands from caches or instructions that no rate was measured of, is no share of it.
func shareOfRoof(o *optrace.OperatorRow) string {
	if v := finite(o.OfRoof); v.OK && v.V > 1 {
		return "above" + nbsp + "it"
	}
	return percent(o.OfRoof)
}

// about marks figures of work that does not follow from shapes alone.
func about(o *optrace.OperatorRow) string {
	if o.Estimated && finite(o.BytesRate).OK {
		return "≈"
	}
	return ""
}

// ratioFigure is a ratio that is no percentage.
func ratioFigure(o stat.Opt) string {
	v := finite(o)
	if !v.OK {
		return absent
	}
	return figure.Significant(v.V)
}

// shownBound is what limits an operator; an estimate is marked so.
func shownBound(o *optrace.OperatorRow) string {
	switch {
	case o.Bound == optrace.BoundUnknown:
		return absent
	case strings.Contains(o.BoundFrom, "est"):
		return string(o.Bound) + nbsp + "(est)"
	}
	return string(o.Bound)
}
