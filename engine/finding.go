package engine

import "github.com/rooftop-dev/rooftop/engine/stat"

// FindingID is a stable identifier of a finding (interfaces.md section 3).
type FindingID string

// Findings. The first six are the documented rules R1 to R5.
const (
	UnderBatching  FindingID = "under-batching"
	KVPressure     FindingID = "kv-pressure"
	KVAdmission    FindingID = "kv-admission"
	LowPrefixReuse FindingID = "low-prefix-reuse"
	OOMRisk        FindingID = "oom-risk"
	SeatSaturation FindingID = "seat-saturation"
	TokenBudget    FindingID = "token-budget"
	Stuck          FindingID = "stuck"
	SlowSteps      FindingID = "slow-steps"
	FrontEnd       FindingID = "front-end"
	PowerLimit     FindingID = "power-limit"
	DPImbalance    FindingID = "dp-imbalance"

	PrefillInterference FindingID = "prefill-interference"
)

// Group is the root cause that findings share; one finding of a group is its
// voice, the others are its evidence.
type Group string

// Groups of decisions.md 10.
const (
	GroupMemory   Group = "memory"
	GroupSeats    Group = "seats"
	GroupLoad     Group = "load"
	GroupReuse    Group = "reuse"
	GroupHost     Group = "host"
	GroupHardware Group = "hardware"
)

// State says what became of a rule in a run.
type State string

// States of a rule.
const (
	Fired        State = "fired"
	NotFired     State = "not-fired"
	Suppressed   State = "suppressed"
	NotEvaluable State = "not-evaluable"
)

// Evidence is one figure that supports a finding, with the limit it was held
// against where there is one.
type Evidence struct {
	Name   string   `json:"name"`             // a name of measured or facts, or a plain term
	Value  stat.Opt `json:"value"`            // in Unit
	Unit   string   `json:"unit"`             // "req", "ratio", "s", "tok/s", "1/s", "GB", ...
	Limit  stat.Opt `json:"limit"`            // the threshold, absent where there is none
	Op     string   `json:"op,omitempty"`     // how value was held against limit: "<", ">=", ...
	Source Source   `json:"source,omitempty"` // where Value came from
	Text   string   `json:"text"`             // one plain sentence
}

// Prediction is the effect a change is expected to have, as ratios of the
// present value minus one unless Unit says otherwise; absent ends are unknown.
type Prediction struct {
	Metric string   `json:"metric"` // generation_tokens_per_s, ttft_mean_s, itl_mean_s, usd_per_million_tokens
	Unit   string   `json:"unit"`   // "ratio": 0.25 is +25 %
	Low    stat.Opt `json:"low"`
	Mid    stat.Opt `json:"mid"`
	High   stat.Opt `json:"high"`
}

// Held says whether a measured change lies within the prediction. Nothing is
// known of one without a change, of a prediction in another unit, or of one
// without any end.
func (p Prediction) Held(change stat.Opt) (held, known bool) {
	if p.Unit != "ratio" && p.Unit != "" || !change.OK || !p.Low.OK && !p.High.OK {
		return false, false
	}
	return (!p.Low.OK || change.V >= p.Low.V) && (!p.High.OK || change.V <= p.High.V), true
}

// Kind says who can act on a recommendation.
type Kind string

// Kinds of recommendations. Only a flag can be applied to this server.
const (
	KindFlag     Kind = "flag"
	KindClient   Kind = "client"
	KindHost     Kind = "host"
	KindHardware Kind = "hardware"
)

// Rejected is a remedy that was considered and not taken.
type Rejected struct {
	What string `json:"what"`
	Why  string `json:"why"`
}

// Fix is what a rule proposes when it fired: one change with its number.
type Fix struct {
	Kind Kind   `json:"kind"`
	Flag string `json:"flag"` // "--max-num-seqs", "" for other kinds
	From string `json:"from"` // present value as it would be written, "" unknown
	To   string `json:"to"`   // proposed value as it would be written
	// Also are further settings that belong to the same change: seats with the pool
	// that they need. Each is one flag with its value.
	Also      []Change     `json:"also,omitempty"`
	Command   string       `json:"command"` // what to type or do, one line
	Why       string       `json:"why"`     // one or two sentences: cause and number
	Predicted []Prediction `json:"predicted"`
	Price     []string     `json:"price"` // restart, latency, memory: what it costs
	Rejected  []Rejected   `json:"rejected"`
	// Withheld, where not empty, says why the fix is listed and not
	// recommended (it would gain nothing here).
	Withheld string `json:"-"`
	// Risk orders equal scores: the smaller first. 0 nothing changes on the
	// server, 1 restart, 2 restart with a memory or accuracy risk.
	Risk int `json:"-"`
}

// Finding is what one rule says of a run.
type Finding struct {
	ID           FindingID  `json:"id"`
	Rule         string     `json:"rule"` // R1..R5, or "beyond"
	Title        string     `json:"title"`
	State        State      `json:"state"`
	Significant  bool       `json:"significant"`
	Fired        int        `json:"fired"`     // windows in which it fired
	Evaluable    int        `json:"evaluable"` // windows that could judge it
	Confidence   float64    `json:"confidence"`
	Impact       float64    `json:"impact"`
	Score        float64    `json:"score"`
	Group        Group      `json:"group"`
	Evidence     []Evidence `json:"evidence"`
	Missing      []string   `json:"missing"`
	SuppressedBy string     `json:"suppressed_by"`
	Reason       string     `json:"reason"` // the figure that decided, for every state
	Fix          *Fix       `json:"-"`
}

// Recommendation is the one change of a diagnosis.
type Recommendation struct {
	Finding FindingID `json:"finding"`
	Fix
	// Launch is the server's whole launch command with the change made, secrets
	// redacted; "" where the launch is not known or no flag is the remedy.
	Launch string `json:"launch"`
}
