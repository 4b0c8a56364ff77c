package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// coverage says what the figures rest on, and what it cost the target.
func (r *tracePage) coverage() {
	c, t := &r.s.Coverage, &r.s.Target
	r.section("Coverage", strings.TrimSpace(c.Detail+after(" for ", figure.Show(finite(stat.Some(c.Seconds)), "s"))))
	graphs := plural(c.Graphs, "whole graph") + " of " + plural(c.Calls, "call")
	switch {
	case !c.SawGraphs():
		graphs = absent + " not traced at this level; " + plural(c.Calls, "call")
	case c.Calls == 0 && c.Graphs > 0:
		graphs = plural(c.Graphs, "whole graph") + ", no call was seen"
	}
	if c.Partial > 0 {
		graphs += ", " + plural(c.Partial, "partial graph") + " left out"
	}
	r.row("graphs", r.text(body, graphs))
	events := plural(int(c.Events), "event") + ", " + figure.Whole(float64(c.Dropped)) + " lost"
	if c.LeftOut > 0 {
		events += ", " + figure.Whole(float64(c.LeftOut)) + " counted but not kept for exports"
		if from, to := finite(c.KeptFrom), finite(c.KeptTo); from.OK && to.OK {
			events += fmt.Sprintf(", which hold %.1f to %.1f s of the trace", from.V, to.V)
		}
	}
	line := r.text(body, events)
	if c.Dropped > 0 {
		line = append(text{r.mark(warn, "")}, line...)
	}
	r.row("events", line)
	share := "operators cover " + percent(c.OpShare) + " of graph time, graphs " + percent(c.GraphOf) + " of call time"
	if n := finite(c.OpsPerToken); n.OK {
		share += "; " + figure.Count(n.V) + " operators a decode graph"
	}
	if !finite(c.OpShare).OK && !finite(c.GraphOf).OK {
		share = absent + " no operator and no graph of a call was seen, so that no time is divided"
	}
	r.row("covered", r.text(body, share))
	r.observer()
	how := nonEmpty(after("hook ", t.Hook), after("layout from ", t.Layout))
	switch {
	case t.Withheld != "":
		how = append(how, "names withheld: "+t.Withheld)
	case t.Layout != "" && t.Verified:
		how = append(how, "verified on the tensors that were read")
	}
	if len(how) > 0 {
		r.row("read by", r.text(muted, strings.Join(how, " · ")))
	}
	machine := nonEmpty(t.CPU, after("kernel ", t.Kernel), t.Arch)
	if len(machine) > 0 {
		r.row("machine", r.text(muted, strings.Join(machine, " · ")))
	}
	r.roof()
	if r.o.Verbose {
		r.files()
	}
}

// roof is what the machine can do, with -v by the number of threads.
func (r *tracePage) roof() {
	f := &r.s.Roof
	if f.BytesPerSecond <= 0 && f.FlopsPerSecond <= 0 {
		r.row("roof", r.text(muted, absent+" not known"))
		return
	}
	rates := func(bytes, flops, whole float64) string {
		positive := func(v float64) stat.Opt {
			if v > 0 {
				return stat.Some(v)
			}
			return stat.None
		}
		s := inBillions(positive(bytes)) + nbsp + "GB/s, " + inBillions(positive(flops)) + nbsp + "GFLOP/s"
		if whole > 0 {
			s += ", " + inBillions(positive(whole)) + nbsp + "int8" + nbsp + "GOP/s"
		}
		return s
	}
	s := rates(f.BytesPerSecond, f.FlopsPerSecond, f.Int8PerSecond)
	if f.Threads > 0 {
		s += " with " + plural(f.Threads, "thread")
	}
	origin := f.Origin()
	if f.From == optrace.RoofSeen {
		origin = r.s.SeenRoof() + ": no limit of the machine, and what reads from caches passes it"
	}
	r.row("roof", r.text(muted, s+after(", ", origin)))
	if !r.o.Verbose {
		return
	}
	for _, p := range f.ByThreads {
		r.row("", r.text(muted, plural(p.Threads, "thread")+": "+rates(p.BytesPerSecond, p.FlopsPerSecond, p.Int8PerSecond)))
	}
}

