package report

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/stat"
	"github.com/rooftop-dev/rooftop/engine/verdict"
)

// grid is a table of a run's full report: text only, for any format.
type grid struct {
	Title string
	Note  string // a sentence under the title
	Heads []string
	Rows  [][]string
	// Figures says which columns hold numbers, counted from 0.
	Figures []int
	// Folded says that it is looked up rather than read.
	Folded bool
}

// Numeric says whether a column holds numbers.
func (g *grid) Numeric(column int) bool {
	for _, c := range g.Figures {
		if c == column {
			return true
		}
	}
	return false
}

// dossier is the content of a run's full report, the same in Markdown and HTML.
// Every text is safe: no control character of a server is in it.
type dossier struct {
	Title     string
	Simulated bool
	Tone      string // ok, warn, bad, or "" for neither
	Headline  string
	Reason    string
	Best      string // launch command, "" unknown
	Left      string // what was not undone
	Next      string
	About     grid
	Grids     []grid
}

func newDossier(s *engine.Snapshot) *dossier {
	a := account{s}
	t, headline := a.headline()
	d := &dossier{
		Title: "rooftop: a run on " + cmp.Or(s.Target.Model, "no server"), Simulated: s.Target.Simulated,
		Tone: map[tone]string{ok: "ok", warn: "warn", bad: "bad"}[t], Headline: headline, Reason: a.reason(),
		Best: a.best(), Left: a.undone(), Next: a.next(), About: a.about(),
	}
	d.Grids = append(d.Grids, a.iterations())
	if g := a.predictionsGrid(); len(g.Rows) > 0 {
		d.Grids = append(d.Grids, g)
	}
	for i := range s.Iterations {
		if it := &s.Iterations[i]; it.Delta != nil {
			d.Grids = append(d.Grids, deltaGrid(it))
		}
	}
	if latest := cmp.Or(s.Baseline, s.Live); latest != nil {
		d.Grids = append(d.Grids, findingsGrid(latest), evidenceGrid(latest), measuredGrid(latest))
	}
	d.Grids = append(d.Grids, factsGrid(&s.Facts), missingGrid(s.Missing), sourcesGrid(s.Sources), processesGrid(s.Processes), journalGrid(s))
	d.clean()
	return d
}

// clean makes every text harmless.
func (d *dossier) clean() {
	for _, s := range []*string{&d.Title, &d.Headline, &d.Reason, &d.Best, &d.Left, &d.Next} {
		*s = safe(*s)
	}
	d.About.clean()
	for i := range d.Grids {
		d.Grids[i].clean()
	}
}

func (g *grid) clean() {
	g.Title, g.Note = safe(g.Title), safe(g.Note)
	for _, row := range g.Rows {
		for i := range row {
			row[i] = safe(row[i])
		}
	}
}

// about says what was tuned, when and with what.
func (a account) about() grid {
	s := a.s
	g := grid{Title: "What was measured", Heads: []string{"", ""}}
	put := func(label, value string) { g.Rows = append(g.Rows, []string{label, cmp.Or(value, absent)}) }
	put("server", s.Target.URL)
	put("model", s.Target.Model)
	put("engine", strings.TrimSpace(engineName(s.Target.Engine)+" "+s.Target.EngineVersion))
	put("hardware", hardware(&s.Facts))
	put("settings", strings.Join(settings(&s.Facts), ", "))
	if !s.Started.IsZero() {
		put("began", s.Started.UTC().Format(time.RFC3339))
	}
	put("lasted", lasted(s.Now))
	put("phase", phaseNames[min(s.Phase, engine.PhaseDone)])
	put("restarts", strconv.Itoa(a.restarts()))
	if s.Auto || s.Limits.UsedOutages > 0 {
		put("autopilot", s.Limits.Told())
	}
	gain := changed(a.gain())
	if f := s.Finished; f != nil && f.Gain.OK {
		gain = gained(f)
	}
	put("gain", gain)
	put("predictions", s.Score.Told())
	put("runs now", s.Launch)
	put("noise", a.noise())
	put("rooftop", s.Version)
	for _, n := range s.Notes {
		put("note", n)
	}
	return g
}

