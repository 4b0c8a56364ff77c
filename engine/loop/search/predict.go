package search

import (
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/lever"
)

// Predict returns the predicted effect of one change on a measured server: as a rule computed it if that is what
// it recommends, else by the model that is calibrated on the measurement. If neither has a basis, r is nil and
// why is the reason.
func Predict(d *engine.Diagnosis, change engine.Change) (r *engine.Recommendation, why string) {
	if own := d.Recommendation; own != nil && own.Changeable() && engine.SameChanges(own.Changes(), []engine.Change{change}) {
		return own, ""
	}
	g, why := lever.Predict(d, change)
	if why != "" {
		return nil, why
	}
	goal := NewGoal("", nil, 0)
	fix := engine.Fix{
		Kind: engine.KindFlag, Flag: change.Flag, From: change.From, To: change.To, Command: restartWith([]engine.Change{change}),
		Predicted: goal.complete(d, predictions(g)), Costs: []string{lever.Restart}, Why: "Predicted by the model calibrated on this measurement.",
	}
	if g.Note != "" {
		fix.Why = "Predicted by the model calibrated on this measurement: " + g.Note + "."
	}
	if len(fix.Predicted) == 0 {
		return nil, fix.Why
	}
	return &engine.Recommendation{Finding: engine.SearchStep, Fix: fix}, ""
}
