package trace

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/engine/page"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// covered returns how much of the work the figures include.
func covered(c *optrace.Coverage) string {
	text := figure.Counted(c.Dropped, "event") + " lost"
	if v := c.OpShare.Finite(); v.OK {
		text = "covers " + figure.PercentSign(v.V) + " of graph time, " + text
	}
	return text
}

// overhead returns the cost of tracing to the target, or "" if unknown.
func overhead(o *optrace.Observer) string {
	switch {
	case o.Windows > 0 && stat.IsFinite(o.Measured):
		return "costs the target " + measuredCost(o)
	case o.Expected > 0 && stat.IsFinite(o.Expected):
		return "costs the target " + expectedCost(o)
	}
	return ""
}

// measuredCost returns the measured cost of tracing.
func measuredCost(o *optrace.Observer) string {
	return figure.PercentSign(o.Measured) + " of its speed (" + interval(o) + "), measured" + prefixed(", ", o.OverLimit())
}

// interval returns the 95 % interval of the measured cost.
func interval(o *optrace.Observer) string {
	return figure.Percent(o.MeasuredLow) + figure.NBSP + "to" + figure.NBSP + figure.PercentSign(o.MeasuredHigh)
}

// expectedCost returns the expected cost of tracing: the probes, and rooftop's use of the target's CPUs.
func expectedCost(o *optrace.Observer) string {
	of := " of its speed (est)"
	if o.TookCPU() {
		of = " of its speed (est: probes " + figure.PercentSign(o.Expected) + ", rooftop's own CPU " + figure.Show(o.Reader.Finite(), "ratio") + ")"
	}
	if mean := o.ShareOfMean().Finite(); mean.OK {
		of += " by its median token, " + figure.PercentSign(mean.V) + " of its mean one of " + figure.Duration(o.MeanGraph)
	}
	return figure.PercentSign(o.ExpectedCost()) + of + prefixed(", ", o.OverLimit())
}

// hits returns the probe hits per token and their share of its time, as a check of the cost.
func hits(o *optrace.Observer) string {
	if !o.Estimated() {
		return figure.Absent
	}
	text := figure.Count(o.HitsOfThread()) + " probe hits a token"
	if o.Threads > 1 {
		text += " on each of " + figure.Counted(o.Threads, "thread")
	}
	text += " at a mean of " + figure.Duration(o.CostPerHit)
	if basis := o.Basis(); basis != "" && o.GraphTime > 0 {
		text += " take " + figure.Duration(o.Delay()) + " of its " + figure.Duration(o.GraphTime+o.Delay()) + " with them, by " + basis
	}
	return text
}

// cost returns the expected and the measured cost of tracing.
func cost(o *optrace.Observer) string {
	expected, measured, reader := figure.Absent+" not estimated", "not measured", ""
	if o.Estimated() {
		expected = "expected to cost the target " + expectedCost(o) + ": " + hits(o)
	}
	if o.Windows > 0 {
		measured = "measured " + figure.PercentSign(o.Measured) + ", 95" + figure.NBSP + "% interval " + interval(o) + ", over " + figure.Counted(o.Windows, "window")
	}
	if v := o.Reader.Finite(); v.OK {
		reader = "rooftop had a compute thread's CPU for " + figure.PercentSign(v.V) + " of graph time"
	}
	return figure.Joined(" · ", expected, measured, reader)
}

// coverage returns the basis of the figures, and the cost of tracing to the target.
func (b *builder) coverage() page.Section {
	c := &b.s.Coverage
	note := strings.TrimSpace(c.Detail + prefixed(" for ", figure.Show(stat.Finite(c.Seconds), "s")))
	var list page.Facts
	list.Add("graphs", page.Body, graphsSeen(c))
	mark := page.Text(nil)
	if c.Dropped > 0 {
		mark = page.Mark(page.Warn, "")
	}
	list = append(list, page.Fact{Label: "events", Text: page.Join(mark, page.Toned(page.Body, events(c)))})
	list.Add("covered", page.Body, shares(c))
	list.Add("overhead", page.Body, cost(&b.s.Observer))
	list = append(list, b.target()...)
	return page.Section{ID: "coverage", Title: "Coverage", Note: note, Nodes: []page.Node{list}}
}

