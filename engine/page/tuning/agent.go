package tuning

import (
	"cmp"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/page"
)

// ListedServer is a server that an agent may read.
type ListedServer struct {
	URL       string `json:"url,omitzero"`     // "" if its address is not one of this machine
	Process   string `json:"process,omitzero"` // on this machine, "" if the server was only named
	Launch    string `json:"launch,omitzero"`  // redacted
	MayChange bool   `json:"may_change"`
}

// Servers returns the page of the servers that an agent may read.
func Servers(list []ListedServer) *page.Page {
	p := &page.Page{Title: "rooftop: servers"}
	if len(list) == 0 {
		p.Sections = append(p.Sections, page.Section{ID: "none", Nodes: []page.Node{page.Paragraph(page.Toned(page.Body, "No inference server is visible on this machine, and none was given with --url."))}})
	}
	for _, s := range list {
		var facts page.Facts
		facts.Add("runs as", page.Body, s.Process)
		facts.Add("changes", page.Body, map[bool]string{true: "rooftop may restart it with a change: apply, revert"}[s.MayChange])
		sec := page.Section{ID: "server", Nodes: []page.Node{page.Prose{Text: page.Toned(page.Strong, cmp.Or(s.URL, figure.Absent)), Lead: true}, facts}}
		if s.Launch != "" {
			sec.Add(page.Command(s.Launch))
		}
		p.Sections = append(p.Sections, sec)
	}
	return p
}

// Prediction returns the page of the predicted effect of a change on the server of a diagnosis. r is nil if nothing
// predicts it, for the reason why.
func Prediction(d *engine.Diagnosis, change engine.Change, r *engine.Recommendation, why string) *page.Page {
	a := answer{d: d}
	if r != nil {
		a.lead(page.Mark(page.Accent, "predicted"), change.String())
		a.recommendation(r)
	} else {
		a.lead(page.Mark(page.Muted, "no prediction"), change.String())
		a.Add("why", page.Body, Sentence(why))
	}
	sec := page.Section{ID: "prediction", Nodes: []page.Node{a.title, a.before}}
	if a.launch != "" {
		sec.Add(page.Command(a.launch))
	}
	sec.Add(a.Facts)
	return &page.Page{Title: "rooftop: a prediction", Sections: []page.Section{sec}}
}

// AppliedChange is a change of a server that was made or reverted.
type AppliedChange struct {
	Server   string          `json:"server"`
	Reverted bool            `json:"reverted"`
	Changes  []engine.Change `json:"changes"`
	Took     time.Duration   `json:"took_s"`
	Next     string          `json:"next"` // what to do now, a sentence
}

// Applied returns the page of a change that was made or reverted.
func Applied(a *AppliedChange) *page.Page {
	word := "changed"
	if a.Reverted {
		word = "reverted"
	}
	var facts page.Facts
	facts.Add("took", page.Body, figure.Elapsed(a.Took)+", until the server answered")
	facts.Add("next", page.Body, a.Next)
	head := page.Prose{Text: page.Join(page.Mark(page.OK, word), page.Toned(page.Strong, nbsp+" "+strings.Join([]string{a.Server, engine.JoinChanges(a.Changes)}, ": "))), Lead: true}
	return &page.Page{Title: "rooftop: a change", Sections: []page.Section{{ID: "change", Nodes: []page.Node{head, facts}}}}
}

// Figures returns the page of what was measured, without what it means: figures, and why there are none.
func Figures(d *engine.Diagnosis) *page.Page {
	p := &page.Page{Title: "rooftop: a measurement"}
	if d.Target.Simulated {
		p.Sections = append(p.Sections, page.Section{ID: "simulated", Nodes: []page.Node{simulatedProse()}})
	}
	if d.Outcome != engine.OutcomeHealthy && d.Outcome != engine.OutcomeRecommendation {
		p.Sections = append(p.Sections, Answer(d))
	}
	p.Sections = append(p.Sections, Target(d))
	p.Sections = append(p.Sections, headline(d)...)
	if d.Windows.Active > 0 {
		p.Sections = append(p.Sections, requestTimeSection(d))
	}
	return p
}
