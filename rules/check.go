package rules

import (
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// The outcomes of a check. All texts are constants: a check allocates nothing.

// figure is a measured value held against a limit.
type figure struct {
	value stat.Opt
	op    string
	limit float64
	unit  string
}

func fired(why string, f figure) engine.Check {
	return engine.Check{State: engine.Fired, Why: why, Figure: f.value, Op: f.op, Limit: stat.Some(f.limit), Unit: f.unit}
}

// quiet says that the rule did not fire; f is the figure that decided.
func quiet(why string, f figure) engine.Check {
	return engine.Check{State: engine.NotFired, Why: why, Figure: f.value, Op: f.op, Limit: stat.Some(f.limit), Unit: f.unit}
}

func suppressed(why string, f figure) engine.Check {
	return engine.Check{State: engine.Suppressed, Why: why, Figure: f.value, Op: f.op, Limit: stat.Some(f.limit), Unit: f.unit}
}

// lacks says that an input was missing.
func lacks(input string) engine.Check {
	return engine.Check{State: engine.NotEvaluable, Why: input}
}

// Names of inputs, as a rule says that it lacked them.
const (
	inputWindow     = "a window in which the endpoint answered"
	inputSeats      = "max_num_seqs (give -m)"
	inputWaiting    = "num_requests_waiting"
	inputKV         = "kv_cache_usage_perc"
	inputPrefill    = "request_prefill_time_seconds"
	inputCapacity   = "the size of the KV pool"
	inputPromptLen  = "request_prompt_tokens"
	inputPrompts    = "prompt_tokens"
	inputFinished   = "request_success"
	inputHits       = "prefix-cache counters"
	inputBudget     = "max_num_batched_tokens"
	inputIterations = "iteration_tokens_total"
	inputTTFT       = "time_to_first_token_seconds"
	inputQueue      = "request_queue_time_seconds"
	inputITL        = "inter_token_latency_seconds"
	inputGPU        = "a readable GPU"
	inputThrottle   = "the GPU's throttle reasons"
	inputRanks      = "several data-parallel ranks"

	inputV1      = "vLLM's V1 engine: V0 makes its steps otherwise"
	inputChunked = "chunked prefill (without it vLLM refuses a budget below max_model_len)"

	inputRankKV      = "kv_cache_usage_perc of each rank"
	inputRankRunning = "num_requests_running of each rank"
	inputOneClock    = "page and GPU read within one second of each other"
)

// idle is the answer of rules about load to a window without any.
func idle() engine.Check {
	return engine.Check{State: engine.NotFired, Why: "no request ran"}
}

// working says whether the server did anything in the window: a request ran or
// a token moved (decisions.md 3: idle is not under-batched).
func working(w *engine.Window) bool {
	return w.Running.Or(0) > 0 || w.Delta[engine.CounterGenerationTokens].Or(0) > 0 ||
		w.Delta[engine.CounterPromptTokens].Or(0) > 0
}

// loaded says whether requests were in the server at all, running or queued.
func loaded(w *engine.Window) bool { return working(w) || w.Waiting.Or(0) > 0 }

// frozen says whether requests were in and no counter moved in the whole window:
// its gauges say nothing of load then, the engine may be stuck.
func frozen(w *engine.Window) bool {
	return !w.Progress && w.Duration > 0 && w.Stall >= w.Duration
}

// still is the answer of rules about load to a frozen window.
func still(w *engine.Window) engine.Check {
	return quiet("no token and no step moved: standstill", figure{stat.Some(w.Stall.Seconds()), "<", stuckLeast.Seconds(), "s"})
}

// underLoad says whether a window tells of load; where it does not (nothing was
// read, nothing was asked, nothing moved), answer is what a rule about load says.
func underLoad(w *engine.Window) (answer engine.Check, ok bool) {
	switch {
	case !w.Evaluable:
		return lacks(inputWindow), false
	case !loaded(w):
		return idle(), false
	case frozen(w):
		return still(w), false
	}
	return engine.Check{}, true
}

// preempting says whether a request was preempted in the window.
func preempting(w *engine.Window) bool { return w.Delta[engine.CounterPreemptions].Or(0) > 0 }

// queued returns the requests that wait for capacity: the waiting ones without
// those deferred for another reason (KV transfer, grammar, LoRA slot), which no
// flag of capacity helps. Absent without a waiting gauge.
func queued(w *engine.Window) stat.Opt {
	if !w.Waiting.OK {
		return stat.None
	}
	return stat.Some(max(0, w.Waiting.V-w.Deferred.Or(0)))
}

// queueRatio returns queued/(running+queued), 0..1; absent without both gauges
// or where both are zero.
func queueRatio(w *engine.Window) stat.Opt {
	q := queued(w)
	if !q.OK || !w.Running.OK {
		return stat.None
	}
	return q.Div(w.Running.Plus(q))
}

// kvPeak returns the highest KV usage of the window, its mean where there is no
// peak.
func kvPeak(w *engine.Window) stat.Opt {
	if w.KVPeak.OK {
		return w.KVPeak
	}
	return w.KV
}

// meanOf returns the mean of a histogram over the window, else the mean since
// the server's start (the documented fallback).
func meanOf(w *engine.Window, h engine.Hist) stat.Opt {
	if m := w.Mean(h); m.OK {
		return m
	}
	return w.Lifetime[h]
}

// ranks returns the number of data-parallel ranks on the page, at least 1.
func ranks(w *engine.Window) int { return max(1, len(w.Ranks)) }
