package tuning

import (
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/effect"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/page"
	"github.com/rooftop-dev/rooftop/engine/past"
)

// PastComparison is two measurements of the past with what their comparison found.
type PastComparison struct {
	Before, After *past.Measurement
	Delta         *effect.Delta
	Changes       []engine.Change // settings that differ
	LaunchesKnown bool            // false if only what the servers report could be compared
	// BeforeNames and AfterNames name all measurements that were taken in, if not only these two.
	BeforeNames, AfterNames []string
	Predicted               []engine.Prediction // of a change that rooftop made
	Kept                    bool                // that change is kept
}

// PastTimeline is a measurement of the past in parts, with what happened in it.
type PastTimeline struct {
	Whole       *past.Measurement
	Parts       []past.Part
	Occurrences []past.Occurrence
}

// Measurements returns the page of a comparison of two measurements of the past.
func Measurements(c *PastComparison) *page.Page {
	p := Delta(c.Delta, c.Predicted)
	p.Title = "rooftop: two measurements"
	sides := []*past.Measurement{c.Before, c.After}
	var head []page.Section
	if c.Before.Target.Simulated || c.After.Target.Simulated {
		head = append(head, page.Section{ID: "simulated", Nodes: []page.Node{simulatedProse()}})
	}
	head = append(head, p.Sections[0], page.Section{ID: "sides", Title: "Measurements", Nodes: []page.Node{page.Tabulate(sides, []page.Field[*past.Measurement]{
		page.Left("", page.Body, func(m *past.Measurement) string {
			if m == c.After {
				return "after"
			}
			return "before"
		}),
		page.Left("from (UTC)", page.Body, func(m *past.Measurement) string { return formatted(m.Started.UTC(), time.DateTime) }),
		page.Right("length", page.Body, func(m *past.Measurement) page.Cell { return page.Elapsed(m.Duration) }),
		{Column: page.Column{Head: "state", Left: true}, Cell: func(m *past.Measurement) page.Cell { return stateCell(&m.Diagnosis) }},
		page.Left("model", page.Muted, func(m *past.Measurement) string { return m.Target.Model }).Ranked(2),
		page.Left("release", page.Muted, func(m *past.Measurement) string { return m.Target.EngineVersion }).Ranked(1),
		page.Left("measured", page.Muted, func(m *past.Measurement) string { return WindowCounts(m.Diagnosis.Windows) }).Ranked(3),
	})}})
	if other := c.otherServer(); other != "" {
		head[len(head)-1].Add(page.Paragraph(page.Toned(page.Warn, page.Warn.Sign()+nbsp+"Another server, not only another setting: "+other+".")))
	}
	if c.After.Started.Before(c.Before.Started) {
		head[len(head)-1].Add(page.Paragraph(page.Toned(page.Warn, page.Warn.Sign()+nbsp+"The second measurement is older than the first: before and after are in the order given, not in that of time.")))
	}
	changed := page.Section{ID: "changed", Title: "What else changed"}
	switch {
	case len(c.Changes) > 0:
		changed.Add(page.Paragraph(page.Toned(page.Strong, Changes(c.Changes...))))
	case c.LaunchesKnown:
		changed.Add(page.Paragraph(page.Toned(page.Body, "no setting of the launch")))
	default:
		changed.Add(page.Paragraph(page.Toned(page.Body, "nothing that the server reports")))
	}
	if !c.LaunchesKnown {
		changed.Add(page.Paragraph(page.Toned(page.Muted, "The launch is not known on both sides: flags that the server does not report may differ.")))
	}
	if !c.Before.OneStart(c.After) {
		changed.Add(page.Paragraph(page.Toned(page.Muted, "The server was started between or within the measurements, or does not say when: starts of one configuration differ too, and the intervals allow for it.")))
	}
	p.Sections = append(append(head, changed), p.Sections[1:]...)
	return p
}

// otherServer returns in what the two servers differ that no setting explains, "" if in nothing that is known of both.
func (c *PastComparison) otherServer() string {
	var differ []string
	for _, of := range [...]func(m *past.Measurement) string{
		func(m *past.Measurement) string { return m.Target.Model },
		func(m *past.Measurement) string { return Hardware(&m.Facts) },
	} {
		if a, b := of(c.Before), of(c.After); a != "" && b != "" && a != b {
			differ = append(differ, a+" → "+b)
		}
	}
	return strings.Join(differ, ", ")
}

