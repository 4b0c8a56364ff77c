package tui

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/engine/stat"
	"github.com/rooftop-dev/rooftop/tui/cell"
)

// order is the column that operators are sorted by.
type order uint8

const (
	byTime order = iota
	byCount
	byEach
	byBytes
	byFlops
	byRoof
	numOrders
)

// value is what a row is sorted by.
func (o order) value(r *optrace.OperatorRow) stat.Opt {
	return finite([numOrders]stat.Opt{
		byTime: stat.Some(float64(r.Time)), byCount: stat.Some(float64(r.Count)), byEach: stat.Some(float64(r.Each.Mean)),
		byBytes: r.BytesRate, byFlops: r.FlopsRate, byRoof: r.OfRoof,
	}[o])
}

// operatorColumn is a column of the table of operators.
type operatorColumn struct {
	head string
	left bool
	by   order // numOrders for one that is not sorted by
	text func(*optrace.OperatorRow) string
}

// operatorColumns are from the most to the least important: those at the end are left
// out where there is no room.
func operatorColumns() []operatorColumn {
	none := numOrders
	return []operatorColumn{
		{"share", false, byTime, func(r *optrace.OperatorRow) string { return figure.Show(finite(r.Share), "ratio") }},
		{"time", false, byTime, func(r *optrace.OperatorRow) string { return howLong(r.Time) }},
		{"count", false, byCount, func(r *optrace.OperatorRow) string { return figure.Whole(float64(r.Count)) }},
		{"GB/s", false, byBytes, func(r *optrace.OperatorRow) string { return giga(r.BytesRate) }},
		{"GFLOP/s", false, byFlops, func(r *optrace.OperatorRow) string { return giga(r.FlopsRate) }},
		{"roof", false, byRoof, shareOfRoof},
		{"bound", true, none, func(r *optrace.OperatorRow) string { return cmp.Or(string(r.Bound), figure.Absent) }},
		{"each", false, byEach, func(r *optrace.OperatorRow) string { return howLong(r.Each.Mean) }},
		{"p99", false, none, func(r *optrace.OperatorRow) string { return howLong(r.Each.P99) }},
		{"waits", false, none, func(r *optrace.OperatorRow) string { return howLong(r.Sync.D) }},
		{"off CPU", false, none, func(r *optrace.OperatorRow) string { return howLong(r.Off.D) }},
		{"IPC", false, none, func(r *optrace.OperatorRow) string { return figure.Show(finite(r.IPC), "") }},
		{"bound by", true, none, func(r *optrace.OperatorRow) string { return cmp.Or(r.BoundFrom, figure.Absent) }},
	}
}

// laneOf spells the number of a lane; below 0 is none.
func laneOf(lane int) string {
	if lane < 0 {
		return figure.Absent
	}
	return figure.Whole(float64(lane))
}

// howLong spells a length of time; what is not positive was not there.
func howLong(d time.Duration) string { return figure.Show(secondsOf(d), "s") }

// giga spells a rate in 10^9 a second. What is less than a thousandth of that is of no
// account in a table.
func giga(o stat.Opt) string {
	const least = 1e-3
	switch v := o.V * 1e-9; {
	case !number(o):
		return figure.Absent
	case v > 0 && v < least:
		return "<" + figure.Significant(least)
	default:
		return figure.Significant(v)
	}
}

// operators is the table of operators, and what else the time of the phase is made of.
func (v *traceView) operators(l *listing) {
	v.operatorTable(l)
	v.types(l)
	v.critical(l)
	v.contexts(l)
}

func (v *traceView) operatorTable(l *listing) {
	u := v.u
	list, kind := v.s.Kinds, "by kind"
	if v.set.names {
		list, kind = v.s.Steps, "by name"
	}
	rows := v.sorted(list, v.set)
	title := v.phaseTitle() + ": " + kind
	l.title(title, u.say(cell.Muted, v.coverageWords()))
	if filter := strings.TrimSpace(u.filter); filter != "" {
		l.say(line(u.say(cell.Accent, fmt.Sprintf("%s %q", matches(len(rows)), filter)), u.say(cell.Muted, ": esc clears the filter")))
	}
	if len(rows) == 0 {
		if u.filter == "" {
			l.say(u.say(cell.Muted, v.noOperators()))
		}
		l.space()
		return
	}
	columns := []column{{head: "operator", left: true}}
	for _, c := range operatorColumns() {
		head := c.head
		if c.by == v.set.order && (c.by != byTime || c.head == "time") {
			head = "[" + head + "]"
		}
		columns = append(columns, column{head: head, left: c.left})
	}
	guessed := false
	for _, r := range rows {
		guessed = guessed || r.Estimated
		name := kindName(r)
		if v.set.names {
			name = estimated(r, strings.TrimSpace(r.Name+" "+r.Op))
		}
		columns[0].texts = append(columns[0].texts, name)
		for i, c := range operatorColumns() {
			columns[i+1].texts = append(columns[i+1].texts, c.text(r))
		}
	}
	l.table(columns, func(_, col int) cell.Token {
		if col <= 1 {
			return cell.Strong
		}
		return cell.Body
	})
	if guessed {
		l.say(u.say(cell.Muted, "(est): its bytes and operations do not follow from shapes alone."))
	}
	l.space()
}

func matches(n int) string {
	if n == 1 {
		return "1 operator matches"
	}
	return figure.Whole(float64(n)) + " operators match"
}

// types is the time by the type of the weights.
func (v *traceView) types(l *listing) {
	columns := []column{{head: "weights", left: true}, {head: "share"}, {head: "time"}, {head: "read"}, {head: "GB/s"}, {head: "GFLOP/s"}, {head: "size"}}
	for i := range v.s.Types {
		r := &v.s.Types[i]
		if r.Phase != v.phase {
			continue
		}
		addRow(columns, cmp.Or(r.Type, "none"), figure.Show(finite(r.Share), "ratio"), howLong(r.Time), figure.Show(finite(r.Bytes), "B"), giga(r.BytesRate), giga(r.FlopsRate), figure.Show(finite(r.Weights), "B"))
	}
	l.section("By type of the weights", columns)
}

// critical is what decided how long graphs took.
func (v *traceView) critical(l *listing) {
	columns := []column{{head: "on the critical path", left: true}, {head: "share"}, {head: "time"}, {head: "lane"}}
	for i := range v.s.Critical {
		r := &v.s.Critical[i]
		addRow(columns, cmp.Or(r.Name, figure.Absent), figure.Show(finite(r.Share), "ratio"), howLong(r.Time), laneOf(r.Lane))
	}
	if v.phase == "decode" {
		l.section("What decided the time of decode graphs", columns)
	}
}

// contexts is attention against the length of the KV cache.
func (v *traceView) contexts(l *listing) {
	columns := []column{{head: "KV length", left: true}, {head: "graphs"}, {head: "attention"}, {head: "graph"}, {head: "share"}}
	for i := range v.s.Context {
		r := &v.s.Context[i]
		addRow(columns, counted(int(r.Length), "token"), figure.Whole(float64(r.Graphs)), howLong(r.Attention), howLong(r.Graph), figure.Show(finite(r.Share), "ratio"))
	}
	l.section("Attention against context", columns)
}
