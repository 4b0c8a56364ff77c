package tuning

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/page"
)

// Severity returns the tone of a fired finding. A finding about clients is not a fault of the server.
func Severity(f *engine.Finding) page.Tone {
	if f != nil && f.Impact >= 5 && (f.Fix == nil || f.Fix.Kind != engine.KindClient) {
		return page.Bad
	}
	return page.Warn
}

// State returns the state of a finding in one word, with its tone.
func State(f *engine.Finding) (page.Tone, string) {
	switch {
	case f.State == engine.Suppressed:
		return page.Muted, "suppressed"
	case f.State == engine.NotEvaluable:
		return page.Muted, "not judged"
	case f.State == engine.NotFired:
		return page.OK, "not fired"
	case !f.Significant:
		return page.Muted, "seen"
	}
	return Severity(f), "fired"
}

// firedIn returns in how many of the evaluable windows a rule fired, "" if in none of them.
func firedIn(f *engine.Finding) string {
	if f.Evaluable == 0 {
		return "judged once for the whole run"
	}
	return f.FiredIn()
}

// Score returns how the score of a finding is computed.
func Score(f *engine.Finding) string {
	text := fmt.Sprintf("confidence %.2f × impact %.0f = %.2f", f.Confidence, f.Impact, f.Score)
	if as := f.RankedAs(); as < f.Score {
		text += fmt.Sprintf(" (in rank %.2f, as clients would change for an unknown gain)", as)
	}
	return text
}

// DecidedBy returns the deciding figure, without how often the rule fired; "" if there is no other
// reason.
func DecidedBy(f *engine.Finding) string { return strings.TrimPrefix(f.Reason, firedIn(f)+": ") }

// Rank returns the rank of a finding: "recommended", "second priority", or "".
func Rank(d *engine.Diagnosis, id engine.FindingID) string {
	switch {
	case d.Recommendation != nil && d.Recommendation.Finding == id:
		return "recommended"
	case slices.Contains(d.Runners, id):
		return "second priority"
	}
	return ""
}

// remainder returns the remarks on a finding: the missing inputs, what suppresses it, and why its fix is
// not recommended.
func remainder(f *engine.Finding) []string {
	var list []string
	ofFired := func(e engine.Evidence) bool {
		return e.Name == "running_mean" || e.Name == "waiting_mean" || e.Name == "queue_ratio"
	}
	if f.State == engine.Fired && f.Fired < f.Evaluable && slices.ContainsFunc(f.Evidence, ofFired) {
		list = append(list, "running and waiting requests, and their shares, are those of the windows in which it fired")
	}
	if lacked := strings.Join(f.Missing, ", "); lacked != "" && !strings.Contains(f.Reason, lacked) {
		list = append(list, "missing: "+lacked)
	}
	if f.SuppressedBy != "" && !strings.Contains(f.Reason, f.SuppressedBy) {
		list = append(list, "suppressed by "+f.SuppressedBy)
	}
	if f.Fix != nil && f.Fix.Withheld != "" {
		list = append(list, "listed, not recommended: "+f.Fix.Withheld)
	}
	return list
}

// EvidenceText returns a figure of evidence with the limit that it was compared with.
func EvidenceText(e engine.Evidence) string {
	value, limit, unit := e.Value.Finite(), e.Limit.Finite(), e.Unit
	if unit == "GB" { // all device memory is shown in binary units
		value, limit, unit = value.Times(1e9), limit.Times(1e9), "B"
	}
	if !value.OK || !limit.OK {
		return figure.Show(value, unit)
	}
	v, l := figure.Compared(value.V, limit.V, unit)
	return v + " " + strings.TrimSpace(figure.Operator(e.Op)+nbsp+l)
}

// findingTitle returns the title of a finding, or else its ID.
func findingTitle(d *engine.Diagnosis, id engine.FindingID) string {
	if f := d.Finding(id); f != nil {
		return cmp.Or(f.Title, string(id))
	}
	return string(id)
}

// WindowCounts describes how much of a run counts.
func WindowCounts(w engine.WindowCounts) string {
	s := figure.Counted(w.Collected, "window")
	switch {
	case w.Collected == 0:
		return s
	case w.Collected == 1 && w.Active == 1:
		return s + " with load"
	case w.Active == w.Collected:
		return s + ", all with load"
	case w.Evaluable < w.Collected:
		s += fmt.Sprintf(", %d evaluable", w.Evaluable)
	}
	return s + fmt.Sprintf(", %d with load", w.Active)
}

// LastRaw returns the window to show unevaluated: the last one of a run without evaluable windows, or nil.
func LastRaw(d *engine.Diagnosis) *engine.Window {
	if d.Windows.Evaluable > 0 {
		return nil
	}
	return d.LastRaw
}
