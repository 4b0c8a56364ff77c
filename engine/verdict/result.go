package verdict

import "github.com/rooftop-dev/rooftop/engine/stat"

// Direction is where a change led.
type Direction string

// Directions of a change.
const (
	Better        Direction = "better"
	Worse         Direction = "worse"
	Plateau       Direction = "plateau"        // no difference that matters
	Inconclusive  Direction = "inconclusive"   // noise hides whether there is one
	NotComparable Direction = "not-comparable" // the load differs, and explains it
)

// Cause is what a difference, or the lack of a verdict, most likely comes from.
type Cause string

// Causes of a verdict (decisions.md 35).
const (
	ByFlag    Cause = "flag"
	ByTraffic Cause = "traffic"
	ByNoise   Cause = "noise"
	ByHost    Cause = "host"
)

// Interval is a relative change with its 95 % interval: 0.1 is a tenth more. The
// level holds over all looks together.
type Interval struct{ Low, Mid, High float64 }

// Limit is what bounded the throughput of a side.
type Limit string

// Limits of a side.
const (
	ByCapacity   Limit = "capacity" // requests waited: it did what it could
	ByDemand     Limit = "demand"   // none waited: it did what was asked
	LimitUnknown Limit = "unknown"
)

// Measure is one measure on both sides.
type Measure struct {
	Metric        Metric
	Quantile      float64 // 0..1; 0 is a mean or a rate
	Before, After stat.Opt
	Change        Interval
	Known         bool // Change is
	// Moved says that it differs beyond noise.
	Moved bool
	// Resolution is the width of the histogram bucket that a quantile of After fell
	// into, in its unit; absent for means and rates.
	Resolution stat.Opt
	Count      float64 // observations, of the side that has fewer
}

// Shift is a property of the traffic on both sides.
type Shift struct {
	Name          string // "prompt tokens", "output tokens", "requests in", "arrivals", "prefix hits"
	Before, After stat.Opt
	Change        Interval // of a ratio the difference, else relative
	Moved         bool     // beyond noise
}

// Held is what became of an objective.
type Held struct {
	Objective
	Before, After stat.Opt // seconds; absent where too few requests were seen for a value
	Low, High     stat.Opt // interval of After, which few requests may have too
	OK            bool     // After keeps it beyond doubt
	Broken        bool     // After breaks it beyond doubt
	Was           bool     // Before kept it
	WasBroken     bool     // Before broke it beyond doubt
}

// Steadiness is what a side's slices show of its course.
type Steadiness struct {
	Cut    int     // slices left out at the beginning as warm-up
	Used   int     // slices judged
	Drift  float64 // change over those as a ratio of their mean, where it is beyond their scatter; else 0
	Period int     // slices of a lock-step oscillation, 0 none
	Block  int     // slices that are resampled together
}

// Result is a verdict, or how far it is.
type Result struct {
	Direction Direction
	Reason    string // in a sentence
	Cause     Cause
	// Settled says that measuring on would not change the direction, or cannot: a
	// look before the last that is not settled is only an interval so far.
	Settled bool
	// Need says what the decision still waits for, "" nothing.
	Need string

	Goal   Goal
	Effect Interval // on the goal: more is better, whatever the goal
	Known  bool     // Effect is
	// Measured and Restart are the two parts of half the interval's width: of the
	// slices' scatter, which measuring on narrows, and of restarts, which it does not.
	Measured, Restart float64
	// Bias is the most that differences of the traffic explain of the effect.
	Bias float64
	// LowerBound says that the effect may be larger: requests waited before, and none
	// did after.
	LowerBound bool

	Spread  Spread
	Limited [2]Limit // before, after
	Steady  [2]Steadiness
	// Measures are all that were compared; those that moved beyond noise say so.
	Measures   []Measure
	Traffic    []Shift
	Objectives []Held
}
