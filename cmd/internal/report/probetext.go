package report

import (
	"cmp"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/capture"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// WriteProbe writes p as a page of text: what the requests saw and what the hardware
// did in a few lines, what to know before believing them, the run as a picture, and
// then every figure. No line is wider than o.Width cells.
func WriteProbe(w io.Writer, p *Probe, o Options) error {
	r := &probePage{page: newPage(w, o), Probe: p, c: p.Capture, s: p.Summary}
	if r.s == nil {
		r.s = &capture.Summary{Span: p.Capture.Span()}
	}
	if p.Setup.Target.Simulated {
		r.para(0, 2, text{r.mark(warn, "SIMULATED server:"), r.span(body, " it shows how rooftop works, not what hardware does")})
		r.blank()
	}
	r.subject()
	r.glance()
	r.warnings()
	r.timeline()
	r.requests()
	r.processes()
	r.gpus()
	r.derivedSection()
	r.sizing()
	r.notKnown()
	r.absences()
	r.remarks()
	r.blank()
	more := "-v shows every process, every GPU reading and whole reasons; --json has all samples"
	if o.Verbose {
		more = "--json has all samples"
	}
	r.para(0, 0, r.text(muted, more))
	return r.flush()
}

// probePage is one probe on its way to a page.
type probePage struct {
	*page
	*Probe
	c *capture.Capture
	s *capture.Summary
}

// subject says what was asked, of whom.
func (r *probePage) subject() {
	t := &r.Setup.Target
	engine := strings.TrimSpace(t.Engine + " " + t.EngineVersion)
	what := "observed for " + shownTime(r.c.Span())
	if r.c.Kind == capture.Probe {
		what = requestCount(r.Probe)
		if q := r.Setup.Request; q != nil && q.Concurrency > 1 {
			what += ", " + figure.Whole(float64(q.Concurrency)) + " at a time"
		}
	}
	r.para(0, 2, r.text(strong, strings.Join(nonEmpty(what, t.Model, engine), " · ")))
	if t.URL != "" {
		r.para(0, 2, r.text(muted, t.URL))
	}
}

// requestCount is how many requests were sent, and of how many that were asked for
// where the run ended before.
func requestCount(p *Probe) string {
	n, q := len(p.Capture.Requests), p.Setup.Request
	switch {
	case q == nil:
		return plural(n, "request")
	case q.Repeat > n:
		return figure.Whole(float64(n)) + " of " + plural(q.Repeat, q.API+" request")
	}
	return plural(n, q.API+" request")
}

// glance is the answer in a few lines: latency, processes, GPUs, cost.
func (r *probePage) glance() {
	r.blank()
	r.latencyGlance()
	r.treeGlance()
	r.gpuGlance()
	var cost []string
	if q := r.derived(capture.JoulesPerToken); q.Value.OK {
		cost = append(cost, figure.Show(q.Value, "J")+"/token"+tail(q))
	}
	if q := r.derived(capture.DollarsPerMillion); q.Value.OK {
		cost = append(cost, figure.Dollars(q.Value.V)+"/1M"+nbsp+"tok"+tail(q))
	}
	if len(cost) > 0 {
		r.label("cost", r.text(strong, strings.Join(cost, " · ")))
	}
}

func tail(q engine.Quantity) string {
	if e := est(q.Source); e != "" {
		return nbsp + e
	}
	return ""
}

// glanceColumn is where the text of a glance begins.
const glanceColumn = 13

func (r *probePage) label(label string, t text) {
	r.define(indent, glanceColumn, r.text(muted, label), t)
}

func (r *probePage) latencyGlance() {
	q := r.s.Requests
	if q == nil {
		r.serverGlance()
		return
	}
	parts := nonEmpty(
		times("TTFT", q.TTFT, len(r.c.Requests) > 1),
		rates(q),
		quantiles("ITL", q.ITL),
	)
	if len(parts) == 0 {
		r.label("requests", r.text(bad, absent+" no request brought a token"))
		return
	}
	r.label("requests", r.text(strong, strings.Join(parts, " · ")))
}

// serverGlance is the output of an observed server by its own counter, with what to
// know of it, or why it is not known.
func (r *probePage) serverGlance() {
	n := r.c.Counted()
	rate := stat.None
	if span := r.c.Span().Seconds(); span > 0 {
		rate = finite(n.Tokens.Times(1 / span))
	}
	switch {
	case rate.OK && n.Estimate:
		r.label("server", append(r.text(strong, figure.Significant(rate.V)+nbsp+"tok/s"+nbsp+est(engine.Estimate)), r.text(muted, " · "+n.Note)...))
	case rate.OK:
		r.label("server", r.text(strong, figure.Significant(rate.V)+nbsp+"tok/s by its own counter"))
	case r.c.Kind != capture.Observation:
	case n.Reason != "" && r.counterRead():
		r.label("server", r.text(muted, absent+nbsp+"tok/s: "+n.Reason))
	default:
		r.label("server", r.text(muted, absent+" "+r.noPages()))
	}
}

// counterRead says that the server's page was read, and that it counts tokens.
func (r *probePage) counterRead() bool {
	return slices.ContainsFunc(r.c.Pages, func(p capture.PageSample) bool { return p.Error == "" && p.GenerationTokens.OK })
}

// times is the mean of a distribution, named so where it is of several.
func times(name string, d capture.Distribution, several bool) string {
	if d.Count == 0 {
		return ""
	}
	if several {
		return name + nbsp + "p50" + nbsp + shownTime(d.P50) + ", p99" + nbsp + shownTime(d.P99)
	}
	return name + nbsp + shownTime(d.Mean)
}

func quantiles(name string, d capture.Distribution) string {
	if d.Count == 0 {
		return ""
	}
	return name + nbsp + "p50" + nbsp + shownTime(d.P50) + ", p95" + nbsp + shownTime(d.P95) + ", p99" + nbsp + shownTime(d.P99)
}

func shownTime(d time.Duration) string { return figure.Show(stat.Some(d.Seconds()), "s") }

// rates are the output over the run, and after the first token.
func rates(q *capture.RequestsSummary) string {
	out := finite(q.OutputPerSecond)
	if !out.OK {
		return ""
	}
	s := figure.Significant(out.V) + nbsp + "tok/s"
	if d := finite(q.DecodePerSecond); d.OK {
		s += " (" + figure.Significant(d.V)
		if q.Whole > 1 {
			s += " a request"
		}
		s += " after the first token)"
	}
	return s
}

func (r *probePage) treeGlance() {
	t := r.s.Tree
	if t == nil {
		r.label("processes", r.text(muted, absent+" "+r.noTree()))
		return
	}
	u := &t.Total
	parts := []string{
		"CPU" + nbsp + amounts(u.CPU, "cores"),
		"RSS" + nbsp + figure.Show(finite(u.RSS.Peak), "B") + " peak",
		processCount(u.Count) + ", " + threads(u.Threads.Peak),
	}
	r.label("processes", r.text(strong, figure.Minus(strings.Join(parts, " · "))))
}

func processCount(n int) string {
	if n == 1 {
		return "1" + nbsp + "process"
	}
	return figure.Whole(float64(n)) + nbsp + "processes"
}

func threads(n stat.Opt) string {
	if n := finite(n); !n.OK || n.V != 1 {
		return figure.Show(n, "") + nbsp + "threads"
	}
	return "1" + nbsp + "thread"
}

// amounts are mean and peak of a row, the unit once where both have it.
func amounts(row capture.Row, unit string) string {
	mean, peak := finite(row.Mean), finite(row.Peak)
	switch {
	case mean.OK && peak.OK && unit == "cores":
		number, _ := figure.Amount(peak.V, unit)
		return figure.Show(mean, unit) + " mean, " + number + " peak"
	case mean.OK && peak.OK:
		return figure.Show(mean, unit) + " mean, " + figure.Show(peak, unit) + " peak"
	case mean.OK:
		return figure.Show(mean, unit) + " mean"
	case peak.OK:
		return figure.Show(peak, unit) + " peak"
	}
	return absent
}

func (r *probePage) gpuGlance() {
	if len(r.s.GPUs) == 0 {
		r.label("GPU", r.text(muted, absent+" "+r.noGPU()))
		return
	}
	var parts []string
	parts = append(parts, strings.ReplaceAll(r.s.GPUNames(), " × ", nbsp+"×"+nbsp))
	util, power, memory := r.across(engine.GPUUtil), r.across(engine.GPUPowerW), r.across(engine.GPUVRAMUsed)
	if util.Mean.OK || util.Peak.OK {
		parts = append(parts, "busy"+nbsp+amounts(util, "ratio"))
	}
	if power.Mean.OK {
		parts = append(parts, figure.Show(power.Mean, "W")+" mean")
	}
	if memory.Peak.OK {
		parts = append(parts, "VRAM"+nbsp+figure.Show(memory.Peak, "B")+" peak")
	}
	if !util.Mean.OK && !util.Peak.OK && !power.Mean.OK && !memory.Peak.OK {
		parts = []string{absent + " " + r.short(firstReason(util, power, memory))}
	}
	r.label("GPU", r.text(strong, strings.Join(parts, " · ")))
}

// across is a field over all devices: the mean of utilisations, the sum of others.
// It is absent where a device lacks it.
func (r *probePage) across(f engine.GPUField) capture.Row {
	out := capture.Row{Mean: stat.Some(0), Peak: stat.Some(0)}
	n := 0.0
	for i := range r.s.GPUs {
		row := r.s.GPUs[i].Fields[f]
		mean, peak := finite(row.Mean), finite(row.Peak)
		if !mean.OK && !peak.OK {
			return capture.Row{Reason: row.Reason}
		}
		out.Mean, out.Peak = both(out.Mean, mean), both(out.Peak, peak)
		n++
	}
	if f == engine.GPUUtil && n > 0 {
		out.Mean, out.Peak = out.Mean.Times(1/n), out.Peak.Times(1/n)
	}
	return out
}

// both adds two values, absent where one is: what one GPU lacks is not zero.
func both(a, b stat.Opt) stat.Opt {
	if !a.OK || !b.OK {
		return stat.None
	}
	return a.Plus(b)
}

func firstReason(rows ...capture.Row) string {
	for _, row := range rows {
		if row.Reason != "" {
			return row.Reason
		}
	}
	return unread
}

// Short reasons for what is not there.
func (r *probePage) noTree() string { return r.short(cmp.Or(r.c.Tree.Why, "no process was sampled")) }
func (r *probePage) noGPU() string  { return r.short(cmp.Or(r.c.GPUs.Why, "no GPU was sampled")) }
func (r *probePage) noPages() string {
	for i := range r.c.Pages {
		if e := r.c.Pages[i].Error; e != "" {
			return r.short(e)
		}
	}
	return "the server has no metrics page that was read"
}

// remarks are the notes of the run and of its requests, each once.
func (r *probePage) remarks() {
	var all []string
	add := func(notes []string) {
		for _, n := range notes {
			if !slices.Contains(all, n) {
				all = append(all, n)
			}
		}
	}
	add(r.c.Notes)
	for i := range r.c.Requests {
		add(r.c.Requests[i].Notes)
	}
	if len(all) == 0 {
		return
	}
	r.heading("Notes", "")
	for _, n := range all {
		r.para(indent, indent+2, r.text(body, n))
	}
}
