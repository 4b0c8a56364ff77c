package rules

import (
	"math"
	"slices"
	"strings"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/roofline"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// maxBound is the upper bound above which a gain counts as unknown: "up to a hundred times
// faster" informs no one.
const maxBound = 10.0

// widestKnown is the ratio of the ends of a predicted range above which only its lower end is reported.
const widestKnown = 5.0

// leastError is the least error of a prediction, as a logarithm: two measurements without a change
// differ by as much.
const leastError = 0.03

// gain is the predicted effect of a change.
type gain struct {
	roofline.Gain
	modelled bool // predicted by the physical model, not by bounds
}

// known returns the gain without what is too uncertain to report.
func (g gain) known() gain {
	x, itl := &g.Throughput, &g.ITL
	if !g.modelled && x.High.Or(0) > maxBound {
		x.High, itl.High = stat.None, stat.None
	}
	if !g.modelled && x.Low.OK && (!x.High.OK || 1+x.High.V > widestKnown*(1+x.Low.V)) {
		x.Mid, x.High, itl.Mid, itl.High = stat.None, stat.None, stat.None, stat.None
	}
	return g
}

// predictions lists the metrics with a known effect.
func (g gain) predictions() []engine.Prediction {
	g = g.known()
	x, itl := g.Throughput, g.ITL
	if x.Mid.OK && x.Mid.V != 0 && x.Low.OK && x.High.OK {
		x.Low.V = min(x.Low.V, (1+x.Mid.V)*math.Exp(-leastError)-1)
		x.High.V = max(x.High.V, (1+x.Mid.V)*math.Exp(leastError)-1)
	}
	// On the same hardware the cost of a token is the inverse of throughput.
	return engine.Predict(engine.PredictedRange{Metric: engine.QuantityThroughput, Range: x}, engine.PredictedRange{Metric: engine.QuantityTTFT, Range: g.TTFT},
		engine.PredictedRange{Metric: engine.QuantityITL, Range: itl}, engine.PredictedRange{Metric: engine.QuantityCost, Range: x.Inverse()})
}

// worthless reports whether the physical model predicts less throughput gain than gainFloor.
func (g gain) worthless() bool {
	return g.modelled && g.Throughput.Mid.OK && g.Throughput.Mid.V < gainFloor
}

// pointless reports whether neither throughput nor time to first token is predicted to improve by
// gainFloor; false if either is unknown.
func (g gain) pointless() bool {
	return g.worthless() && g.TTFT.Mid.OK && -g.TTFT.Mid.V < gainFloor
}

// predictedThroughput returns the predicted change of throughput in words: "+1.4 % throughput", or "no more
// throughput" for a change that rounds to 0.
func (g gain) predictedThroughput() string {
	if math.Abs(g.Throughput.Mid.V) < 0.0005 {
		return "no more throughput"
	}
	return figure.ChangeSign(g.Throughput.Mid.V) + " throughput"
}

// addLosses adds to the costs of a fix each latency that is predicted to grow by gainFloor or more, unless they
// have it. fix may be nil.
func addLosses(fix *engine.Fix) {
	if fix == nil {
		return
	}
	for _, p := range fix.Predicted {
		if !p.Mid.OK || p.Mid.V < gainFloor {
			continue
		}
		var name, cost string
		switch p.Metric {
		case engine.QuantityITL:
			name, cost = "inter-token latency", slowerTokens(gain{Gain: roofline.Gain{ITL: p.Range()}})
		case engine.QuantityTTFT:
			name = "time to first token"
			cost = "requests get their first token later: " + name + " " + figure.ChangeSign(p.Mid.V)
		default:
			continue
		}
		listed := func(cost string) bool { return strings.Contains(cost, name+" "+figure.ChangeSign(p.Mid.V)) }
		if !slices.ContainsFunc(fix.Costs, listed) {
			fix.Costs = append(fix.Costs, cost)
		}
	}
}

// because returns the note of the prediction, else fallback.
func (g gain) because(fallback string) string {
	if g.Note != "" {
		return g.Note
	}
	return fallback
}

// sentence returns the note as a sentence with a leading space, "" without a note.
func (g gain) sentence() string {
	if g.Note == "" {
		return ""
	}
	return " " + strings.ToUpper(g.Note[:1]) + g.Note[1:] + "."
}

// modelled returns the gain that the physical model predicts for a change; the zero gain without
// a model.
func modelled(r *engine.Run, change func(*roofline.Performance) roofline.Gain) gain {
	if r.Perf == nil {
		return gain{}
	}
	return gain{Gain: change(r.Perf), modelled: true}
}

// unmodelled returns the reason why the run has no physical model, without its details in
// parentheses.
func unmodelled(r *engine.Run) string {
	why, _, _ := strings.Cut(r.PerfReason, " (")
	if why == "" {
		return "no physical model of this run"
	}
	return "no physical model of this run (" + why + ")"
}

// blind returns the inputs that bound the gains of one rank without a physical model.
func blind(r *engine.Run, p *pool) roofline.Blind {
	share := r.Agg.Mean(engine.HistQueue).Div(r.Agg.Mean(engine.HistTTFT))
	if prefill := r.Agg.Mean(engine.HistPrefill); share.OK { // of other requests than those that had their first token
		queue := r.Agg.Mean(engine.HistQueue)
		share.V = min(1, share.V, queue.Div(queue.Plus(prefill)).Or(1))
	}
	in := max(p.running, p.occupied.Or(0)) // what the gauge of running requests misses counts as queued
	return roofline.Blind{
		Running: in, Waiting: max(0, p.queued-(in-p.running)), Holds: p.holds, Slots: runSlots(r),
		CPU: r.Facts.OnCPU(), Half: halfOf(r), Prefill: stepPrefill(r), PrefillMost: r.Agg.PrefillMost,
		QueueShare: share, FrontShare: r.FrontShare(), Offered: r.Offered, Why: unmodelled(r),
	}
}

const (
	// halfSpan is the minimum ratio of the largest to the smallest batch of a run for a fit of
	// step time over batch, and halfWindows the minimum number of windows.
	halfSpan    = 1.5
	halfWindows = 6
)

// halfOf returns the batch at which a step takes twice as long as an almost empty one, from a
// straight line through the windows' steps. It is absent if the batch hardly varied, or if
// steps do not grow with it.
func halfOf(r *engine.Run) stat.Opt {
	var n, sx, sy, sxx, sxy float64
	least, most := math.Inf(1), 0.0
	for w := range windows(r, evaluable) {
		if w.Running.Or(0) <= 0 || !w.StepTime.OK {
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

// stepPrefill returns the share of the engine's time, 0..1, that it computes prompts: the time by which
// steps with a part of a prompt exceed the others, and no more than their bound: where requests wait for
// blocks before their first token, their prefill seconds are not all prefill. It is absent if the page does
// not count the tokens of steps, or if prompts are so short that steps with one do not stand out.
func stepPrefill(r *engine.Run) stat.Opt {
	a := &r.Agg
	steps, step, prefill := &a.Hist[engine.HistIterationTokens], a.CountedStep, a.Mean(engine.HistPrefill)
	if !step.OK {
		step = a.StepTime
	}
	prompt, output := lengths(r)
	if !steps.OK || steps.Count <= 0 || !step.OK || !prefill.OK || !prompt.OK || !output.OK {
		return stat.None
	}
	computed := prompt.V * (1 - a.HitRate.Or(0))
	// A step without a prompt has at most as many tokens as requests run.
	decoding := a.Running.V / float64(a.Ranks)
	for w := range windows(r, evaluable) {
		decoding = max(decoding, w.RunningPeak.V/float64(ranks(w)))
	}
	with, bound := 0.0, 0.0
	for i, n := range steps.Counts {
		if bound >= decoding {
			with += n
		}
		bound = steps.Bounds[i]
	}
	share := with / steps.Count
	if computed < 2*decoding || share <= 0 {
		return stat.None
	}
	chunks := math.Ceil(computed / max(1, engine.FactOpt(r.Facts.MaxNumBatchedTokens).Or(computed)))
	longer := (prefill.V/chunks - step.V) / max(1-share, leastWithout) // than a step without a prompt
	return stat.Some(min(a.PrefillMost.Or(1), max(0, share*longer/step.V)))
}

// reuseMost returns an upper bound, 0..1, of the share of the engine's time that reuse of prompts can
// save. Otherwise why is the reason that there is none.
func reuseMost(r *engine.Run) (share stat.Opt, why string) {
	a := &r.Agg
	switch {
	case a.Waiting.Or(1) >= noQueue*a.Running.Or(0):
		return stat.None, "requests wait, and what is freed by shorter prompts serves them"
	case r.Facts.OnCPU():
		return stat.None, "on a CPU prompts also slow down the other work of the same cores"
	case longPromptTime(r).OK:
		return stat.None, uncounted(r.Facts)
	}
	share = a.PrefillMost
	if r.Perf != nil {
		if model := r.Perf.PrefillMost(); model.OK && model.V < share.Or(1) {
			share = model
		}
	}
	switch {
	case !share.OK:
		return stat.None, "prefill was not measured"
	case share.V >= roofline.PrefillLargest:
		return stat.None, "almost all of the engine's work may be prefill"
	}
	return share, ""
}

// noQueue is the mean number of waiting requests for each running one below which none waits.
const noQueue = 0.05

// leastWithout is the least share of steps without a prompt for which their time can be distinguished.
const leastWithout = 0.1

func raiseSlots(r *engine.Run, p *pool, to int) gain {
	if r.Perf == nil {
		return gain{Gain: blind(r, p).RaiseSlots(to)}
	}
	return modelled(r, func(m *roofline.Performance) roofline.Gain { return m.RaiseSlots(to) })
}

// moreConcurrency predicts the gain of running to requests at once in each rank. If raised is
// set, the slots do not limit them.
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

// moreCapacity predicts the gain of a KV pool that is growth times as large on each rank.
func moreCapacity(r *engine.Run, p *pool, growth float64) gain {
	if r.Perf == nil {
		return gain{Gain: blind(r, p).MoreKV(growth)}
	}
	tokens := p.capacity.V * growth
	return modelled(r, func(m *roofline.Performance) roofline.Gain { return m.MoreKV(tokens) })
}

// tokenBudgetGain predicts the gain of steps of at most to tokens; the zero gain without a
// model.
func tokenBudgetGain(r *engine.Run, to int) gain {
	return modelled(r, func(m *roofline.Performance) roofline.Gain { return m.TokenBudget(to) })
}

// gainSteps is the resolution of predicted ratios: finer than any measurement, coarser than
// the noise of float64.
const gainSteps = 1e6

// roundPredictions rounds the predictions of a fix, which may be nil, to 1/gainSteps.
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
