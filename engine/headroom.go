package engine

import (
	"cmp"
	"math"

	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/roofline"
	"github.com/rooftop-dev/rooftop/engine/stat"
	"github.com/rooftop-dev/rooftop/engine/verdict"
)

// Headroom is how many more requests of the measured kind a server takes, with its settings as they are, before they
// wait or an objective breaks, by the physical model calibrated on the measured point.
type Headroom struct {
	// Low, Mid and High are further requests a second, with their 80 % range.
	Low  stat.Opt `json:"low"`
	Mid  stat.Opt `json:"mid"`
	High stat.Opt `json:"high"`
	// Running are the requests that run then.
	Running stat.Opt      `json:"running"`
	Limit   HeadroomLimit `json:"limit,omitzero"`
	// Objective is the one that breaks first, "" where another limit is reached before: "itl_p99 under 60 ms".
	Objective string `json:"objective,omitempty"`
	// Reason is why it is unknown or none, "" otherwise.
	Reason string `json:"reason,omitzero"`
}

// HeadroomLimit is what is full when requests begin to wait.
type HeadroomLimit string

// Limits of further requests.
const (
	LimitSlots  HeadroomLimit = "slots"
	LimitPool   HeadroomLimit = "KV pool"
	LimitOutput HeadroomLimit = "output" // a larger batch generates no more

	LimitObjective HeadroomLimit = "objective"
)

// widestHeadroom is the ratio of the two ends of the whole rate beyond which a headroom says nothing.
const widestHeadroom = 2.5

// tailGrowth is the error of a quantile that is predicted to grow as its mean does, as a share of the logarithm of the
// growth in load: more prompts meet in a step, which the mean hardly shows. On ten simulated servers at 1.3 to 2.2 times
// their load p99s of ITL grew by 0.93 to 1.7 times as much as the mean (docs/measurements.md, Headroom).
const tailGrowth = 0.4

// headroom returns the headroom of a run with objectives on its latencies.
func headroom(r *Run, load bool, objectives []verdict.Objective) Headroom {
	requests := r.Agg.Rate[CounterRequestSuccess]
	switch {
	case !load:
		return Headroom{Reason: "no load"}
	case r.Condition.Ill():
		return Headroom{Reason: "the server is ill"}
	case r.Perf == nil:
		return Headroom{Reason: cmp.Or(r.PerfReason, "no physical model")}
	case requests.Or(0) <= 0:
		return Headroom{Reason: "no request was finished"}
	}
	span, batch, why := r.Perf.Headroom()
	h := Headroom{Low: span.Low.Times(requests.V), Mid: span.Mid.Times(requests.V), High: span.High.Times(requests.V), Reason: why}
	if !h.Mid.OK {
		return h
	}
	ranks, m := float64(max(1, r.Agg.Ranks)), &r.Perf.Measured
	h.Running = stat.Some(batch * ranks)
	pool := m.KVCapacity.Div(m.Resident)
	switch full := 1 - 1/math.Max(2, 2*batch); {
	case m.MaxNumSeqs.OK && batch >= full*m.MaxNumSeqs.V:
		h.Limit = LimitSlots
	case pool.OK && batch >= full*pool.V:
		h.Limit = LimitPool
	default:
		h.Limit = LimitOutput
	}
	for i := range objectives {
		if why := h.boundBy(r, &objectives[i], batch); why != "" {
			return Headroom{Reason: why}
		}
	}
	if whole := func(more stat.Opt) float64 { return requests.V + more.V }; whole(h.High)/whole(h.Low) > widestHeadroom {
		return Headroom{Reason: "the range is too wide: measure at a load nearer to the limit"}
	}
	return h
}

