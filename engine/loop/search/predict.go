package search

import (
	"fmt"
	"math"

	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/roofline"
)

// Predict returns the predicted effect of one change on a measured server: as a rule computed it if that is what
// it recommends, else by the model that is calibrated on the measurement. If neither has a basis, r is nil and
// why is the reason.
func Predict(d *engine.Diagnosis, change engine.Change) (r *engine.Recommendation, why string) {
	if own := d.Recommendation; own != nil && own.Changeable() && engine.SameChanges(own.Changes(), []engine.Change{change}) {
		return own, ""
	}
	g, why := predictedGain(d, change)
	if why != "" {
		return nil, why
	}
	goal := NewGoal("", nil, 0)
	fix := engine.Fix{
		Kind: engine.KindFlag, Flag: change.Flag, From: change.From, To: change.To, Command: restartWith([]engine.Change{change}),
		Predicted: goal.complete(d, predictions(g)), Costs: []string{oneRestart}, Why: "Predicted by the model calibrated on this measurement.",
	}
	if g.Note != "" {
		fix.Why = "Predicted by the model calibrated on this measurement: " + g.Note + "."
	}
	if len(fix.Predicted) == 0 {
		return nil, fix.Why
	}
	return &engine.Recommendation{Finding: engine.SearchStep, Fix: fix}, ""
}

// predictedGain returns the gain of a change, or why none can be predicted.
func predictedGain(d *engine.Diagnosis, change engine.Change) (g roofline.Gain, why string) {
	p, slots := d.Performance, d.Facts.MaxNumSeqs
	value, ok := parseNumber(change.To)
	to := int(value)
	switch change.Flag {
	case "--gpu-memory-utilization", "--num-gpu-blocks-override":
		return poolGain(d, change)
	case "--max-num-seqs", "--max-num-batched-tokens", tensorParallel:
		if !ok || value < 1 || value > math.MaxInt32 {
			return g, change.Flag + " takes a positive number"
		}
	}
	if p == nil {
		return g, "no physical model of this run: " + d.Ceiling.PhysicalReason
	}
	switch change.Flag {
	case "--max-num-seqs":
		switch {
		case !slots.Known:
			return g, "the number of slots is not known"
		case to < slots.Value:
			return p.LowerSlots(to), ""
		}
		return p.RaiseSlots(to), ""
	case "--max-num-batched-tokens":
		return p.TokenBudget(to), ""
	case tensorParallel:
		return withDegree(d, to), ""
	case "--enforce-eager":
		if change.To != "on" {
			return p.NoEager(), ""
		}
	case "--kv-cache-dtype":
		if t, ok := catalog.ParseDType(change.To); ok && t == catalog.FP8 {
			return p.FP8KV(), ""
		}
	}
	return g, fmt.Sprintf("no model predicts %s: measure, make the change, measure again and compare", change)
}

// poolGain predicts a KV pool of another size.
func poolGain(d *engine.Diagnosis, change engine.Change) (g roofline.Gain, why string) {
	grows, slots := growth(d, change), d.Facts.MaxNumSeqs
	c, _, ok := demandOf(d)
	switch {
	case !grows.OK:
		return g, "the size of the KV pool with " + change.String() + " is not known: the model, the GPU or the present value is not"
	case !ok || !slots.Known:
		return g, "the sequences that the KV pool holds, or the slots, are not known"
	}
	g = c.gain(grows.V, slots.Value)
	size := "the pool is then " + figure.Significant(grows.V) + " times as large"
	if g.Note != "" {
		size = g.Note + "; " + size
	}
	g.Note = size
	return g, ""
}
