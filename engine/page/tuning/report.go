package tuning

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/engine/effect"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/loop"
	"github.com/rooftop-dev/rooftop/engine/page"
)

// Bounds of the summary printed when the screen ends.
const (
	reasonLines  = 4   // of the reason for the end; its last lines contain the next step
	commandCells = 320 // of a launch command; a longer one is replaced by its changes
)

// RunSummary returns the result of a run for the terminal: the best configuration, the latest iterations in
// at most changeLines lines each, the remaining steps, and the files with details.
func RunSummary(s *loop.Snapshot, files []string, iterations, changeLines int) *page.Page {
	r := Run{s}
	tone, headline := r.Headline()
	sign := tone.Sign()
	if sign == figure.Absent {
		sign = page.OK.Sign()
	}
	head := page.Section{ID: "headline"}
	if s.Target.Simulated {
		head.Add(simulatedProse())
	}
	about := "looked for " + figure.Elapsed(s.Now)
	if s.Attached {
		about = Served(s.Target) + ", " + figure.Elapsed(s.Now)
	}
	head.Add(
		page.Prose{Text: page.Join(page.Toned(tone, sign, nbsp), page.Toned(page.Strong, headline)), Lead: true},
		page.Prose{Text: page.Toned(page.Muted, about), Inset: true, MaxLines: 2},
		page.Prose{Text: page.Toned(page.Body, r.Reason()), Inset: true, MaxLines: reasonLines},
	)
	if text := Objectives(s.Objectives, cmp.Or(s.Live, s.Baseline)); text != "" {
		head.Add(page.Prose{Text: page.Toned(page.Body, "objectives: "+text), Inset: true, MaxLines: 2})
	}
	if f := s.Finished; f != nil {
		if text := JoinClauses(f.Score.Summary(), Downtime(f)); text != "" {
			head.Add(page.Prose{Text: page.Toned(page.Muted, text), Inset: true, MaxLines: 2})
		}
	}
	return &page.Page{Title: "rooftop: a run", Sections: []page.Section{head, r.latestIterations(iterations, changeLines), r.nextSteps(files)}}
}

// latestIterations returns the last n iterations, each change in at most changeLines lines.
func (r Run) latestIterations(n, changeLines int) page.Section {
	sec := page.Section{ID: "changes"}
	list := r.Iterations
	if hidden := len(list) - n; hidden > 0 {
		list = list[hidden:]
		sec.Add(page.Inset(page.Toned(page.Muted, figure.Counted(hidden, "earlier change")+": in the full report")))
	}
	if len(list) > 0 {
		sec.Add(page.Tabulate(pointers(list), []page.Field[*loop.Iteration]{
			page.Right("", page.Muted, func(it *loop.Iteration) page.Cell { return page.Words(strconv.Itoa(it.N)) }),
			{Column: page.Column{Left: true}, Cell: func(it *loop.Iteration) page.Cell {
				tone, word := IterationResult(it)
				return page.Cell{Text: page.Mark(tone, word).String(), Tone: tone}
			}},
			page.Right("output, tok/s", page.Strong, func(it *loop.Iteration) page.Cell {
				before, after := Outputs(it)
				return page.Words(page.Ratio(before.Value).Text + nbsp + "→" + nbsp + page.Ratio(after.Value).Text)
			}),
			page.Right("", page.Accent, func(it *loop.Iteration) page.Cell {
				if e := Effect(it); e.OK {
					return page.Words(Change(e))
				}
				return page.Cell{}
			}),
			{Column: page.Column{Left: true, MaxLines: changeLines}, Cell: func(it *loop.Iteration) page.Cell {
				return page.Words(JoinClauses(IterationChange(it), it.Failure))
			}},
		}))
	}
	return sec
}

func pointers[T any](list []T) []*T {
	out := make([]*T, len(list))
	for i := range list {
		out[i] = &list[i]
	}
	return out
}

