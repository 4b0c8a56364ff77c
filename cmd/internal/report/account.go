package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/launch"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// account says in words what a run came to, the same in every form of its report.
type account struct{ s *engine.Snapshot }

// output is the name of the quantity that changes are judged by.
const output = "generation_tokens_per_s"

// outputOf is the output of a diagnosis, absent where there is none.
func outputOf(d *engine.Diagnosis) engine.Quantity {
	if d == nil {
		return engine.Quantity{Unit: "tok/s", Reason: "not measured"}
	}
	q := finiteQuantity(d.Quantity(output))
	q.Unit = cmp.Or(q.Unit, "tok/s")
	return q
}

// outputs are the output before and after a change as it was judged; where it was not,
// as it was measured.
func outputs(it *engine.Iteration) (before, after engine.Quantity) {
	before, after = outputOf(it.Before), outputOf(it.After)
	if it.Delta == nil {
		return before, after
	}
	if m, ok := metric(it.Delta.MeasuredMetrics(), output); ok && m.Before.Value.OK && m.After.Value.OK {
		before.Value, after.Value = finite(m.Before.Value), finite(m.After.Value)
	}
	return before, after
}

// gainedOutputs are the output before the first change that was kept and after the
// last, as they were judged.
func (a account) gainedOutputs() (before, after engine.Quantity) {
	first := true
	for i := range a.s.Iterations {
		it := &a.s.Iterations[i]
		if it.End != engine.IterationKept && it.End != engine.IterationContinued {
			continue
		}
		b, then := outputs(it)
		if first {
			before, first = b, false
		}
		after = then
	}
	return before, after
}

// kept counts the changes that became the configuration to beat.
func (a account) kept() int {
	n := 0
	for i := range a.s.Iterations {
		if e := a.s.Iterations[i].End; e == engine.IterationKept || e == engine.IterationContinued {
			n++
		}
	}
	return n
}

// gain is the change of output from before the first change that was kept to
// after the last.
func (a account) gain() stat.Opt {
	if f := a.s.Finished; f != nil {
		return finite(f.Gain)
	}
	before, after := engine.Gained(a.s.Iterations)
	if before == nil || after == nil {
		return stat.None
	}
	return finite(engine.Compare(before, after).Throughput)
}

func (a account) restarts() int {
	if f := a.s.Finished; f != nil {
		return f.Restarts
	}
	return len(a.s.Iterations)
}

// headline is the run in one line.
func (a account) headline() (tone, string) {
	s := a.s
	switch gain := a.gain(); {
	case !s.Attached:
		return warn, "No server was found"
	case s.Baseline == nil && len(s.Iterations) == 0:
		return warn, "Nothing was measured to the end"
	case a.kept() > 0 && gain.OK:
		t := ok
		if gain.V < 0 {
			t = bad
		}
		before, after := a.gainedOutputs()
		text := figure.Change(gain.V) + nbsp + "%"
		if f := s.Finished; f != nil && f.Gain.OK {
			text = gained(f)
		}
		return t, fmt.Sprintf("output %s: %s, with %s", text, fromTo(before, after.Value), restarts(a.restarts()))
	case len(s.Iterations) == 0:
		return body, "Nothing was changed: output " + shown(outputOf(s.Baseline))
	case a.kept() > 0:
		return warn, fmt.Sprintf("%s kept; the gain is not known", plural(a.kept(), "change"))
	}
	return body, "No change was kept: output " + shown(outputOf(s.Baseline)) + " as before"
}

// reason says how the run ended, and of one without a result why.
func (a account) reason() string {
	s := a.s
	how := "the run goes on: this is how it stands"
	if f := s.Finished; f != nil {
		how = f.Reason
	}
	switch {
	case !s.Attached && strings.Contains(s.AttachWhy, s.Watch): // it names the address
		return joinSentences(how, s.AttachWhy)
	case !s.Attached:
		return joinSentences(how, s.AttachWhy, "looked for "+s.Watch)
	case s.Baseline == nil && len(s.Iterations) == 0:
		return joinSentences(how, cmp.Or(s.Quiet, s.Progress.Text))
	}
	return how
}

// joinSentences puts those that are there behind one another; one that repeats
// another is left out.
func joinSentences(list ...string) string {
	var parts []string
	for _, s := range list {
		if s != "" && !slices.Contains(parts, s) {
			parts = append(parts, s)
		}
	}
	out := ""
	for i, s := range parts {
		if i > 0 {
			out += "; "
		}
		out += s
	}
	return out
}

// best is the launch command of the configuration that was kept, "" unknown.
func (a account) best() string {
	if f := a.s.Finished; f != nil {
		return f.Command
	}
	return a.s.Kept
}

// next is what is recommended still, or why nothing is.
func (a account) next() string {
	switch r := a.s.Advice; {
	case !a.s.Attached:
		return "start the server or give its address with --url; 'rooftop demo' shows a simulated one"
	case r != nil && r.Kind == engine.KindFlag && r.Flag != "":
		return joinSentences(engine.Change{Flag: r.Flag, From: r.From, To: r.To}.String(), r.Why)
	case r != nil:
		return joinSentences(cmp.Or(r.Command, string(r.Finding)), r.Why)
	}
	return a.s.Quiet
}

