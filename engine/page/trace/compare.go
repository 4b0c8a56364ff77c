package trace

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/engine/compare"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/optrace/comparison"
	"github.com/rooftop-dev/rooftop/engine/page"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Comparison is the comparison of two traces.
type Comparison struct {
	Version      string // version of rooftop that compares
	A, B         *Trace
	NameA, NameB string // file names
	*comparison.Comparison
}

// Compare compares b with a.
func Compare(version, nameA, nameB string, a, b *Trace) *Comparison {
	c := comparison.Compare(a.Summary, b.Summary)
	if len(c.Refused) == 0 && sameRecording(a, b) {
		c.SameTrace()
	}
	return &Comparison{version, a, b, nameA, nameB, c}
}

// sameRecording reports whether two traces are the same recording, possibly as two files or as a document:
// the same target, start in nanoseconds and number of events.
func sameRecording(a, b *Trace) bool {
	s, t := a.Summary, b.Summary
	return !a.Started.IsZero() && a.Started.Equal(b.Started) && s.Target.PID == t.Target.PID && s.Target.Command == t.Target.Command &&
		s.Coverage.Seconds == t.Coverage.Seconds && s.Coverage.Events == t.Coverage.Events
}

// Page returns the page of a comparison: the result, the differences, and each figure on both sides.
func (c *Comparison) Page(verbose bool) *page.Page {
	p := &page.Page{Title: "Comparison of two traces"}
	add := func(list ...page.Section) { p.Sections = append(p.Sections, list...) }
	add(page.Section{ID: "sides", Nodes: []page.Node{page.Facts{c.A.fact("A", c.NameA), c.B.fact("B", c.NameB)}}}, c.outcome())
	if len(c.Refused) > 0 || c.SameRecording {
		return p
	}
	add(c.phases())
	add(c.operators()...)
	add(c.layers(), c.threads())
	notes := page.Section{ID: "notes", Title: "Notes"}
	for _, n := range c.Notes {
		notes.Add(page.Paragraph(page.Toned(page.Body, n)))
	}
	add(notes, page.Section{ID: "footer", Terminal: true, Nodes: []page.Node{
		page.Paragraph(page.Toned(page.Muted, moreHint(verbose, "-v shows every operator and layer; --json has all of them"))),
	}})
	return p
}

// fact returns the fact that names a side of a comparison.
func (t *Trace) fact(label, name string) page.Fact {
	s := t.Figures()
	threads := ""
	if n := Threads(s); n > 0 {
		threads = figure.Unbroken(figure.Counted(n, "thread"))
	}
	text := figure.Joined(" · ", name, t.Started.UTC().Format(time.DateTime)+" UTC", base(s.Target.Model), s.Target.Runtime, threads, figure.Show(stat.Finite(s.Coverage.Seconds), "s"))
	return page.Fact{Label: label, Text: page.Toned(page.Body, text)}
}

// outcome returns the result of the comparison, the next step, and the differences in the setup.
func (c *Comparison) outcome() page.Section {
	out := page.Section{ID: "outcome"}
	if len(c.Refused) > 0 {
		out.Add(page.NotComparable(c.Refused)...)
		return out
	}
	out.Add(page.Prose{Lead: true, Text: page.Toned(page.Strong, c.Headline)})
	if c.SameRecording {
		out.Add(page.Paragraph(page.Toned(page.Muted, "'rooftop trace FILE' shows it; compare two traces, before and after a change.")))
		return out
	}
	if c.Next != "" {
		out.Add(page.Paragraph(page.Mark(page.Warn, "do"), page.Toned(page.Body, " "+c.Next)))
	}
	if differ := page.Differences(c.Differs); differ != "" {
		out.Add(page.Paragraph(page.Toned(page.Muted, "what differs: "), page.Toned(page.Body, differ)))
	}
	return out
}

// changeRow is a figure on both sides.
type changeRow struct {
	label, unit string
	c           *compare.Change
	tokenShare  stat.Opt // share of a token's time
	a, b        stat.Opt // shares of the time, if they are more informative than a change
}

