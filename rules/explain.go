package rules

import "github.com/rooftop-dev/rooftop/engine"

// Threshold is one limit of a rule, as data.
type Threshold struct {
	Name   string  `json:"name"`
	Op     string  `json:"op"` // how the measured value is held against Value
	Value  float64 `json:"value"`
	Unit   string  `json:"unit"`   // "ratio", "req", "s", "tok", "1/s", "" for plain numbers
	Source string  `json:"source"` // where the limit comes from
}

// Explanation is what a rule does, in words and as data.
type Explanation struct {
	ID         engine.FindingID `json:"id"`
	Rule       string           `json:"rule"` // R1..R5 or "beyond"
	Title      string           `json:"title"`
	Group      engine.Group     `json:"group"`
	Condition  []string         `json:"condition"`  // all of them hold, unless a sentence says otherwise
	Thresholds []Threshold      `json:"thresholds"` // the limits of Condition
	Formula    []string         `json:"formula"`    // how the number of the fix is computed
	Gate       string           `json:"gate"`       // when a firing counts as significant
	Confidence []string         `json:"confidence"`
	Impact     float64          `json:"impact"` // default, where no gain is predicted
	Remedy     []string         `json:"remedy"` // in order of preference
	Limits     []string         `json:"limits"` // what the rule cannot see
}

// Where limits come from.
const (
	fromSeed      = "documented rules of PROFILE"
	fromDecisions = "project decision"
	fromVLLM      = "vLLM's scheduler and metrics"
	fromJudgement = "judgement, from the recorded runs"
	fromQueueing  = "queueing theory: below it requests seldom meet"
)

const (
	standardGate = "fired in at least 3 windows and in at least 25 % of those that could be judged"
	onceGate     = "judged once for the whole run; it counts as soon as it holds"
)

// Explain returns the explanation of a finding; false for an unknown id.
func Explain(id engine.FindingID) (Explanation, bool) {
	for _, d := range definitions() {
		if d.rule.ID == id {
			return complete(d), true
		}
	}
	return Explanation{}, false
}

// Explanations returns every explanation, in the order of All.
func Explanations() []Explanation {
	defs := definitions()
	out := make([]Explanation, len(defs))
	for i, d := range defs {
		out[i] = complete(d)
	}
	return out
}

// complete copies into the explanation what the rule itself already says.
func complete(d definition) Explanation {
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
