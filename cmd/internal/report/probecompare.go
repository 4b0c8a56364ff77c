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

// ProbeCompareSchema names the document that WriteProbeCompareJSON writes.
const ProbeCompareSchema = "rooftop.probe-compare/v1"

// ProbeComparison is two probes with what they say of each other.
type ProbeComparison struct {
	Version      string // of the rooftop that compares
	A, B         *Probe
	NameA, NameB string // of their files
	capture.Comparison
}

// CompareProbes compares b with a. A probe without figures is refused.
func CompareProbes(version, nameA, nameB string, a, b *Probe) *ProbeComparison {
	c := &ProbeComparison{Version: version, A: a, B: b, NameA: nameA, NameB: nameB}
	for _, s := range [...]struct {
		name string
		*Probe
	}{{nameA, a}, {nameB, b}} {
		if s.Summary == nil {
			c.Refused = append(c.Refused, s.name+" has no figures")
		}
	}
	if len(c.Refused) == 0 {
		c.Comparison = capture.Compare((*capture.Side)(a), (*capture.Side)(b))
	}
	return c
}

// WriteProbeCompareJSON writes c as one rooftop.probe-compare/v1 object, indented.
func WriteProbeCompareJSON(w io.Writer, c *ProbeComparison) error {
	figures := object{}
	for i := range c.Changes {
		figures = append(figures, member{c.Changes[i].Name, clean(c.Changes[i])})
	}
	return encode(w, object{
		{"schema", ProbeCompareSchema},
		{"rooftop", object{{"version", c.Version}}},
		{"a", comparedSide(c.NameA, c.A)},
		{"b", comparedSide(c.NameB, c.B)},
		{"comparable", len(c.Refused) == 0},
		{"refused", clean(c.Refused)},
		{"differs", clean(c.Differs)},
		{"figures", figures},
		{"notes", clean(c.Notes)},
	}, "  ")
}

func comparedSide(name string, p *Probe) object {
	return object{
		{"file", name}, {"kind", p.Capture.Kind}, {"started", p.Capture.Wall.UTC().Format(time.RFC3339Nano)}, {"duration_s", p.Capture.Span().Seconds()},
		{"target", clean(p.Setup.Target)}, {"request", clean(p.Setup.Request)},
	}
}

// WriteProbeCompare writes c as a page of text: whether the two are comparable, in
// what they differ, and each figure on both sides.
func WriteProbeCompare(w io.Writer, c *ProbeComparison, o Options) error {
	p := newPage(w, o)
	for _, s := range [...]struct {
		label, name string
		*Probe
	}{{"A", c.NameA, c.A}, {"B", c.NameB, c.B}} {
		if s.Setup.Target.Simulated {
			p.para(0, 2, text{p.mark(warn, "SIMULATED server:"), p.span(body, " "+s.label+" shows how rooftop works, not what hardware does")})
		}
	}
	p.compared("A", c.NameA, c.A)
	p.compared("B", c.NameB, c.B)
	p.blank()
	if len(c.Refused) > 0 {
		p.para(0, 2, text{p.mark(bad, "not comparable")})
		for _, why := range c.Refused {
			p.para(indent, indent+2, p.text(body, "– "+why))
		}
		return p.flush()
	}
	p.para(0, 2, append(text{p.mark(ok, "comparable")}, p.differing(c.Differs)...))
	p.blank()
	p.changes(c.Changes)
	for _, n := range c.Notes {
		p.para(0, 2, p.text(muted, n))
	}
	return p.flush()
}

// compared names one side.
func (p *page) compared(label, name string, probe *Probe) {
	t := &probe.Setup.Target
	parts := nonEmpty(name, probe.Capture.Wall.UTC().Format(time.DateTime)+" UTC", t.Model, strings.TrimSpace(t.Engine+" "+t.EngineVersion))
	if q := probe.Setup.Request; q != nil {
		asked := requestCount(probe) + ", " + figure.Whole(float64(q.Concurrency)) + " at a time"
		parts = append(parts, strings.ReplaceAll(asked, " ", nbsp))
	}
	p.define(0, 3, p.text(strong, label), p.text(body, strings.Join(parts, " · ")))
}

// differing says what the two do not share.
func (p *page) differing(list []capture.Difference) text {
	if len(list) == 0 {
		return p.text(body, "; nothing that is known of the two differs")
	}
	var parts []string
	for _, d := range list {
		parts = append(parts, d.What+" "+cmp.Or(d.A, "none")+" → "+cmp.Or(d.B, "none"))
	}
	return p.text(body, "; what differs: "+strings.Join(parts, ", "))
}

// changeLabels are the figures of a comparison for a person, each with its statistic.
var changeLabels = map[string]string{
	"ttft_s": "TTFT mean", "itl_p50_s": "ITL p50 mean", "tpot_s": "TPOT mean", "request_tokens_per_s": "tok/s mean", "e2e_s": "E2E mean",
	"output_tokens_per_s": "tok/s in all", "cpu_s_per_token": "CPU a token", "rss_peak_bytes": "RSS peak", capture.JoulesPerToken: "energy a token",
}

