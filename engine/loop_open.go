package engine

import "slices"

// openButFor says that a flag is recommended which was not tried, and no restart is
// left to try it.
func (l *Loop) openButFor() bool {
	r := l.seen.Baseline.Recommendation
	if r == nil || r.Kind != KindFlag || r.Flag == "" || l.exhausted() == "" {
		return false
	}
	return !slices.ContainsFunc(l.iterations, func(it Iteration) bool { return alike(material(it.Changes), r.changes()) })
}

// undecided says which change that the baseline recommends was tried and could not be
// judged, while nothing of it is kept: it is left open. "" where there is none; what
// was judged and brought nothing is not open.
func (l *Loop) undecided() string {
	r := l.seen.Baseline.Recommendation
	if r == nil || r.Kind != KindFlag || r.Flag == "" {
		return ""
	}
	var later [][]Change // of the iterations behind the present one
	for i := len(l.iterations) - 1; i >= 0; i-- {
		it := &l.iterations[i]
		changes := material(it.Changes)
		if !slices.ContainsFunc(changes, func(c Change) bool { return c.Flag == r.Flag }) {
			continue
		}
		if it.End == IterationKept || it.End == IterationContinued {
			return ""
		}
		again := slices.ContainsFunc(later, func(c []Change) bool { return alike(c, changes) })
		why := it.undecided()
		if slices.Contains(l.pilot.cut, it.N) {
			why = it.Failure
		}
		if why != "" && it.recommended() && !again {
			return listed(changes) + " is recommended and could not be judged, so it is not kept: " + why
		}
		later = append(later, changes)
	}
	return ""
}

// recommended says that a change is the one that the baseline before it recommended.
func (it *Iteration) recommended() bool {
	if it.Before == nil || it.Before.Recommendation == nil {
		return false
	}
	return alike(material(it.Changes), it.Before.Recommendation.changes())
}

// undecided says why a change that was tried has no verdict, "" where it has one, is
// still tried, or failed.
func (it *Iteration) undecided() string {
	switch {
	case it.End == IterationOpen || it.Failure != "":
		return ""
	case it.Delta == nil:
		return "its measurement was cut short"
	case it.Delta.Direction == Inconclusive || it.Delta.Direction == NotComparable:
		return it.Delta.Reason
	}
	return ""
}
