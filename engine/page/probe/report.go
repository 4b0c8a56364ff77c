// Package probe builds the pages of probes and observations, with every
// sentence and figure in them.
package probe

import (
	"cmp"
	"slices"
	"strings"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/capture"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/page"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

const nbsp = figure.NBSP

// report builds the page of one capture.
type report struct {
	*capture.Record
	c *capture.Capture
	s *capture.Summary
	// everything keeps full reasons and gaps that a short page summarizes.
	everything bool
}

// Page returns the page of a capture: a short summary of requests and hardware, caveats, the run as a
// picture, and then every figure. With everything it has every process, every GPU reading and full
// reasons.
func Page(record *capture.Record, everything bool) *page.Page {
	r := &report{Record: record, c: record.Capture, s: record.Summary, everything: everything}
	if r.s == nil {
		r.s = &capture.Summary{Span: r.c.Span()}
	}
	p := &page.Page{}
	add := func(id, title, note string, nodes ...page.Node) {
		p.Sections = append(p.Sections, page.Section{ID: id, Title: title, Note: note, Nodes: nodes})
	}
	if r.Setup.Target.Simulated {
		add("simulated", "", "", page.Paragraph(page.Mark(page.Warn, "SIMULATED server:"), page.Toned(page.Body, " it shows how rooftop works, not what hardware does")))
	}
	add("subject", "", "", r.subject()...)
	add("overview", "", "", append([]page.Node{r.overview()}, r.warnings()...)...)
	p.Sections = append(p.Sections, r.timeline(), r.requests(), r.processes(), r.gpus(), r.derived(), r.sizing(), r.unknown(), r.missing(), r.notes())
	more := "-v shows every process, every GPU reading and full reasons; --json has all samples"
	if everything {
		more = "--json has all samples"
	}
	p.Sections = append(p.Sections, page.Section{ID: "more", Terminal: true, Nodes: []page.Node{page.Paragraph(page.Toned(page.Muted, more))}})
	return p
}

// estimated returns the mark of an estimate, or "".
func estimated(o engine.Origin) string {
	if o == engine.Estimate {
		return nbsp + "(est)"
	}
	return ""
}

// shortReason returns a reason up to its first full stop, or all of it on a page with everything.
func (r *report) shortReason(reason string) string {
	if r.everything {
		return reason
	}
	for _, stop := range []string{"; ", ": ", ". "} {
		if head, _, cut := strings.Cut(reason, stop); cut && len(head) > 12 {
			reason = head
		}
	}
	return reason
}

// absentText returns the text for an absent figure with its reason.
func (r *report) absentText(reason string) page.Text {
	return page.Toned(page.Muted, figure.Absent+" "+r.shortReason(cmp.Or(reason, "not measured")))
}

// subject returns what was requested, and from which server.
func (r *report) subject() []page.Node {
	t := &r.Setup.Target
	what := "observed for " + figure.Duration(r.c.Span())
	if r.c.Kind == capture.Probe {
		what = requestCount(r.Record)
		if q := r.Setup.Request; q != nil && q.Concurrency > 1 {
			what += ", " + figure.Whole(float64(q.Concurrency)) + " at a time"
		}
	}
	nodes := []page.Node{page.Paragraph(page.Toned(page.Strong, figure.Joined(" · ", what, t.Model, strings.TrimSpace(t.Engine+" "+t.EngineVersion))))}
	if t.URL != "" {
		nodes = append(nodes, page.Paragraph(page.Toned(page.Muted, t.URL)))
	}
	return nodes
}

// requestCount returns the number of requests sent, and the planned number if the run ended early.
func requestCount(r *capture.Record) string {
	n, q := len(r.Capture.Requests), r.Setup.Request
	switch {
	case q == nil:
		return figure.Counted(n, "request")
	case q.Repeat > n:
		return figure.Whole(float64(n)) + " of " + figure.Counted(q.Repeat, q.API+" request")
	}
	return figure.Counted(n, q.API+" request")
}

// overview returns the summary in a few lines: latency, processes, GPUs, cost.
func (r *report) overview() page.Facts {
	var f page.Facts
	if r.s.Requests != nil {
		f = append(f, page.Fact{Label: "requests", Text: r.latencies()})
	} else if text := r.serverOutput(); text != nil {
		f = append(f, page.Fact{Label: "server", Text: text})
	}
	f = append(f, page.Fact{Label: "processes", Text: r.treeLine()}, page.Fact{Label: "GPU", Text: r.gpuLine()})
	var cost []string
	if q := r.quantity(capture.JoulesPerToken); q.Value.OK {
		cost = append(cost, figure.Show(q.Value, "J")+"/token"+estimated(q.Source))
	}
	if q := r.quantity(capture.DollarsPerMillion); q.Value.OK {
		cost = append(cost, figure.Dollars(q.Value.V)+"/1M"+nbsp+"tok"+estimated(q.Source))
	}
	f.Add("cost", page.Strong, strings.Join(cost, " · "))
	return f
}

// quantity returns the derived figure with a name, absent if there is none.
func (r *report) quantity(name string) engine.Quantity {
	for _, q := range r.s.Derived {
		if q.Name == name {
			q.Value = q.Value.Finite()
			return q.Quantity
		}
	}
	return engine.Quantity{}
}

func (r *report) latencies() page.Text {
	q := r.s.Requests
	parts := figure.Joined(" · ", latency("TTFT", q.TTFT, len(r.c.Requests) > 1), outputRates(q), quantiles("ITL", q.ITL))
	if parts == "" {
		return page.Toned(page.Bad, figure.Absent+" no request returned a token")
	}
	return page.Toned(page.Strong, parts)
}

// serverOutput returns the output of an observed server by its own counter, or why it is unknown; nil
// for a probe without requests.
func (r *report) serverOutput() page.Text {
	n := r.c.Counted()
	rate := stat.PerSecond(n.Tokens.V, r.c.Span())
	spelled := figure.Significant(rate.V) + nbsp + "tok/s"
	switch {
	case n.Tokens.Finite().OK && rate.OK && n.Estimate:
		return page.Join(page.Toned(page.Strong, spelled+nbsp+"(est)"), page.Toned(page.Muted, " · "+n.Note))
	case n.Tokens.Finite().OK && rate.OK:
		return page.Toned(page.Strong, spelled+" by its own counter")
	case r.c.Kind != capture.Observation:
		return nil
	case n.Reason != "" && slices.ContainsFunc(r.c.Pages, func(p capture.PageSample) bool { return p.Error == "" && p.GenerationTokens.OK }):
		return page.Toned(page.Muted, figure.Absent+nbsp+"tok/s: "+n.Reason)
	}
	for i := range r.c.Pages {
		if e := r.c.Pages[i].Error; e != "" {
			return page.Toned(page.Muted, figure.Absent+" "+r.shortReason(e))
		}
	}
	return page.Toned(page.Muted, figure.Absent+" the server has no metrics page that was read")
}

// latency returns the mean of a single value, or two quantiles of several.
func latency(name string, d capture.Distribution, several bool) string {
	switch {
	case d.Count == 0:
		return ""
	case several:
		return name + nbsp + "p50" + nbsp + figure.Duration(d.P50) + ", p99" + nbsp + figure.Duration(d.P99)
	}
	return name + nbsp + figure.Duration(d.Mean)
}

func quantiles(name string, d capture.Distribution) string {
	if d.Count == 0 {
		return ""
	}
	return name + nbsp + "p50" + nbsp + figure.Duration(d.P50) + ", p95" + nbsp + figure.Duration(d.P95) + ", p99" + nbsp + figure.Duration(d.P99)
}

// outputRates returns the output over the run, and after the first token.
func outputRates(q *capture.RequestsSummary) string {
	out := q.OutputPerSecond.Finite()
	if !out.OK {
		return ""
	}
	s := figure.Significant(out.V) + nbsp + "tok/s"
	if d := q.DecodePerSecond.Finite(); d.OK {
		s += " (" + figure.Significant(d.V)
		if q.Whole > 1 {
			s += " a request"
		}
		s += " after the first token)"
	}
	return s
}

func (r *report) treeLine() page.Text {
	t := r.s.Tree
	if t == nil {
		return r.absentText(cmp.Or(r.c.Tree.Why, "no process was sampled"))
	}
	u := &t.Total
	threads := figure.Show(u.Threads.Peak.Finite(), "") + nbsp + "threads"
	if n := u.Threads.Peak.Finite(); n.OK && n.V == 1 {
		threads = "1" + nbsp + "thread"
	}
	return page.Toned(page.Strong, figure.Minus(figure.Joined(" · ", "CPU"+nbsp+meanAndPeak(u.CPU, "cores"),
		"RSS"+nbsp+figure.Show(u.RSS.Peak.Finite(), "B")+" peak", figure.Unbroken(figure.Counted(u.Count, "process"))+", "+threads)))
}

// meanAndPeak formats both values of a row, with a unit of cores only once.
func meanAndPeak(row capture.Row, unit string) string {
	mean, peak := row.Mean.Finite(), row.Peak.Finite()
	var parts []string
	if mean.OK {
		parts = append(parts, figure.Show(mean, unit)+" mean")
	}
	if peak.OK {
		spelled := figure.Show(peak, unit)
		if mean.OK && unit == "cores" {
			spelled, _ = figure.Amount(peak.V, unit)
		}
		parts = append(parts, spelled+" peak")
	}
	return cmp.Or(strings.Join(parts, ", "), figure.Absent)
}

func (r *report) gpuLine() page.Text {
	if len(r.s.GPUs) == 0 {
		return r.absentText(cmp.Or(r.c.GPUs.Why, "no GPU was sampled"))
	}
	util, power, memory := r.allGPUs(engine.GPUUtil), r.allGPUs(engine.GPUPowerW), r.allGPUs(engine.GPUVRAMUsed)
	parts := []string{strings.ReplaceAll(r.s.GPUNames(), " × ", nbsp+"×"+nbsp)}
	if util.Mean.OK || util.Peak.OK {
		parts = append(parts, "busy"+nbsp+meanAndPeak(util, "ratio"))
	}
	if power.Mean.OK {
		parts = append(parts, figure.Show(power.Mean, "W")+" mean")
	}
	if memory.Peak.OK {
		parts = append(parts, "VRAM"+nbsp+figure.Show(memory.Peak, "B")+" peak")
	}
	if len(parts) == 1 {
		return page.Toned(page.Strong, figure.Absent+" "+r.shortReason(cmp.Or(util.Reason, power.Reason, memory.Reason, capture.NotRead)))
	}
	return page.Toned(page.Strong, strings.Join(parts, " · "))
}

// allGPUs returns a field over all devices: the mean of utilizations, the sum of others. It is absent
// if any device lacks it, because a missing value is not zero.
func (r *report) allGPUs(f engine.GPUField) capture.Row {
	sum := capture.Row{Mean: stat.Some(0), Peak: stat.Some(0)}
	both := func(a, b stat.Opt) stat.Opt {
		if !a.OK || !b.OK {
			return stat.None
		}
		return a.Plus(b)
	}
	for i := range r.s.GPUs {
		row := r.s.GPUs[i].Fields[f]
		mean, peak := row.Mean.Finite(), row.Peak.Finite()
		if !mean.OK && !peak.OK {
			return capture.Row{Reason: row.Reason}
		}
		sum.Mean, sum.Peak = both(sum.Mean, mean), both(sum.Peak, peak)
	}
	if n := float64(len(r.s.GPUs)); f == engine.GPUUtil && n > 0 {
		sum.Mean, sum.Peak = sum.Mean.Times(1/n), sum.Peak.Times(1/n)
	}
	return sum
}

// notes returns the distinct notes of the run and of its requests.
func (r *report) notes() page.Section {
	all := slices.Clone(r.c.Notes)
	for i := range r.c.Requests {
		all = append(all, r.c.Requests[i].Notes...)
	}
	s := page.Section{ID: "notes", Title: "Notes"}
	for i, n := range all {
		if slices.Index(all, n) == i {
			s.Add(page.Paragraph(page.Toned(page.Body, n)))
		}
	}
	return s
}

// missing returns the sources that could not be read.
func (r *report) missing() page.Section {
	s := page.Section{ID: "missing", Title: "Not read"}
	for _, m := range r.c.Missing {
		if r.summarizesGPUGaps() && slices.Contains(gpuSources[:], m.What) {
			continue // named in the line "Not known"
		}
		text := m.What + ": " + m.Reason
		if m.Effect != "" {
			text += " → " + m.Effect
		}
		s.Add(page.Paragraph(page.Toned(page.Muted, text)))
	}
	return s
}
