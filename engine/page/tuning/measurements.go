package tuning

import (
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/effect"
	"github.com/rooftop-dev/rooftop/engine/loop"
	"github.com/rooftop-dev/rooftop/engine/page"
)

// PastComparison is two measurements of the past with what their comparison found.
type PastComparison struct {
	Before, After *loop.Measurement
	Delta         *effect.Delta
	Changes       []engine.Change // settings that differ
	LaunchesKnown bool            // false if only what the servers report could be compared
	// BeforeNames and AfterNames name all measurements that were taken in, if not only these two.
	BeforeNames, AfterNames []string
	Predicted               []engine.Prediction // of a change that rooftop made
	Kept                    bool                // that change is kept
}

// Measurements returns the page of a comparison of two measurements of the past.
func Measurements(c *PastComparison) *page.Page {
	p := Delta(c.Delta, c.Predicted)
	p.Title = "rooftop: two measurements"
	sides := []*loop.Measurement{c.Before, c.After}
	var head []page.Section
	if c.Before.Target.Simulated || c.After.Target.Simulated {
		head = append(head, page.Section{ID: "simulated", Nodes: []page.Node{simulatedProse()}})
	}
	head = append(head, p.Sections[0], page.Section{ID: "sides", Title: "Measurements", Nodes: []page.Node{page.Tabulate(sides, []page.Field[*loop.Measurement]{
		page.Left("", page.Body, func(m *loop.Measurement) string {
			if m == c.After {
				return "after"
			}
			return "before"
		}),
		page.Left("from (UTC)", page.Body, func(m *loop.Measurement) string { return formatted(m.Started.UTC(), time.DateTime) }),
		page.Right("length", page.Body, func(m *loop.Measurement) page.Cell { return page.Elapsed(m.Duration) }),
		{Column: page.Column{Head: "state", Left: true}, Cell: func(m *loop.Measurement) page.Cell { return stateCell(&m.Diagnosis) }},
		page.Left("model", page.Muted, func(m *loop.Measurement) string { return m.Target.Model }).Ranked(2),
		page.Left("release", page.Muted, func(m *loop.Measurement) string { return m.Target.EngineVersion }).Ranked(1),
		page.Left("measured", page.Muted, func(m *loop.Measurement) string { return WindowCounts(m.Diagnosis.Windows) }).Ranked(3),
	})}})
	if other := c.otherServer(); other != "" {
		head[len(head)-1].Add(page.Paragraph(page.Toned(page.Warn, page.Warn.Sign()+nbsp+"The servers differ, not only their settings: "+other+".")))
	}
	if c.After.Started.Before(c.Before.Started) {
		head[len(head)-1].Add(page.Paragraph(page.Toned(page.Warn, page.Warn.Sign()+nbsp+"The second measurement is older than the first: before and after follow the order given, not the order of time.")))
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
	for _, of := range [...]func(m *loop.Measurement) string{
		func(m *loop.Measurement) string { return m.Target.Model },
		func(m *loop.Measurement) string { return Hardware(&m.Facts) },
	} {
		if a, b := of(c.Before), of(c.After); a != "" && b != "" && a != b {
			differ = append(differ, a+" → "+b)
		}
	}
	return strings.Join(differ, ", ")
}

// ServerState returns the state of a server in a word, with its tone: its condition, what is recommended, or its outcome.
func ServerState(d *engine.Diagnosis) (page.Tone, string) {
	switch {
	case d.Condition.Ill():
		return page.Bad, d.Condition.State.Word()
	case d.Recommendation != nil:
		return Severity(d.Finding(d.Recommendation.Finding)), string(d.Recommendation.Finding)
	case d.Ceiling.Impossible != "":
		return page.Warn, "misread: above ideal"
	case d.Outcome != engine.OutcomeHealthy:
		return page.Muted, strings.ReplaceAll(string(d.Outcome), "-", " ")
	case d.Overload != "":
		return page.Warn, "overloaded"
	}
	return page.OK, "healthy"
}

// stateCell returns the state of a server with its sign.
func stateCell(d *engine.Diagnosis) page.Cell {
	tone, word := ServerState(d)
	return page.Cell{Text: tone.Sign() + nbsp + word, Tone: tone}
}