// left lists the settings that the server runs with beyond those of the best
// configuration: of a change that was neither kept nor put back.
func (a account) left() []engine.Change {
	last := a.last()
	if last == nil || !unsettled(last) {
		return nil
	}
	var left []engine.Change
	for _, c := range last.Changes { // they stand against the kept configuration
		if a.inPlace(c) {
			left = append(left, c)
		}
	}
	return left
}

// inPlace says whether a change that was not kept is there still, as far as the
// facts of what runs and the launch commands tell: it may have been put back since.
func (a account) inPlace(c engine.Change) bool {
	name := strings.ReplaceAll(strings.TrimPrefix(c.Flag, "--"), "-", "_")
	if b := a.s.Baseline; b != nil {
		kept, runs := factNamed(&b.Facts, name), factNamed(&a.s.Facts, name)
		if kept != nil && runs != nil {
			return kept != runs
		}
	}
	kept, err := launch.ParseCommand(a.best(), nil, nil)
	if err != nil {
		return true
	}
	runs, err := launch.ParseCommand(a.s.Launch, nil, nil)
	if err != nil {
		return true
	}
	return slices.ContainsFunc(launch.Diff(kept, runs), func(d launch.Change) bool { return d.Name == name || d.Name == c.Flag })
}

// factNamed is the value of a fact by its name, nil where it is not known.
func factNamed(f *engine.Facts, name string) any {
	for _, r := range factRows(f) {
		if r.name == name {
			return r.value
		}
	}
	return nil
}

// undone says what was left of a change that was not kept, and how to put it back;
// "" where nothing was.
func (a account) undone() string {
	left, last := a.left(), a.last()
	if last == nil || len(left) == 0 && (last.Noticed != engine.Unreadable || last.End != engine.IterationOpen) {
		return ""
	}
	what, back := cmp.Or(results(left), "a change that cannot be read"), "go back to what ran before it"
	switch {
	case a.best() != "":
		back = "go back with the kept launch command"
	case len(left) > 0:
		back = "go back to " + results(inverse(left))
	}
	if last.Up == 0 && last.End == engine.IterationOpen {
		return fmt.Sprintf("the server has not answered since change %d (%s): look at its log, or %s", last.N, what, back)
	}
	return "the server still runs with " + what + ", " + judged(last) + ": " + back
}

// results names the settings that changes lead to.
func results(list []engine.Change) string {
	var parts []string
	for _, c := range list {
		switch c.To {
		case "", "off":
			parts = append(parts, "without "+c.Flag)
		case "on":
			parts = append(parts, c.Flag)
		default:
			parts = append(parts, c.Flag+" "+c.To)
		}
	}
	return strings.Join(parts, ", ")
}

// last is the latest iteration, nil where there is none.
func (a account) last() *engine.Iteration {
	if n := len(a.s.Iterations); n > 0 {
		return &a.s.Iterations[n-1]
	}
	return nil
}

// unsettled says that a change was neither kept nor put back. Of one that was
// started again to measure the noise, the settings are there still.
func unsettled(it *engine.Iteration) bool {
	switch it.End {
	case engine.IterationKept, engine.IterationContinued, engine.IterationReverted:
		return false
	}
	return true
}

// judged says what a change was found to be.
func judged(it *engine.Iteration) string {
	if it.Delta == nil {
		return "which was not judged"
	}
	switch it.Delta.Direction {
	case engine.Worse:
		return "which was worse"
	case engine.Plateau:
		return "which gained nothing"
	case engine.Better:
		return "which was better"
	}
	return "which could not be judged"
}

// inverse lists the changes that undo others.
func inverse(list []engine.Change) []engine.Change {
	var out []engine.Change
	for _, c := range list {
		out = append(out, engine.Change{Flag: c.Flag, From: c.To, To: c.From})
	}
	return out
}

// became says what an iteration came to, with a tone.
func became(it *engine.Iteration) (tone, string) {
	direction := ""
	if it.Delta != nil {
		direction = string(it.Delta.Direction) + ", "
	}
	switch it.End {
	case engine.IterationKept:
		return ok, "better, kept"
	case engine.IterationContinued:
		return warn, "worse, continued"
	case engine.IterationReverted:
		return warn, direction + "reverted"
	case engine.IterationNoGain:
		if it.Delta != nil && it.Delta.Direction != engine.Plateau {
			return warn, direction + "not kept"
		}
		return warn, "no gain, not kept"
	case engine.IterationNoise:
		return body, "same settings: noise"
	case engine.IterationBroken:
		if it.Failure != "" {
			return bad, "failed"
		}
		return bad, "not judged"
	}
	switch {
	case it.Delta != nil && it.Delta.Direction == engine.Worse:
		return bad, "worse, left so"
	case it.Delta != nil:
		return warn, direction + "left open"
	case it.Up == 0:
		return warn, "no answer since"
	}
	return warn, "not judged"
}

// effectOf is what a change was found to do to what it is judged by: with an interval
// where there is one, else of the output.
func effectOf(it *engine.Iteration) stat.Opt {
	if proof, ok := engine.ProofOf(it.Delta); ok {
		if c, known := proof.Change(); known {
			return stat.Some(c.Mid)
		}
	}
	return it.Delta.Throughput
}

// change names what was changed, in a few words.
func changeOf(it *engine.Iteration) string {
	switch {
	case len(it.Changes) > 0:
		return spelled(it.Changes...)
	case it.End == engine.IterationNoise, it.Noticed == engine.SameSettings:
		return "restarted with the same settings"
	}
	return cmp.Or(it.Text, unreadable)
}
