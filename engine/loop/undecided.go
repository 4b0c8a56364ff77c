package loop

import (
	"slices"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/verdict"
)

// openWithoutRestart reports whether what the rules recommend, r, is an untried flag but no restart is left
// to try it.
func (p *autopilot) openWithoutRestart(r *engine.Recommendation) bool {
	if r == nil || r.Kind != engine.KindFlag || r.Flag == "" || p.budget.exhaustedLimit() == "" {
		return false
	}
	return !slices.ContainsFunc(p.iterations, func(it Iteration) bool { return engine.SameChanges(material(it.Changes), r.Changes()) })
}

// undecided names the change of what the rules recommend, r, that was tried without a verdict and is not in
// place, so the question stays open. It returns "" if there is none; changes that were judged to
// bring nothing are not open.
func (p *autopilot) undecided(r *engine.Recommendation) string {
	if r == nil || r.Kind != engine.KindFlag || r.Flag == "" {
		return ""
	}
	var later [][]engine.Change // of the later iterations
	for i := len(p.iterations) - 1; i >= 0; i-- {
		it := &p.iterations[i]
		changes := material(it.Changes)
		if !slices.ContainsFunc(changes, func(c engine.Change) bool { return c.Flag == r.Flag }) {
			continue
		}
		if it.End == IterationKept || it.End == IterationContinued {
			return ""
		}
		again := slices.ContainsFunc(later, func(c []engine.Change) bool { return engine.SameChanges(c, changes) })
		why := it.undecided()
		if slices.Contains(p.cutShort, it.N) {
			why = it.Failure
		}
		if why != "" && it.recommended() && !again {
			return engine.JoinChanges(changes) + " is recommended but could not be judged, so it is not kept: " + why
		}
		later = append(later, changes)
	}
	return ""
}

// recommended reports whether the change is the one that its baseline recommended.
func (it *Iteration) recommended() bool {
	if it.Before == nil || it.Before.Recommendation == nil {
		return false
	}
	return engine.SameChanges(material(it.Changes), it.Before.Recommendation.Changes())
}

// undecided returns why a change that was tried has no verdict. It returns "" if it has one, is
// still being tried, or failed.
func (it *Iteration) undecided() string {
	switch {
	case it.End == IterationOpen || it.Failure != "":
		return ""
	case it.Delta == nil:
		return "its measurement was interrupted"
	case it.Delta.Direction == verdict.Inconclusive || it.Delta.Direction == verdict.NotComparable:
		return it.Delta.Reason
	}
	return ""
}
