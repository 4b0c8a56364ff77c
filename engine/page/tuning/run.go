package tuning

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/effect"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/launch"
	"github.com/rooftop-dev/rooftop/engine/loop"
	"github.com/rooftop-dev/rooftop/engine/page"
	"github.com/rooftop-dev/rooftop/engine/stat"
	"github.com/rooftop-dev/rooftop/engine/verdict"
)

// Run is the result of a run of the loop, for pages and documents.
type Run struct{ *loop.Snapshot }

// kept returns the changes that became the baseline.
func (r Run) kept() []*loop.Iteration {
	var list []*loop.Iteration
	for i := range r.Iterations {
		if Kept(&r.Iterations[i]) {
			list = append(list, &r.Iterations[i])
		}
	}
	return list
}

// Gain returns the change of the output from before the first kept change to after the last, absent if
// unknown.
func (r Run) Gain() stat.Opt {
	if f := r.Finished; f != nil {
		return f.Gain.Finite()
	}
	before, after := loop.Gained(r.Iterations)
	if before == nil || after == nil {
		return stat.None
	}
	return effect.Compare(before, after).Throughput.Finite()
}

// GainText formats the gain with its interval, if known.
func (r Run) GainText() string {
	if f := r.Finished; f != nil {
		return FinishedGain(f)
	}
	return Change(r.Gain())
}

// FinishedGain formats the gain of a finished run with its interval, if known.
func FinishedGain(f *loop.Finished) string {
	if f.GainKnown && f.Gain.OK {
		return f.GainWithin.String()
	}
	return Change(f.Gain)
}

// restartCount returns how often the server was restarted.
func (r Run) restartCount() int {
	if f := r.Finished; f != nil {
		return f.Restarts
	}
	return len(r.Iterations)
}

// Headline returns the run in one line, with its tone.
func (r Run) Headline() (page.Tone, string) {
	kept := r.kept()
	switch gain := r.Gain(); {
	case !r.Attached:
		return page.Warn, "No server was found"
	case r.Condition.Ill() && len(kept) == 0:
		return page.Bad, r.Condition.Title() + ": nothing was concluded"
	case r.Baseline == nil && len(r.Iterations) == 0:
		return page.Warn, "No measurement was completed"
	case r.Finished != nil && r.Last() != nil && r.Last().Failure != "" && len(r.SettingsLeft()) > 0:
		return page.Bad, "Not reverted: the server was left with " + Settings(r.SettingsLeft())
	case len(kept) > 0 && gain.OK:
		tone := page.OK
		if gain.V < 0 {
			tone = page.Bad
		}
		before, _ := Outputs(kept[0])
		_, after := Outputs(kept[len(kept)-1])
		return tone, fmt.Sprintf("Output %s: %s, with %s", r.GainText(), FromTo(before, after.Value), figure.Counted(r.restartCount(), "restart"))
	case len(r.Iterations) == 0 && r.Baseline.Overload != "":
		return page.Warn, "Nothing was changed, and the server is overloaded: output " + Show(outputOf(r.Baseline))
	case len(r.Iterations) == 0 && r.Baseline.Outcome == engine.OutcomeNotEvaluable:
		return page.Warn, "Not evaluable, and nothing was changed: output " + Show(outputOf(r.Baseline))
	case len(r.Iterations) == 0:
		return page.Body, "Nothing was changed: output " + Show(outputOf(r.Baseline))
	case len(kept) > 0:
		return page.Warn, figure.Counted(len(kept), "change") + " kept; the gain is not known"
	}
	return page.Body, "No change was kept: output " + Show(outputOf(r.Baseline)) + " as before"
}

// Reason returns how the run ended, and why there is no result if so.
func (r Run) Reason() string {
	how := "the run is still under way"
	if f := r.Finished; f != nil {
		how = f.Reason
	}
	switch {
	case !r.Attached && strings.Contains(r.AttachWhy, r.Watch): // the reason names the address
		return JoinClauses(how, r.AttachWhy)
	case !r.Attached:
		return JoinClauses(how, r.AttachWhy, "looked for "+r.Watch)
	case r.Baseline == nil && len(r.Iterations) == 0 && (r.Quiet == "" || !strings.Contains(how, r.Quiet)): // where the server is ill, how says it
		return JoinClauses(how, cmp.Or(r.Quiet, r.Progress.Text))
	}
	return how
}

// Unhealthy returns what is wrong with the server of a run, and what follows for the run, as
// sentences. Both are "" if nothing is wrong.
func Unhealthy(s *loop.Snapshot) (what, then string) {
	if !s.Condition.Ill() {
		return "", ""
	}
	return Sentence(s.Condition.String()), Sentence(figure.Joined("; if it does not, ", "nothing is judged or recommended until it recovers", s.UnlessRecovers))
}

// UnhealthyAction returns what to do about a server that is ill, "" if nothing is known.
func UnhealthyAction(d *engine.Diagnosis) string {
	if d == nil {
		return ""
	}
	if f := d.Finding(engine.Stuck); f != nil && f.Fix != nil {
		return f.Fix.Command
	}
	return ""
}

// Best returns the launch command of the kept configuration, or "" if unknown.
func (r Run) Best() string {
	if f := r.Finished; f != nil {
		return f.Command
	}
	return r.Snapshot.Kept
}