// nextSteps returns the remaining steps: the best command, settings to revert, the current recommendation, and
// the files with details.
func (r Run) nextSteps(files []string) page.Section {
	sec := page.Section{ID: "next"}
	var list page.Facts
	if best := r.Best(); len(r.Iterations) > 0 && best != "" { // otherwise it is the user's own command
		if len(best) <= commandCells {
			sec.Add(page.Inset(page.Toned(page.Muted, "kept launch command")), page.Command(best))
		} else {
			// Name the changes instead of cutting a command that would fill the screen.
			words := "the launch command that it was started with"
			if changes := r.keptChanges(); len(changes) > 0 {
				words += ", with " + Changes(changes...)
			}
			if len(files) > 0 {
				words += "; it is in the report"
			}
			list = append(list, page.Fact{Label: "kept", Text: page.Toned(page.Body, words), MaxLines: 4})
		}
	}
	if left := r.NotReverted(); left != "" {
		list = append(list, page.Fact{Label: "left", Text: page.Join(page.Mark(page.Bad, "not undone:"), page.Toned(page.Body, " "+left)), MaxLines: 3})
	}
	if next := r.Next(); next != "" && next != r.Reason() {
		list = append(list, page.Fact{Label: "next", Text: page.Toned(page.Body, next), MaxLines: 3})
	}
	if len(files) > 0 {
		t := page.Toned(page.Accent, files[0])
		for _, f := range files[1:] {
			if path.Dir(f) == path.Dir(files[0]) {
				f = path.Base(f)
			}
			t = page.Join(t, page.Toned(page.Muted, ", "), page.Toned(page.Accent, f))
		}
		list = append(list, page.Fact{Label: "report", Text: t, NoWrap: true})
	}
	sec.Add(list)
	return sec
}

// Report returns the page of a whole run.
func Report(s *loop.Snapshot) *page.Page {
	r := Run{s}
	tone, headline := r.Headline()
	p := reportHead("rooftop: a run on "+cmp.Or(s.Target.Model, "no server"), s.Target.Simulated, tone, headline, r.Reason(), r.NotReverted(), r.Next(), r.Best())
	p.Foot = "rooftop " + s.Version
	add := func(list ...page.Section) { p.Sections = append(p.Sections, list...) }
	add(r.pictures(), r.about(), r.changes())
	for i := range s.Iterations {
		if it := &s.Iterations[i]; it.Delta != nil {
			title := "Change " + strconv.Itoa(it.N) + ": " + IterationChange(it)
			add(page.Section{ID: "change-" + strconv.Itoa(it.N), Title: title, Note: ChangeNote(it), Nodes: []page.Node{DeltaTable(it.Delta, it.Predicted)}})
		}
	}
	if latest := cmp.Or(s.Baseline, s.Live); latest != nil {
		from := "From the last complete measurement: "
		if s.Baseline == nil {
			from = "From the windows so far, which are not a complete measurement: "
		}
		add(Rules(latest, from+figure.Elapsed(latest.Duration)+", "+WindowCounts(latest.Windows)+"."), measuredSection(latest))
	}
	add(FactsSection(&s.Facts), notRead(s.Missing), sources(s, false), processes(s), Journal(s, false))
	return p
}

// reportHead returns the beginning of a run's page.
func reportHead(title string, simulated bool, tone page.Tone, headline, reason, left, next, best string) *page.Page {
	head := page.Section{ID: "headline"}
	if simulated {
		head.Add(simulatedProse())
	}
	head.Add(page.Prose{Text: page.Toned(tone, headline), Lead: true})
	if reason != "" {
		head.Add(page.Paragraph(page.Toned(page.Body, Sentence(reason))))
	}
	if left != "" {
		head.Add(page.Paragraph(page.Mark(page.Bad, "Not undone:"), page.Toned(page.Body, " "+figure.Stopped(left))))
	}
	if next != "" && next != reason {
		head.Add(page.Paragraph(page.Toned(page.Body, "Next: "+figure.Stopped(next))))
	}
	if best != "" {
		head.Add(page.Paragraph(page.Toned(page.Body, "The kept launch command:")), page.Command(best))
	}
	return &page.Page{Title: title, Sections: []page.Section{head}}
}

// about returns what was tuned, when and how.
func (r Run) about() page.Section {
	var f page.Facts
	add := func(label, value string) { f.Add(label, page.Body, cmp.Or(value, figure.Absent)) }
	add("server", r.Target.URL)
	add("model", r.Target.Model)
	add("engine", EngineName(r.Target))
	add("hardware", Hardware(&r.Facts))
	add("settings", strings.Join(launchSettings(&r.Facts), ", "))
	if !r.Started.IsZero() {
		add("started", r.Started.UTC().Format(time.RFC3339))
	}
	add("duration", figure.Elapsed(r.Now))
	add("phase", r.Phase.String())
	add("restarts", strconv.Itoa(r.restartCount()))
	if r.Auto || r.Limits.UsedOutages > 0 {
		add("autopilot", r.Limits.Summary())
	}
	if text := Objectives(r.Objectives, cmp.Or(r.Live, r.Baseline)); text != "" {
		add("objectives", text)
	}
	add("gain", r.GainText())
	add("predictions", r.Score.Summary())
	add("running", r.Launch)
	add("noise", cmp.Or(r.NoiseText(), "not measured: no restart with the same settings"))
	for _, n := range r.Notes {
		add("note", n)
	}
	return page.Section{ID: "about", Title: "What was measured", Nodes: []page.Node{f}}
}