// phaseNames are the phases as a script and a person read them.
var phaseNames = [...]string{
	engine.PhaseAttach: "attach", engine.PhaseBaseline: "baseline", engine.PhaseWaiting: "waiting", engine.PhaseApplying: "applying",
	engine.PhaseDown: "down", engine.PhaseSettling: "settling", engine.PhaseMeasuring: "measuring", engine.PhaseWorse: "worse",
	engine.PhaseReverting: "reverting", engine.PhaseDone: "done",
}

// noise says how far two measurements of one configuration lay apart.
func (a account) noise() string {
	var parts []string
	for _, n := range a.s.Noise {
		parts = append(parts, changed(stat.Some(n)))
	}
	if len(parts) == 0 {
		return "not measured: no restart with the same settings"
	}
	return strings.Join(parts, ", ") + " between two measurements of the same settings"
}

// iterations lists every change with what it brought.
func (a account) iterations() grid {
	g := grid{
		Title: "Changes", Heads: []string{"no.", "at", "change", "noticed as", "before, tok/s", "after, tok/s", "difference", "outcome", "what else differed"},
		Figures: []int{0, 1, 4, 5, 6},
	}
	for i := range a.s.Iterations {
		it := &a.s.Iterations[i]
		_, word := became(it)
		before, after := outputs(it)
		difference := absent
		if it.Delta != nil {
			difference = cmp.Or(changed(effectOf(it)), absent)
		}
		g.Rows = append(g.Rows, []string{
			strconv.Itoa(it.N), clock(it.At), changeOf(it), cmp.Or(string(it.Noticed), absent), rate(before), rate(after), difference, word,
			cmp.Or(joinSentences(it.Failure, strings.Join(it.Load, "; ")), absent),
		})
	}
	if len(g.Rows) == 0 {
		g.Note = "No change was made or noticed."
	}
	return g
}

// deltaGrid is a change before and after, with what was predicted of it.
func deltaGrid(it *engine.Iteration) grid {
	d := it.Delta
	g := grid{
		Title: "Change " + strconv.Itoa(it.N) + ": " + changeOf(it),
		Note:  deltaNote(it),
		Heads: []string{"", "before", "after", "difference", "predicted"}, Figures: []int{1, 2, 3},
	}
	proof, judged := engine.ProofOf(d)
	if judged {
		g.Heads = []string{"", "before", "after", "difference", "95 % interval", "predicted"}
		g.Figures = []int{1, 2, 3, 4}
	}
	plainPage := newPage(nil, Options{})
	metrics := d.MeasuredMetrics()
	for _, row := range deltaRows {
		m, known := metric(metrics, row.name)
		if !known || !m.Before.Value.OK && !m.After.Value.OK {
			continue
		}
		cells := []string{row.label, shown(finiteQuantity(m.Before)), shown(finiteQuantity(m.After)), cmp.Or(changed(m.Change), absent)}
		if judged {
			cells = append(cells, cmp.Or(intervalText(proof, row.name), absent))
		}
		g.Rows = append(g.Rows, append(cells, cmp.Or(plainPage.prediction(it.Predicted, m).String(), absent)))
	}
	if d.Efficiency.OK {
		cells := []string{"efficiency per running request", "", "", points(d.Efficiency.V), absent}
		if judged {
			cells = append(cells, absent)
		}
		g.Rows = append(g.Rows, cells)
	}
	return g
}