// Next returns the current recommendation, what to do about an ill server, or why there is no recommendation.
func (r Run) Next() string {
	switch a := r.Advice; {
	case !r.Attached:
		return "start the server or give its address with --url; 'rooftop demo' shows a simulated one"
	case r.Condition.Ill():
		return UnhealthyAction(cmp.Or(r.Live, r.Baseline))
	case r.Preliminary != "":
		return figure.Joined(": ", "preliminary "+r.Preliminary, figure.Joined(": ", engine.JoinChanges(a.Changes()), a.Why))
	case a != nil && a.Kind == engine.KindFlag && a.Flag != "":
		return figure.Joined(": ", engine.JoinChanges(a.Changes()), a.Why)
	case a != nil:
		return figure.Joined(". ", cmp.Or(a.Command, string(a.Finding)), a.Why)
	}
	return r.Quiet
}

// Last returns the latest iteration, or nil.
func (r Run) Last() *loop.Iteration {
	if n := len(r.Iterations); n > 0 {
		return &r.Iterations[n-1]
	}
	return nil
}

// SettingsLeft returns the settings that run in addition to the best configuration, from a change that was neither
// kept nor reverted.
func (r Run) SettingsLeft() []engine.Change {
	last := r.Last()
	if last == nil || !unsettled(last) {
		return nil
	}
	var left []engine.Change
	for _, c := range last.Changes { // relative to the kept configuration
		if r.inPlace(c) {
			left = append(left, c)
		}
	}
	return left
}

// inPlace reports whether a change that was not kept is still in place, according to facts and launch
// commands: it may have been reverted since.
func (r Run) inPlace(c engine.Change) bool {
	name := strings.ReplaceAll(strings.TrimPrefix(c.Flag, "--"), "-", "_")
	if b := r.Baseline; b != nil {
		kept, runs := factValue(&b.Facts, name), factValue(&r.Facts, name)
		if kept != nil && runs != nil {
			return kept != runs
		}
	}
	kept, err := launch.ParseCommand(r.Best(), nil, nil)
	if err != nil {
		return true
	}
	runs, err := launch.ParseCommand(r.Launch, nil, nil)
	if err != nil {
		return true
	}
	return slices.ContainsFunc(launch.Diff(kept, runs), func(d launch.Change) bool { return d.Name == name || d.Name == c.Flag })
}

// NotReverted returns the settings of a change that was not kept but is in place, and how to revert it; "" if
// there are none.
func (r Run) NotReverted() string {
	left, last := r.SettingsLeft(), r.Last()
	if last == nil || len(left) == 0 && (last.Noticed != loop.Unreadable || last.End != loop.IterationOpen) {
		return ""
	}
	what, back := cmp.Or(Settings(left), "an unreadable change"), "restore the previous configuration"
	switch {
	case r.Best() != "":
		back = "revert with the kept launch command"
	case len(left) > 0:
		back = "revert to " + Settings(engine.InverseChanges(left))
	}
	if last.Up == 0 && last.End == loop.IterationOpen {
		return fmt.Sprintf("the server has not answered since change %d (%s): check its log, or %s", last.N, what, back)
	}
	return "the server still runs with " + what + ", " + judged(last) + ": " + back
}

// judged returns the classification of a change.
func judged(it *loop.Iteration) string {
	if it.Delta == nil {
		return "which was not judged"
	}
	switch it.Delta.Direction {
	case verdict.Worse:
		return "which was worse"
	case verdict.Plateau:
		return "which gained nothing"
	case verdict.Better:
		return "which was better"
	}
	return "which could not be judged"
}

// keptChanges returns the changes from the first to the best configuration.
func (r Run) keptChanges() []engine.Change {
	var out []engine.Change
	for _, it := range r.kept() {
		for _, c := range it.Changes { // relative to the previously kept configuration
			out = mergeChange(out, c)
		}
	}
	return out
}

// mergeChange merges a change into earlier ones: one flag keeps the first From and the last To, and a change that
// restores the original value is dropped.
func mergeChange(list []engine.Change, c engine.Change) []engine.Change {
	i := slices.IndexFunc(list, func(have engine.Change) bool { return have.Flag == c.Flag })
	if i < 0 {
		return append(list, c)
	}
	list[i].To = c.To
	if list[i].To == list[i].From {
		return slices.Delete(list, i, i+1)
	}
	return list
}

// Downtime returns the total downtime of the server, or "" if there was none.
func Downtime(f *loop.Finished) string {
	if f == nil || f.Downtime <= 0 {
		return ""
	}
	return "the server was down for " + figure.Elapsed(f.Downtime) + " in all"
}

// NoiseText returns how much repeated measurements of one configuration differ, or "" if none was repeated.
func (r Run) NoiseText() string {
	var parts []string
	for _, n := range r.Noise {
		parts = append(parts, Change(stat.Some(n)))
	}
	if len(parts) == 0 {
		return ""
	}
	return strings.Join(parts, ", ") + " between two measurements of the same settings"
}

// Simulated marks a simulated server at the top of a page.
const Simulated = "SIMULATED"

// simulatedRemark explains Simulated.
const simulatedRemark = "it shows how rooftop works, not what hardware does"