// changes returns every change with its result.
func (r Run) changes() page.Section {
	sec := page.Section{ID: "changes", Title: "Changes", Note: Sentence(r.Score.Summary())}
	if len(r.Iterations) == 0 {
		sec.Add(page.Paragraph(page.Toned(page.Muted, "No change was made or noticed.")))
		return sec
	}
	sec.Add(ChangeTable(pointers(r.Iterations)))
	return sec
}

// ChangeTable returns a table of changes with their results.
func ChangeTable(list []*loop.Iteration) *page.Table {
	return page.Tabulate(list, []page.Field[*loop.Iteration]{
		page.Right("no.", page.Body, func(it *loop.Iteration) page.Cell { return page.Integer(it.N) }),
		page.Right("at", page.Body, func(it *loop.Iteration) page.Cell { return page.Words(figure.Clock(it.At)) }),
		page.Left("change", page.Body, IterationChange),
		page.Left("noticed as", page.Body, func(it *loop.Iteration) string { return string(it.Noticed) }).Ranked(2),
		page.Right("before, tok/s", page.Body, func(it *loop.Iteration) page.Cell { before, _ := Outputs(it); return page.Ratio(before.Value) }).Ranked(1),
		page.Right("after, tok/s", page.Body, func(it *loop.Iteration) page.Cell { _, after := Outputs(it); return page.Ratio(after.Value) }).Ranked(1),
		page.Right("difference", page.Body, func(it *loop.Iteration) page.Cell { return page.Words(Change(Effect(it))) }),
		page.Right("95"+nbsp+"% interval", page.Body, func(it *loop.Iteration) page.Cell { return page.Words(effectInterval(it)) }).Ranked(4),
		page.Right("predicted", page.Body, func(it *loop.Iteration) page.Cell { return page.Words(goalRange(it)) }).Ranked(5),
		page.Left("measured is", page.Body, predictionOutcome).Ranked(6),
		{Column: page.Column{Head: "outcome", Left: true}, Cell: func(it *loop.Iteration) page.Cell {
			tone, word := IterationResult(it)
			return page.Cell{Text: word, Tone: tone}
		}},
		page.Left("what else differed", page.Body, func(it *loop.Iteration) string { return JoinClauses(it.Failure, strings.Join(it.Load, "; ")) }).Ranked(3),
	})
}

func goalRange(it *loop.Iteration) string {
	if q, ok := effect.PredictionOf(it.Predicted, Goal(it.Delta)); ok {
		return figure.ChangeRange(q.Low.V, q.High.V)
	}
	return ""
}

// predictionOutcome returns whether the outcome of a change was within the predicted range, or why that is
// unknown; "" without a prediction.
func predictionOutcome(it *loop.Iteration) string {
	v, judged := effect.VerdictOf(it.Delta)
	switch {
	case goalRange(it) == "":
		return ""
	case it.Failure != "":
		return "not measured"
	case !judged:
		return "not judged with an interval"
	}
	_, result := GoalPrediction(it.Delta, it.Predicted)
	return cmp.Or(result.Word(), "unresolved: "+string(v.Direction))
}

// Journal returns the events of a run, the newest last. wall adds the wall clock.
func Journal(s *loop.Snapshot, wall bool) page.Section {
	sec := page.Section{ID: "journal", Title: "Journal"}
	if s.Dropped > 0 {
		sec.Note = figure.Counted(s.Dropped, "earlier entry") + " dropped."
	}
	if len(s.Journal) == 0 {
		sec.Add(page.Paragraph(page.Toned(page.Muted, "Nothing has happened yet.")))
		return sec
	}
	fields := []page.Field[loop.Entry]{
		page.Right("at", page.Muted, func(e loop.Entry) page.Cell { return page.Words(figure.Clock(e.T)) }),
		{Column: page.Column{Left: true}, Cell: func(e loop.Entry) page.Cell {
			if e.Level == loop.LevelInfo {
				return page.Cell{}
			}
			tone := LevelTone(e.Level)
			return page.Cell{Text: page.Mark(tone, e.Level.String()).String(), Tone: tone}
		}},
		{Column: page.Column{Head: "what happened", Left: true}, Cell: func(e loop.Entry) page.Cell {
			return page.Cell{Text: e.Text, Tone: map[bool]page.Tone{true: page.Strong}[e.Level == loop.LevelBad]}
		}},
	}
	if wall && !s.Started.IsZero() {
		clock := page.Left("clock", page.Muted, func(e loop.Entry) string { return s.Started.Add(e.T).Format(time.TimeOnly) })
		fields = slices.Insert(fields, 1, clock)
	}
	sec.Add(page.Tabulate(s.Journal, fields))
	return sec
}

