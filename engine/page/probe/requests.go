package probe

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/capture"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/page"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// named is a value with its name: a row of a table.
type named[T any] struct {
	name string
	v    T
}

// requests returns the latencies of the requests and their tokens.
func (r *report) requests() page.Section {
	q := r.s.Requests
	if q == nil {
		return page.Section{}
	}
	s := page.Section{
		ID: "requests", Title: "Requests",
		Note: figure.Counted(q.Sent, "request") + " sent, " + figure.Whole(float64(q.Whole)) + " whole; quantiles are nearest rank",
	}
	rows := []named[capture.Distribution]{{"TTFT", q.TTFT}, {"ITL", q.ITL}, {"TPOT", q.TPOT}, {"E2E", q.E2E}, {"connect", q.Connect}}
	rows = slices.DeleteFunc(rows, func(row named[capture.Distribution]) bool { return row.v.Count == 0 })
	if len(rows) == 0 {
		s.Add(page.Paragraph(r.absentText("no request got far enough to have a latency")))
	} else {
		s.Add(latencyTable(rows))
	}
	var f page.Facts
	f.Add("tok/s", page.Body, requestRates(q))
	f = append(f, tokenFacts(&q.Tokens)...)
	if prompt := q.PromptTokens.Finite(); prompt.OK {
		text := figure.Show(prompt, "") + nbsp + "tokens"
		if cached := q.CachedTokens.Finite(); cached.OK {
			text += ", " + figure.Show(cached, "") + " from the prefix cache"
		}
		f.Add("prompt", page.Body, text)
	}
	f = append(f, page.Fact{Label: "TTFT", Text: r.splitTTFT(&q.Server)})
	s.Add(f)
	for i := range q.Failures {
		s.Add(r.failure(&q.Failures[i]))
	}
	return s
}

func latencyTable(rows []named[capture.Distribution]) *page.Table {
	type row = named[capture.Distribution]
	seconds := func(head string, of func(d *capture.Distribution) time.Duration) page.Field[row] {
		return page.Right(head, page.Strong, func(r row) page.Cell { return page.Amount(stat.Some(of(&r.v).Seconds()), "s") })
	}
	return page.Tabulate(rows, []page.Field[row]{
		page.Left("", page.Body, func(r row) string { return r.name }),
		page.Right("count", page.Body, func(r row) page.Cell { return page.Integer(r.v.Count) }),
		seconds("mean", func(d *capture.Distribution) time.Duration { return d.Mean }),
		seconds("p50", func(d *capture.Distribution) time.Duration { return d.P50 }),
		seconds("p95", func(d *capture.Distribution) time.Duration { return d.P95 }),
		seconds("p99", func(d *capture.Distribution) time.Duration { return d.P99 }),
		seconds("max", func(d *capture.Distribution) time.Duration { return d.Max }),
	})
}

// failure returns the line of one kind of error and its count. Requests that an interrupt cut off did
// not fail.
func (r *report) failure(f *capture.Failure) page.Prose {
	mark, text := page.Mark(page.Bad, "failed"), "  "+figure.Whole(float64(f.Count))+nbsp+"× "
	if r.cutOff(f) {
		mark = page.Mark(page.Warn, "cut off")
	}
	if f.Example {
		text += "such as: "
	}
	return page.Paragraph(mark, page.Toned(page.Body, text+f.Error))
}

func requestRates(q *capture.RequestsSummary) string {
	var parts []string
	for _, v := range [...]named[stat.Opt]{
		{"over the run", q.OutputPerSecond}, {"a request with its TTFT", q.RequestPerSecond}, {"a request after its first token", q.DecodePerSecond},
	} {
		if o := v.v.Finite(); o.OK {
			parts = append(parts, figure.Significant(o.V)+nbsp+v.name)
		}
	}
	return strings.Join(parts, " · ")
}

