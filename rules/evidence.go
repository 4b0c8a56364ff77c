package rules

import (
	"iter"
	"strconv"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// formatSeconds formats a time in seconds: "884 µs", "12.4 ms".
func formatSeconds(s float64) string { return figure.Value(s, "s") }

// perRank returns " on each of the n data-parallel ranks", "" for one rank.
func perRank(n float64) string {
	if n <= 1 {
		return ""
	}
	return " on each of the " + strconv.Itoa(int(n)) + " data-parallel ranks"
}

// addEvidence adds evidence to a finding.
func addEvidence(f *engine.Finding, list ...engine.Evidence) {
	f.Evidence = append(f.Evidence, list...)
}

// addKnownEvidence adds evidence if its value is known, and reports whether it is.
func addKnownEvidence(f *engine.Finding, e engine.Evidence) bool {
	if e.Value.OK {
		addEvidence(f, e)
	}
	return e.Value.OK
}

// reject lists an alternative to a fix, with the reason against it.
func reject(fix *engine.Fix, what, why string) {
	fix.Rejected = append(fix.Rejected, engine.Rejected{What: what, Why: why})
}

// compared returns evidence of a value that was compared with a limit. A value on the other side of
// it, as where another condition made the rule fire, has the operator that holds: evidence never
// contradicts itself.
func compared(name string, v stat.Opt, unit, op string, limit float64, source engine.Source, text string) engine.Evidence {
	holds := map[string]bool{"<": v.V < limit, ">=": v.V >= limit, ">": v.V > limit, "<=": v.V <= limit}
	if v.OK && !holds[op] {
		op = complement[op]
	}
	return engine.Evidence{Name: name, Value: v, Unit: unit, Op: op, Limit: stat.Some(limit), Source: source, Text: text}
}

// complement has the operator that holds where another does not.
var complement = map[string]string{"<": ">=", ">=": "<", ">": "<=", "<=": ">"}

// measured returns evidence of a measured value without a limit.
func measured(name string, v stat.Opt, unit, text string) engine.Evidence {
	return sourced(name, v, unit, engine.FromMeasured, text)
}

// sourced returns evidence of a value from any source, without a limit.
func sourced(name string, v stat.Opt, unit string, source engine.Source, text string) engine.Evidence {
	return engine.Evidence{Name: name, Value: v, Unit: unit, Source: source, Text: text}
}

// checkFunc checks one window against the condition of a rule.
type checkFunc func(*engine.Window, *engine.Facts) engine.Check

// firesIn returns the filter for the windows of a run in which a check fires.
func firesIn(r *engine.Run, check checkFunc) func(*engine.Window) bool {
	return func(w *engine.Window) bool { return check(w, r.Facts).State == engine.Fired }
}

// windows iterates over the windows of a run that a filter selects.
func windows(r *engine.Run, selected func(*engine.Window) bool) iter.Seq[*engine.Window] {
	return func(yield func(*engine.Window) bool) {
		for i := range r.Windows {
			if w := &r.Windows[i]; selected(w) && !yield(w) {
				return
			}
		}
	}
}

// evaluable selects the windows that rules can be checked against.
func evaluable(w *engine.Window) bool { return w.Evaluable }
