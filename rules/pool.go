package rules

import (
	"fmt"
	"math"
	"strings"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// pool is one rank's KV pool as a run used it, and how many sequences fit into it at the
// context they reach.
type pool struct {
	ranks        float64
	running      float64       // requests of one rank, mean of the gauge
	runningInRun float64       // the same over the whole run, as its figures show it: that of a headline
	queuedInRun  float64       // requests of one rank waiting for capacity, mean over the whole run
	occupied     stat.Opt      // slots of one rank in use, mean (engine.Window.Occupied)
	queued       float64       // requests of one rank waiting for capacity, mean
	peak         float64       // requests of one rank that ran at once, maximum
	usage        stat.Opt      // share of the pool in use, mean
	full         stat.Opt      // share of the pool in use, peak
	capacity     stat.Opt      // tokens of one rank
	from         engine.Source // of capacity
	est          bool          // capacity is computed from the catalog, not reported by the server
	prompt       stat.Opt      // mean prompt, tokens
	output       stat.Opt      // mean output, tokens
	resident     stat.Opt      // mean tokens that a running sequence holds of the pool
	end          stat.Opt      // expected tokens that a sequence holds at its end
	context      stat.Opt      // the larger of resident and end: the budget of one sequence
	holds        stat.Opt      // sequences that fit at that context
	shared       bool          // sequences hold fewer tokens than their prompts: they share prefixes
}

// minFinished is the minimum number of finished requests to compute mean lengths from
// counters, if the page has no histogram of lengths.
const minFinished = 10

// sharedReuse is the minimum prefix hit rate to explain sequences that hold less than their
// prompts by shared blocks; below it they are prompts in the middle of their prefill.
const sharedReuse = 0.20

// poolOf returns the pool as the selected windows in which requests ran used it. What one sequence takes
// and how many fit is that of the whole run, so that all findings of a run state one value. Without a
// selected window only ranks is set.
func poolOf(r *engine.Run, selected func(w *engine.Window) bool) pool {
	p := poolUse(r, selected)
	if p.running <= 0 {
		return p
	}
	whole := poolUse(r, always)
	whole.budget(&r.Agg)
	p.runningInRun = r.Agg.Running.Times(1 / p.ranks).Or(whole.running)
	p.queuedInRun = r.Agg.Waiting.Plus(stat.Some(-r.Agg.Deferred.Or(0))).Times(1 / p.ranks).Or(whole.queued)
	p.resident, p.end, p.context, p.holds, p.shared = whole.resident, whole.end, whole.context, whole.holds, whole.shared
	return p
}

// poolUse returns the means of the pool over the selected windows in which requests ran.
func poolUse(r *engine.Run, selected func(w *engine.Window) bool) pool {
	p := pool{ranks: 1}
	var running, queue, usage, secs float64
	var occupied stat.Average
	usageOK := false
	for w := range windows(r, selected) {
		if !w.Evaluable || w.Running.Or(0) <= 0 {
			continue
		}
		s := w.Seconds()
		p.ranks = float64(ranks(w))
		running += w.Running.V * s
		p.peak = max(p.peak, w.RunningPeak.Or(w.Running.V)/p.ranks)
		queue += queued(w).Or(0) * s
		occupied.Add(w.Occupied, s)
		usage += w.KV.Or(0) * s
		p.full = p.full.Max(kvPeak(w))
		usageOK = usageOK || w.KV.OK
		secs += s
	}
	if secs <= 0 {
		return p
	}
	p.running, p.queued = running/secs/p.ranks, queue/secs/p.ranks
	p.occupied = occupied.Mean().Times(1 / p.ranks)
	// A pool that reads empty while requests run is not measured: the V0 engine on a CPU
	// always reports 0.
	if usageOK && usage > 0 {
		p.usage = stat.Some(usage / secs)
	}
	if c := r.Facts.KVCapacityTokens; c.Known && c.Value > 0 {
		p.capacity, p.from, p.est = stat.Some(c.Value), c.Source, strings.Contains(c.Note, "(est)")
	}
	p.prompt, p.output = lengths(r)
	return p
}

// lengths returns the mean prompt and output in tokens: of the requests that finished in the run,
// else of those since the start of the server, else from counters.
func lengths(r *engine.Run) (prompt, output stat.Opt) {
	prompt, output = r.Agg.PromptLen, r.Agg.OutputLen
	if !prompt.OK {
		prompt = r.Agg.Lifetime[engine.HistPromptTokens]
	}
	if !output.OK {
		output = r.Agg.Lifetime[engine.HistGenerationTokens]
	}
	if prompt.OK && output.OK {
		return prompt, output
	}
	var in, out, n stat.Opt
	for w := range windows(r, evaluable) {
		in = in.Plus(w.Delta[engine.CounterPromptTokens])
		out = out.Plus(w.Delta[engine.CounterGenerationTokens])
		n = n.Plus(w.Delta[engine.CounterRequestSuccess])
	}
	if n.Or(0) < minFinished {
		return prompt, output
	}
	if !prompt.OK {
		prompt = in.Div(n)
	}
	if !output.OK {
		output = out.Div(n)
	}
	return prompt, output
}

// budget computes the tokens that one sequence takes and how many sequences fit. The mean that it holds is
// the aggregate's, as in the physical model.
func (p *pool) budget(a *engine.Aggregate) {
	if p.capacity.OK && a.KVPerRequest.Or(0) > 0 {
		p.resident = a.KVPerRequest.Times(p.capacity.V)
	}
	if p.prompt.OK && p.output.OK {
		p.end = stat.Some(p.prompt.V + p.output.V)
	}
	if p.resident.OK && p.end.OK && p.resident.V < p.prompt.V && a.HitRate.Or(0) >= sharedReuse {
		// Shared blocks are held once: on average half of the output is resident, and the
		// other half is still to come.
		p.shared = true
		p.end = stat.Some(p.resident.V + p.output.V/2)
	}
	p.context = p.resident.Max(p.end)
	switch {
	case p.capacity.OK && p.context.OK:
		p.holds = p.capacity.Div(p.context)
	case p.usage.OK:
		// Without the size of the pool, its usage shows how many sequences of the current
		// length fit; they grow by half an output.
		grow := 1.0
		if p.end.OK && p.end.V > 0 {
			grow = p.end.V / (p.prompt.V + p.output.V/2)
		}
		p.holds = stat.Some(p.running / p.usage.V / grow)
	}
	p.raiseToObserved()
}

// raiseToObserved raises holds to the sequences that the peak usage shows to fit: mean lengths
// may belong to other requests, or count shared prefixes more than once. The usage of a full pool
// is not evidence: it keeps further requests out.
func (p *pool) raiseToObserved() {
	if p.full.Or(0) <= 0 || p.full.V >= kvPressureUsage {
		return
	}
	seen := p.running / p.full.V
	if seen <= p.holds.Or(0) {
		return
	}
	p.holds = stat.Some(seen)
	if p.capacity.OK {
		p.context = p.capacity.Div(p.holds)
	}
}

// wanted returns the sequences of one rank that would run at once: running and queued, at most
// its slots if known.
func (p *pool) wanted(f *engine.Facts) float64 {
	n := p.running + p.queued
	if f.MaxNumSeqs.Known {
		n = min(n, float64(f.MaxNumSeqs.Value))
	}
	return n
}

// factor returns how many times larger a rank's pool must be so that n sequences at their end
// fill it to kvPressureUsage at most; absent if the number that fits is unknown.
func (p *pool) factor(n float64) stat.Opt {
	if !p.holds.OK || p.holds.V <= 0 {
		return stat.None
	}
	return stat.Some(n / p.holds.V / kvPressureUsage)
}

// wholeSequences returns the number of sequences that fit into the pool, rounded down.
func (p *pool) wholeSequences() stat.Opt {
	if !p.holds.OK {
		return stat.None
	}
	return stat.Some(math.Floor(p.holds.V + 1e-9))
}

// notAtTheirEnd explains why more sequences run than fit at their end, if so: they are not all there at once.
func (p *pool) notAtTheirEnd(fit float64) string {
	if p.runningInRun <= fit {
		return ""
	}
	return fmt.Sprintf(" (%s run, not all of them at their end)", figure.Count(p.runningInRun))
}

// room returns the number of sequences, rounded down, with which usage stays below
// slotKVHeadroom. Above it, real servers lose throughput: prefixes are evicted, and bursts cause
// preemptions.
func (p *pool) room() stat.Opt {
	if !p.holds.OK {
		return stat.None
	}
	return stat.Some(math.Floor(p.holds.V*slotKVHeadroom + 1e-9))
}

// always selects every window.
func always(*engine.Window) bool { return true }
