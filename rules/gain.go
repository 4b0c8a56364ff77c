package rules

import (
	"math"
	"strings"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/roofline"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Metrics that a prediction can be about (engine.Prediction).
const (
	metricThroughput = "generation_tokens_per_s"
	metricTTFT       = "ttft_mean_s"
	metricITL        = "itl_mean_s"
	metricCost       = "usd_per_million_tokens"
)

// mostBound is the bound above which a gain is called unknown: that a server
// could be a hundred times faster says nothing.
const mostBound = 10.0

// gain is what a change is expected to do, from the physical model where the
// run has one.
type gain struct {
	roofline.Gain
	known bool // from the physical model, not from bounds
}

// predictions lists the parts that are known.
func (g gain) predictions() []engine.Prediction {
	var out []engine.Prediction
	x, itl := g.Throughput, g.ITL
	if !g.known && x.High.Or(0) > mostBound {
		x.High, itl.High = stat.None, stat.None
	}
	if !g.known && x.Mid.Or(0) > mostBound {
		x, itl = roofline.Range{}, roofline.Range{}
	}
	for _, m := range []struct {
		name string
		r    roofline.Range
	}{{metricThroughput, x}, {metricTTFT, g.TTFT}, {metricITL, itl}, {metricCost, cost(x)}} {
		if m.r.Low.OK || m.r.Mid.OK || m.r.High.OK {
			out = append(out, engine.Prediction{Metric: m.name, Unit: "ratio", Low: m.r.Low, Mid: m.r.Mid, High: m.r.High})
		}
	}
	return out
}

// cost turns a gain in throughput on the same hardware into the change of the
// price of a token: the more tokens, the cheaper each.
func cost(x roofline.Range) roofline.Range {
	invert := func(v stat.Opt) stat.Opt {
		if !v.OK || v.V <= -1 {
			return stat.None
		}
		return stat.Some(1/(1+v.V) - 1)
	}
	return roofline.Range{Low: invert(x.High), Mid: invert(x.Mid), High: invert(x.Low)}
}

// worthless says that the physical model expects next to nothing.
func (g gain) worthless() bool {
	return g.known && g.Throughput.Mid.OK && g.Throughput.Mid.V < gainFloor
}

// pointless says that neither throughput nor the time to the first token is
// expected to gain; false where either is not known.
func (g gain) pointless() bool {
	return g.worthless() && g.TTFT.Mid.OK && -g.TTFT.Mid.V < gainFloor
}

// because gives the model's own reason in front of a fallback.
func (g gain) because(fallback string) string {
	if g.Note != "" {
		return g.Note
	}
	return fallback
}

// sentence writes the note as a sentence of its own, "" without one.
func (g gain) sentence() string {
	if g.Note == "" {
		return ""
	}
	return " " + strings.ToUpper(g.Note[:1]) + g.Note[1:] + "."
}

// modelled is what the physical model predicts of a change; blind where the run
// has none.
func modelled(r *engine.Run, change func(*roofline.Performance) roofline.Gain) gain {
	if r.Perf == nil {
		return gain{}
	}
	return gain{Gain: change(r.Perf), known: true}
}

// unmodelled says in short why the run has no physical model.
func unmodelled(r *engine.Run) string {
	why, _, _ := strings.Cut(r.PerfReason, " (")
	if why == "" {
		return "no physical model of this run"
	}
	return "no physical model of this run (" + why + ")"
}

// blind is what the run tells of one rank without a physical model.
func blind(r *engine.Run, p *pool) roofline.Blind {
	share := r.Agg.Mean(engine.HistQueue).Div(r.Agg.Mean(engine.HistTTFT))
	if share.OK {
		share.V = min(1, share.V)
	}
	return roofline.Blind{
		Running: p.running, Waiting: p.queued, Holds: p.holds, Seats: runSeats(r),
		Half: halfOf(r), QueueShare: share, Offered: r.Offered, Why: unmodelled(r),
	}
}

const (
	// halfSpan is the ratio of the largest to the smallest batch of a run from which
	// its steps tell how they grow, and halfWindows how many windows must be of it.
	halfSpan    = 1.5
	halfWindows = 6
)

// halfOf returns the batch at which a step takes twice as long as for next to none,
// from a straight line through the steps of windows with different batches; absent
// where the batch hardly moved, or steps do not grow with it.
func halfOf(r *engine.Run) stat.Opt {
	var n, sx, sy, sxx, sxy float64
	least, most := math.Inf(1), 0.0
	for i := range r.Windows {
		w := &r.Windows[i]
		if !w.Evaluable || w.Running.Or(0) <= 0 || !w.StepTime.OK {
			continue
		}
		x, y := w.Running.V/float64(ranks(w)), w.StepTime.V
		n, sx, sy, sxx, sxy = n+1, sx+x, sy+y, sxx+x*x, sxy+x*y
		least, most = min(least, x), max(most, x)
	}
	if n < halfWindows || most < halfSpan*least {
		return stat.None
	}
	slope := (n*sxy - sx*sy) / (n*sxx - sx*sx)
	base := (sy - slope*sx) / n
	if slope <= 0 || base <= 0 {
		return stat.None
	}
	return stat.Some(base / slope)
}

func raiseSeats(r *engine.Run, p *pool, to int) gain {
	if r.Perf == nil {
		return gain{Gain: blind(r, p).RaiseSeats(to)}
	}
	return modelled(r, func(m *roofline.Performance) roofline.Gain { return m.RaiseSeats(to) })
}

func lowerSeats(r *engine.Run, to int) gain {
	return modelled(r, func(m *roofline.Performance) roofline.Gain { return m.LowerSeats(to) })
}

// moreConcurrency predicts to requests at once in each rank. Where the seats
// are raised with it, they are no limit.
func moreConcurrency(r *engine.Run, p *pool, to float64, raised bool) gain {
	if r.Perf == nil {
		return gain{Gain: blind(r, p).MoreConcurrency(to)}
	}
	return modelled(r, func(m *roofline.Performance) roofline.Gain {
		if !raised {
			return m.MoreConcurrency(to)
		}
		open := *m
		open.Measured.MaxNumSeqs = stat.None
		return open.MoreConcurrency(to)
	})
}

// moreCapacity predicts a pool of each rank that is growth times as large.
func moreCapacity(r *engine.Run, p *pool, growth float64) gain {
	if r.Perf == nil {
		return gain{Gain: blind(r, p).MoreKV(growth)}
	}
	tokens := p.capacity.V * growth
	return modelled(r, func(m *roofline.Performance) roofline.Gain { return m.MoreKV(tokens) })
}

func fp8KV(r *engine.Run) gain {
	return modelled(r, (*roofline.Performance).FP8KV)
}

func tensorParallel(r *engine.Run, to int) gain {
	return modelled(r, func(m *roofline.Performance) roofline.Gain { return m.TensorParallel(to) })
}

func biggerBudget(r *engine.Run, to int) gain {
	return modelled(r, func(m *roofline.Performance) roofline.Gain { return m.TokenBudget(to) })
}

func withGraphs(r *engine.Run) gain {
	return modelled(r, (*roofline.Performance).NoEager)
}

// gainSteps is how finely predicted ratios are written: far below anything that can
// be measured, far above the noise of float64.
const gainSteps = 1e6

// roundPredictions rounds what a fix is predicted to do.
func roundPredictions(fix *engine.Fix) {
	if fix == nil {
		return
	}
	for i := range fix.Predicted {
		p := &fix.Predicted[i]
		for _, end := range []*stat.Opt{&p.Low, &p.Mid, &p.High} {
			end.V = math.Round(end.V*gainSteps)/gainSteps + 0 // never -0
		}
	}
}
