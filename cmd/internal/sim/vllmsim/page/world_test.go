package page_test

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/core"
)

// world makes up the steps of an engine: requests that wait, prefill, decode, are
// preempted and end in every way, at times of a given grain. It keeps what it did
// as plain lists, from which a test can say what a page has to show.
type world struct {
	rng     *rand.Rand
	grain   time.Duration // all times are multiples of it
	now     time.Duration
	step    uint64
	waiting []*core.History
	running []*core.History
	tally   tally
}

// tally is the second bookkeeping: everything that happened, nothing summed.
type tally struct {
	running, waiting, deferred int
	usage                      float64
	queries, hits, preemptions int
	prompt, cached, generation int
	stop, length, failed       int
	failures                   int                  // outputs without a token
	seen                       map[string][]float64 // observations by family
}

func newWorld(seed uint64, grain time.Duration) *world {
	return &world{
		rng: rand.New(rand.NewPCG(seed, 7)), grain: grain, now: grain,
		tally: tally{seen: map[string][]float64{}},
	}
}

func (w *world) see(family string, v float64) {
	w.tally.seen[family] = append(w.tally.seen[family], v)
}

func sec(d time.Duration) float64 { return d.Seconds() }

// next makes up a step.
func (w *world) next() *core.Report {
	w.step++
	r := &core.Report{Step: w.step, Began: w.now}
	for range w.rng.IntN(4) {
		prompt := 1 + w.rng.IntN(3000)
		w.waiting = append(w.waiting, &core.History{
			ID: core.ID(w.step), Arrival: w.now - w.grain*time.Duration(w.rng.IntN(2)), Queued: w.now,
			PromptTokens: prompt, MaxTokens: w.rng.IntN(900),
		})
	}
	if n := len(w.waiting); n > 0 {
		for range w.rng.IntN(min(n, 3) + 1) {
			l := w.waiting[0]
			l.Scheduled, l.CachedTokens = w.now, w.rng.IntN(l.PromptTokens)/16*16
			w.waiting, w.running = w.waiting[1:], append(w.running, l)
		}
	}
	w.now += w.grain * time.Duration(1+w.rng.IntN(40))
	r.Ended = w.now
	w.counters(r)
	tokens := 0
	for _, l := range slices.Clone(w.running) {
		if w.rng.IntN(4) == 0 {
			continue // preempted, or still in its prefill
		}
		o := w.output(r, l)
		if o.HasToken {
			tokens++
		}
		r.Outputs = append(r.Outputs, o)
	}
	counted := slices.ContainsFunc(r.Outputs, func(o core.Output) bool { return o.Finish != core.Aborted })
	if counted {
		w.see("iteration_tokens_total", float64(r.ComputedPrompt+tokens))
	}
	w.tally.generation += tokens
	w.state(r)
	return r
}

// output lets a running request go on by one token or end.
func (w *world) output(r *core.Report, l *core.History) core.Output {
	o := core.Output{ID: l.ID, History: l}
	end := func(f core.Reason) {
		o.Finish = f
		w.running = slices.DeleteFunc(w.running, func(x *core.History) bool { return x == l })
	}
	switch w.rng.IntN(20) {
	case 0:
		end(core.Aborted)
		return o
	case 1:
		end(core.Error)
		w.tally.failures++
		w.latency(l, w.now)
		w.finish(l, core.Error, l.FirstToken, w.now)
		return o
	}
	o.HasToken, o.First = true, l.FirstToken == 0
	w.latency(l, w.now)
	if o.First {
		l.FirstToken = w.now
		r.ComputedPrompt += l.PromptTokens - l.CachedTokens
		w.tally.prompt += l.PromptTokens
		w.tally.cached += l.CachedTokens
	} else {
		o.Gap = w.now - l.LastToken
	}
	l.LastToken = w.now
	l.OutputTokens++
	if w.rng.IntN(15) == 0 {
		end([]core.Reason{core.Stop, core.Length}[w.rng.IntN(2)])
		w.finish(l, o.Finish, l.FirstToken, l.LastToken)
	}
	return o
}

// latency notes an output's time: to first token, or since the token before.
func (w *world) latency(l *core.History, now time.Duration) {
	if l.FirstToken == 0 {
		w.see("time_to_first_token_seconds", sec(now-l.Arrival))
		return
	}
	w.see("inter_token_latency_seconds", sec(now-l.LastToken))
}

func (w *world) finish(l *core.History, f core.Reason, first, last time.Duration) {
	switch f {
	case core.Stop:
		w.tally.stop++
	case core.Length:
		w.tally.length++
	case core.Error:
		w.tally.failed++
	}
	if first == 0 {
		first = w.now
	}
	w.see("request_queue_time_seconds", sec(l.Scheduled-l.Queued))
	w.see("request_prefill_time_seconds", sec(first-l.Scheduled))
	w.see("request_decode_time_seconds", sec(last-first))
	w.see("request_inference_time_seconds", sec(last-l.Scheduled))
	w.see("e2e_request_latency_seconds", sec(w.now-l.Arrival))
	perToken := 0.0
	if l.OutputTokens > 1 {
		perToken = sec(last-first) / float64(l.OutputTokens-1)
	}
	w.see("request_time_per_output_token_seconds", perToken)
	w.see("request_prompt_tokens", float64(l.PromptTokens))
	w.see("request_generation_tokens", float64(l.OutputTokens))
	w.see("request_max_num_generation_tokens", float64(l.OutputTokens))
	w.see("request_params_n", 1)
	if l.MaxTokens != 0 {
		w.see("request_params_max_tokens", float64(l.MaxTokens))
	}
	w.see("request_num_preemptions", float64(l.Preemptions))
	w.see("request_prefill_kv_computed_tokens", float64(l.PromptTokens-l.CachedTokens))
}

func (w *world) counters(r *core.Report) {
	r.PrefixQueries, r.PrefixHits = w.rng.IntN(5000), w.rng.IntN(300)*16
	for _, l := range w.running {
		if w.rng.IntN(50) == 0 {
			l.Preemptions++
			r.Preemptions++
		}
	}
	w.tally.queries += r.PrefixQueries
	w.tally.hits += r.PrefixHits
	w.tally.preemptions += r.Preemptions
}

func (w *world) state(r *core.Report) {
	deferred := w.rng.IntN(len(w.waiting) + 1)
	usage := float64(w.rng.IntN(1025)) / 1024
	r.State = core.State{
		Running: len(w.running), WaitingCapacity: len(w.waiting) - deferred, WaitingDeferred: deferred, KVUsage: usage,
	}
	w.tally.running, w.tally.waiting, w.tally.deferred, w.tally.usage = len(w.running), len(w.waiting), deferred, usage
}
