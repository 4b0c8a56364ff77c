package tuning

import (
	"cmp"
	"strings"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/effect"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/loop"
	"github.com/rooftop-dev/rooftop/engine/page"
	"github.com/rooftop-dev/rooftop/engine/stat"
	"github.com/rooftop-dev/rooftop/engine/verdict"
)

// unreadable names a change whose flags cannot be read.
const unreadable = "settings that cannot be read"

// Changes formats changes, each without line breaks.
func Changes(list ...engine.Change) string {
	var parts []string
	for _, c := range list {
		if c.Flag != "" {
			parts = append(parts, strings.ReplaceAll(c.String(), " → ", nbsp+"→"+nbsp))
		}
	}
	return cmp.Or(strings.Join(parts, ", "), unreadable)
}

// Settings formats the new settings of changes as on a command line.
func Settings(list []engine.Change) string {
	var parts []string
	for _, c := range list {
		parts = append(parts, setting(c.Flag, "", c.To))
	}
	return strings.Join(parts, ", ")
}

func setting(flag, from, to string) string {
	switch {
	case to == "on":
		return flag
	case to == "off", to == "":
		return "without " + flag
	case from != "":
		return flag + " " + from + nbsp + "→" + nbsp + to
	}
	return flag + " " + to
}

// Action returns a recommendation in one line: the flags with their values, or the step to take if the
// remedy is not a flag.
func Action(r *engine.Recommendation) string {
	if r.Changeable() {
		parts := []string{setting(r.Flag, r.From, r.To)}
		for _, c := range r.Also {
			parts = append(parts, setting(c.Flag, c.From, c.To))
		}
		return strings.Join(parts, " and ")
	}
	return cmp.Or(r.Command, r.Flag, r.Why)
}

// FixBy returns, for the label "fix by", what has to change if no flag of the server helps, or "".
func FixBy(kind engine.Kind) string {
	return map[engine.Kind]string{
		engine.KindClient:   "client changes; no flag helps",
		engine.KindHost:     "work on the host; no flag helps",
		engine.KindHardware: "hardware changes; no flag helps",
	}[kind]
}

// Costs returns the costs of a change, with the restart last. The first is that it may not help, if the
// predicted range of the output includes no gain.
func Costs(r *engine.Recommendation) []string {
	var list, restarts []string
	for _, p := range r.Predicted {
		if p.Metric == Output && p.Mid.Or(0) > 0 && p.Low.OK && p.Low.V <= 0 {
			list = append(list, "it may not help: the predicted range of output includes no gain")
		}
	}
	for _, c := range r.Costs {
		if strings.Contains(c, "restart") {
			restarts = append(restarts, c)
		} else {
			list = append(list, c)
		}
	}
	return append(list, restarts...)
}

// IterationChange names what an iteration changed, in a few words.
func IterationChange(it *loop.Iteration) string {
	switch {
	case len(it.Changes) > 0:
		return Changes(it.Changes...)
	case it.End == loop.IterationNoise, it.Noticed == loop.SameSettings:
		return "restarted with the same settings"
	}
	return cmp.Or(it.Text, unreadable)
}

// Kept reports whether an iteration became the baseline.
func Kept(it *loop.Iteration) bool {
	return it.End == loop.IterationKept || it.End == loop.IterationContinued
}

// unsettled reports whether a change was neither kept nor reverted.
func unsettled(it *loop.Iteration) bool { return !Kept(it) && it.End != loop.IterationReverted }

// Verdict returns the direction of an iteration in one word, with its tone.
func Verdict(it *loop.Iteration) (page.Tone, string) {
	switch {
	case it.Failure != "":
		return page.Bad, "failed"
	case it.End == loop.IterationBroken:
		return page.Bad, "not judged"
	case it.Delta == nil:
		return page.Muted, "open"
	case it.End == loop.IterationNoise:
		return page.Muted, "noise"
	}
	return directionTone(it.Delta.Direction), strings.ReplaceAll(string(it.Delta.Direction), "-", " ")
}

// directionTone returns the tone of a direction.
func directionTone(d verdict.Direction) page.Tone {
	switch d {
	case verdict.Better:
		return page.OK
	case verdict.Worse:
		return page.Bad
	}
	return page.Warn
}

// IterationResult returns the result of an iteration: its verdict, and what was done about it.
func IterationResult(it *loop.Iteration) (page.Tone, string) {
	_, direction := Verdict(it)
	if it.Delta == nil {
		direction = ""
	}
	switch it.End {
	case loop.IterationKept:
		return page.OK, "better, kept"
	case loop.IterationContinued:
		return page.Warn, "worse, continued"
	case loop.IterationReverted:
		return page.Warn, figure.Joined(", ", direction, "reverted")
	case loop.IterationNoGain:
		if direction == "" || it.Delta.Direction == verdict.Plateau {
			direction = "no gain"
		}
		return page.Warn, direction + ", not kept"
	case loop.IterationNoise:
		return page.Body, "same settings: noise"
	case loop.IterationBroken:
		return page.Bad, map[bool]string{true: "failed", false: "not judged"}[it.Failure != ""]
	}
	switch {
	case it.Delta != nil && it.Delta.Direction == verdict.Worse:
		return page.Bad, "worse, left in place"
	case it.Delta != nil:
		return page.Warn, figure.Joined(", ", direction, "left open")
	case it.Up == 0:
		return page.Warn, "no answer since"
	}
	return page.Warn, "not judged"
}

// Effect returns the measured effect of a change on the goal if it has an interval, or else on the
// output; absent before the verdict.
func Effect(it *loop.Iteration) stat.Opt {
	if v, ok := effect.VerdictOf(it.Delta); ok {
		if c, known := v.Change(); known {
			return stat.Some(c.Mid)
		}
	}
	if it.Delta == nil {
		return stat.None
	}
	return it.Delta.Throughput.Finite()
}

// effectInterval returns the 95 % interval of Effect, or "".
func effectInterval(it *loop.Iteration) string {
	if v, ok := effect.VerdictOf(it.Delta); ok {
		if c, known := v.Change(); known {
			return figure.ChangeRange(c.Low, c.High)
		}
	}
	return ""
}

// Outputs returns the output before and after a change.
func Outputs(it *loop.Iteration) (before, after engine.Quantity) {
	before, after = BeforeAfter(it, Output)
	return inTokens(before), inTokens(after)
}

func outputOf(d *engine.Diagnosis) engine.Quantity { return inTokens(Quantity(d, Output)) }

// inTokens gives an output its unit if it has none.
func inTokens(q engine.Quantity) engine.Quantity {
	q.Unit = cmp.Or(q.Unit, "tok/s")
	return q
}

// BeforeAfter returns a quantity before and after a change: as it was judged or else, before a verdict, as it was
// measured.
func BeforeAfter(it *loop.Iteration, name string) (before, after engine.Quantity) {
	if it.Delta != nil {
		if m, ok := metric(it.Delta.MeasuredMetrics(), name); ok {
			return m.Before.Finite(), m.After.Finite()
		}
	}
	return Quantity(it.Before, name), Quantity(it.After, name)
}

func metric(list []effect.MetricDelta, name string) (effect.MetricDelta, bool) {
	for _, m := range list {
		if m.Name == name {
			return m, true
		}
	}
	return effect.MetricDelta{}, false
}
