package rules

import "github.com/rooftop-dev/rooftop/engine"

// definition is one rule with its explanation, side by side so that both use
// the same constants.
type definition struct {
	rule    engine.Rule
	explain Explanation
}

// definitions lists every rule: the documented ones R1 to R5 first, in their
// order, then those beyond.
func definitions() []definition {
	return []definition{
		underBatching(),
		kvPressure(),
		kvAdmission(),
		lowPrefixReuse(),
		oomRisk(),
		seatSaturation(),
		tokenBudget(),
		stuck(),
		slowSteps(),
		frontEnd(),
		powerLimit(),
		dpImbalance(),
		prefillInterference(),
	}
}

// All returns every rule in a fixed order.
func All() []engine.Rule {
	defs := definitions()
	rules := make([]engine.Rule, len(defs))
	for i, d := range defs {
		rules[i] = guarded(d.rule)
	}
	return rules
}

// guarded adds to a rule what holds for every one: no flag is recommended that
// this server's release does not have, and no prediction shows the noise of its
// arithmetic.
func guarded(rule engine.Rule) engine.Rule {
	if conclude := rule.Conclude; conclude != nil {
		rule.Conclude = func(r *engine.Run, t engine.Tally, f *engine.Finding) {
			conclude(r, t, f)
			withholdUnknownFlag(r.Facts, f.Fix)
			roundPredictions(f.Fix)
		}
	}
	if once := rule.Once; once != nil {
		rule.Once = func(r *engine.Run, f *engine.Finding) {
			once(r, f)
			withholdUnknownFlag(r.Facts, f.Fix)
			roundPredictions(f.Fix)
		}
	}
	return rule
}
