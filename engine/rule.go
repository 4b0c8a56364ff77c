package engine

import (
	"time"

	"github.com/rooftop-dev/rooftop/engine/roofline"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Check is the result of a rule for one window. It is a plain value, so that checking a window
// does not allocate.
type Check struct {
	State State
	// Critical marks a firing that meets one of a rule's own conditions: of R2, 1 for preemptions
	// and 2 for KV >= 95 %; of power-limit, 1 for temperature.
	Critical int
	// NoLoad marks a window that says nothing about load: no request ran, or nothing moved. A rule
	// that saw only such windows has not judged.
	NoLoad bool
	// Figure is the deciding value, Limit the value it was compared with.
	Figure stat.Opt
	Limit  stat.Opt
	// Op and Unit complete the sentence "Why Figure Op Limit", such as ">=" and "ratio". They
	// are constant strings, "" without a figure.
	Op   string
	Unit string
	// Why names the deciding condition or the missing input. It is a constant string.
	Why string
}

// Tally counts a rule's checks over the windows of a run.
type Tally struct {
	Evaluable   int // evaluable windows of the run
	Judged      int // of these, windows the rule could judge
	Fired       int
	Suppressed  int
	NoLoad      int      // judged windows that say nothing about load
	Critical1   int      // firings with Critical 1
	Critical2   int      // firings with Critical 2
	Missing     []string // distinct missing inputs, in order of appearance
	ConsecFired int      // longest run of consecutive firings

	quiet, suppress decisions // checks that did not fire, and that were suppressed
}

// Significant is the standard condition: fired in at least 3 windows and in at least a quarter
// of the evaluable ones, whether or not the rule could judge them (docs/dev/decisions.md 40).
func (t Tally) Significant() bool { return significant(t.Fired, t.Evaluable) }

// significant reports whether a number of windows is enough for a rule to act on.
func significant(fired, evaluable int) bool {
	return fired >= 3 && float64(fired) >= 0.25*float64(evaluable)
}

// Rule is a condition with its remedy. Package rules defines the rules; the engine runs and
// ranks them.
type Rule struct {
	ID    FindingID
	Code  string // R1..R5 or "beyond"
	Title string
	Group Group
	// Impact, 1..5, is used if no gain is predicted (docs/dev/decisions.md 10).
	Impact float64
	// Infer, if set, is called before any window is judged: it may complete facts by what the windows
	// show.
	Infer func(windows []Window, f *Facts)
	// Check judges one window. It must not allocate.
	Check func(w *Window, f *Facts) Check
	// Profile judges one window as PROFILE defines the rule, nil if Check does.
	Profile func(w *Window, f *Facts) Check
	// Significant replaces the standard condition; nil keeps it.
	Significant func(t Tally) bool
	// Conclude is called if the rule fired in any window. It sets evidence, confidence and fix
	// from the whole run. It may set State to Suppressed or NotFired if the run as a whole
	// calls for it.
	Conclude func(r *Run, t Tally, f *Finding)
	// Suppresses names findings that this one explains. If both are significant, they become
	// Suppressed.
	Suppresses []FindingID
	// Overrides names findings whose remedies have no basis while this one is present: they
	// stay listed but are not recommended.
	Overrides []FindingID
	// While completes the reason of those remedies, "not judged while …", in words of the reader.
	While string
	// Once, if set, judges the run as a whole instead of window by window (configuration
	// facts, stalls). It sets State, Significant and the other fields.
	Once func(r *Run, f *Finding)
}

// Run is the aggregated measurements of a run with the facts and the ceilings: the input of
// Conclude.
type Run struct {
	Windows []Window
	Agg     Aggregate
	Facts   *Facts
	// Perf is the physical model of one replica at the measured point. It is nil if it could
	// not be computed; PerfReason says why.
	Perf       *roofline.Performance
	PerfReason string
	// busyRank is Perf for the data-parallel ranks that do the work, where these are uneven; nil otherwise. The measured
	// steps are theirs, and as long as with their batch.
	busyRank *roofline.Performance
	Ceiling  *Ceiling
	// Condition is the server's condition at the end of the run.
	Condition Condition
	// HungBefore is how long, at least, the engine, or a rank of it, was hung in the run before it continued.
	HungBefore time.Duration
	// Offered is the arrival pattern of requests.
	Offered roofline.Offered
}