// show formats a value of the row. The label of a rate contains its unit.
func (r *changeRow) show(o stat.Opt) string {
	if r.unit == "tok/s" {
		return page.Ratio(o).Text
	}
	return figure.Show(o.Finite(), r.unit)
}

// changes returns a table of figures on both sides, and why some have no verdict. For two different models,
// and for rows without any interval, it has only shares.
func (c *Comparison) changes(rows []changeRow, shares bool) (*page.Table, []page.Node) {
	show := func(head string, tone page.Tone, of func(changeRow) string) page.Field[changeRow] {
		return page.Right(head, tone, func(r changeRow) page.Cell { return page.Words(of(r)) })
	}
	fields := []page.Field[changeRow]{
		page.Left("", page.Body, func(r changeRow) string { return r.label }),
		show("A", page.Body, func(r changeRow) string { return r.show(r.c.A) }),
		show("B", page.Strong, func(r changeRow) string { return r.show(r.c.B) }),
	}
	if shares {
		fields = append(fields, page.Right("share"+figure.NBSP+"A", page.Body, func(r changeRow) page.Cell { return page.Share(r.a) }).Ranked(3),
			page.Right("share"+figure.NBSP+"B", page.Strong, func(r changeRow) page.Cell { return page.Share(r.b) }).Ranked(3))
	}
	if c.OtherModel == "" {
		fields = append(fields, page.Right("change", page.Accent, func(r changeRow) page.Cell { return page.Multiple(r.c.Ratio) }))
		if !shares || slices.ContainsFunc(rows, func(r changeRow) bool { return r.c.Low.Finite().OK }) {
			fields = append(fields, page.Right("95"+figure.NBSP+"% interval", page.Muted, func(r changeRow) page.Cell { return page.Interval(r.c) }).Ranked(2))
		}
		if !shares {
			fields = append(fields, show("of"+figure.NBSP+"a"+figure.NBSP+"token", page.Body, func(r changeRow) string {
				if v := r.tokenShare.Finite(); v.OK {
					return figure.ChangeSign(v.V)
				}
				return ""
			}).Ranked(3))
		}
		fields = append(fields, page.Field[changeRow]{Column: page.Column{Left: true}, Cell: func(r changeRow) page.Cell { return page.Verdict(r.c.Verdict) }})
	}
	var gaps page.Gaps
	for _, r := range rows {
		if r.c.Verdict == "" && r.c.Reason != "" && c.OtherModel == "" {
			gaps.Add(r.label, r.c.Reason)
		}
	}
	return page.Tabulate(rows, fields), gaps.Nodes()
}

func (c *Comparison) phases() page.Section {
	var rows []changeRow
	var notes []page.Node
	for i := range c.Phases {
		x := &c.Phases[i]
		rows = append(rows, changeRow{label: x.Phase + " tok/s", unit: "tok/s", c: &x.Rate})
		if x.FirstToken.A.OK || x.FirstToken.B.OK {
			rows = append(rows, changeRow{label: "TTFT mean", unit: "s", c: &x.FirstToken})
		}
		if a, b := x.OfPeakA.Finite(), x.OfPeakB.Finite(); a.OK || b.OK {
			notes = append(notes, page.Paragraph(page.Toned(page.Muted, x.Phase+" reaches "+figure.Show(a, "ratio")+" → "+figure.Show(b, "ratio")+" of the memory peak")))
		}
	}
	table, reasons := c.changes(rows, false)
	return page.Section{ID: "phases", Title: "Phases", Nodes: slices.Concat([]page.Node{table}, reasons, notes)}
}

// Default numbers of rows in a comparison.
const (
	mostCompared       = 10
	mostComparedLayers = 4
)

