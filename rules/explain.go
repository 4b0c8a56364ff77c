package rules

import "github.com/rooftop-dev/rooftop/engine"

// Threshold is one limit of a rule.
type Threshold struct {
	Name   string  `json:"name"`
	Op     string  `json:"op"` // how the measured value is compared with Value
	Value  float64 `json:"value"`
	Unit   string  `json:"unit"`   // "ratio", "req", "s", "tok", "1/s", "" for plain numbers
	Source string  `json:"source"` // where the limit comes from
}

// Explanation describes a rule in sentences and with its limits.
type Explanation struct {
	ID         engine.FindingID `json:"id"`
	Rule       string           `json:"rule"` // R1..R5 or "beyond"
	Title      string           `json:"title"`
	Group      engine.Group     `json:"group"`
	Condition  []string         `json:"condition"`         // all must hold, unless a sentence says otherwise
	Profile    []string         `json:"profile,omitempty"` // what PROFILE's form of the rule needs besides
	Thresholds []Threshold      `json:"thresholds"`        // the limits of Condition
	Formula    []string         `json:"formula"`           // how the value of the fix is computed
	Gate       string           `json:"gate"`              // when a firing counts as significant
	Confidence []string         `json:"confidence"`
	Impact     float64          `json:"impact"` // default if no gain is predicted
	Remedy     []string         `json:"remedy"` // in order of preference
	Limits     []string         `json:"limits"` // what the rule cannot see
}

// Sources of limits.
const (
	fromProfile   = "PROFILE, rules R1 to R5"
	fromDecision  = "project decision"
	fromVLLM      = "vLLM's scheduler and metrics"
	fromJudgement = "chosen from recorded runs"
	fromQueueing  = "queueing theory: below it requests rarely overlap"
)

const (
	standardGate = "fires in at least 3 windows and in at least 25 % of all evaluable windows; those that the rule could not judge lower its confidence in proportion"
	onceGate     = "judged once for the whole run; significant as soon as it holds"
)

// Explanations returns every explanation, in the order of All.
func Explanations() []Explanation {
	out := make([]Explanation, len(definitions))
	for i, d := range definitions {
		out[i] = completeExplanation(d)
	}
	return out
}

// completeExplanation returns the explanation of a rule with the fields that the rule itself
// already has; the gate is the standard one unless the explanation states another.
func completeExplanation(d definition) Explanation {
	e := d.explain
	e.ID, e.Rule, e.Title, e.Group, e.Impact = d.rule.ID, d.rule.Code, d.rule.Title, d.rule.Group, d.rule.Impact
	if e.Gate == "" {
		e.Gate = standardGate
		if d.rule.Once != nil {
			e.Gate = onceGate
		}
	}
	return e
}