// History returns the page of runs, latest first, grouped by server.
func History(runs []PastRun) *page.Page {
	names, order := byServer(runs)
	p := &page.Page{Title: "rooftop: past runs"}
	for i, r := range order {
		if i > 0 && names[r] == names[order[i-1]] {
			continue
		}
		n := i
		for n < len(order) && names[order[n]] == names[r] {
			n++
		}
		p.Sections = append(p.Sections, page.Section{ID: fmt.Sprintf("server-%d", i), Title: names[r], Nodes: []page.Node{historyTable(order[i:n])}})
	}
	return p
}

func historyTable(runs []*PastRun) *page.Table {
	return page.Tabulate(runs, []page.Field[*PastRun]{
		page.Right("no.", page.Muted, func(r *PastRun) page.Cell { return page.Integer(r.Number) }),
		page.Left("started", page.Body, func(r *PastRun) string { return formatted(r.Started.Local(), "2006-01-02 15:04") }),
		page.Right("kept", page.Body, func(r *PastRun) page.Cell { return page.Words(r.keptOfTried()) }),
		page.Right("gain", page.Accent, func(r *PastRun) page.Cell { return page.Words(Change(r.Gain)) }),
		page.Right("95"+nbsp+"% interval", page.Body, func(r *PastRun) page.Cell {
			if !r.Gain.Finite().OK || !r.Low.Finite().OK || !r.High.Finite().OK {
				return page.Cell{}
			}
			return page.Words(figure.ChangeRange(r.Low.V, r.High.V))
		}).Ranked(1),
		page.Right("restarts", page.Body, func(r *PastRun) page.Cell { return page.Integer(r.Restarts) }),
		page.Right("predicted", page.Body, func(r *PastRun) page.Cell { return page.Words(r.predictionScore()) }),
		{Column: page.Column{Head: "ended", Left: true}, Cell: func(r *PastRun) page.Cell {
			tone, word := r.Ended()
			return page.Cell{Text: word, Tone: tone}
		}},
	})
}

// PastReport returns the page of a stored run.
func PastReport(r *PastRun) *page.Page {
	p := reportHead("rooftop: a run on "+cmp.Or(r.Model, r.Server, "no server"), r.Simulated, page.Body, r.Headline(), r.Reason, "", "", r.Best)
	p.Foot = "rooftop " + r.Version
	_, ended := r.Ended()
	var f page.Facts
	for _, row := range [][2]string{
		{"server", r.Server}, {"model", r.Model}, {"started", formatted(r.Started.UTC(), time.RFC3339)}, {"duration", duration(r.Duration)}, {"ended", ended},
		{"gain", r.GainText()}, {"restarts", strconv.Itoa(r.Restarts)}, {"predictions within their range", r.predictionScore()},
	} {
		f.Add(row[0], page.Body, cmp.Or(row[1], figure.Absent))
	}
	changes := page.Section{ID: "changes", Title: "Changes"}
	if len(r.Changes) == 0 {
		changes.Add(page.Paragraph(page.Toned(page.Muted, "No change was made or noticed.")))
	} else {
		changes.Add(page.Tabulate(r.Changes, []page.Field[PastChange]{
			page.Right("no.", page.Body, func(c PastChange) page.Cell { return page.Integer(c.N) }),
			page.Left("change", page.Body, func(c PastChange) string { return Changes(c.Changes...) }),
			page.Right("predicted", page.Body, func(c PastChange) page.Cell {
				return page.Words(Interval(c.Predicted[1], c.Predicted[0], c.Predicted[2]))
			}),
			page.Right("measured", page.Body, func(c PastChange) page.Cell { return page.Words(Interval(c.Gain, c.Low, c.High)) }),
			page.Left("outcome", page.Body, func(c PastChange) string { return cmp.Or(c.End, c.Direction) }),
			page.Left("why", page.Body, func(c PastChange) string { return c.Reason }),
		}))
	}
	p.Sections = append(p.Sections, page.Section{ID: "about", Title: "The run", Nodes: []page.Node{f}}, changes)
	if len(r.Story) > 0 {
		story := page.Section{ID: "journal", Title: "Journal"}
		for _, line := range r.Story {
			story.Add(page.Paragraph(page.Toned(page.Body, line)))
		}
		p.Sections = append(p.Sections, story)
	}
	return p
}

func duration(d time.Duration) string {
	if d <= 0 {
		return figure.Absent
	}
	return figure.Elapsed(d)
}

// formatted formats a time, or returns "" if it is unknown.
func formatted(t time.Time, layout string) string {
	if t.IsZero() {
		return ""
	}
	return t.Format(layout)
}
