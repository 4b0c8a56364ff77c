package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/rooftop-dev/rooftop/cmd/internal/apply"
	"github.com/rooftop-dev/rooftop/cmd/internal/report"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/journal"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// defaultRuns is how many runs history lists unasked: a screen of them.
const defaultRuns = 20

func newHistory(w *world) *cobra.Command {
	var out output
	most := defaultRuns
	c := &cobra.Command{
		Use:   "history",
		Short: "Past runs: what was changed, kept and gained",
		Long: `Lists the runs of 'rooftop tune' and 'rooftop demo' that are stored on this
machine, the latest first: when, on which server, how many changes were made and
kept, the gain, how often the server was started, how many predictions held, and
how it ended. A run that was killed is there too, from its journal. What cannot
be read is named.

'rooftop report NUMBER' shows one of them.

ENVIRONMENT
  Runs lie in rooftop/runs and journals in rooftop/servers under XDG_STATE_HOME
  (default ~/.local/state).`,
		Example: "  rooftop history\n  rooftop history -n 5\n  rooftop history --json | jq -r '.runs[0].name'",
		Args:    noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := out.check(); err != nil {
				return err
			}
			if most < 1 {
				return usage("history: -n %d: give at least 1", most)
			}
			return history(w, &out, most)
		},
	}
	g := groupFlags(c)
	f := g.group("Which")
	f.IntVarP(&most, "number", "n", defaultRuns, "`N` runs at most")
	registerPrinted(g, &out)
	g.done()
	return c
}

// registerPrinted adds the flags of a command that prints a page or JSON.
func registerPrinted(g *flagGroups, o *output) {
	f := g.group("Output")
	f.BoolVar(&o.json, "json", false, "one JSON document instead of text")
	f.BoolVar(&o.plain, "plain", false, "no colour")
	f.StringVar(&o.color, "color", "auto", "`WHEN` to use colour: auto, always or never; NO_COLOR is honoured")
	f.BoolVar(&o.ascii, "ascii", false, "ASCII characters alone; also with TERM=linux or LC_ALL=C")
}

func history(w *world, out *output, most int) error {
	runs, unread, err := storedRuns(w.env)
	if err != nil {
		return err
	}
	all := len(runs)
	runs = runs[:min(most, all)]
	if unread > 0 {
		fmt.Fprintf(w.stderr, "rooftop: %s could not be read and %s left out\n", counted(unread, "stored run"), isAre(unread))
	}
	lines, err := unreadJournals(w.env)
	if err != nil {
		return err
	}
	for _, j := range lines {
		fmt.Fprintf(w.stderr, "rooftop: left out: %s\n", j.What())
	}
	if out.json {
		if err := report.WriteHistoryJSON(w.stdout, runs); err != nil {
			return fail(exitError, err)
		}
		return nil
	}
	if all == 0 && unread+len(lines) > 0 {
		fmt.Fprintln(w.stdout, "No run can be read.")
		return nil
	}
	if all == 0 {
		fmt.Fprintln(w.stdout, "No run is stored; 'rooftop tune' leaves one.")
		return nil
	}
	if err := report.WriteHistory(w.stdout, runs, out.style(w)); err != nil {
		return fail(exitError, err)
	}
	if all > len(runs) {
		fmt.Fprintf(w.stdout, "%s before these: -n %d lists all\n", counted(all-len(runs), "run"), all)
	}
	return nil
}

func counted(n int, what string) string {
	if n == 1 {
		return "one " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func isAre(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

// pastOf is a run as its journal tells it.
func pastOf(j *apply.JournalledRun) report.PastRun {
	r := report.PastRun{
		Name: j.State.Run, Path: j.Dir, Journal: true, Started: j.State.Begun, Duration: j.State.Last.Sub(j.State.Begun), Version: j.State.Version,
		Server: j.Identity.URL, Model: j.Identity.Model, Best: j.State.Kept.Command, Outcome: report.PastEnded,
	}
	switch {
	case j.Running:
		r.Outcome, r.Duration = report.PastRunning, 0
	case j.State.Open:
		r.Outcome = report.PastCutOff
	}
	for i := range j.Records {
		tellPast(&r, &j.Records[i])
	}
	return r
}

// tellPast adds what one record says to the run.
func tellPast(r *report.PastRun, j *journal.Record) {
	line := j.Time.Local().Format("15:04:05") + "  " + string(j.Kind)
	if j.Revert {
		line += " (a way back)"
	}
	for _, c := range j.Changes {
		line += "  " + engine.Change(c).String()
	}
	if j.Text != "" {
		line += ": " + j.Text
	}
	r.Story = append(r.Story, line)
	last := func() *report.PastChange {
		if len(r.Changes) == 0 {
			return &report.PastChange{} // a record of a change that no intent was written of
		}
		return &r.Changes[len(r.Changes)-1]
	}
	switch j.Kind {
	case journal.Intent:
		if j.Mode == string(modeHook) {
			r.Restarts++ // the program's, which writes down no start
		}
		if j.Revert {
			if c := last(); c.End == "" {
				c.End = string(engine.IterationReverted)
			}
			return
		}
		c := report.PastChange{N: j.Iteration}
		for _, one := range j.Changes {
			c.Changes = append(c.Changes, engine.Change(one))
		}
		for _, p := range j.Predicted {
			if p.Metric == apply.OutputMetric {
				c.Foretold = [3]stat.Opt{optional(p.Low), optional(p.Mid), optional(p.High)}
			}
		}
		r.Changes = append(r.Changes, c)
	case journal.Started:
		if len(r.Changes) > 0 { // else it is the start of a server that the run began with
			r.Restarts++
		}
	case journal.Failed:
		c := last()
		c.End, c.Reason = string(engine.IterationBroken), j.Text
	case journal.Verdict:
		c := last()
		c.Direction, c.Reason, c.Gain, c.Low, c.High = j.Direction, j.Text, optional(j.Mid), optional(j.Low), optional(j.High)
		if f := c.Foretold; f[0].OK && f[2].OK && c.Gain.OK {
			r.Made++
			if c.Gain.V >= f[0].V && c.Gain.V <= f[2].V {
				r.Within++
			}
		}
	case journal.Kept:
		last().End = string(engine.IterationKept)
	case journal.Recover:
		r.Outcome = report.PastRecovered
	case journal.End:
		r.Reason = j.Text
		if j.Exit != nil {
			r.Exit = *j.Exit
		}
	}
}

func optional(v *float64) stat.Opt {
	if v == nil {
		return stat.None
	}
	return stat.Some(*v)
}