// deltaNote is a verdict in sentences.
func deltaNote(it *engine.Iteration) string {
	d := it.Delta
	p := newPage(nil, Options{})
	says := strings.TrimSuffix(string(d.Direction)+": "+figure.Minus(d.Reason), ".")
	if proof, ok := engine.ProofOf(d); ok {
		head, rest := proof.Says()
		says = string(d.Direction) + ": " + joinSentences(head, rest) + p.foretold(d, it.Predicted).String()
	}
	parts := []string{says + ".", "Classic direction: " + string(d.Classic) + ", " + figure.Minus(d.ClassicReason) + "."}
	for _, r := range proofRemarks(d) {
		text := r.text
		if r.warn {
			text = sentence(r.label + ": " + r.text)
		}
		parts = append(parts, text)
	}
	if text, _ := it.Canary.Told(); text != "" {
		parts = append(parts, sentence(text))
	}
	if it.Downtime > 0 {
		parts = append(parts, "The server was down for "+lasted(it.Downtime)+".")
	}
	return strings.Join(parts, " ")
}

// predictionsGrid sets what was predicted of each change beside what came; nothing
// where nothing was predicted.
func (a account) predictionsGrid() grid {
	g := grid{Title: "Predictions", Note: sentence(a.s.Score.Told()), Heads: []string{"no.", "change", "predicted", "measured", "95 % interval", "outcome"}, Figures: []int{0, 2, 3, 4}}
	for i := range a.s.Iterations {
		it := &a.s.Iterations[i]
		proof, judged := engine.ProofOf(it.Delta)
		goal := verdict.Throughput
		if judged {
			goal = proof.Result.Goal
		}
		q, ok := engine.PredictionOf(it.Predicted, goal)
		if !ok {
			continue
		}
		row := []string{strconv.Itoa(it.N), changeOf(it), engine.SpellRange(q.Low.V, q.High.V), absent, absent, a.outcome(it)}
		if judged {
			if c, known := proof.Change(); known {
				row[3], row[4] = changed(stat.Some(c.Mid)), engine.SpellRange(c.Low, c.High)
			}
		}
		g.Rows = append(g.Rows, row)
	}
	if len(g.Rows) == 0 {
		g.Note = ""
	}
	return g
}

// outcome says whether the prediction of a change held, or why that is not known.
func (a account) outcome(it *engine.Iteration) string {
	proof, judged := engine.ProofOf(it.Delta)
	switch {
	case it.Failure != "":
		return "not measured: " + it.Failure
	case !judged:
		return "not judged with an interval"
	}
	switch _, _, held, known := proof.Outcome(it.Predicted); {
	case !known:
		return "not told: " + string(proof.Direction)
	case held:
		return "held"
	}
	return "missed"
}

// findingsGrid lists every rule with its state and the figure that decided.
func findingsGrid(d *engine.Diagnosis) grid {
	g := grid{
		Title: "Findings", Note: "Of the last measurement that stands: " + lasted(d.Duration) + ", " + windowCounts(d.Windows) + ".",
		Heads: []string{"state", "finding", "rule", "fired in", "what decided"},
	}
	for i := range d.Findings {
		f := &d.Findings[i]
		state := string(f.State)
		if f.State == engine.Fired && !f.Significant {
			state = "seen"
		}
		windows := absent
		if f.Evaluable > 0 {
			windows = strconv.Itoa(f.Fired) + " of " + strconv.Itoa(f.Evaluable)
		}
		why := cmp.Or(f.Reason, f.Title)
		if len(f.Missing) > 0 {
			why = joinSentences(why, "needs "+strings.Join(f.Missing, ", "))
		}
		g.Rows = append(g.Rows, []string{state, string(f.ID), f.Rule, windows, why})
	}
	return g
}

// evidenceGrid lists the figures behind what fired.
func evidenceGrid(d *engine.Diagnosis) grid {
	g := grid{Title: "Evidence", Heads: []string{"finding", "figure", "value", "limit", "source", "says"}, Figures: []int{2, 3}}
	for i := range d.Findings {
		f := &d.Findings[i]
		for _, e := range f.Evidence {
			limit := absent
			if finite(e.Limit).OK {
				limit = strings.TrimSpace(e.Op + " " + figure.Show(e.Limit, e.Unit))
			}
			g.Rows = append(g.Rows, []string{string(f.ID), e.Name, figure.Show(finite(e.Value), e.Unit), limit, cmp.Or(string(e.Source), absent), e.Text})
		}
	}
	if len(g.Rows) == 0 {
		g.Note = "No rule gave any."
	}
	return g
}

