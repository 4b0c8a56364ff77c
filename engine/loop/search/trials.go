package search

import (
	"slices"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/lever"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Ending is the outcome of a trial.
type Ending uint8

// Outcomes of a trial.
const (
	Gained   Ending = iota // kept
	Lost                   // no gain, or worse
	Failed                 // the server did not start, or exited by itself
	Unjudged               // measured without a verdict
)

// Trial is a change that was made on this server.
type Trial struct {
	Changes []engine.Change
	Ending  Ending
	// Predicted is the prediction for the changes, nil without one.
	Predicted []engine.Prediction
	Effect    stat.Opt // logarithm of its effect on the goal
	Noise     float64  // standard deviation of Effect, 0 if unknown
	// Before and After are the measurements, nil if there is none.
	Before, After *engine.Diagnosis
	// Since are flags that were changed permanently after the trial.
	Since []string
}

// isTied reports whether the best value of an engine's flag depends on that of others.
func isTied(flag string) bool {
	l := lever.Of(engine.Change{Flag: flag}.Canonical().Flag)
	return l != nil && l.Tied
}

// dependencyChanged reports whether another flag, on which the value of this change depends, was changed
// permanently since.
func (t *Trial) dependencyChanged() bool {
	touches := func(flag string) bool {
		return slices.ContainsFunc(t.Changes, func(c engine.Change) bool { return c.Flag == flag })
	}
	if !slices.ContainsFunc(t.Changes, func(c engine.Change) bool { return isTied(c.Flag) }) {
		return false
	}
	return slices.ContainsFunc(t.Since, func(flag string) bool { return isTied(flag) && !touches(flag) })
}

// sameLoad reports whether the trial took place under the load of a diagnosis.
func (t *Trial) sameLoad(d *engine.Diagnosis, factor float64) bool {
	if t.Before == nil || d == nil {
		return true
	}
	return LoadOf(t.Before).Near(d, factor)
}

// goesAtLeastAsFar reports whether each change goes at least as far, in its direction, as the changes that were
// tried: a server that did not start with less does not start with more.
func goesAtLeastAsFar(changes, limit []engine.Change) bool {
	for _, was := range limit {
		if !slices.ContainsFunc(changes, func(c engine.Change) bool { return c.Flag == was.Flag && atLeastAsFar(c, was) }) {
			return false
		}
	}
	return len(limit) > 0
}

func atLeastAsFar(c, was engine.Change) bool {
	if engine.SameValue(c.To, was.To) {
		return true
	}
	to, okTo := lever.ParseNumber(c.To)
	limit, okLimit := lever.ParseNumber(was.To)
	from, okFrom := lever.ParseNumber(was.From)
	if !okFrom {
		from, okFrom = lever.ParseNumber(c.From)
	}
	if !okTo || !okLimit || !okFrom {
		return false
	}
	return limit > from && to >= limit || limit < from && to <= limit
}

// excludes returns why the trial excludes changes under the load of a diagnosis, or "".
func (t *Trial) excludes(changes []engine.Change, d *engine.Diagnosis) string {
	switch t.Ending {
	case Failed:
		if goesAtLeastAsFar(changes, t.Changes) {
			return "the server failed with " + engine.JoinChanges(t.Changes)
		}
	case Lost:
		if t.dependencyChanged() || !t.sameLoad(d, OtherLoad) {
			return ""
		}
		if engine.SameChanges(changes, t.Changes) || len(changes) == 1 && len(t.Changes) == 1 && goesAtLeastAsFar(changes, t.Changes) {
			return engine.JoinChanges(t.Changes) + " was tried without a gain"
		}
	}
	return ""
}

// againLoad is the largest factor between loads for a second trial of a change without a verdict.
const againLoad = 1.25

// trialsWithoutVerdict returns the number of trials without a verdict that a candidate repeats, and the last of
// them, or nil.
func (s *Search) trialsWithoutVerdict(c *candidate) (last *Trial, n int) {
	for i := range s.Trials {
		if t := &s.Trials[i]; t.Ending == Unjudged && s.repeats(c, t) {
			last, n = t, n+1
		}
	}
	return last, n
}

// repeats reports whether a candidate makes the changes of a trial again: the same values or, of the same flags,
// values at least as far whose predicted gain is not larger by the minimum gain. Noise hides the one as it hid
// the other.
func (s *Search) repeats(c *candidate, t *Trial) bool {
	changes := c.Changes()
	if engine.SameChanges(changes, t.Changes) {
		return true
	}
	if len(changes) != len(t.Changes) || !goesAtLeastAsFar(changes, t.Changes) {
		return false
	}
	now, then := Gain(s.Goal.Metric, c.Predicted).Mid, Gain(s.Goal.Metric, t.Predicted).Mid
	return now.OK && then.OK && now.V < then.V+s.Goal.MinGain
}