// tokenFacts returns the three counts of output tokens.
func tokenFacts(k *capture.Tokens) page.Facts {
	count := func(o stat.Opt) string { return figure.Show(o.Finite(), "") }
	text := "usage" + nbsp + count(k.Usage) + " · chunks" + nbsp + figure.Whole(float64(k.Chunks)) + " · server's counter" + nbsp + count(k.Counter)
	if k.From != "" {
		text += "; figures use " + k.From
	}
	var f page.Facts
	f.Add("tokens", page.Body, text)
	var kinds []string
	if k.ReasoningChunks > 0 || k.ReasoningTokens.Finite().OK {
		kinds = append(kinds, "reasoning: "+figure.Counted(k.ReasoningChunks, "chunk")+", "+count(k.ReasoningTokens)+nbsp+"tokens by usage")
	}
	if k.ToolChunks > 0 {
		kinds = append(kinds, "tool calls: "+figure.Counted(k.ToolChunks, "chunk"))
	}
	f.Add("", page.Body, strings.Join(kinds, " · "))
	for _, d := range k.Differences {
		f = append(f, page.Fact{Text: page.Join(page.Mark(page.Warn, "counts differ:"), page.Toned(page.Body, " "+d))})
	}
	return f
}

// splitTTFT divides the time to first token between the server and everything else.
func (r *report) splitTTFT(s *capture.ServerTTFT) page.Text {
	seconds := func(name string, o stat.Opt) string { return name + nbsp + figure.Show(o.Finite(), "s") }
	client, prefill := s.Client.Finite(), s.Prefill.Finite()
	switch {
	case !s.Server.Finite().OK && prefill.OK && client.OK:
		rest := figure.Show(stat.Some(max(0, client.V-prefill.V)), "s")
		return page.Toned(page.Body, seconds("client", client)+" = "+seconds("prefill", prefill)+" ("+s.From+") + "+rest+
			" before and after it: the server's queue, other requests, the network")
	case !s.Server.Finite().OK:
		return r.absentText(s.Reason)
	case !s.Outside.Finite().OK:
		return page.Join(page.Toned(page.Body, seconds("client", client)+" · "+seconds("server", s.Server)+" "), page.Toned(page.Muted, figure.Absent+" "+s.Reason))
	}
	text := seconds("client", client) + " = " + seconds("server", s.Server) + " + " + seconds("outside", s.Outside)
	var parts []string
	if s.Queue.Finite().OK {
		parts = append(parts, seconds("queue", s.Queue))
	}
	if prefill.OK {
		parts = append(parts, seconds("prefill", prefill))
	}
	if len(parts) > 0 {
		text += "; within the server: " + strings.Join(parts, ", ")
	}
	if s.From != "" {
		text += " (" + s.From + ", means)"
	}
	return page.Toned(page.Body, text)
}

// derived returns the figures that combine several sources.
func (r *report) derived() page.Section {
	s := page.Section{ID: "derived", Title: "Derived"}
	var rows []engine.NamedQuantity
	var gaps page.Gaps
	for _, q := range r.s.Derived {
		if q.Value.OK && !q.Value.Finite().OK {
			q.Value, q.Reason = stat.None, "not a finite number"
		}
		switch {
		case q.Value.OK:
			rows = append(rows, q)
		case !r.summarizesGPUGaps() || !needsGPU(q.Name): // the others are listed by unknown
			gaps.Add(strings.ReplaceAll(q.Name, "_", nbsp), r.shortReason(cmp.Or(q.Reason, "not measured")))
		}
	}
	if len(rows) > 0 {
		note := page.Notes("", func(q engine.NamedQuantity) string { return q.Note })
		if !r.everything {
			note = note.Ranked(1)
		}
		s.Add(page.Tabulate(rows, []page.Field[engine.NamedQuantity]{
			page.Left("", page.Body, func(q engine.NamedQuantity) string { return strings.ReplaceAll(q.Name, "_", " ") }),
			page.Right("", page.Strong, func(q engine.NamedQuantity) page.Cell { return page.Amount(q.Value, q.Unit) }),
			page.Left("", page.Muted, func(q engine.NamedQuantity) string {
				return cmp.Or(strings.Trim(estimated(q.Source), nbsp), string(cmp.Or(q.Source, engine.Derived)))
			}),
			note,
		}))
	}
	s.Add(gaps.Nodes()...)
	return s
}