// graphsSeen returns the numbers of traced graphs and calls.
func graphsSeen(c *optrace.Coverage) string {
	text := figure.Counted(c.Graphs, "whole graph") + " of " + figure.Counted(c.Calls, "call")
	switch {
	case !c.SawGraphs():
		text = figure.Absent + " not traced at this level; " + figure.Counted(c.Calls, "call")
	case c.Calls == 0 && c.Graphs > 0:
		text = figure.Counted(c.Graphs, "whole graph") + ", no call was traced"
	}
	if c.Partial > 0 {
		text += ", " + figure.Counted(c.Partial, "partial graph") + " left out"
	}
	return text
}

func events(c *optrace.Coverage) string {
	text := figure.Counted(c.Events, "event") + ", " + figure.Whole(float64(c.Dropped)) + " lost"
	if c.LeftOut > 0 {
		text += ", " + figure.Whole(float64(c.LeftOut)) + " counted but not kept for exports"
		if from, to := c.KeptFrom.Finite(), c.KeptTo.Finite(); from.OK && to.OK {
			text += fmt.Sprintf(", which hold %.1f to %.1f s of the trace", from.V, to.V)
		}
	}
	return text
}

func shares(c *optrace.Coverage) string {
	if !c.OpShare.Finite().OK && !c.GraphOf.Finite().OK {
		return figure.Absent + " no operator and no graph of a call was traced, so no time is divided"
	}
	text := "operators cover " + figure.Show(c.OpShare.Finite(), "ratio") + " of graph time, graphs " + figure.Show(c.GraphOf.Finite(), "ratio") + " of call time"
	if n := c.OpsPerToken.Finite(); n.OK {
		text += "; " + figure.Count(n.V) + " operators a decode graph"
	}
	return text
}

// target returns the traced program, its machine, and how it was read.
func (b *builder) target() page.Facts {
	t := &b.s.Target
	var list page.Facts
	list = append(list, page.Fact{Label: "command", Text: page.Toned(page.Body, cmp.Or(t.Command, figure.Absent)), Detail: true})
	how := figure.Joined(" · ", prefixed("hook ", t.Hook), prefixed("layout from ", t.Layout))
	switch {
	case t.Withheld != "":
		how = figure.Joined(" · ", how, "names withheld: "+t.Withheld)
	case t.Layout != "" && t.Verified:
		how = figure.Joined(" · ", how, "verified on the tensors that were read")
	}
	list.Add("read by", page.Muted, how)
	list.Add("machine", page.Muted, figure.Joined(" · ", t.CPU, prefixed("kernel ", t.Kernel), t.Arch))
	list = append(list, b.peak()...)
	for _, f := range t.Files {
		list = append(list, page.Fact{Label: cmp.Or(f.Role, "file"), Text: page.Toned(page.Muted, f.Path+prefixed(" build ", f.BuildID)), Detail: true})
	}
	for i := range t.Sites {
		list = append(list, page.Fact{Label: "probe", Text: page.Toned(page.Muted, site(&t.Sites[i])), Detail: true})
	}
	if o := &b.s.Observer; len(t.Sites) > 0 && o.CostPerHit > 0 {
		text := "hot: the caches hold what the probe needs; cold: weights stream through them between two hits; the mean hit here takes " + figure.Duration(o.CostPerHit) + ", copying included"
		list = append(list, page.Fact{Text: page.Toned(page.Muted, text), Detail: true})
	}
	return list
}

// site returns the place of a probe, and the cost of one hit.
func site(s *optrace.Site) string {
	how := "single-stepped"
	if s.Cheap {
		how = "emulated"
	}
	hot, cold := s.HitCost()
	hit := figure.Duration(hot)
	if hot != cold {
		hit += " hot to " + figure.Duration(cold) + " cold"
	}
	return s.Symbol + "+" + figure.Whole(float64(s.Offset)) + prefixed(" at ", s.Instruction) + ", " + how + ", " + hit + " a hit (est)"
}

// peak returns the machine peak.
func (b *builder) peak() page.Facts {
	f := &b.s.Peak
	var list page.Facts
	if f.BytesPerSecond <= 0 && f.FlopsPerSecond <= 0 {
		list.Add("machine peak", page.Muted, figure.Absent+" not known")
		return list
	}
	text := peakRates(f.BytesPerSecond, f.FlopsPerSecond, f.Int8PerSecond)
	if f.Threads > 0 {
		text += " with " + figure.Counted(f.Threads, "thread")
	}
	origin := f.From
	if f.From == optrace.PeakSeen {
		origin = b.s.SeenPeak() + "; the machine may do more, and operators that read from caches can exceed it"
	}
	list.Add("peak", page.Muted, text+prefixed(", ", origin))
	return list
}