// boundBy lowers a headroom to where an objective breaks, if that is at fewer running requests of a rank than most. why
// says what is unknown about its latency.
func (h *Headroom) boundBy(r *Run, o *verdict.Objective, most float64) (why string) {
	now := latencyOf(&r.Agg, o)
	switch {
	case !now.Mid.OK:
		return o.Name + " was not measured"
	case (o.Metric == verdict.MetricTTFT || o.Metric == verdict.MetricE2E) && !r.Perf.At(most).TTFT.Mid.OK:
		return "the growth of the time to first token with load is not known without the time in the queue"
	}
	b := objectiveBound{run: r, objective: o, most: most, first: min(1, r.Agg.Mean(HistTTFT).Div(r.Agg.Mean(HistE2E)).Or(0))}
	low, mid, high := func(g roofline.Range) float64 { return g.Low.V }, func(g roofline.Range) float64 { return g.Mid.V }, func(g roofline.Range) float64 { return g.High.V }
	// The ends belong together: where steps are longer than predicted, the rate is lower too.
	b.lower(&h.Low, &rangeEnd{now: now.High.V, tail: tailGrowth, latency: high, rate: low})
	running := b.lower(&h.Mid, &rangeEnd{now: now.Mid.V, latency: mid, rate: mid})
	b.lower(&h.High, &rangeEnd{now: now.Low.V, tail: -tailGrowth, latency: low, rate: high})
	ranks := float64(max(1, r.Agg.Ranks))
	if running < most && running*ranks < h.Running.V {
		h.Running, h.Limit, h.Objective = stat.Some(max(running, r.Perf.Measured.Batch)*ranks), LimitObjective, o.Name+" under "+figure.Value(o.Limit, "s")
	}
	if now.Low.V > o.Limit && h.Reason == "" {
		h.Reason = o.Name + " is " + figure.Value(now.Mid.V, "s") + ", over its limit"
	}
	return ""
}

// objectiveBound is a run whose batch may grow until an objective breaks.
type objectiveBound struct {
	run       *Run
	objective *verdict.Objective
	most      float64 // requests that run in a rank before another limit is reached
	first     float64 // share of the time to the first token in a request's time
}

// rangeEnd is one end of the range of a prediction, or its middle.
type rangeEnd struct {
	now           float64                      // the measured latency
	tail          float64                      // tailGrowth with its sign, 0 in the middle
	latency, rate func(roofline.Range) float64 // choose from the range of what the model predicts
}

// lower lowers further requests to those at which the objective still holds, and returns how many run then in a rank: 0 if
// it does not hold now.
func (b *objectiveBound) lower(more *stat.Opt, e *rangeEnd) (running float64) {
	perf := b.run.Perf
	running = largest(perf.Measured.Batch, b.most, func(batch float64) bool { return e.now*b.growth(batch, e) <= b.objective.Limit })
	switch {
	case running == 0:
		more.V = 0
	case running < b.most:
		more.V = min(more.V, max(0, b.run.Agg.Rate[CounterRequestSuccess].V*e.rate(perf.At(running).Throughput)))
	}
	return running
}

// growth returns the ratio of the objective's latency with a batch to the measured one, which has no error of prediction
// at the measured batch.
func (b *objectiveBound) growth(batch float64, e *rangeEnd) float64 {
	if batch <= b.run.Perf.Measured.Batch {
		return 1
	}
	g := b.run.Perf.At(batch)
	ratio := 1 + e.latency(g.ITL)
	switch b.objective.Metric {
	case verdict.MetricTTFT:
		ratio = 1 + e.latency(g.TTFT)
	case verdict.MetricE2E:
		ratio += b.first * (e.latency(g.TTFT) - e.latency(g.ITL))
	}
	if b.objective.Quantile > 0 {
		ratio *= math.Pow(1+max(0, g.Throughput.Mid.V), e.tail)
	}
	return ratio
}

// largest returns the largest number from low to high for which holds is true, if it is true for all smaller ones, and 0
// if it is true for none.
func largest(low, high float64, holds func(float64) bool) float64 {
	if holds(high) {
		return high
	}
	if !holds(low) {
		return 0
	}
	for high-low > 0.01*high {
		if mid := (low + high) / 2; holds(mid) {
			low = mid
		} else {
			high = mid
		}
	}
	return low
}

// latencyOf returns the measured latency of an objective, absent where it is beyond the last bucket and the limit is too.
// A quantile lies in a bucket of the histogram, whose ends are Low and High.
func latencyOf(a *Aggregate, o *verdict.Objective) roofline.Range {
	h := map[verdict.Metric]Hist{verdict.MetricTTFT: HistTTFT, verdict.MetricITL: HistITL, verdict.MetricTPOT: HistTPOT, verdict.MetricE2E: HistE2E}[o.Metric]
	value := a.Mean(h)
	if o.Quantile > 0 {
		value = a.Hist[h].Quantile(o.Quantile)
		if b := a.Hist[h].Bucket(o.Quantile); b.Width() > 0 {
			return roofline.Range{Low: stat.Some(b[0]), Mid: value, High: stat.Some(b[1])}
		}
		if value.V < o.Limit {
			return roofline.Range{}
		}
	}
	return roofline.Range{Low: value, Mid: value, High: value}
}
