package engine

import (
	"math"
	"slices"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Curve is throughput against running requests, of the whole server: what the
// physical model says of this hardware at the measured context and prefill mix.
type Curve struct {
	Points []CurvePoint // by rising Running
	// Seats and Pool are how many requests the seats and the KV pool let run, of
	// all ranks; absent where not known.
	Seats, Pool stat.Opt
	// Ridge is the number of running requests at which a step turns from memory to
	// compute bound.
	Ridge stat.Opt
	// Now is the measured point.
	Now CurvePoint
}

// CurvePoint is one point of a curve, in output tokens per second.
type CurvePoint struct {
	Running    float64
	Expected   float64  // the model, calibrated on this server; of Now: measured
	Achievable stat.Opt // what good software reaches on this hardware
	Ideal      stat.Opt // what physics allows
}

const (
	// curvePoints is how many points a curve has, about.
	curvePoints = 40
	// curveReach is how far beyond what runs and may run a limit may lie and still
	// be on the curve, and curveMargin is what lies behind the last of them.
	curveReach  = 2
	curveMargin = 1.1
)

// curve draws the physical model through the measured point; nil where it has no
// basis. One replica stands for all: both axes are those of the whole server.
func curve(r *Run) *Curve {
	if r.Perf == nil || !r.Agg.Rate[CounterGenerationTokens].OK {
		return nil
	}
	p, m := r.Perf, &r.Perf.Measured
	ranks := float64(max(1, r.Agg.Ranks))
	c := &Curve{Seats: m.MaxNumSeqs, Pool: m.KVCapacity.Div(m.Resident)}
	if !c.Pool.OK {
		c.Pool = m.KVCapacity.Div(stat.Some(m.Context))
	}
	if ridge := r.Ceiling.Physical.RidgeTokens; m.Tokens > 0 && ridge > 0 {
		c.Ridge = stat.Some(ridge * m.Batch / m.Tokens)
	}
	batches := spaced(c.most(m.Batch, m.Waiting.Or(0)), m.Batch)
	rates := p.Sweep(batches)
	for i, b := range batches {
		point := CurvePoint{Running: b * ranks, Expected: rates[i].Expected * ranks,
			Achievable: stat.Some(rates[i].Achievable * ranks), Ideal: stat.Some(rates[i].Ideal * ranks)}
		c.Points = append(c.Points, point)
		if b == m.Batch {
			c.Now = point
			c.Now.Expected = r.Agg.Rate[CounterGenerationTokens].V
		}
	}
	c.Seats, c.Pool, c.Ridge = c.Seats.Times(ranks), c.Pool.Times(ranks), c.Ridge.Times(ranks)
	return c
}

// most is where the curve of one replica ends: behind what runs, what is in and
// the seats, and behind pool and ridge where they are not far from these.
func (c *Curve) most(batch, waiting float64) float64 {
	end := max(1, batch+waiting, c.Seats.Or(0))
	for _, limit := range [...]stat.Opt{c.Pool, c.Ridge} {
		if limit.OK && limit.V <= curveReach*end {
			end = max(end, limit.V)
		}
	}
	return end * curveMargin
}

// spaced returns numbers from 1 to an end, each larger than the one before by the
// same factor, and one more among them.
func spaced(end, also float64) []float64 {
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