// stateCell returns the state of a server in a word: its condition, what is recommended, or its outcome.
func stateCell(d *engine.Diagnosis) page.Cell {
	tone, word := page.OK, string(d.Outcome)
	switch {
	case d.Condition.Ill():
		tone, word = page.Bad, d.Condition.State.Word()
	case d.Recommendation != nil:
		tone, word = Severity(d.Finding(d.Recommendation.Finding)), string(d.Recommendation.Finding)
	case d.Outcome != engine.OutcomeHealthy:
		tone = page.Muted
	case d.Overload != "":
		tone, word = page.Warn, "overloaded"
	}
	return page.Cell{Text: tone.Sign() + nbsp + word, Tone: tone}
}

// Timeline returns the page of what happened in a measurement of the past.
func Timeline(t *PastTimeline) *page.Page {
	p := &page.Page{Title: "rooftop: what happened"}
	if t.Whole.Target.Simulated {
		p.Sections = append(p.Sections, page.Section{ID: "simulated", Nodes: []page.Node{simulatedProse()}})
	}
	layout := time.TimeOnly
	clock := func(at time.Duration) string { return t.Whole.Started.Add(at).UTC().Format(layout) }
	happened := page.Section{ID: "happened", Title: "What changed", Note: "UTC, from " + t.Whole.Started.UTC().Format(time.DateTime)}
	if len(t.Occurrences) == 0 {
		happened.Add(page.Paragraph(page.Toned(page.Body, "Nothing beyond noise: no restart, no setting, no finding, no load, output or latency by a quarter or more.")))
	} else {
		happened.Add(page.Tabulate(t.Occurrences, []page.Field[past.Occurrence]{
			page.Left("between", page.Body, func(o past.Occurrence) string { return clock(o.From) }),
			page.Left("and", page.Body, func(o past.Occurrence) string { return clock(o.To) }),
			page.Left("", page.Muted, func(o past.Occurrence) string { return string(o.Kind) }),
			{Column: page.Column{Head: "what", Left: true}, Cell: func(o past.Occurrence) page.Cell {
				if o.Ill {
					return page.Cell{Text: page.Bad.Sign() + nbsp + o.Text, Tone: page.Bad}
				}
				return page.Cell{Text: o.Text, Tone: page.Strong}
			}},
		}))
	}
	quantity := func(head, name, unit string, rank int) page.Field[past.Part] {
		return page.Right(head, page.Body, func(part past.Part) page.Cell {
			if part.Condition.Ill() { // means from before are no figures of now
				return page.Words("")
			}
			return page.Amount(part.Quantity(name).Value, unit)
		}).Ranked(rank)
	}
	parts := page.Section{ID: "parts", Title: "Parts", Note: "each diagnosed by itself", Nodes: []page.Node{page.Tabulate(t.Parts, []page.Field[past.Part]{
		page.Left("from", page.Body, func(part past.Part) string { return clock(part.From) }),
		{Column: page.Column{Head: "state", Left: true}, Cell: func(part past.Part) page.Cell { return stateCell(&part.Diagnosis) }},
		quantity("tok/s", "generation_tokens_per_s", "", 1),
		quantity("requests/s", "requests_per_s", "", 2),
		quantity("running", "running_mean", "", 3),
		quantity("waiting", "waiting_mean", "", 4),
		quantity("KV peak", "kv_usage_peak", "ratio", 5),
		quantity("TTFT mean", "ttft_mean_s", "s", 6),
		quantity("request mean", "e2e_mean_s", "s", 7),
	})}}
	rest := page.Section{ID: "remarks", Nodes: []page.Node{page.Paragraph(page.Toned(page.Muted, "Load, output and latencies are told where they differ from what they were by 25"+nbsp+"% or more, beyond noise. "+
		figure.Counted(len(t.Parts), "part")+" of "+figure.Elapsed(t.Whole.Duration/time.Duration(max(1, len(t.Parts))))+"."))}}
	p.Sections = append(p.Sections, happened, parts, rest)
	return p
}