// observer is what watching is expected to cost and what it did cost.
func (r *tracePage) observer() {
	o := &r.s.Observer
	expected := absent + " not reckoned"
	if o.Reckoned() {
		expected = "expected " + expectedCost(o) + ": " + hitWords(o)
	}
	measured := "not measured"
	if o.Windows > 0 {
		measured = "measured " + percent(stat.Some(o.Measured)) + " of it, 95" + nbsp + "% of " + figure.Percent(o.MeasuredLow) + nbsp + "to" + nbsp + percent(stat.Some(o.MeasuredHigh)) +
			" over " + plural(o.Windows, "window")
	}
	r.row("observer", r.text(body, strings.Join(nonEmpty(expected, measured, r.reader()), " · ")))
}

// hitWords are the probe hits of a token and what they take of it, so that one can reckon
// with them.
func hitWords(o *optrace.Observer) string {
	if o.HitsPerToken <= 0 || !finite(stat.Some(o.HitsPerToken)).OK {
		return absent
	}
	s := figure.Count(o.HitsOfThread()) + " hits a token"
	if o.Threads > 1 {
		s += " on each of " + plural(o.Threads, "thread")
	}
	s += " at a mean of " + shownTime(o.CostPerHit)
	if basis := o.Basis(); basis != "" && o.GraphTime > 0 {
		s += " take " + shownTime(o.Delay()) + " of its " + shownTime(o.GraphTime+o.Delay()) + " with them, by " + basis
	}
	return s
}

// reader is what rooftop itself took from the compute threads, "" not known.
func (r *tracePage) reader() string {
	o := &r.s.Observer
	if !finite(o.Reader).OK {
		return ""
	}
	return "rooftop had a compute thread's CPU for " + percent(o.Reader) + " of the time of graphs"
}

// files are the target's files and the places of the probes.
func (r *tracePage) files() {
	t := &r.s.Target
	for _, f := range t.Files {
		r.row(cmp.Or(f.Role, "file"), r.text(muted, f.Path+after(" build ", f.BuildID)))
	}
	for _, s := range t.Sites {
		how := "single-stepped"
		if s.Cheap {
			how = "emulated"
		}
		r.row("probe", r.text(muted, s.Symbol+"+"+figure.Whole(float64(s.Offset))+after(" at ", s.Instruction)+", "+how+", "+hitCost(&s)+" a hit (est)"))
	}
	if o := &r.s.Observer; len(t.Sites) > 0 && o.CostPerHit > 0 {
		r.row("", r.text(muted, "hot: the caches hold what the probe needs; cold: weights stream through them between two hits; the observer's "+shownTime(o.CostPerHit)+" is the mean of a hit here, with what is copied"))
	}
}

// hitCost is what one hit of a probe costs.
func hitCost(s *optrace.Site) string {
	hot, cold := s.HitCost()
	if hot == cold {
		return shownTime(hot)
	}
	return shownTime(hot) + " hot to " + shownTime(cold) + " cold"
}

// phases is what each phase did, a column for each.
func (r *tracePage) phases() {
	phases := r.s.Phases
	if len(phases) == 0 {
		return
	}
	r.section("Phases", "quantiles are nearest rank; GB/s and GFLOP/s are reckoned from shapes (est)")
	t := &table{}
	heads := []string{}
	for i := range phases {
		heads = append(heads, cmp.Or(phases[i].Phase, "unknown"))
	}
	t.add(r.columnHeads(heads...)...)
	for _, line := range r.phaseLines() {
		row := []cell{{t: r.text(muted, line.label)}}
		known := line.always
		for i := range phases {
			v := line.of(&phases[i])
			known = known || v != absent
			row = append(row, r.number(v))
		}
		if known {
			t.add(row...)
		}
	}
	if t.natural() > r.width-indent {
		t.gap = 1
	}
	r.table(indent, t)
}

