package pastruns

import (
	"slices"

	"github.com/rooftop-dev/rooftop/cmd/internal/serverdir"
	"github.com/rooftop-dev/rooftop/engine/journal"
	"github.com/rooftop-dev/rooftop/engine/loop"
	"github.com/rooftop-dev/rooftop/engine/page/tuning"
	"github.com/rooftop-dev/rooftop/engine/stat"
	"github.com/rooftop-dev/rooftop/engine/verdict"
)

// fromJournal returns a run as its journal records it.
func fromJournal(j *serverdir.JournalledRun) tuning.PastRun {
	r := journalled{tuning.PastRun{
		Name: j.State.Run, Path: j.Dir, Journal: true, Started: j.State.Begun, Duration: j.State.Last.Sub(j.State.Begun), Version: j.State.Version,
		Server: j.Identity.URL, Model: j.Identity.Model, Best: j.State.Kept.Command, Outcome: tuning.PastEnded,
	}}
	switch {
	case j.Running:
		r.Outcome, r.Duration = tuning.PastRunning, 0
	case j.State.Open:
		r.Outcome = tuning.PastCutOff
	}
	for i := range j.Records {
		r.add(&j.Records[i])
	}
	return r.PastRun
}

// journalled is a run that is built from journal records.
type journalled struct{ tuning.PastRun }

// last returns the latest change.
func (r *journalled) last() *tuning.PastChange {
	if len(r.Changes) == 0 {
		return &tuning.PastChange{} // a record of a change without an intent
	}
	return &r.Changes[len(r.Changes)-1]
}

// add adds the contents of one record.
func (r *journalled) add(j *journal.Record) {
	r.Story = append(r.Story, storyLine(j))
	switch j.Kind {
	case journal.Intent:
		r.intend(j)
	case journal.Started:
		if len(r.Changes) > 0 { // otherwise it is the server start at the beginning of the run
			r.Restarts++
		}
	case journal.Reverted:
		if c := r.last(); c.End == "" && j.Revert { // a canary; other reverts have an intent
			c.End = string(loop.IterationReverted)
		}
	case journal.Failed:
		c := r.last()
		c.End, c.Reason = string(loop.IterationBroken), j.Text
	case journal.Verdict:
		r.judge(j)
	case journal.Kept:
		if c := r.last(); c.End == "" { // otherwise the previous configuration is kept again
			c.End = string(loop.IterationKept)
		}
	case journal.Recover:
		r.Outcome = tuning.PastRecovered
	case journal.End:
		r.Reason = j.Text
		if j.Exit != nil {
			r.Exit = *j.Exit
		}
	}
}

// storyLine returns one record as a line of text.
func storyLine(j *journal.Record) string {
	line := j.Time.Local().Format("15:04:05") + "  " + string(j.Kind)
	if j.Revert {
		line += " (revert)"
	}
	for _, c := range j.Changes {
		line += "  " + c.String()
	}
	if j.Text != "" {
		line += ": " + j.Text
	}
	return line
}

// intend adds a change, or the revert of the latest one.
func (r *journalled) intend(j *journal.Record) {
	if serverdir.Managed(j.Mode) {
		r.Restarts++ // by the manager, which records no start
	}
	if j.Revert {
		if c := r.last(); c.End == "" {
			c.End = string(loop.IterationReverted)
		}
		return
	}
	for i := range r.Changes {
		if c := &r.Changes[i]; c.N == j.Iteration && c.End == string(loop.IterationKept) {
			c.End, c.Reason = string(loop.IterationBroken), "it did not last, and what was kept before it was restored"
			return
		}
	}
	c := tuning.PastChange{N: j.Iteration}
	c.Changes = append(c.Changes, j.Changes...)
	for _, p := range j.Predicted {
		if p.Metric == serverdir.OutputMetric {
			c.Predicted = [3]stat.Opt{p.Low, p.Mid, p.High}
		}
	}
	if last := r.last(); len(r.Changes) > 0 && last.N == c.N { // made to all after its canary
		*last = c
		return
	}
	r.Changes = append(r.Changes, c)
}

// judge adds the verdict on a change, and whether its result was within the prediction. A change by someone
// else has no intent, and is not one of the run.
func (r *journalled) judge(j *journal.Record) {
	c := r.last()
	if i := slices.IndexFunc(r.Changes, func(c tuning.PastChange) bool { return c.N == j.Iteration }); i >= 0 {
		c = &r.Changes[i]
	} else if j.Iteration > 0 {
		return
	}
	again := c.Direction != ""
	c.Direction, c.Reason, c.Gain, c.Low, c.High = j.Direction, j.Text, j.Mid, j.Low, j.High
	if low, high := c.Predicted[0], c.Predicted[2]; !again && low.OK && high.OK && c.Gain.OK && !(verdict.Interval{Low: c.Low.Or(0), High: c.High.Or(0)}).Wide() {
		r.Made++
		if c.Gain.V >= low.V && c.Gain.V <= high.V {
			r.Within++
		}
	}
}
