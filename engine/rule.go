package engine

import (
	"github.com/rooftop-dev/rooftop/engine/roofline"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Check is what one rule says of one window. It is a value: checking a window
// allocates nothing.
type Check struct {
	State State
	// Critical marks a firing that passes R2's own gate: 1 for preemptions, 2
	// for KV >= 95 %.
	Critical int
	// Figure is the value that decided, Limit what it was held against.
	Figure stat.Opt
	Limit  stat.Opt
	// Op and Unit complete the sentence "Why Figure Op Limit": ">=" and "ratio",
	// "req", "s", ... Constant strings; "" where there is no figure.
	Op   string
	Unit string
	// Why names the deciding condition, or the input that was missing. A
	// constant string.
	Why string
}

// Tally counts a rule's checks over the windows of a run.
type Tally struct {
	Collected   int
	Evaluable   int // windows the rule could judge
	Fired       int
	Suppressed  int
	Critical1   int      // firings with Critical 1
	Critical2   int      // firings with Critical 2
	Missing     []string // inputs that were missing, each once, in order of appearance
	Last        Check    // the last one that did not fire
	Suppress    Check    // the last one that was suppressed
	ConsecFired int      // longest run of consecutive firings
}

// Significant is the standard gate: fired in at least 3 windows and in at least
// a quarter of those that could be judged.
func (t Tally) Significant() bool {
	return t.Fired >= 3 && float64(t.Fired) >= 0.25*float64(t.Evaluable)
}

// Rule is one condition with its remedy. Rules are values made by package
// rules; the engine only runs and ranks them.
type Rule struct {
	ID    FindingID
	Code  string // R1..R5 or "beyond"
	Title string
	Group Group
	// Impact is the default, 1..5, where no gain is predicted (decisions.md 10).
	Impact float64
	// Check judges one window. It must not allocate.
	Check func(w *Window, f *Facts) Check
	// Significant is the rule's own gate; nil is the standard one.
	Significant func(t Tally) bool
	// Conclude is called once a rule fired in any window: evidence, confidence
	// and fix, from the whole run. It may set State to Suppressed or NotFired
	// where the run as a whole says so.
	Conclude func(r *Run, t Tally, f *Finding)
	// Unjudged, where set, is called when no window could be judged: it adds what
	// can still be said (an estimate of the missing input), never a fix.
	Unjudged func(r *Run, f *Finding)
	// Suppresses names findings that are this one seen from another side: where
	// both are significant they become Suppressed.
	Suppresses []FindingID
	// Overrides names findings whose remedies have no basis while this one
	// holds: they stay listed and are not recommended.
	Overrides []FindingID
	// Once, where set, judges the run as a whole instead of window by window
	// (configuration facts, stalls). It sets State, Significant and the rest.
	Once func(r *Run, f *Finding)
}

// Run is everything measured, aggregated over its windows, with the facts and
// the ceilings: what a rule concludes from.
type Run struct {
	Windows []Window
	Agg     Aggregate
	Facts   *Facts
	// Perf is the physical model at the measured point of one replica; nil where
	// it could not be computed, with the reason in PerfReason.
	Perf       *roofline.Performance
	PerfReason string
	Ceiling    *Ceiling
	// Offered is how the requests come.
	Offered roofline.Offered
}