// operators returns the operators of each phase, those of decode first.
func (c *Comparison) operators() []page.Section {
	var phases []string
	for i := range c.Operators {
		switch phase := c.Operators[i].Phase; {
		case slices.Contains(phases, phase):
		case phase == "decode":
			phases = slices.Insert(phases, 0, phase)
		default:
			phases = append(phases, phase)
		}
	}
	// Between models, and between thread counts, shares are more informative than changes.
	shares := c.OtherModel != "" || c.Threads.CountA != c.Threads.CountB
	note := ", time a token, those that changed it most first"
	if c.OtherModel != "" {
		note = ", time a token, and its share of the operators' time"
	}
	var out []page.Section
	for _, phase := range phases {
		var rows []changeRow
		for i := range c.Operators {
			if x := &c.Operators[i]; x.Phase == phase {
				label := strings.TrimSpace(cmp.Or(x.Name, x.Op) + " " + types(x.TypeA, x.TypeB))
				rows = append(rows, changeRow{label: label, unit: "s", c: &x.PerToken, tokenShare: x.TokenShare, a: x.ShareA, b: x.ShareB})
			}
		}
		name := cmp.Or(phase, unknownPhase)
		if why := c.noVerdictReason(rows); why != "" {
			text := figure.Absent + " none of " + figure.Counted(len(rows), "operator") + " can be compared: " + why
			out = append(out, page.Section{ID: "untold-" + phase, Title: "Operators", Note: name, Nodes: []page.Node{page.Paragraph(page.Toned(page.Muted, text))}})
			table, _ := c.changes(rows, shares)
			out = append(out, page.Section{ID: "operators-" + phase, Title: "Operators", Note: name + note, Detail: true, Nodes: []page.Node{table}})
			continue
		}
		table, reasons := c.changes(rows, shares)
		table.Columns[0].Clip = true
		out = append(out, page.Section{ID: "operators-" + phase, Title: "Operators", Note: name + note, Nodes: append([]page.Node{table.AtMost(mostCompared, "operator")}, reasons...)})
	}
	return out
}

// noVerdictReason returns why rows have no verdict. It is "" if a row has a verdict or exists on one side only, or if
// their shares are shown.
func (c *Comparison) noVerdictReason(rows []changeRow) string {
	var reasons []string
	for i := range rows {
		x := rows[i].c
		if x.Verdict != "" || x.Reason == "" || c.OtherModel != "" || x.A.Or(0) <= 0 || x.B.Or(0) <= 0 {
			return ""
		}
		if !slices.Contains(reasons, x.Reason) {
			reasons = append(reasons, x.Reason)
		}
	}
	return strings.Join(reasons, "; ")
}

// types returns the type of weights, on both sides if it changed.
func types(a, b string) string {
	if a == b {
		return a
	}
	return cmp.Or(a, "none") + "→" + cmp.Or(b, "none")
}

// layers returns the layers that changed, or all of them in detail.
func (c *Comparison) layers() page.Section {
	var changed, others []changeRow
	for i := range c.Layers {
		x := &c.Layers[i]
		label := "layer " + strconv.Itoa(x.Layer)
		if x.Layer < 0 {
			label = "no layer"
		}
		if x.Phase != "decode" {
			label += " (" + x.Phase + ")"
		}
		row := changeRow{label: label, unit: "s", c: &x.PerToken}
		if v := x.PerToken.Verdict; v == compare.Faster || v == compare.Slower {
			changed = append(changed, row)
		} else {
			others = append(others, row)
		}
	}
	table, reasons := c.changes(append(changed, others...), false)
	out := page.Section{ID: "layers", Title: "Layers", Note: "time a token", Detail: len(changed) == 0, Nodes: append([]page.Node{table.AtMost(min(len(changed), mostComparedLayers), "layer")}, reasons...)}
	if len(changed) > 0 {
		out.Nodes = out.Nodes[:1]
	}
	return out
}

func (c *Comparison) threads() page.Section {
	t := &c.Threads
	out := page.Section{ID: "threads", Title: "Threads", Note: "means over threads, of graph time"}
	if t.CountA == 0 && t.CountB == 0 {
		return out
	}
	x := &page.Table{Columns: []page.Column{{Left: true}, {Head: "A"}, {Head: "B", Tone: page.Strong}}}
	add := func(label string, a, b page.Cell) { x.Rows = append(x.Rows, []page.Cell{page.Words(label), a, b}) }
	add("threads", page.Integer(t.CountA), page.Integer(t.CountB))
	add("busy", page.Share(t.BusyA), page.Share(t.BusyB))
	add("waits", page.Share(t.SyncA), page.Share(t.SyncB))
	add("preempted", page.Share(t.PreemptedA), page.Share(t.PreemptedB))
	out.Add(x)
	return out
}
