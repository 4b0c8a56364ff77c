package report

import (
	"cmp"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// TraceCompareSchema names the document that WriteTraceCompareJSON writes.
const TraceCompareSchema = "rooftop.trace-compare/v1"

// TraceComparison is two traces with what they say of each other.
type TraceComparison struct {
	Version      string // of the rooftop that compares
	A, B         *Trace
	NameA, NameB string // of their files
	*optrace.Comparison
}

// CompareTraces compares b with a.
func CompareTraces(version, nameA, nameB string, a, b *Trace) *TraceComparison {
	c := optrace.Compare(a.Summary, b.Summary)
	if len(c.Refused) == 0 && sameRecording(a, b) {
		c.Itself()
	}
	return &TraceComparison{Version: version, A: a, B: b, NameA: nameA, NameB: nameB, Comparison: c}
}

// sameRecording says that two traces are one, in one file or in two, one of which may be
// its document: of one target, begun at the same nanosecond, and of as many events.
func sameRecording(a, b *Trace) bool {
	s, t := a.Summary, b.Summary
	return !a.Started.IsZero() && a.Started.Equal(b.Started) && s.Target.PID == t.Target.PID && s.Target.Command == t.Target.Command &&
		s.Coverage.Seconds == t.Coverage.Seconds && s.Coverage.Events == t.Coverage.Events
}

// WriteTraceCompareJSON writes c as one rooftop.trace-compare/v1 object, indented.
func WriteTraceCompareJSON(w io.Writer, c *TraceComparison) error {
	figures, _ := clean(c.Comparison).(object)
	return encode(w, append(object{
		{"schema", TraceCompareSchema},
		{"rooftop", object{{"version", c.Version}}},
		{"trace_a", tracedSide(c.NameA, c.A)},
		{"trace_b", tracedSide(c.NameB, c.B)},
		{"comparable", len(c.Refused) == 0},
	}, figures...), "  ")
}

func tracedSide(name string, t *Trace) object {
	o := object{{"file", name}, {"version", t.Version}, {"started", t.Started.UTC().Format(time.RFC3339Nano)}}
	s := t.Summary
	if s == nil {
		s = &optrace.Summary{}
	}
	var threads any // null where no lane was seen
	if n := computing(s); n > 0 {
		threads = n
	}
	return append(o, object{
		{"seconds", number(stat.Some(s.Coverage.Seconds))}, {"command", s.Target.Command}, {"model", s.Target.Model}, {"runtime", s.Target.Runtime}, {"threads", threads}, {"detail", s.Coverage.Detail},
	}...)
}

// WriteTraceCompare writes c as a page of text: the outcome, in what the two differ, and
// each figure on both sides.
func WriteTraceCompare(w io.Writer, c *TraceComparison, o Options) error {
	p := newPage(w, o)
	p.tracedLine("A", c.NameA, c.A)
	p.tracedLine("B", c.NameB, c.B)
	p.blank()
	if len(c.Refused) > 0 {
		p.para(0, 2, text{p.mark(bad, "not comparable")})
		for _, why := range c.Refused {
			p.para(indent, indent+2, p.text(body, "– "+why))
		}
		return p.flush()
	}
	p.para(0, 2, p.text(strong, c.Headline))
	if c.SameRecording {
		p.para(0, 2, p.text(muted, "'rooftop trace FILE' shows it; what is compared are two traces, before and after a change."))
		return p.flush()
	}
	if c.Next != "" {
		p.para(0, 2, append(text{p.mark(warn, "do")}, p.text(body, " "+c.Next)...))
	}
	if len(c.Differs) > 0 {
		var parts []string
		for _, d := range c.Differs {
			parts = append(parts, d.What+" "+cmp.Or(d.A, "none")+" → "+cmp.Or(d.B, "none"))
		}
		p.para(0, 2, append(p.text(muted, "what differs: "), p.span(body, strings.Join(parts, ", "))))
	}
	p.comparedPhases(c)
	p.comparedOperators(c)
	p.comparedLayers(c)
	p.comparedThreads(&c.Threads)
	if len(c.Notes) > 0 {
		p.heading("Notes", "")
	}
	for _, n := range c.Notes {
		p.para(indent, indent+2, p.text(body, n))
	}
	p.blank()
	more := "-v shows every operator and layer; --json has all of them"
	if o.Verbose {
		more = "--json has the same as a document"
	}
	p.para(0, 0, p.text(muted, more))
	return p.flush()
}

// tracedLine names one side.
func (p *page) tracedLine(label, name string, t *Trace) {
	s := t.Summary
	if s == nil {
		s = &optrace.Summary{}
	}
	threads := ""
	if n := computing(s); n > 0 {
		threads = strings.ReplaceAll(plural(n, "thread"), " ", nbsp)
	}
	parts := nonEmpty(name, t.Started.UTC().Format(time.DateTime)+" UTC", base(s.Target.Model), s.Target.Runtime, threads, strings.ReplaceAll(figure.Show(finite(stat.Some(s.Coverage.Seconds)), "s"), " ", nbsp))
	p.define(0, 3, p.text(strong, label), p.text(body, strings.Join(parts, " · ")))
}

// changeRow is a figure on both sides for a table.
type changeRow struct {
	label string
	unit  string
	c     *optrace.Change
	of    stat.Opt // of a token's time
	// Shares of the time on both sides, where they tell more than a change does.
	shares         bool
	shareA, shareB stat.Opt
	apart          bool // of two models, which the headline says
}

// changeTable writes figures on both sides, with the interval of each as in every table;
// where there is room, with the part of a token's time, or the shares on both sides. Where
// the page is narrow the intervals are left out too: the words rest on them. Two models
// have no changes, and shares alone; so have rows none of which has an interval.
func (p *page) changeTable(rows []changeRow) {
	sharesAlone := slices.ContainsFunc(rows, func(r changeRow) bool { return r.shares }) &&
		!slices.ContainsFunc(rows, func(r changeRow) bool { return !r.apart && finite(r.c.Low).OK })
	bare := slices.Clone(rows)
	for i := range bare {
		bare[i].shares, bare[i].of = false, stat.None
	}
	var t *table
	for _, try := range []struct {
		rows      []changeRow
		intervals bool
	}{{rows, !sharesAlone}, {bare, !sharesAlone}, {bare, false}} {
		t = p.changeGrid(try.rows, try.intervals)
		if t.natural() > p.width-indent {
			t.gap = 1
		}
		if t.natural() <= p.width-indent {
			break
		}
	}
	p.table(indent, t)
	p.changeReasons(rows)
}

func (p *page) changeGrid(rows []changeRow, intervals bool) *table {
	names := []string{"A", "B", "change"}
	shares := slices.ContainsFunc(rows, func(r changeRow) bool { return r.shares })
	apart := shares && slices.ContainsFunc(rows, func(r changeRow) bool { return r.apart })
	parts := !shares && slices.ContainsFunc(rows, func(r changeRow) bool { return finite(r.of).OK })
	if shares {
		names = []string{"A", "B", "share" + nbsp + "A", "share" + nbsp + "B"}
		if !apart {
			names = append(names, "change")
		}
	}
	if intervals {
		names = append(names, "95"+nbsp+"% interval")
	}
	if parts {
		names = append(names, "of"+nbsp+"a"+nbsp+"token")
	}
	t := &table{}
	t.add(append(p.columnHeads(names...), cell{})...)
	for _, r := range rows {
		line := []cell{
			{t: p.text(body, r.label)}, {t: p.text(body, shownChange(r.c.A, r.unit)), right: true}, {t: p.text(strong, shownChange(r.c.B, r.unit)), right: true},
		}
		if shares {
			line = append(line, cell{t: p.text(body, percent(r.shareA)), right: true}, cell{t: p.text(strong, percent(r.shareB)), right: true})
		}
		if apart {
			t.add(append(line, cell{})...)
			continue
		}
		line = append(line, cell{t: p.text(accent, timesChange(r.c.Ratio)), right: true})
		if intervals {
			line = append(line, cell{t: p.text(muted, intervalOf(r.c)), right: true})
		}
		if parts {
			of := absent
			if v := finite(r.of); v.OK {
				of = figure.Change(v.V) + nbsp + "%"
			}
			line = append(line, cell{t: p.text(body, of), right: true})
		}
		t.add(append(line, cell{t: p.changeWord(r.c.Word)})...)
	}
	return t
}

// mostPercent is the ratio from which on a change is said as a multiple: the digits of
// +51,282 % say nothing.
const mostPercent = 10

// timesChange is a ratio as a change in percent, or as a multiple where it is large.
func timesChange(o stat.Opt) string {
	if v := finite(o); v.OK && v.V >= mostPercent {
		return "×" + figure.Significant(v.V)
	}
	return ratioChange(o)
}

func intervalOf(c *optrace.Change) string {
	if !finite(c.Low).OK || !finite(c.High).OK {
		return absent
	}
	return bound(c.Low) + nbsp + "to" + nbsp + bound(c.High) + nbsp + "%"
}

func (p *page) changeWord(w optrace.ChangeWord) text {
	switch w {
	case optrace.ChangeFaster:
		return text{p.mark(ok, string(w))}
	case optrace.ChangeSlower:
		return text{p.mark(warn, string(w))}
	case optrace.ChangeNone:
		return p.text(muted, "no"+nbsp+"difference")
	case optrace.ChangeUnclear:
		return p.text(body, "cannot"+nbsp+"tell")
	}
	return p.text(muted, absent)
}

// changeReasons says why figures have no verdict, those of one reason together.
func (p *page) changeReasons(rows []changeRow) {
	labels := map[string][]string{}
	var reasons []string
	for _, r := range rows {
		if r.c.Word != "" || r.c.Reason == "" || r.apart {
			continue
		}
		if labels[r.c.Reason] == nil {
			reasons = append(reasons, r.c.Reason)
		}
		labels[r.c.Reason] = append(labels[r.c.Reason], r.label)
	}
	for _, reason := range reasons {
		p.para(indent, indent+2, p.text(muted, absent+" "+strings.Join(labels[reason], ", ")+": "+reason))
	}
}

func (p *page) comparedPhases(c *TraceComparison) {
	var rows []changeRow
	for i := range c.Phases {
		x := &c.Phases[i]
		rows = append(rows, changeRow{label: x.Phase + " tok/s", unit: rateUnit, c: &x.Rate, apart: c.OtherModel != ""})
		if x.FirstToken.A.OK || x.FirstToken.B.OK {
			rows = append(rows, changeRow{label: "TTFT mean", unit: "s", c: &x.FirstToken, apart: c.OtherModel != ""})
		}
	}
	if len(rows) == 0 {
		return
	}
	p.blank()
	p.changeTable(rows)
	for i := range c.Phases {
		if x := &c.Phases[i]; finite(x.OfRoofA).OK || finite(x.OfRoofB).OK {
			p.para(indent, indent+2, p.text(muted, x.Phase+" reaches "+percent(x.OfRoofA)+" → "+percent(x.OfRoofB)+" of the roof of memory"))
		}
	}
}

// Rows of a comparison without -v.
const (
	mostCompared       = 10
	mostComparedLayers = 4
)

// comparedOperators writes a table for each phase, that of decode first.
func (p *page) comparedOperators(c *TraceComparison) {
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
	// Between models, and between numbers of threads, shares tell more than percents do.
	shares := c.OtherModel != "" || c.Threads.CountA != c.Threads.CountB
	for _, phase := range phases {
		var rows []changeRow
		for i := range c.Operators {
			x := &c.Operators[i]
			if x.Phase != phase {
				continue
			}
			label := clipped(p.span(body, cmp.Or(x.Name, x.Op)).s, longestName-6)
			if types := typeChange(x.TypeA, x.TypeB); types != "" {
				label += " " + clipped(p.span(body, types).s, longestName/2)
			}
			rows = append(rows, changeRow{label: label, unit: "s", c: &x.PerToken, of: x.Of, shares: shares, shareA: x.ShareA, shareB: x.ShareB, apart: c.OtherModel != ""})
		}
		order := "those that changed it most first"
		if c.OtherModel != "" {
			order = "and its share of the operators' time"
		}
		if why := untold(rows); why != "" && !p.o.Verbose {
			p.heading("Operators", cmp.Or(phase, "unknown phase"))
			p.para(indent, indent+2, p.text(muted, absent+" none of "+plural(len(rows), "operator")+" can be compared (-v shows them): "+why))
			continue
		}
		p.heading("Operators", cmp.Or(phase, "unknown phase")+", time a token, "+order)
		n := len(rows)
		if !p.o.Verbose {
			n = min(n, mostCompared)
		}
		p.changeTable(rows[:n])
		if n < len(rows) {
			p.line(indent, p.text(muted, "and "+plural(len(rows)-n, "operator")+" more (-v)"))
		}
	}
}

// untold says of rows without any verdict why there is none, "" where one has a verdict, is
// on one side alone, or where their shares are to be seen.
func untold(rows []changeRow) string {
	var reasons []string
	for i := range rows {
		c := rows[i].c
		if c.Word != "" || c.Reason == "" || rows[i].apart || c.A.Or(0) <= 0 || c.B.Or(0) <= 0 {
			return ""
		}
		if !slices.Contains(reasons, c.Reason) {
			reasons = append(reasons, c.Reason)
		}
	}
	return strings.Join(reasons, "; ")
}

// typeChange is the type of weights, on both sides where it changed.
func typeChange(a, b string) string {
	if a == b {
		return a
	}
	return cmp.Or(a, "none") + "→" + cmp.Or(b, "none")
}

// comparedLayers shows the layers that changed, without -v the first of them.
func (p *page) comparedLayers(c *TraceComparison) {
	var rows []changeRow
	for i := range c.Layers {
		x := &c.Layers[i]
		if !p.o.Verbose && x.PerToken.Word != optrace.ChangeFaster && x.PerToken.Word != optrace.ChangeSlower {
			continue
		}
		label := "layer " + figure.Whole(float64(x.Layer))
		if x.Layer < 0 {
			label = "no layer"
		}
		if x.Phase != "decode" {
			label += " (" + x.Phase + ")"
		}
		rows = append(rows, changeRow{label: label, unit: "s", c: &x.PerToken})
	}
	if len(rows) == 0 {
		return
	}
	p.heading("Layers", "time a token")
	n := len(rows)
	if !p.o.Verbose {
		n = min(n, mostComparedLayers)
	}
	p.changeTable(rows[:n])
	if n < len(rows) {
		p.line(indent, p.text(muted, "and "+plural(len(rows)-n, "changed layer")+" more (-v)"))
	}
}

func (p *page) comparedThreads(t *optrace.ThreadsChange) {
	if t.CountA == 0 && t.CountB == 0 {
		return
	}
	p.heading("Threads", "means over lanes, of the time of graphs")
	x := &table{}
	x.add(p.columnHeads("A", "B")...)
	add := func(label, a, b string) {
		x.add(cell{t: p.text(body, label)}, cell{t: p.text(body, a), right: true}, cell{t: p.text(strong, b), right: true})
	}
	add("threads", figure.Whole(float64(t.CountA)), figure.Whole(float64(t.CountB)))
	add("busy", percent(t.BusyA), percent(t.BusyB))
	add("waits", percent(t.SyncA), percent(t.SyncB))
	add("preempted", percent(t.PreemptedA), percent(t.PreemptedB))
	p.table(indent, x)
}