type phaseLine struct {
	label  string
	always bool
	of     func(p *optrace.PhaseRow) string
}

// tokensSaid is how many tokens a phase has, absent where they are not known.
func tokensSaid(p *optrace.PhaseRow) string {
	if p.Tokens <= 0 {
		return absent
	}
	return figure.Whole(float64(p.Tokens))
}

func (r *tracePage) phaseLines() []phaseLine {
	plain := func(o stat.Opt) string {
		v := finite(o)
		if !v.OK {
			return absent
		}
		return figure.Significant(v.V)
	}
	apart := slices.ContainsFunc(r.s.Phases, func(p optrace.PhaseRow) bool { return p.Apart() })
	inCalls := "tok/s"
	if apart {
		inCalls = "tok/s in calls"
	}
	return []phaseLine{
		{"calls", true, func(p *optrace.PhaseRow) string { return figure.Whole(float64(p.Calls)) }},
		{"tokens", true, tokensSaid},
		{inCalls, true, func(p *optrace.PhaseRow) string { return plain(p.Rate) }},
		{"tok/s in answers", false, func(p *optrace.PhaseRow) string { return plain(paced(p, apart)) }},
		{"ceiling tok/s (est)", false, func(p *optrace.PhaseRow) string { return plain(ceilingOf(r.s, p)) }},
		{"call p50", true, func(p *optrace.PhaseRow) string { return phaseTime(&p.Call, medianOf) }},
		{"call p95", false, func(p *optrace.PhaseRow) string { return phaseTime(&p.Call, p95Of) }},
		{"call max", false, func(p *optrace.PhaseRow) string { return phaseTime(&p.Call, maxOf) }},
		{"graph p50", true, func(p *optrace.PhaseRow) string { return phaseTime(&p.Graph, medianOf) }},
		{"between calls p50", false, func(p *optrace.PhaseRow) string { return phaseTime(&p.Between, medianOf) }},
		{"first token p50", false, func(p *optrace.PhaseRow) string { return phaseTime(&p.FirstToken, medianOf) }},
		{"first token p99", false, func(p *optrace.PhaseRow) string { return phaseTime(&p.FirstToken, p99Of) }},
		{"moved", false, func(p *optrace.PhaseRow) string { return figure.Show(finite(p.Bytes), "B") }},
		{"GB/s", false, func(p *optrace.PhaseRow) string { return inBillions(p.BytesRate) }},
		{"GFLOP/s", false, func(p *optrace.PhaseRow) string { return inBillions(p.FlopsRate) }},
	}
}

// paced is the rate of a phase with what lies between its calls, where it makes a
// difference to one.
func paced(p *optrace.PhaseRow, apart bool) stat.Opt {
	if !apart {
		return stat.None
	}
	return p.Paced
}

// tokens is the time of the last calls as a picture, the newest at the right.
func (r *tracePage) tokens() {
	rows := slices.DeleteFunc(slices.Clone(r.s.Tokens), func(t optrace.TokenRow) bool { return t.Phase != "decode" || t.Time <= 0 })
	if len(rows) < 2 {
		return
	}
	room := r.width - traceColumn - 1
	rows = rows[max(0, len(rows)-room):]
	var most, sum time.Duration
	for i := range rows {
		most = max(most, rows[i].Time)
		sum += rows[i].Time
	}
	line := ""
	for i := range rows {
		line += r.level(rows[i].Time.Seconds()/most.Seconds()-1e-9, true)
	}
	r.section("Tokens", "time of the last "+plural(len(rows), "decode call")+"; the full height is "+shownTime(most)+", their mean "+shownTime(sum/time.Duration(len(rows))))
	r.raw(indent, text{{line, accent}})
}
