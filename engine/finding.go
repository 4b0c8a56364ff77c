package engine

import (
	"fmt"

	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/roofline"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// FindingID is a stable identifier of a finding (docs/interfaces.md section 3).
type FindingID string

// Finding IDs. The first six are the documented rules R1 to R5.
const (
	UnderBatching         FindingID = "under-batching"
	KVPressure            FindingID = "kv-pressure"
	KVAdmission           FindingID = "kv-admission"
	LowPrefixReuse        FindingID = "low-prefix-reuse"
	OOMRisk               FindingID = "oom-risk"
	ConcurrencySaturation FindingID = "concurrency-saturation"
	TokenBudget           FindingID = "token-budget"
	Stuck                 FindingID = "stuck"
	SlowSteps             FindingID = "slow-steps"
	FrontEnd              FindingID = "front-end"
	PowerLimit            FindingID = "power-limit"
	DPImbalance           FindingID = "dp-imbalance"
	LoRASlots             FindingID = "lora-slots"

	PrefillInterference FindingID = "prefill-interference"

	// SearchStep marks a recommendation of the search of `tune` that no rule found: a diagnosis
	// has no such finding.
	SearchStep FindingID = "search"
)

// Group is the root cause that findings share. At most one finding of a group is recommended.
type Group string

// Groups (docs/dev/decisions.md 10).
const (
	GroupMemory   Group = "memory"
	GroupSlots    Group = "slots"
	GroupLoad     Group = "load"
	GroupReuse    Group = "reuse"
	GroupHost     Group = "host"
	GroupHardware Group = "hardware"
)

// State is the result of a rule in a run.
type State string

// States of a rule.
const (
	Fired        State = "fired"
	NotFired     State = "not-fired"
	Suppressed   State = "suppressed"
	NotEvaluable State = "not-evaluable"
)

// Evidence is a figure that supports a finding, with the limit it was compared with, if any.
type Evidence struct {
	Name   string   `json:"name"`             // a name of measured or facts, or a plain term
	Value  stat.Opt `json:"value"`            // in Unit
	Unit   string   `json:"unit"`             // "req", "ratio", "s", "tok/s", "1/s", "GB", ...
	Limit  stat.Opt `json:"limit"`            // the threshold, absent if there is none
	Op     string   `json:"op,omitempty"`     // comparison of Value with Limit: "<", ">=", ...
	Source Source   `json:"source,omitempty"` // origin of Value
	Text   string   `json:"text"`             // one plain sentence
}

// Quantities of predictions: names of docs/interfaces.md section 3. The metrics of a verdict are those of engine/verdict.
const (
	QuantityThroughput = "generation_tokens_per_s"
	QuantityTTFT       = "ttft_mean_s"
	QuantityITL        = "itl_mean_s"
	QuantityITLTail    = "itl_p99_s"
	QuantityE2E        = "e2e_mean_s"
	QuantityCost       = "usd_per_million_tokens"
)

// Prediction is the expected effect of a change: the relative change of the metric, unless
// Unit says otherwise. Unknown ends are absent.
type Prediction struct {
	Metric string   `json:"metric"` // generation_tokens_per_s, ttft_mean_s, itl_mean_s, usd_per_million_tokens
	Unit   string   `json:"unit"`   // "ratio": 0.25 is +25 %
	Low    stat.Opt `json:"low"`
	Mid    stat.Opt `json:"mid"`
	High   stat.Opt `json:"high"`
}

// Predict returns the predictions, in ratios, of metrics for which at least one end is known.
func Predict(list ...PredictedRange) []Prediction {
	var out []Prediction
	for _, p := range list {
		if p.Known() {
			out = append(out, Prediction{Metric: p.Metric, Unit: "ratio"}.With(p.Range))
		}
	}
	return out
}

// PredictionOf returns the prediction of a metric, or an unknown one.
func PredictionOf(predicted []Prediction, metric string) Prediction {
	for _, p := range predicted {
		if p.Metric == metric {
			return p
		}
	}
	return Prediction{Metric: metric, Unit: "ratio"}
}

// PredictedRange is the predicted relative change of a metric.
type PredictedRange struct {
	Metric string
	roofline.Range
}

// Range returns the ends and the middle of a prediction.
func (p Prediction) Range() roofline.Range {
	return roofline.Range{Low: p.Low, Mid: p.Mid, High: p.High}
}

// With returns the prediction with the values of r.
func (p Prediction) With(r roofline.Range) Prediction {
	p.Low, p.Mid, p.High = r.Low, r.Mid, r.High
	return p
}

// IsRatio reports whether the prediction is a relative change.
func (p Prediction) IsRatio() bool { return p.Unit == "ratio" || p.Unit == "" }

// Covers reports whether a measured change lies within the predicted range. known is false
// without a change, for a prediction in another unit, or if neither end is known.
func (p Prediction) Covers(change stat.Opt) (within, known bool) {
	if !p.IsRatio() || !change.OK || !p.Low.OK && !p.High.OK {
		return false, false
	}
	return (!p.Low.OK || change.V >= p.Low.V) && (!p.High.OK || change.V <= p.High.V), true
}

// Kind is the place where a recommendation is carried out.
type Kind string

// Kinds of recommendations. Only a flag can be applied by restarting this server.
const (
	KindFlag     Kind = "flag"
	KindClient   Kind = "client"
	KindHost     Kind = "host"
	KindHardware Kind = "hardware"
)

// Rejected is a remedy that was considered and rejected.
type Rejected struct {
	What string `json:"what"`
	Why  string `json:"why"`
}

// Fix is the remedy that a rule proposes: one change.
type Fix struct {
	Kind Kind   `json:"kind"`
	Flag string `json:"flag"` // "--max-num-seqs", "" for other kinds
	From string `json:"from"` // present value as on the command line, "" if unknown
	To   string `json:"to"`   // proposed value as on the command line
	// Also are further flags that belong to the same change, such as the pool size that more
	// slots need.
	Also      []Change     `json:"also,omitempty"`
	Command   string       `json:"command"` // one line: what to type or do
	Why       string       `json:"why"`     // one or two sentences: cause and number
	Predicted []Prediction `json:"predicted"`
	Costs     []string     `json:"costs"` // trade-offs: a restart, latency, memory
	Rejected  []Rejected   `json:"rejected"`
	// Withheld states why the fix is listed but not recommended, such as no gain here; "" if
	// it may be recommended.
	Withheld string `json:"-"`
	// Risk orders equal scores, smaller first: 0 changes nothing on the server, 1 is a
	// restart, 2 is a restart with a memory or accuracy risk.
	Risk int `json:"-"`
}

// Finding is the result of one rule for a run.
type Finding struct {
	ID           FindingID  `json:"id"`
	Rule         string     `json:"rule"` // R1..R5, or "beyond"
	Title        string     `json:"title"`
	State        State      `json:"state"`
	Significant  bool       `json:"significant"`
	Fired        int        `json:"fired"`     // windows in which it fired
	Judged       int        `json:"judged"`    // windows that the rule could judge
	Evaluable    int        `json:"evaluable"` // evaluable windows of the run, whose share Fired must reach
	Confidence   float64    `json:"confidence"`
	Impact       float64    `json:"impact"`
	Score        float64    `json:"score"`
	Group        Group      `json:"group"`
	Evidence     []Evidence `json:"evidence"`
	Missing      []string   `json:"missing"`
	SuppressedBy string     `json:"suppressed_by"`
	Reason       string     `json:"reason"` // the deciding figure, for every state
	Fix          *Fix       `json:"-"`
	// Profile is the result of PROFILE's form of the rule, zero if it is the same rule.
	Profile ProfileForm `json:"profile,omitzero"`
}

// ProfileForm is the result of a rule as PROFILE defines it, for comparison: nothing is recommended
// by it.
type ProfileForm struct {
	State       State  `json:"state"`
	Significant bool   `json:"significant"`
	Fired       int    `json:"fired"`  // windows in which it fired
	Judged      int    `json:"judged"` // windows that it could judge
	Reason      string `json:"reason"`
}

// FiredIn states in how many of the evaluable windows a rule fired, and how many it could judge
// if not all: "fired in 3 of 15 windows, 3 judged". A rule that did not fire for the run as a whole has
// its condition met in windows. It is "" if there is nothing to report.
func (f *Finding) FiredIn() string {
	if f.Evaluable == 0 {
		return ""
	}
	windows := figure.Counted(f.Evaluable, "window")
	if f.Fired == 0 {
		if f.Judged < f.Evaluable {
			return fmt.Sprintf("judged in %d of %s", f.Judged, windows)
		}
		return ""
	}
	verb := "fired"
	if f.State == NotFired {
		verb = "condition met"
	}
	text := fmt.Sprintf("%s in %d of %s", verb, f.Fired, windows)
	if f.Judged < f.Evaluable {
		text += fmt.Sprintf(", %d judged", f.Judged)
	}
	return text
}

// Undecided reports whether a rule did not fire, but could not judge so many windows that they
// would be enough for it to be significant.
func (f *Finding) Undecided() bool {
	return f.State == NotFired && significant(f.Evaluable-f.Judged, f.Evaluable)
}

// Recommendation is the one recommended change of a diagnosis.
type Recommendation struct {
	Finding FindingID `json:"finding"`
	Fix
	// Launch is the server's complete launch command with the change made and secrets
	// redacted; "" if the launch is unknown or the remedy is not a flag.
	Launch string `json:"launch"`
}

// Changeable reports whether the fix is a change of the server's flags that can be made: to a
// value or, if To is "", by removing a flag that is given.
func (f *Fix) Changeable() bool {
	return f.Kind == KindFlag && f.Flag != "" && (f.To != "" || f.From != "")
}

// Changes returns all settings of the fix.
func (f *Fix) Changes() []Change {
	return append([]Change{{Flag: f.Flag, From: f.From, To: f.To}}, f.Also...)
}
