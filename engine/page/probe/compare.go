package probe

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/engine/capture"
	"github.com/rooftop-dev/rooftop/engine/compare"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/page"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Comparison is the comparison of two captures.
type Comparison struct {
	Version      string // version of rooftop that compares
	A, B         *capture.Record
	NameA, NameB string // file names
	capture.Comparison
}

// Compare compares b with a. Captures without figures are not comparable.
func Compare(version, nameA, nameB string, a, b *capture.Record) *Comparison {
	c := &Comparison{Version: version, A: a, B: b, NameA: nameA, NameB: nameB}
	for _, s := range [...]named[*capture.Record]{{nameA, a}, {nameB, b}} {
		if s.v.Summary == nil {
			c.Refused = append(c.Refused, s.name+" has no figures")
		}
	}
	if len(c.Refused) == 0 {
		c.Comparison = capture.Compare(a, b)
	}
	return c
}

// Page returns the page of a comparison: whether the two are comparable, their differences, and each
// figure on both sides.
func (c *Comparison) Page() *page.Page {
	sides := page.Section{ID: "sides"}
	for _, s := range [...]named[*capture.Record]{{"A", c.A}, {"B", c.B}} {
		if s.v.Setup.Target.Simulated {
			sides.Add(page.Paragraph(page.Mark(page.Warn, "SIMULATED server:"), page.Toned(page.Body, " "+s.name+" shows how rooftop works, not what hardware does")))
		}
	}
	sides.Add(sideLine("A", c.NameA, c.A), sideLine("B", c.NameB, c.B))
	if len(c.Refused) > 0 {
		return &page.Page{Sections: []page.Section{sides, {ID: "refused", Nodes: page.NotComparable(c.Refused)}}}
	}
	differ := "; nothing known about the two differs"
	if list := page.Differences(c.Differs); list != "" {
		differ = "; what differs: " + list
	}
	verdict := page.Section{ID: "comparable", Nodes: []page.Node{page.Paragraph(page.Mark(page.OK, "comparable"), page.Toned(page.Body, differ))}}
	changes := page.Section{ID: "changes", Nodes: []page.Node{changeTable(c.Changes)}}
	return &page.Page{Sections: []page.Section{sides, verdict, changes, groupTable(c.Changes), c.legend()}}
}

// sideLine returns the line that names one side.
func sideLine(label, name string, r *capture.Record) page.Prose {
	t := &r.Setup.Target
	asked := ""
	if q := r.Setup.Request; q != nil {
		asked = figure.Unbroken(requestCount(r) + ", " + figure.Whole(float64(q.Concurrency)) + " at a time")
	}
	text := figure.Joined(" · ", name, r.Capture.Wall.UTC().Format(time.DateTime)+" UTC", t.Model, strings.TrimSpace(t.Engine+" "+t.EngineVersion), asked)
	return page.Paragraph(page.Toned(page.Strong, label), page.Toned(page.Body, nbsp+nbsp+text))
}

// changeLabels are the display names of compared figures, each with its statistic.
var changeLabels = map[string]string{
	"ttft_s": "TTFT mean", "itl_p50_s": "ITL p50 mean", "tpot_s": "TPOT mean", "request_tokens_per_s": "tok/s mean", "e2e_s": "E2E mean",
	"output_tokens_per_s": "tok/s in all", "cpu_s_per_token": "CPU a token", "rss_peak_bytes": "RSS peak", capture.JoulesPerToken: "energy a token",
}

func changeLabel(c *capture.Change) string {
	return cmp.Or(changeLabels[c.Name], strings.ReplaceAll(c.Name, "_", " "))
}

// changeTable returns each figure on both sides. Figures of single requests are means over requests.
func changeTable(list []capture.Change) *page.Table {
	type row = capture.Change
	amount := func(o stat.Opt, unit string) page.Cell {
		if unit == "tok/s" { // it is part of the label
			return page.Ratio(o)
		}
		return page.Amount(o, unit)
	}
	return page.Tabulate(list, []page.Field[row]{
		page.Left("", page.Body, func(c row) string { return changeLabel(&c) }),
		page.Right("A", page.Body, func(c row) page.Cell { return amount(c.A, c.Unit) }),
		page.Right("B", page.Strong, func(c row) page.Cell { return amount(c.B, c.Unit) }),
		page.Right("change", page.Accent, func(c row) page.Cell { return page.Multiple(c.Ratio) }),
		page.Right("95"+nbsp+"% interval", page.Muted, func(c row) page.Cell { return page.Interval(&c.Change) }),
		{Column: page.Column{Left: true}, Cell: func(c row) page.Cell { return page.Verdict(c.Verdict) }},
	})
}

// groupTable returns the numbers of values and independent groups behind the figures of requests.
func groupTable(list []capture.Change) page.Section {
	type row = capture.Change
	rows := slices.DeleteFunc(slices.Clone(list), func(c row) bool { return c.RequestsA+c.RequestsB == 0 })
	if len(rows) == 0 {
		return page.Section{}
	}
	count := func(head string, of func(c *row) int) page.Field[row] {
		return page.Right(head, page.Strong, func(c row) page.Cell { return page.Integer(of(&c)) })
	}
	return page.Section{ID: "groups", Detail: true, Nodes: []page.Node{
		page.Tabulate(rows, []page.Field[row]{
			page.Left("", page.Body, func(c row) string { return changeLabel(&c) }),
			count("values"+nbsp+"A", func(c *row) int { return c.RequestsA }), count("B", func(c *row) int { return c.RequestsB }),
			count("groups"+nbsp+"A", func(c *row) int { return c.GroupsA }), count("B", func(c *row) int { return c.GroupsB }),
		}),
		page.Inset(page.Toned(page.Muted, "groups: concurrent requests count as one observation of the noise")),
	}}
}

// legend explains the words of the table and lists the reasons of figures without a verdict, and the
// notes.
func (c *Comparison) legend() page.Section {
	s := page.Section{ID: "notes"}
	if slices.ContainsFunc(c.Changes, func(c capture.Change) bool { return c.RequestsA+c.RequestsB > 0 }) {
		s.Add(page.Inset(page.Toned(page.Muted, "mean: over the requests of a side, each with its own latency, tok/s, or p50 of its gaps; the p50 of TTFT or ITL in a report is another statistic")))
	}
	if slices.ContainsFunc(c.Changes, func(c capture.Change) bool { return c.Verdict == compare.Equal }) {
		s.Add(page.Inset(page.Toned(page.Muted, "no difference: the interval includes 0"+nbsp+"% and lies within ±"+figure.PercentSign(compare.EqualWithin))))
	}
	gaps := page.Gaps{Inset: true}
	for i := range c.Changes {
		if x := &c.Changes[i]; x.Verdict == "" {
			gaps.Add(figure.Unbroken(changeLabel(x)), cmp.Or(x.Reason, "not compared"))
		}
	}
	s.Add(gaps.Nodes()...)
	for _, n := range c.Notes {
		s.Add(page.Paragraph(page.Toned(page.Muted, n)))
	}
	return s
}
