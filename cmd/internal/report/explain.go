package report

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/stat"
	"github.com/rooftop-dev/rooftop/rules"
)

// WriteExplanation writes how a finding is judged and what is done about it.
func WriteExplanation(w io.Writer, e rules.Explanation, o Options) error {
	p := newPage(w, o)
	p.title(e.Title, fmt.Sprintf("%s (%s), root cause: %s", e.ID, e.Rule, e.Group))
	p.list("Fires when all of this holds", e.Condition)
	if len(e.Thresholds) > 0 {
		p.heading("Limits", "")
		t := &table{}
		for _, x := range e.Thresholds {
			t.add(cell{t: p.text(body, x.Name)}, cell{t: p.text(strong, strings.TrimSpace(x.Op+nbsp+figure.Show(stat.Some(x.Value), x.Unit)))},
				cell{t: p.text(muted, x.Source)})
		}
		p.table(indent, t)
	}
	p.list("Counts when", nonEmpty(e.Gate))
	p.list("The number of its remedy", e.Formula)
	p.list("What to do", e.Remedy)
	p.list("Confidence", e.Confidence)
	p.list("Impact", []string{fmt.Sprintf("%.0f of 5 where no gain is predicted; score = impact × confidence", e.Impact)})
	p.list("What it cannot see", e.Limits)
	return p.flush()
}

// list writes sentences under a title, nothing where there are none.
func (p *page) list(title string, sentences []string) {
	if len(sentences) == 0 {
		return
	}
	p.heading(title, "")
	for _, s := range sentences {
		p.para(indent, indent+2, p.text(body, "· "+s))
	}
}

// WriteTerm writes what a word of the screen means.
func WriteTerm(w io.Writer, e engine.Term, o Options) error {
	p := newPage(w, o)
	p.title(e.Name, strings.Join(e.Also, ", "))
	p.blank()
	for _, s := range e.Meaning {
		p.para(indent, indent+2, p.text(body, "· "+s))
	}
	return p.flush()
}

// Vocabulary are the words of some commands.
type Vocabulary struct {
	Used  string // by which commands
	Terms []engine.Term
}

// WriteUsed says where a name that means several things has the meaning that follows.
func WriteUsed(w io.Writer, name, used string, o Options) error {
	p := newPage(w, o)
	p.para(0, 2, p.text(muted, name+" in "+used+":"))
	return p.flush()
}

// WriteIndex lists what can be explained: findings, words of the screen, then
// metrics.
func WriteIndex(w io.Writer, findings []rules.Explanation, words []Vocabulary, metrics []catalog.Metric, o Options) error {
	p := newPage(w, o)
	p.title("Findings", "rooftop explain NAME says how each is judged")
	t := &table{}
	for _, e := range findings {
		t.add(cell{t: p.text(body, string(e.ID))}, cell{t: p.text(muted, e.Rule)}, cell{t: p.text(body, e.Title)})
	}
	p.table(indent, t)
	for _, v := range words {
		p.heading("Words", "of the screen and the reports of "+v.Used)
		t = &table{}
		for _, e := range v.Terms {
			t.add(cell{t: p.text(body, e.Name)}, cell{t: p.text(muted, strings.Join(e.Also, ", "))})
		}
		p.table(indent, t)
	}
	p.heading("Metrics", "of vLLM's page, by rooftop's names")
	t = &table{}
	for _, m := range metrics {
		t.add(cell{t: p.text(body, m.Key)}, cell{t: p.text(muted, string(m.Kind))}, cell{t: p.text(body, m.Meaning)})
	}
	p.table(indent, t)
	return p.flush()
}

// WriteMetric writes one metric of vLLM's page: its names by release, its unit
// and its meaning; client says what rooftop's own client means by the same name.
func WriteMetric(w io.Writer, m catalog.Metric, client []string, o Options) error {
	p := newPage(w, o)
	p.title(m.Key, string(m.Kind)+", "+m.Unit)
	p.blank()
	p.para(indent, indent, p.text(body, m.Meaning))
	var names []string
	for _, n := range m.Names {
		names = append(names, "vllm:"+n)
	}
	p.list("Names on the page, best first", names)
	var labels []string
	for _, k := range slices.Sorted(maps.Keys(m.Labels)) {
		labels = append(labels, k+"="+fmt.Sprintf("%q", m.Labels[k]))
	}
	p.list("Labels that a series must carry", labels)
	p.list("Note", nonEmpty(m.Note))
	p.list("Measured by rooftop's own client (probe, load)", client)
	var releases []string
	if m.Since != "" {
		releases = append(releases, "from "+m.Since)
	}
	if m.Until != "" {
		releases = append(releases, "until "+m.Until)
	}
	p.list("Releases", nonEmpty(strings.Join(releases, ", ")))
	return p.flush()
}
