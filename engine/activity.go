package engine

import "github.com/rooftop-dev/rooftop/engine/stat"

// Thresholds of the active tier: a server under real load.
const (
	activeKV      = 0.30 // share of the KV pool
	activeGPUUtil = 0.20 // share of time
	// poolFills is how much more of the KV pool is in use at the end of a window than on
	// average: more than the average's rounding, and less than a block of any pool.
	poolFills = 1e-6
)

// active reports whether the server did real work in the window: the second tier of
// evaluation. With a readable GPU it applies the documented condition, running > 0 and
// (KV > 30 % or GPU > 20 %), leaving out an absent operand. Without a GPU most loaded CPU
// and small-context servers would count as idle, so running > 0 is enough with moving
// tokens, or with a pool that fills: a prompt of several steps moves tokens in its last
// (docs/dev/decisions.md 1).
func active(w *Window) bool {
	if w.Running.Or(0) <= 0 || w.Asleep {
		return false
	}
	if len(w.GPUs) == 0 || !w.GPUBusy.OK {
		generated, prompt := w.Delta[CounterGenerationTokens], w.Delta[CounterPromptTokens]
		if !generated.OK && !prompt.OK {
			return !w.KV.OK || w.KV.V > activeKV
		}
		return generated.Or(0) > 0 || prompt.Or(0) > 0 || w.KV.OK && w.KVLast.Or(0) > w.KV.V+poolFills
	}
	return w.GPUBusy.V > activeGPUUtil || w.KV.Or(0) > activeKV
}

// stepTime returns the mean engine step in seconds. The inter-token latency is preferred:
// it is the step as a running request sees it, even if the server was idle for part of
// the window. Counted steps need a batch throughout. The last resort is
// running/generated, which assumes one token a step.
func stepTime(w *Window) stat.Opt {
	if itl := w.Hist[HistITL].Mean(); itl.Or(0) > 0 {
		return itl
	}
	if w.CountedStep.OK {
		return w.CountedStep
	}
	if w.Running.Or(0) <= 0 {
		return stat.None
	}
	return w.Running.Div(w.Rate[CounterGenerationTokens])
}

// countedStep returns ranks over steps per second, in seconds. It is absent if any poll
// saw nothing running, because an idle engine counts no steps.
func countedStep(w *Window) stat.Opt {
	if w.RunningMin.Or(0) <= 0 {
		return stat.None
	}
	steps, ranks := 0.0, 0
	for i := range w.Ranks {
		if s := w.Ranks[i].StepsPerS; s.OK && s.V > 0 {
			steps += s.V
			ranks++
		}
	}
	if ranks == 0 {
		return stat.None
	}
	return stat.Some(float64(ranks) / steps)
}
