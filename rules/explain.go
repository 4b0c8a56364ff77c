package rules

import (
	"slices"

	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/engine"
)

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
	// Engine is how an engine other than vLLM does what the rule looks for.
	Engine []string `json:"engine,omitempty"`
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

// On returns the explanation in the terms of an engine, with the mechanism that makes the finding true there, or
// the input that it does not give.
func (e Explanation) On(g *catalog.Engine) Explanation {
	if g.ID == catalog.VLLM {
		return e
	}
	for _, list := range []*[]string{&e.Condition, &e.Profile, &e.Formula, &e.Confidence, &e.Remedy, &e.Limits} {
		*list = g.SpellAll(*list)
	}
	e.Thresholds = slices.Clone(e.Thresholds)
	for i := range e.Thresholds {
		t := &e.Thresholds[i]
		t.Name, _ = g.Spell(t.Name)
		t.Source, _ = g.Spell(t.Source)
	}
	e.Gate, _ = g.Spell(e.Gate)
	note := g.Rules[string(e.ID)]
	if note.Lacks != "" {
		e.Engine = append(e.Engine, "not judged on "+g.Name+": it needs "+note.Lacks)
	}
	if note.How != "" {
		e.Engine = append(e.Engine, note.How)
	}
	return e
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