// measuredGrid lists every quantity with its origin, or why it is absent.
func measuredGrid(d *engine.Diagnosis) grid {
	g := grid{Title: "Measured", Heads: []string{"quantity", "value", "origin", "note"}, Figures: []int{1}, Folded: true}
	for _, q := range quantities(d) {
		note := q.Note
		if !q.Value.OK {
			note = q.Reason
		}
		g.Rows = append(g.Rows, []string{q.Name, shown(q.Quantity), string(q.Source), note})
	}
	return g
}

// factsGrid lists what is known of the server with where it came from.
func factsGrid(f *engine.Facts) grid {
	g := grid{Title: "Facts", Heads: []string{"fact", "value", "source", "note"}, Folded: true}
	for _, r := range factRows(f) {
		value := absent
		if r.value != nil {
			value = factValue(r)
		}
		g.Rows = append(g.Rows, []string{r.name, value, cmp.Or(string(r.source), absent), r.note})
	}
	for _, c := range f.Conflicts {
		g.Rows = append(g.Rows, []string{"conflict", "", "", c})
	}
	return g
}

func missingGrid(list []engine.Missing) grid {
	g := grid{Title: "Not read", Heads: []string{"what", "why", "effect"}}
	for _, m := range list {
		g.Rows = append(g.Rows, []string{m.What, m.Reason, cmp.Or(m.Effect, absent)})
	}
	if len(g.Rows) == 0 {
		g.Note = "Everything that could be read was read."
	}
	return g
}

// freshness names the states of a source.
var freshness = [...]string{engine.SourceAbsent: "absent", engine.SourceFresh: "fresh", engine.SourceLate: "late", engine.SourceFailing: "failing"}

func sourcesGrid(list []engine.SourceState) grid {
	g := grid{Title: "Sources", Heads: []string{"source", "state", "last reading", "took", "failures in a row", "ticks missed", "why"}, Figures: []int{2, 3, 4, 5}, Folded: true}
	for _, s := range list {
		last, tookOf := absent, absent
		if s.State != engine.SourceAbsent {
			last, tookOf = clock(s.Last), figure.Show(stat.Some(s.Took.Seconds()), "s")
		}
		g.Rows = append(g.Rows, []string{s.Name, freshness[min(s.State, engine.SourceFailing)], last, tookOf, strconv.Itoa(s.Failures), strconv.Itoa(s.Missed), cmp.Or(s.Why, absent)})
	}
	return g
}

func processesGrid(list []engine.Process) grid {
	g := grid{Title: "Processes", Heads: []string{"PID", "parent", "role", "name", "state", "age", "CPU cores", "ready, not run", "memory", "threads"}, Figures: []int{0, 1, 5, 6, 7, 8, 9}, Folded: true}
	for _, p := range list {
		g.Rows = append(g.Rows, []string{
			strconv.Itoa(p.PID), strconv.Itoa(p.PPID), p.Role, p.Name, p.State, lasted(p.Age), figure.Show(finite(p.CPU), ""), figure.Show(finite(p.RunWait), "ratio"),
			figure.Show(stat.Some(float64(p.RSSBytes)), "B"), strconv.Itoa(p.Threads),
		})
	}
	if len(g.Rows) == 0 {
		g.Note = "No process of the server was readable."
	}
	return g
}

// levels names how grave an entry is.
var levels = [...]string{engine.LevelInfo: "", engine.LevelGood: "good", engine.LevelWarn: "warn", engine.LevelBad: "bad"}

func journalGrid(s *engine.Snapshot) grid {
	g := grid{Title: "Journal", Heads: []string{"at", "", "what happened"}, Figures: []int{0}}
	if s.Dropped > 0 {
		g.Note = plural(s.Dropped, "earlier entry") + " were let go."
	}
	for _, e := range s.Journal {
		g.Rows = append(g.Rows, []string{clock(e.T), levels[min(e.Level, engine.LevelBad)], e.Text})
	}
	return g
}
