package report

import (
	"cmp"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
)

// Formats that a past run is written in.
const (
	FormatMarkdown = "markdown"
	FormatJSON     = "json"
	FormatHTML     = "html"
)

// WritePastRun writes what is stored of a run in one of the formats. It is for runs
// whose full report is not there in that format.
func WritePastRun(w io.Writer, r *PastRun, format string) error {
	switch format {
	case FormatJSON:
		o := append(object{{"schema", HistorySchema}}, member{"runs", []any{r.object()}}, member{"story", append([]string{}, r.Story...)})
		return encode(w, o, "  ")
	case FormatHTML:
		return r.dossier().html(w, r.Version, nil)
	}
	return r.dossier().markdown(w)
}

func (r *PastRun) dossier() *dossier {
	d := &dossier{
		Title: "rooftop: a run on " + cmp.Or(r.Model, r.Server, "no server"), Simulated: r.Simulated,
		Headline: cmp.Or(r.Summary, r.headline()), Reason: r.Reason, Best: r.Best,
		About: grid{Title: "The run", Heads: []string{"", ""}},
	}
	_, ended := r.ended()
	lastedFor := absent
	if r.Duration > 0 {
		lastedFor = lasted(r.Duration)
	}
	for _, row := range [][2]string{
		{"server", r.Server}, {"model", r.Model}, {"began", r.Started.UTC().Format(time.RFC3339)}, {"lasted", lastedFor}, {"ended", ended},
		{"gain", r.gained()}, {"restarts", strconv.Itoa(r.Restarts)}, {"predictions that held", r.score()}, {"rooftop", r.Version},
	} {
		d.About.Rows = append(d.About.Rows, []string{row[0], cmp.Or(row[1], absent)})
	}
	g := grid{Title: "Changes", Heads: []string{"no.", "change", "foretold", "brought", "outcome", "why"}, Figures: []int{0, 2, 3}}
	for i := range r.Changes {
		c := &r.Changes[i]
		g.Rows = append(g.Rows, []string{
			strconv.Itoa(c.N), cmp.Or(spelledChanges(c.Changes), absent), spelledGain(c.Foretold[1], c.Foretold[0], c.Foretold[2]),
			spelledGain(c.Gain, c.Low, c.High), cmp.Or(c.End, c.Direction, absent), cmp.Or(c.Reason, absent),
		})
	}
	if len(g.Rows) == 0 {
		g.Note = "No change was made or noticed."
	}
	d.Grids = append(d.Grids, g)
	if len(r.Story) > 0 {
		story := grid{Title: "Journal", Heads: []string{"what was written down"}}
		for _, line := range r.Story {
			story.Rows = append(story.Rows, []string{line})
		}
		d.Grids = append(d.Grids, story)
	}
	d.clean()
	return d
}

// headline sums up a run that no report does.
func (r *PastRun) headline() string {
	switch r.Outcome {
	case PastRunning:
		return "This run is going on"
	case PastCutOff:
		return "This run was cut off; 'rooftop recover' says what it left and puts it right"
	case PastRecovered:
		return "This run was cut off, and what it left was put right"
	}
	return "This run has ended"
}

func spelledChanges(list []engine.Change) string {
	var parts []string
	for _, c := range list {
		parts = append(parts, c.String())
	}
	return strings.Join(parts, ", ")
}
