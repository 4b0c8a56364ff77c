package report

import (
	"cmp"
	"slices"
	"strings"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/capture"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// short is a reason up to its first stop, whole with -v.
func (r *probePage) short(reason string) string {
	if r.o.Verbose {
		return reason
	}
	for _, stop := range []string{"; ", ": ", ". "} {
		if head, _, cut := strings.Cut(reason, stop); cut && len(head) > 12 {
			reason = head
		}
	}
	return reason
}

// gap is the sign of what is absent with its reason.
func (r *probePage) gap(reason string) text {
	return r.text(muted, absent+" "+r.short(cmp.Or(reason, "not measured")))
}

// columnHeads are the cells of a table's first line; the first column has none.
func (p *page) columnHeads(names ...string) []cell {
	row := []cell{{}}
	for _, n := range names {
		row = append(row, cell{t: p.text(muted, n), right: true})
	}
	return row
}

// fitted writes a table, its columns a cell apart where two do not fit.
func (r *probePage) fitted(t *table) {
	if t.natural() > r.width-indent {
		t.gap = 1
	}
	r.table(indent, t)
}

// requests says how long requests took and how many tokens they brought.
func (r *probePage) requests() {
	q := r.s.Requests
	if q == nil {
		return
	}
	r.heading("Requests", plural(q.Sent, "request")+" sent, "+figure.Whole(float64(q.Whole))+" whole; quantiles are nearest rank")
	t := &table{}
	t.add(r.columnHeads("count", "mean", "p50", "p95", "p99", "max")...)
	for _, row := range [...]struct {
		name string
		d    capture.Distribution
	}{{"TTFT", q.TTFT}, {"ITL", q.ITL}, {"TPOT", q.TPOT}, {"E2E", q.E2E}, {"connect", q.Connect}} {
		if row.d.Count > 0 {
			t.add(r.distribution(row.name, row.d)...)
		}
	}
	if len(t.rows) > 1 {
		r.fitted(t)
	} else {
		r.line(indent, r.gap("no request came so far as to have a time"))
	}
	r.rates(q)
	r.tokens(&q.Tokens)
	r.promptTokens(q)
	r.serverTTFT(&q.Server)
	for i := range q.Failures {
		r.failure(&q.Failures[i])
	}
}

// failure is one kind of error with how often it was. What an interrupt cut off did not
// fail.
func (r *probePage) failure(f *capture.Failure) {
	label, said := r.mark(bad, "failed"), figure.Whole(float64(f.Count))+nbsp+"× "
	if r.cutOff(f) {
		label = r.mark(warn, "cut off")
	}
	if f.Example {
		said += "such as: "
	}
	r.define(indent, sectionColumn, text{label}, r.text(body, said+f.Error))
}

// sectionColumn is where the text after a label begins within a section.
const sectionColumn = 14

func (r *probePage) distribution(name string, d capture.Distribution) []cell {
	row := []cell{{t: r.text(body, name)}, {t: r.text(body, figure.Whole(float64(d.Count))), right: true}}
	for _, v := range [...]float64{d.Mean.Seconds(), d.P50.Seconds(), d.P95.Seconds(), d.P99.Seconds(), d.Max.Seconds()} {
		row = append(row, cell{t: r.text(strong, figure.Show(stat.Some(v), "s")), right: true})
	}
	return row
}

func (r *probePage) entry(label string, t text) {
	r.define(indent, sectionColumn, r.text(muted, label), t)
}

func (r *probePage) rates(q *capture.RequestsSummary) {
	var parts []string
	for _, v := range [...]struct {
		value stat.Opt
		of    string
	}{
		{q.OutputPerSecond, "over the run"},
		{q.RequestPerSecond, "a request with its TTFT"},
		{q.DecodePerSecond, "a request after its first token"},
	} {
		if o := finite(v.value); o.OK {
			parts = append(parts, figure.Significant(o.V)+nbsp+v.of)
		}
	}
	if len(parts) > 0 {
		r.entry("tok/s", r.text(body, strings.Join(parts, " · ")))
	}
}

// tokens are the output tokens as three witnesses count them.
func (r *probePage) tokens(k *capture.Tokens) {
	count := func(o stat.Opt) string { return figure.Show(finite(o), "") }
	said := "usage" + nbsp + count(k.Usage) + " · chunks" + nbsp + figure.Whole(float64(k.Chunks)) + " · server's counter" + nbsp + count(k.Counter)
	if k.From != "" {
		said += "; figures go by " + k.From
	}
	r.entry("tokens", r.text(body, said))
	var kinds []string
	if k.ReasoningChunks > 0 || finite(k.ReasoningTokens).OK {
		kinds = append(kinds, "reasoning: "+plural(k.ReasoningChunks, "chunk")+", "+count(k.ReasoningTokens)+nbsp+"tokens by usage")
	}
	if k.ToolChunks > 0 {
		kinds = append(kinds, "tool calls: "+plural(k.ToolChunks, "chunk"))
	}
	if len(kinds) > 0 {
		r.entry("", r.text(body, strings.Join(kinds, " · ")))
	}
	for _, d := range k.Differences {
		r.entry("", text{r.mark(warn, "differ:"), r.span(body, " "+d)})
	}
}

func (r *probePage) promptTokens(q *capture.RequestsSummary) {
	prompt, cached := finite(q.PromptTokens), finite(q.CachedTokens)
	if !prompt.OK {
		return
	}
	said := figure.Show(prompt, "") + nbsp + "tokens"
	if cached.OK {
		said += ", " + figure.Show(cached, "") + " from the prefix cache"
	}
	r.entry("prompt", r.text(body, said))
}

// serverTTFT divides the time to first token between the server and what is outside
// of it.
func (r *probePage) serverTTFT(s *capture.ServerTTFT) {
	if prefill, client := finite(s.Prefill), finite(s.Client); !finite(s.Server).OK && prefill.OK && client.OK {
		said := "client" + nbsp + figure.Show(client, "s") + " = prefill" + nbsp + figure.Show(prefill, "s") + " (" + s.From + ") + " +
			figure.Show(stat.Some(max(0, client.V-prefill.V)), "s") + " before and after it: the server's queue, other requests, the network"
		r.entry("TTFT split", r.text(body, said))
		return
	}
	if !finite(s.Server).OK {
		r.entry("TTFT split", r.gap(s.Reason))
		return
	}
	client, server := "client"+nbsp+figure.Show(finite(s.Client), "s"), "server"+nbsp+figure.Show(finite(s.Server), "s")
	if !finite(s.Outside).OK {
		r.entry("TTFT split", text{r.span(body, client+" · "+server+" "), r.span(muted, absent+" "+s.Reason)})
		return
	}
	said := client + " = " + server + " + outside" + nbsp + figure.Show(finite(s.Outside), "s")
	var inside []string
	if v := finite(s.Queue); v.OK {
		inside = append(inside, "queue"+nbsp+figure.Show(v, "s"))
	}
	if v := finite(s.Prefill); v.OK {
		inside = append(inside, "prefill"+nbsp+figure.Show(v, "s"))
	}
	if len(inside) > 0 {
		said += "; of the server's " + strings.Join(inside, ", ")
	}
	if s.From != "" {
		said += " (" + s.From + ", means)"
	}
	r.entry("TTFT split", r.text(body, said))
}

// derivedSection are the figures that follow from several sources.
func (r *probePage) derivedSection() {
	t := &table{}
	var gaps []engine.NamedQuantity
	for _, q := range r.s.Derived {
		if v := finiteQuantity(q.Quantity); v.Value.OK {
			t.add(r.derivedRow(q.Name, v)...)
		} else {
			gaps = append(gaps, engine.NamedQuantity{Name: q.Name, Quantity: v})
		}
	}
	if r.folded() {
		gaps = slices.DeleteFunc(gaps, func(q engine.NamedQuantity) bool { return !needsNoGPU(q.Name) }) // notKnown has them
	}
	if len(t.rows)+len(gaps) == 0 {
		return
	}
	r.heading("Derived", "")
	if !r.o.Verbose && t.natural() > r.width-indent { // the notes go
		for i := range t.rows {
			t.rows[i] = t.rows[i][:3]
		}
	}
	r.table(indent, t)
	r.gaps(gaps, r.short)
}

func (r *probePage) derivedRow(name string, v engine.Quantity) []cell {
	origin := string(cmp.Or(v.Source, engine.Derived))
	if e := est(v.Source); e != "" {
		origin = e
	}
	return []cell{
		{t: r.text(body, strings.ReplaceAll(name, "_", " "))}, {t: r.text(strong, atLeast(v)+figure.Show(v.Value, v.Unit)), right: true},
		{t: r.text(muted, origin)}, {t: r.text(muted, v.Note)},
	}
}

// gaps are figures that are absent, those of one reason together, as spell has it.
func (p *page) gaps(list []engine.NamedQuantity, spell func(reason string) string) {
	var reasons []string
	names := map[string][]string{}
	for _, q := range list {
		reason := spell(q.Reason)
		if names[reason] == nil {
			reasons = append(reasons, reason)
		}
		names[reason] = append(names[reason], strings.NewReplacer("_", nbsp, " ", nbsp).Replace(q.Name))
	}
	for _, reason := range reasons {
		p.para(indent, indent+2, p.text(muted, absent+" "+strings.Join(names[reason], ", ")+": "+reason))
	}
}
