package reference

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/page"
	"github.com/rooftop-dev/rooftop/rules"
)

// sentences returns a section with a list of sentences.
func sentences(title string, list ...string) page.Section {
	sec := page.Section{ID: strings.ToLower(title), Title: title}
	for _, s := range list {
		if s != "" {
			sec.Add(page.Prose{Text: page.Toned(page.Body, "· "+s), Inset: title == ""})
		}
	}
	return sec
}

func titled(title, note string) page.Section {
	return page.Section{ID: "title", Nodes: []page.Node{page.Prose{Text: page.Join(page.Toned(page.Strong, title), page.Toned(page.Muted, figure.NBSP+" "+note))}}}
}

// Explanation returns the page of how a finding is judged and fixed.
func Explanation(e rules.Explanation) *page.Page {
	limits := page.Section{ID: "limits", Title: "Limits", Note: "with their sources"}
	if len(e.Thresholds) > 0 {
		t := &page.Table{Columns: []page.Column{{Left: true}, {Left: true, Tone: page.Strong}, {Left: true, Tone: page.Muted}}}
		for _, x := range e.Thresholds {
			limit := strings.TrimSpace(figure.Operator(x.Op) + figure.NBSP + figure.Value(x.Value, x.Unit))
			t.Rows = append(t.Rows, []page.Cell{page.Words(x.Name), page.Words(limit), {Text: "(" + x.Source + ")"}})
		}
		limits.Add(t)
	}
	return &page.Page{Title: e.Title, Sections: []page.Section{
		titled(e.Title, fmt.Sprintf("%s (%s), root cause: %s", e.ID, e.Rule, e.Group)),
		sentences("On this engine", e.Engine...),
		sentences("Fires when all of these hold", e.Condition...), sentences("PROFILE's form", e.Profile...), limits, sentences("Counts when", e.Gate), sentences("The number of its remedy", e.Formula...),
		sentences("What to do", e.Remedy...), sentences("Confidence", e.Confidence...),
		sentences("Impact", fmt.Sprintf("%.0f of 5 if no gain is predicted; score = impact × confidence", e.Impact)), sentences("What it cannot see", e.Limits...),
	}}
}

// Term returns the page of the meaning of a word.
func Term(e engine.Term) *page.Page {
	return &page.Page{Title: e.Name, Sections: []page.Section{titled(e.Name, strings.Join(e.Also, ", ")), sentences("", e.Meaning...)}}
}

// Vocabulary is the words of some commands.
type Vocabulary struct {
	Used  string // the commands that use them
	Terms []engine.Term
}

// Index returns the list of what can be explained: findings, words of the screen, then metrics.
func Index(findings []rules.Explanation, words []Vocabulary, metrics []catalog.Metric) *page.Page {
	list := &page.Table{Columns: []page.Column{{Left: true}, {Left: true, Tone: page.Muted}, {Left: true}}}
	for _, e := range findings {
		list.Rows = append(list.Rows, []page.Cell{page.Words(string(e.ID)), page.Words(e.Rule), page.Words(e.Title)})
	}
	p := &page.Page{Title: "rooftop explain", Sections: []page.Section{
		{ID: "findings", Title: "Findings", Note: "rooftop explain NAME says how each is judged", Nodes: []page.Node{list}},
	}}
	for _, v := range words {
		t := &page.Table{Columns: []page.Column{{Left: true}, {Left: true, Tone: page.Muted}}}
		for _, e := range v.Terms {
			t.Rows = append(t.Rows, []page.Cell{page.Words(e.Name), {Text: strings.Join(e.Also, ", ")}})
		}
		p.Sections = append(p.Sections, page.Section{ID: "words", Title: "Words", Note: "on the screen and in the reports of " + v.Used, Nodes: []page.Node{t}})
	}
	t := &page.Table{Columns: []page.Column{{Left: true}, {Left: true, Tone: page.Muted}, {Left: true}}}
	for _, m := range metrics {
		t.Rows = append(t.Rows, []page.Cell{page.Words(m.Key), page.Words(string(m.Kind)), page.Words(m.Meaning)})
	}
	p.Sections = append(p.Sections, page.Section{ID: "metrics", Title: "Metrics", Note: "on vLLM's page, by rooftop's names", Nodes: []page.Node{t}})
	return p
}

// Metric returns the page of one metric of an engine: its names by release, its unit and its
// meaning. client is the meaning of the same name in rooftop's own client.
func Metric(on *catalog.Engine, m catalog.Metric, client []string) *page.Page {
	var names, labels, releases []string
	for _, n := range m.Names {
		names = append(names, on.Families[0]+n)
	}
	for _, k := range slices.Sorted(maps.Keys(m.Labels)) {
		labels = append(labels, k+"="+fmt.Sprintf("%q", m.Labels[k]))
	}
	if m.Since != "" {
		releases = append(releases, "from "+m.Since)
	}
	if m.Until != "" {
		releases = append(releases, "until "+m.Until)
	}
	return &page.Page{Title: m.Key, Sections: []page.Section{
		titled(m.Key, string(m.Kind)+", "+m.Unit), {ID: "meaning", Nodes: []page.Node{page.Prose{Text: page.Toned(page.Body, m.Meaning), Inset: true}}},
		sentences("Names on the page, best first", names...), sentences("Labels that a series must carry", labels...), sentences("Note", m.Note),
		sentences("Measured by rooftop's own client (probe, load)", client...), sentences("Releases", strings.Join(releases, ", ")),
	}}
}

// UsedBy returns a page with the commands in which a name has the meaning that follows.
func UsedBy(name, commands string) *page.Page {
	return &page.Page{Sections: []page.Section{{ID: "used", Nodes: []page.Node{page.Prose{Text: page.Toned(page.Muted, name+" in "+commands+":")}}}}}
}
