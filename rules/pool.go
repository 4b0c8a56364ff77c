package rules

import (
	"math"
	"strings"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// pool is one rank's KV pool as a run used it: what is held, and how many
// sequences it holds at the context they reach.
type pool struct {
	ranks    float64
	running  float64       // requests of one rank, mean
	queued   float64       // requests of one rank waiting for capacity, mean
	peak     float64       // most requests of one rank that ran at once
	usage    stat.Opt      // share of the pool in use, mean
	full     stat.Opt      // the same at its peak
	capacity stat.Opt      // tokens of one rank
	from     engine.Source // of capacity
	est      bool          // capacity is computed from the catalog, not told by the server
	prompt   stat.Opt      // mean prompt, tokens
	output   stat.Opt      // mean output, tokens
	resident stat.Opt      // mean tokens that a running sequence holds
	end      stat.Opt      // tokens it is expected to hold when it ends
	context  stat.Opt      // the larger of both: what one sequence is budgeted at
	holds    stat.Opt      // sequences that the pool holds at that context
	shared   bool          // sequences hold fewer tokens than their prompts have: they share prefixes
}

// minFinished is how many requests must have finished to take mean lengths from
// counters, where the histogram of lengths is not on the page.
const minFinished = 10

// sharedReuse is the prefix hit rate from which sequences that hold less than
// their prompts are taken to share blocks rather than to be half prefilled.
const sharedReuse = 0.20

// poolOf looks at the windows that count says yes to and in which requests ran.
func poolOf(r *engine.Run, count func(w *engine.Window) bool) pool {
	p := pool{ranks: 1}
	var running, queue, usage, secs float64
	usageOK := false
	for i := range r.Windows {
		w := &r.Windows[i]
		if !w.Evaluable || w.Running.Or(0) <= 0 || !count(w) {
			continue
		}
		s := w.Seconds()
		p.ranks = float64(ranks(w))
		running += w.Running.V * s
		p.peak = max(p.peak, w.RunningPeak.Or(w.Running.V)/p.ranks)
		queue += queued(w).Or(0) * s
		usage += w.KV.Or(0) * s
		p.full = p.full.Max(kvPeak(w))
		usageOK = usageOK || w.KV.OK
		secs += s
	}
	if secs <= 0 {
		return p
	}
	p.running, p.queued = running/secs/p.ranks, queue/secs/p.ranks
	// A pool that reads empty while requests run is not read at all: the V0
	// engine on a CPU shows 0 for ever.
	if usageOK && usage > 0 {
		p.usage = stat.Some(usage / secs)
	}
	if c := r.Facts.KVCapacityTokens; c.Known && c.Value > 0 {
		p.capacity, p.from, p.est = stat.Some(c.Value), c.Source, strings.Contains(c.Note, "(est)")
	}
	p.prompt, p.output = lengths(r)
	p.budget(r.Agg.HitRate)
	return p
}

// lengths returns the mean prompt and output of the run's requests: from the
// finished ones, else since the server's start, else from counters.
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
	for i := range r.Windows {
		if w := &r.Windows[i]; w.Evaluable {
			in = in.Plus(w.Delta[engine.CounterPromptTokens])
			out = out.Plus(w.Delta[engine.CounterGenerationTokens])
			n = n.Plus(w.Delta[engine.CounterRequestSuccess])
		}
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

// budget works out what one sequence costs and how many fit.
func (p *pool) budget(hit stat.Opt) {
	p.resident = p.usage.Times(p.capacity.Or(0))
	if !p.capacity.OK || p.running <= 0 {
		p.resident = stat.None
	}
	p.resident = p.resident.Div(stat.Some(p.running))
	if p.prompt.OK && p.output.OK {
		p.end = stat.Some(p.prompt.V + p.output.V)
	}
	if p.resident.OK && p.end.OK && p.resident.V < p.prompt.V && hit.Or(0) >= sharedReuse {
		// Shared blocks are held once: half of the output is resident on
		// average, the other half is still to come.
		p.shared = true
		p.end = stat.Some(p.resident.V + p.output.V/2)
	}
	p.context = p.resident.Max(p.end)
	switch {
	case p.capacity.OK && p.context.OK:
		p.holds = p.capacity.Div(p.context)
	case p.usage.OK:
		// Without the pool's size its usage still tells how many fit as they are
		// now; they grow by what half an output adds.
		grow := 1.0
		if p.end.OK && p.end.V > 0 {
			grow = p.end.V / (p.prompt.V + p.output.V/2)
		}
		p.holds = stat.Some(p.running / p.usage.V / grow)
	}
	p.shown()
}

// shown corrects what the pool holds by what it was seen to hold: what ran at its
// peak usage is proof, where mean lengths may be of other requests than those
// that run, or share prefixes that nobody counts. A full pool proves nothing: it
// runs so many because it refuses the others.
func (p *pool) shown() {
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

// wanted returns the sequences of one rank that want to run at once: running
// and queued, bounded by the seats where they are known.
func (p *pool) wanted(f *engine.Facts) float64 {
	n := p.running + p.queued
	if f.MaxNumSeqs.Known {
		n = min(n, float64(f.MaxNumSeqs.Value))
	}
	return n
}

// factor returns how many times larger a rank's pool must be so that n
// sequences at their end fill it no further than kvPressureUsage. Absent where
// the pool's measure is.
func (p *pool) factor(n float64) stat.Opt {
	if !p.holds.OK || p.holds.V <= 0 {
		return stat.None
	}
	return stat.Some(n / p.holds.V / kvPressureUsage)
}

// whole returns the sequences that the pool holds, rounded down.
func (p *pool) whole() stat.Opt {
	if !p.holds.OK {
		return stat.None
	}
	return stat.Some(math.Floor(p.holds.V + 1e-9))
}

// room returns the sequences, rounded down, with which the pool stays below
// seatKVHeadroom: above it sweeps of real servers lose. Prefixes find no room to
// stay cached, time to first token grows, and a burst preempts.
func (p *pool) room() stat.Opt {
	if !p.holds.OK {
		return stat.None
	}
	return stat.Some(math.Floor(p.holds.V*seatKVHeadroom + 1e-9))
}

// always counts every window.
func always(*engine.Window) bool { return true }