func peakRates(bytes, flops, int8 float64) string {
	text := billions(positive(bytes)) + figure.NBSP + "GB/s, " + billions(positive(flops)) + figure.NBSP + "GFLOP/s"
	if int8 > 0 {
		text += ", " + billions(positive(int8)) + figure.NBSP + "int8" + figure.NBSP + "GOP/s"
	}
	return text
}

// positive returns a figure that is absent unless it is above 0.
func positive(v float64) stat.Opt {
	if v > 0 {
		return stat.Some(v)
	}
	return stat.None
}

// phaseLine is a row of the table of phases.
type phaseLine struct {
	label string
	of    func(*optrace.PhaseRow) page.Cell
}

// phases returns the figures of each phase, with a column for each.
func (b *builder) phases() page.Section {
	out := page.Section{ID: "phases", Title: "Phases", Note: "quantiles are nearest rank; GB/s and GFLOP/s follow from shapes (est)"}
	if len(b.s.Phases) == 0 {
		return out
	}
	t := &page.Table{Columns: []page.Column{{Left: true, Tone: page.Muted}}}
	for i := range b.s.Phases {
		t.Columns = append(t.Columns, page.Column{Head: cmp.Or(b.s.Phases[i].Phase, "unknown")})
	}
	for _, line := range b.phaseLines() {
		row, known := []page.Cell{page.Words(line.label)}, false
		for i := range b.s.Phases {
			c := line.of(&b.s.Phases[i])
			known = known || c.Text != figure.Absent
			row = append(row, c)
		}
		if known {
			t.Rows = append(t.Rows, row)
		}
	}
	out.Add(t)
	return out
}

func (b *builder) phaseLines() []phaseLine {
	apart := false
	for i := range b.s.Phases {
		apart = apart || b.s.Phases[i].PaceDiffers()
	}
	inCalls := map[bool]string{false: "tok/s", true: "tok/s in calls"}[apart]
	time := func(d *stat.Distribution, at time.Duration) page.Cell {
		if d.Count <= 0 {
			return page.Words("")
		}
		return page.Elapsed(at)
	}
	return []phaseLine{
		{"calls", func(p *optrace.PhaseRow) page.Cell { return page.Integer(p.Calls) }},
		{"tokens", func(p *optrace.PhaseRow) page.Cell {
			if p.Tokens <= 0 {
				return page.Words("")
			}
			return page.Integer(p.Tokens)
		}},
		{inCalls, func(p *optrace.PhaseRow) page.Cell { return page.Ratio(p.Rate) }},
		{"tok/s in answers", func(p *optrace.PhaseRow) page.Cell {
			if !apart {
				return page.Words("")
			}
			return page.Ratio(p.Paced)
		}},
		{"ceiling tok/s (est)", func(p *optrace.PhaseRow) page.Cell { return page.Ratio(Ceiling(b.s, p)) }},
		{"call p50", func(p *optrace.PhaseRow) page.Cell { return time(&p.Call, p.Call.P50) }},
		{"call p95", func(p *optrace.PhaseRow) page.Cell { return time(&p.Call, p.Call.P95) }},
		{"call max", func(p *optrace.PhaseRow) page.Cell { return time(&p.Call, p.Call.Max) }},
		{"graph p50", func(p *optrace.PhaseRow) page.Cell { return time(&p.Graph, p.Graph.P50) }},
		{"between calls p50", func(p *optrace.PhaseRow) page.Cell { return time(&p.Between, p.Between.P50) }},
		{"first token p50", func(p *optrace.PhaseRow) page.Cell { return time(&p.FirstToken, p.FirstToken.P50) }},
		{"first token p95", func(p *optrace.PhaseRow) page.Cell { return time(&p.FirstToken, p.FirstToken.P95) }},
		{"moved", func(p *optrace.PhaseRow) page.Cell { return page.Amount(p.Bytes, "B") }},
		{"GB/s", func(p *optrace.PhaseRow) page.Cell { return rate(p.BytesRate, false) }},
		{"GFLOP/s", func(p *optrace.PhaseRow) page.Cell { return rate(p.FlopsRate, false) }},
	}
}

// rate returns a cell of a rate in 10⁹ per second. ≈ marks a rate that is not derived from shapes alone.
func rate(o stat.Opt, estimated bool) page.Cell {
	text := billions(o)
	if estimated && o.Finite().OK {
		text = "≈" + text
	}
	return page.Cell{Text: text, Value: o.Finite()}
}