// changes is a table of the figures: those that each request has are means over
// requests.
func (p *page) changes(list []capture.Change) {
	t := &table{}
	t.add(append(p.columnHeads("A", "B", "change", "95"+nbsp+"% interval"), cell{})...)
	for i := range list {
		c := &list[i]
		t.add(
			cell{t: p.text(body, changeLabel(c))}, cell{t: p.text(body, shownChange(c.A, c.Unit)), right: true}, cell{t: p.text(strong, shownChange(c.B, c.Unit)), right: true},
			cell{t: p.text(accent, ratioChange(c.Ratio)), right: true}, cell{t: p.text(muted, intervalChange(c)), right: true}, cell{t: p.verdictOf(c)},
		)
	}
	if t.natural() > p.width-indent {
		t.gap = 1
	}
	p.table(indent, t)
	p.blank()
	p.counted(list)
	if slices.ContainsFunc(list, func(c capture.Change) bool { return c.RequestsA+c.RequestsB > 0 }) {
		p.para(indent, indent+2, p.text(muted, "mean: over the requests of a side, each with its own time, tok/s, or p50 of its gaps; a report's p50 of TTFT or ITL is another statistic"))
	}
	if slices.ContainsFunc(list, func(c capture.Change) bool { return c.Word == capture.Equal }) {
		p.para(indent, indent+2, p.text(muted, "no difference: 0"+nbsp+"% lies in the interval, and all of it within ±"+figure.Percent(capture.EqualWithin)+nbsp+"%"))
	}
	p.unsaid(list)
}

// counted is, with -v, on how many values and how many independent groups of them the
// figures of requests rest.
func (p *page) counted(list []capture.Change) {
	if !p.o.Verbose {
		return
	}
	t := &table{}
	t.add(append(p.columnHeads("values"+nbsp+"A", "B", "groups"+nbsp+"A", "B"), cell{})...)
	for i := range list {
		c := &list[i]
		if c.RequestsA+c.RequestsB == 0 {
			continue
		}
		row := []cell{{t: p.text(body, changeLabel(c))}}
		for _, n := range [...]int{c.RequestsA, c.RequestsB, c.GroupsA, c.GroupsB} {
			row = append(row, cell{t: p.text(strong, figure.Whole(float64(n))), right: true})
		}
		t.add(append(row, cell{})...)
	}
	if len(t.rows) == 1 {
		return
	}
	p.table(indent, t)
	p.blank()
	p.para(indent, indent+2, p.text(muted, "groups: requests that were under way together count as one observation of the noise"))
}

// changeLabel is a figure of a comparison for a person.
func changeLabel(c *capture.Change) string {
	return cmp.Or(changeLabels[c.Name], strings.ReplaceAll(c.Name, "_", " "))
}

func shownChange(o stat.Opt, unit string) string {
	if unit == rateUnit && finite(o).OK { // the label has it
		return figure.Significant(o.V)
	}
	return figure.Show(finite(o), unit)
}

func ratioChange(o stat.Opt) string {
	if !finite(o).OK {
		return absent
	}
	return figure.Change(o.V-1) + nbsp + "%"
}

func intervalChange(c *capture.Change) string {
	if !finite(c.Low).OK || !finite(c.High).OK {
		return absent
	}
	return bound(c.Low) + nbsp + "to" + nbsp + bound(c.High) + nbsp + "%"
}

// mostShown is the largest change that an end of an interval is spelled with: beyond
// elevenfold its digits say nothing.
const mostShown = 10

func bound(ratio stat.Opt) string {
	if change := ratio.V - 1; change <= mostShown {
		return figure.Change(change)
	}
	return ">" + figure.Change(mostShown)
}

// verdictOf is the word of a figure, with its sign.
func (p *page) verdictOf(c *capture.Change) text {
	switch c.Word {
	case capture.Faster:
		return text{p.mark(ok, string(c.Word))}
	case capture.Slower:
		return text{p.mark(warn, string(c.Word))}
	case capture.Equal:
		return p.text(muted, "no"+nbsp+"difference")
	case capture.Unclear:
		return p.text(body, "cannot"+nbsp+"tell")
	}
	return p.text(muted, absent)
}

// unsaid gives the reasons of figures without a verdict, those of one reason
// together.
func (p *page) unsaid(list []capture.Change) {
	var gaps []engine.NamedQuantity
	for i := range list {
		if c := &list[i]; c.Word == "" {
			gaps = append(gaps, engine.NamedQuantity{Name: changeLabel(c), Quantity: engine.Quantity{Reason: cmp.Or(c.Reason, "not compared")}})
		}
	}
	p.gaps(gaps, func(reason string) string { return reason })
}
