package engine

import "github.com/rooftop-dev/rooftop/engine/stat"

// Thresholds of the active tier: a server under real load.
const (
	activeKV      = 0.30 // share of the KV pool
	activeGPUUtil = 0.20 // share of time
)

// active is the second tier of the gate. Where a GPU is readable it is the
// documented one: running > 0 and (KV > 30 % or GPU > 20 %), an absent arm left
// out. Without a GPU most loaded CPU and small-context servers would count as
// idle, so there running > 0 with moving tokens is enough (decisions.md 1).
func active(w *Window) bool {
	if w.Running.Or(0) <= 0 || w.Asleep {
		return false
	}
	if len(w.GPUs) == 0 || !w.GPUBusy.OK {
		generated, prompt := w.Delta[CounterGenerationTokens], w.Delta[CounterPromptTokens]
		if !generated.OK && !prompt.OK {
			return !w.KV.OK || w.KV.V > activeKV
		}
		return generated.Or(0) > 0 || prompt.Or(0) > 0
	}
	return w.GPUBusy.V > activeGPUUtil || w.KV.Or(0) > activeKV
}

// stepTime is the mean engine step in seconds. The inter-token latency comes
// first: it is the step as a running request sees it, also where the server was
// idle for a part of the window. Counted steps need a batch throughout; the
// last resort is running/generated, which holds at one token a step.
func stepTime(w *Window) (stat.Opt, string) {
	if itl := w.Hist[HistITL].Mean(); itl.OK && itl.V > 0 {
		return itl, "itl"
	}
	if w.CountedStep.OK {
		return w.CountedStep, "steps"
	}
	if g := w.Rate[CounterGenerationTokens]; g.OK && g.V > 0 && w.Running.Or(0) > 0 {
		return stat.Some(w.Running.V / g.V), "rate"
	}
	return stat.None, ""
}

// countedStep is ranks over steps per second, absent where any poll saw nothing
// running: steps of an idle moment are not there to be counted.
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
