package rules

import (
	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// definition is one rule with its explanation, side by side so that both use the same constants.
type definition struct {
	rule    engine.Rule
	explain Explanation
}

// definitions lists every rule: R1 to R5 of PROFILE first, in their order, then the others.
var definitions = []definition{
	underBatching,
	kvPressure,
	kvAdmission,
	lowPrefixReuse,
	oomRisk,
	concurrencySaturation,
	tokenBudget,
	loraSlots,
	stuck,
	slowSteps,
	frontEnd,
	powerLimit,
	dpImbalance,
	prefillInterference,
}

// All returns every rule in a fixed order.
func All() []engine.Rule {
	rules := make([]engine.Rule, len(definitions))
	for i, d := range definitions {
		rules[i] = guarded(d.rule)
	}
	return rules
}

// lacking returns the input of a rule that the server's engine does not give, "" if it gives all.
func lacking(f *engine.Facts, id engine.FindingID) string {
	if f.Engine.Value == catalog.VLLM {
		return ""
	}
	return f.Dialect().Rules[string(id)].Lacks
}

// guarded adds the steps that all rules share: it sets the impact from the predicted gain,
// withholds a fix whose flag this server's release lacks, rounds predictions to hide the noise
// of floating-point arithmetic, and adds predicted losses to the costs.
func guarded(rule engine.Rule) engine.Rule {
	finish := func(r *engine.Run, f *engine.Finding) {
		if r.Agg.Rate[engine.CounterGenerationTokens] == stat.Some(0) && f.Fix != nil {
			f.Fix.Predicted = nil // of output, which this server does not have
		}
		setImpact(f)
		withholdUnknownFlag(r.Facts, f.Fix)
		roundPredictions(f.Fix)
		addLosses(f.Fix)
	}
	if judge := rule.Check; judge != nil {
		rule.Check = func(w *engine.Window, f *engine.Facts) engine.Check {
			if why := lacking(f, rule.ID); why != "" {
				return lacks(why)
			}
			return judge(w, f)
		}
	}
	if conclude := rule.Conclude; conclude != nil {
		rule.Conclude = func(r *engine.Run, t engine.Tally, f *engine.Finding) {
			conclude(r, t, f)
			finish(r, f)
		}
	}
	if once := rule.Once; once != nil {
		rule.Once = func(r *engine.Run, f *engine.Finding) {
			if why := lacking(r.Facts, rule.ID); why != "" {
				f.State, f.Reason = engine.NotEvaluable, "needs "+why
				return
			}
			once(r, f)
			finish(r, f)
		}
	}
	return rule
}
