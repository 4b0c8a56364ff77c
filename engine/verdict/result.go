package verdict

import "github.com/rooftop-dev/rooftop/engine/stat"

// Direction is the effect of a change on the goal.
type Direction string

// Directions of a change.
const (
	Better        Direction = "better"
	Worse         Direction = "worse"
	Plateau       Direction = "plateau"        // no difference that matters
	Inconclusive  Direction = "inconclusive"   // too noisy to decide
	NotComparable Direction = "not-comparable" // a different load explains the difference
)

// Cause is the most likely cause of a difference, or of the lack of a verdict.
type Cause string

// Causes of a verdict (docs/dev/decisions.md 35).
const (
	ByFlag    Cause = "flag"
	ByTraffic Cause = "traffic"
	ByNoise   Cause = "noise"
	ByHost    Cause = "host"
)

// Interval is a relative change with its 95 % interval; 0.1 is +10 %. The confidence level holds
// over all looks together.
type Interval struct{ Low, Mid, High float64 }

// Limit is what limited the throughput of a side.
type Limit string

// Limits of a side.
const (
	ByCapacity   Limit = "capacity" // requests waited: the server was at capacity
	ByDemand     Limit = "demand"   // none waited: the server met the demand
	LimitUnknown Limit = "unknown"
)

// Measure is the comparison of one measure.
type Measure struct {
	Metric        Metric
	Quantile      float64  // 0..1; 0 is a mean or a rate
	Before, After stat.Opt // of the judged slices, also with too few requests for Change
	Change        Interval
	Known         bool // Change is known; of some metrics it never is
	// Moved is set if the sides differ beyond noise.
	Moved bool
	// Buckets are the histogram buckets of a quantile of Before and of After, in its unit; zero for
	// means and rates. Overflows are the sides whose quantile lies beyond the last bound, a lower limit.
	Buckets   [2]stat.Bucket
	Overflows [2]bool
	Count     float64 // observations on the side with fewer
}

// Shift is the comparison of one property of the traffic.
type Shift struct {
	Name          string // "prompt tokens", "output tokens", "requests in", "arrivals", "prefix hits"
	Before, After stat.Opt
	Change        Interval // for a ratio the difference, else relative
	Moved         bool     // beyond noise
}

// ObjectiveResult is the result for an objective.
type ObjectiveResult struct {
	Objective
	Before, After stat.Opt // seconds; absent with too few requests
	Low, High     stat.Opt // interval of After, which few requests may have as well
	// Width is that of the histogram bucket of After, 0 if it comes from none.
	Width     float64
	Met       bool // After certainly meets it
	Broken    bool // After certainly misses it
	WasMet    bool // Before met it
	WasBroken bool // Before certainly missed it
}

// Steadiness describes the course of a side over its slices, or relative to servers measured at the same
// time.
type Steadiness struct {
	Cut   int     `json:"slices_cut"`  // left out at the beginning as warm-up
	Used  int     `json:"slices_used"` // judged
	Drift float64 `json:"drift"`       // change over the slices as a ratio of their mean if it exceeds their scatter; else 0
}

// Result is a verdict, final or interim.
type Result struct {
	Direction Direction
	Reason    string // a sentence
	// NamesEffect is set if Reason states the effect on the goal.
	NamesEffect bool
	Cause       Cause
	// Settled is set if further measuring would not, or could not, change the direction. A look
	// before the last that is not settled is only an interim interval.
	Settled bool
	// Need is what the decision still requires, or "".
	Need string

	Goal   Goal
	Effect Interval // on the goal: positive is better, for any goal
	Known  bool     // Effect is known
	// Measured and Restart are the two parts of half the interval's width: scatter of the
	// slices, which further measuring reduces, and restarts, which it does not.
	Measured, Restart float64
	// Bias is how much of the effect differences in the traffic explain at most.
	Bias float64
	// LowerBound is set if the effect may be larger, because requests waited before but not
	// after.
	LowerBound bool

	Spread  Spread
	Limited [2]Limit // before, after
	Steady  [2]Steadiness
	// Measures are all compared measures, whether or not they moved.
	Measures   []Measure
	Traffic    []Shift
	Objectives []ObjectiveResult
}
