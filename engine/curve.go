package engine

import (
	"math"
	"slices"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Curve is the throughput of the whole server against running requests, as the physical model
// predicts it for this hardware at the measured context and prefill mix.
type Curve struct {
	Points []CurvePoint // by ascending Running
	// Slots and Pool are the numbers of running requests that the slots and the KV pool allow
	// over all ranks; absent if unknown.
	Slots, Pool stat.Opt
	// Ridge is the number of running requests at which a step changes from memory-bound to
	// compute-bound.
	Ridge stat.Opt
	// Now is the measured point.
	Now CurvePoint
}

// CurvePoint is one point of a curve, in output tokens per second.
type CurvePoint struct {
	Running    float64
	Expected   float64  // the model calibrated on this server; measured in Curve.Now
	Achievable stat.Opt // estimate of what efficient software reaches on this hardware
	Upper      stat.Opt // of the range of Achievable, which nine of ten published results lie in
	Ideal      stat.Opt // what physics allows
}

const (
	// curvePoints is the approximate number of points of a curve.
	curvePoints = 40
	// curveReach is the largest factor by which a limit may exceed the running and admissible
	// requests and still be drawn. curveMargin is the space beyond the last of them.
	curveReach  = 2
	curveMargin = 1.1
)

// curve returns the physical model's curve through the measured point, or nil if the model
// has no basis. It scales one replica to the whole server on both axes.
func curve(r *Run) *Curve {
	if r.Perf == nil || !r.Agg.Rate[CounterGenerationTokens].OK {
		return nil
	}
	p, m := r.Perf, &r.Perf.Measured
	ranks := float64(max(1, r.Agg.Ranks))
	c := &Curve{Slots: m.MaxNumSeqs, Pool: m.KVCapacity.Div(m.Resident)}
	if !c.Pool.OK {
		c.Pool = m.KVCapacity.Div(stat.Some(m.Context))
	}
	if ridge := r.Ceiling.Physical.RidgeTokens; m.Tokens > 0 && ridge > 0 {
		c.Ridge = stat.Some(ridge * m.Batch / m.Tokens)
	}
	batches := geometricSteps(c.end(m.Batch, m.Waiting.Or(0)), m.Batch)
	if r.busyRank != nil {
		p = r.busyRank // the point of uneven ranks lies below the curve of even ones
	}
	rates := p.Sweep(batches)
	for i, b := range batches {
		point := CurvePoint{Running: b * ranks, Expected: rates[i].Expected * ranks,
			Achievable: stat.Some(rates[i].Achievable * ranks), Ideal: stat.Some(rates[i].Ideal * ranks),
			Upper: stat.Some(rates[i].Upper * ranks)}
		c.Points = append(c.Points, point)
		if b == m.Batch {
			c.Now = point
			c.Now.Expected = r.Agg.Rate[CounterGenerationTokens].V
		}
	}
	c.Slots, c.Pool, c.Ridge = c.Slots.Times(ranks), c.Pool.Times(ranks), c.Ridge.Times(ranks)
	return c
}

// end returns the number of running requests at which the curve of one replica ends: beyond
// the running and waiting requests and the slots, and beyond pool and ridge if they are near.
func (c *Curve) end(batch, waiting float64) float64 {
	end := max(1, batch+waiting, c.Slots.Or(0))
	for _, limit := range [...]stat.Opt{c.Pool, c.Ridge} {
		if limit.OK && limit.V <= curveReach*end {
			end = max(end, limit.V)
		}
	}
	return end * curveMargin
}

// geometricSteps returns numbers from 1 to end at a constant ratio, with also among them.
func geometricSteps(end, also float64) []float64 {
	out := make([]float64, 0, curvePoints+1)
	factor := math.Pow(end, 1/float64(curvePoints-1))
	for i := range curvePoints {
		out = append(out, math.Pow(factor, float64(i)))
	}
	if i, found := slices.BinarySearch(out, also); !found {
		out = slices.Insert(out, i, also)
	}
	return out
}
