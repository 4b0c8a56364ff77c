package rules

import (
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// The outcomes of a check. All texts are constants: a check does not allocate.

// comparison is a value compared with a limit. It completes the sentence that begins with
// the reason: "KV peak" 91 % >= 88 %.
type comparison struct {
	value stat.Opt
	op    string
	limit float64
	unit  string
}

func (c comparison) check(state engine.State, why string) engine.Check {
	return engine.Check{State: state, Why: why, Figure: c.value, Op: c.op, Limit: stat.Some(c.limit), Unit: c.unit}
}

func fired(why string, c comparison) engine.Check      { return c.check(engine.Fired, why) }
func notFired(why string, c comparison) engine.Check   { return c.check(engine.NotFired, why) }
func suppressed(why string, c comparison) engine.Check { return c.check(engine.Suppressed, why) }

// above fires if the value reaches the limit.
func above(why string, value stat.Opt, limit float64, unit string) engine.Check {
	if value.Or(0) >= limit {
		return fired(why, comparison{value, ">=", limit, unit})
	}
	return notFired(why, comparison{value, "<", limit, unit})
}

// lacks returns the result of a check whose input is missing.
func lacks(input string) engine.Check {
	return engine.Check{State: engine.NotEvaluable, Why: input}
}

// Names of inputs, for "needs …".
const (
	inputWindow     = "a window in which the endpoint answered"
	inputSlots      = "max_num_seqs (give -m)"
	inputWaiting    = "num_requests_waiting"
	inputKV         = "kv_cache_usage_perc"
	inputPrefill    = "request_prefill_time_seconds"
	inputPromptLen  = "request_prompt_tokens"
	inputBudget     = "max_num_batched_tokens"
	inputIterations = "iteration_tokens_total"
	inputTTFT       = "time_to_first_token_seconds"
	inputParts      = "the tokens of each step: a long prompt counts in the step of its last part alone"
	inputAdapters   = "lora_requests_info"

	inputOneClock = "metrics page and GPU read within one second of each other"
)

// idle returns the result of a rule about load for a window without requests.
func idle() engine.Check {
	return engine.Check{State: engine.NotFired, NoLoad: true, Why: "no request ran"}
}

// working reports whether the server did anything in the window: a request ran or a token
// was counted. An idle server is not under-batched.
func working(w *engine.Window) bool {
	return w.Running.Or(0) > 0 || w.Delta[engine.CounterGenerationTokens].Or(0) > 0 ||
		w.Delta[engine.CounterPromptTokens].Or(0) > 0
}

// loaded reports whether the server had requests, running or queued.
func loaded(w *engine.Window) bool { return working(w) || w.Waiting.Or(0) > 0 }

// frozen reports whether no counter moved in the whole window although the server had
// requests. The engine may be stuck; its gauges then say nothing about load.
func frozen(w *engine.Window) bool {
	return !w.Progress && w.Duration > 0 && w.Stall >= w.Duration
}

// stalled returns the result of a rule about load for a frozen window.
func stalled(w *engine.Window) engine.Check {
	c := notFired("no tokens generated and no steps counted for", comparison{stat.Some(w.Stall.Seconds()), ">=", w.Seconds(), "s"})
	c.NoLoad = true
	return c
}

// underLoad reports whether a window says anything about load. If not (the endpoint did not
// answer, the server was idle or frozen), result is what a rule about load returns.
func underLoad(w *engine.Window) (result engine.Check, ok bool) {
	switch {
	case !w.Evaluable:
		return lacks(inputWindow), false
	case !loaded(w):
		return idle(), false
	case frozen(w):
		return stalled(w), false
	}
	return engine.Check{}, true
}

// preempting reports whether a request was preempted in the window.
func preempting(w *engine.Window) bool { return w.Delta[engine.CounterPreemptions].Or(0) > 0 }

// queued returns the requests that wait for capacity. Requests deferred for another reason (KV
// transfer, grammar, LoRA slot) do not count: no capacity flag helps them. The result is absent
// without a waiting gauge.
func queued(w *engine.Window) stat.Opt {
	if !w.Waiting.OK {
		return stat.None
	}
	return stat.Some(max(0, w.Waiting.V-w.Deferred.Or(0)))
}

// queueRatio returns queued/(running+queued), 0..1; absent without both gauges, or if both
// are zero.
func queueRatio(w *engine.Window) stat.Opt {
	q := queued(w)
	if !q.OK || !w.Running.OK {
		return stat.None
	}
	return q.Div(w.Running.Plus(q))
}

// kvPeak returns the highest KV usage of the window, or its mean without a peak.
func kvPeak(w *engine.Window) stat.Opt {
	if w.KVPeak.OK {
		return w.KVPeak
	}
	return w.KV
}

// meanOf returns the mean of a histogram over the window, or since the start of the server,
// as PROFILE does.
func meanOf(w *engine.Window, h engine.Hist) stat.Opt {
	if m := w.Mean(h); m.OK {
		return m
	}
	return w.Lifetime[h]
}

// ranks returns the number of data-parallel ranks on the page, at least 1.
func ranks(w *engine.Window) int { return max(1, len(w.Ranks)) }
