package trace

import (
	"cmp"
	"slices"
	"time"

	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/engine/page"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// mostLengths is the default number of context lengths to show.
const mostLengths = 6

// contexts returns attention against the length of the KV cache.
func (b *builder) contexts() page.Section {
	type row = optrace.ContextRow
	t := page.Tabulate(b.s.Context, []page.Field[row]{
		page.Right("KV length", page.Strong, func(r row) page.Cell { return page.Integer(r.Length) }),
		page.Bars(func(r row) stat.Opt { return r.Share }),
		page.Right("attention", page.Body, func(r row) page.Cell { return page.Elapsed(r.Attention) }),
		page.Right("graph", page.Body, func(r row) page.Cell { return page.Elapsed(r.Graph) }),
		page.Right("share", page.Body, func(r row) page.Cell { return page.Share(r.Share) }),
		page.Right("graphs", page.Body, func(r row) page.Cell { return page.Integer(r.Graphs) }).Ranked(2),
	})
	out := page.Section{ID: "context", Title: "Context", Note: "attention by the length of the KV cache in tokens, decode; means of a graph"}
	out.Add(t.Spread(mostLengths, "length"))
	return out
}

// types returns the time by the type of the weights.
func (b *builder) types() page.Section {
	type row = optrace.TypeRow
	out := page.Section{ID: "types", Title: "Weights by type", Note: "time of the operators that read them"}
	out.Add(page.Tabulate(b.s.Types, []page.Field[row]{
		page.Name("", func(r row) string { return cmp.Or(r.Type, "none") }),
		page.Left("", page.Muted, func(r row) string { return r.Phase }),
		page.Right("time", page.Body, func(r row) page.Cell { return page.Elapsed(r.Time) }).Ranked(3),
		page.Right("share", page.Body, func(r row) page.Cell { return page.Share(r.Share) }),
		page.Right("weights", page.Body, func(r row) page.Cell { return page.Amount(r.Weights, "B") }).Ranked(1),
		page.Right("moved", page.Body, func(r row) page.Cell { return page.Amount(r.Bytes, "B") }).Ranked(4),
		page.Right("GB/s", page.Body, func(r row) page.Cell { return rate(r.BytesRate, false) }).Ranked(1),
		page.Right("GFLOP/s", page.Body, func(r row) page.Cell { return rate(r.FlopsRate, false) }).Ranked(2),
	}))
	return out
}

// mostCritical is the default number of parts of the critical path to show.
const mostCritical = 5

// critical returns the critical path of decode graphs.
func (b *builder) critical() page.Section {
	type row = optrace.CriticalRow
	t := page.Tabulate(b.s.Critical, []page.Field[row]{
		page.Name("", func(r row) string { return r.Name }),
		page.Bars(func(r row) stat.Opt { return r.Share }),
		page.Right("share", page.Body, func(r row) page.Cell { return page.Share(r.Share) }),
		page.Right("time", page.Body, func(r row) page.Cell { return page.Elapsed(r.Time) }).Ranked(2),
		page.Right("thread", page.Body, func(r row) page.Cell {
			if r.Thread < 0 {
				return page.Words("")
			}
			return page.Integer(r.Thread)
		}),
	})
	out := page.Section{ID: "critical", Title: "Critical path", Note: "what decided the time of decode graphs"}
	out.Add(t.AtMost(mostCritical, "row"))
	return out
}

// tokens returns the time of the last calls as a picture, the newest on the right.
func (b *builder) tokens() page.Section {
	out := page.Section{ID: "tokens", Title: "Tokens"}
	rows := slices.DeleteFunc(slices.Clone(b.s.Tokens), func(t optrace.TokenRow) bool { return t.Phase != "decode" || t.Time <= 0 })
	if len(rows) < 2 {
		return out
	}
	const mostCalls = 100
	rows = rows[max(0, len(rows)-mostCalls):]
	var most, sum time.Duration
	for i := range rows {
		most = max(most, rows[i].Time)
		sum += rows[i].Time
	}
	line := page.SeriesRow{Tooltip: func(i int) string { return callWords(&rows[i]) }}
	for i := range rows {
		line.Values = append(line.Values, stat.Some(rows[i].Time.Seconds()/most.Seconds()))
	}
	out.Note = "time of the last " + figure.Counted(len(rows), "decode call") + "; the full height is " + figure.Duration(most) + ", their mean " + figure.Duration(sum/time.Duration(len(rows)))
	out.Add(&page.Plot{TerminalNode: &page.Series{Noun: "call", Rows: []page.SeriesRow{line}}})
	return out
}

// backends returns where the graphs ran.
func backends(s *optrace.Summary) page.Section {
	type row = optrace.BackendRow
	out := page.Section{ID: "backends", Title: "Backends"}
	out.Add(page.Tabulate(s.Backends, []page.Field[row]{
		page.Name("", func(r row) string { return cmp.Or(r.Name, "unnamed") }),
		page.Right("splits", page.Body, func(r row) page.Cell { return page.Integer(r.Splits) }),
		page.Right("nodes", page.Body, func(r row) page.Cell { return page.Integer(r.Nodes) }),
		page.Right("time", page.Body, func(r row) page.Cell { return page.Elapsed(r.Time) }),
		page.Left("operators", page.Body, func(r row) string { return operatorsSeen(&r) }),
	}))
	return out
}

// operatorsSeen returns whether the figures include the operators of a backend.
func operatorsSeen(r *optrace.BackendRow) string {
	switch {
	case r.Seen:
		return "in the figures"
	case r.Time > 0:
		return "not traced (--level operator and above trace them)"
	}
	return "not visible" + prefixed(": pair with ", r.Pair)
}

// copies returns the copies between backends.
func copies(s *optrace.Summary) page.Section {
	type row = optrace.CopyRow
	out := page.Section{ID: "copies", Title: "Copies between backends"}
	out.Add(page.Tabulate(s.Copies, []page.Field[row]{
		page.Name("", func(r row) string { return cmp.Or(r.Direction, "unknown direction") }),
		page.Right("copies", page.Body, func(r row) page.Cell { return page.Integer(r.Count) }),
		page.Right("moved", page.Body, func(r row) page.Cell { return page.Amount(stat.Some(float64(r.Bytes)), "B") }),
	}))
	return out
}

// graphs returns the distinct graphs.
func graphs(s *optrace.Summary) page.Section {
	type row = optrace.GraphShape
	count := func(head string, of func(row) int) page.Field[row] {
		return page.Right(head, page.Body, func(r row) page.Cell { return page.Integer(of(r)) })
	}
	t := page.Tabulate(s.Graphs, []page.Field[row]{
		page.Right("DAG", page.Strong, func(r row) page.Cell { return page.Integer(r.DAG) }),
		count("computed", func(r row) int { return r.Graphs }), count("nodes", func(r row) int { return r.Nodes }),
		count("edges", func(r row) int { return r.Edges }), count("leaves", func(r row) int { return r.Leaves }), count("views", func(r row) int { return r.Views }),
	})
	out := page.Section{ID: "graphs", Title: "Graphs", Note: "distinct ones, as read when they begin"}
	const mostGraphs = 3
	out.Add(t.AtMost(mostGraphs, "graph"))
	return out
}

// Findings returns all findings, including the recommended one.
func Findings(s *optrace.Summary) page.Findings {
	var list page.Findings
	for i := range s.Findings {
		f := &s.Findings[i]
		tone, word := severity(f.Severity)
		title := page.Toned(page.Strong, f.Title)
		if v := f.Cost.Finite(); v.OK {
			title = page.Join(title, page.Toned(page.Accent, " · "+figure.PercentSign(v.V)+" of graph time"))
		}
		if f.ID != "" && f.ID == s.Advice.Finding {
			title = page.Join(title, page.Toned(page.Accent, " → recommended"))
		}
		list = append(list, page.Finding{ID: f.ID, Tone: tone, Word: word, Title: title, Evidence: f.Evidence})
	}
	return list
}

func (b *builder) findings() page.Section {
	out := page.Section{ID: "findings", Title: "Findings"}
	if len(b.s.Findings) > 0 {
		out.Add(Findings(b.s))
	}
	return out
}

// rejected returns the remedies that were considered but not recommended.
func (b *builder) rejected() page.Section {
	out := page.Section{ID: "rejected", Title: "Considered, not recommended"}
	for _, x := range b.s.Advice.Rejected {
		out.Add(page.Paragraph(page.Toned(page.Body, "· "+x)))
	}
	return out
}

func severity(s string) (page.Tone, string) {
	switch s {
	case "bad":
		return page.Bad, "bad"
	case "warn":
		return page.Warn, "warn"
	case "good":
		return page.OK, "good"
	}
	return page.Body, cmp.Or(s, "info")
}

// gaps returns what is not known, why, and what to do about it.
func (b *builder) gaps() page.Section {
	out := page.Section{ID: "unknown", Title: "Not known"}
	for _, g := range b.s.Gaps {
		out.Add(page.Paragraph(page.Toned(page.Strong, cmp.Or(g.What, "something")), page.Toned(page.Body, prefixed(": ", g.Why)), page.Toned(page.Muted, prefixed(" → ", g.Next))))
	}
	return out
}
