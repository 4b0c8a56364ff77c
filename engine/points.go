package engine

import "github.com/rooftop-dev/rooftop/engine/stat"

// point is a window as charts draw it.
func point(w *Window, iteration int) Point {
	return Point{
		T: w.Start + w.Duration, Iteration: iteration,
		Tokens: w.Rate[CounterGenerationTokens], Prompt: w.Rate[CounterPromptTokens],
		Requests: w.Rate[CounterRequestSuccess], Preempted: w.Rate[CounterPreemptions],
		Running: w.Running, Waiting: w.Waiting, KV: w.KVPeak,
		TTFT: quantile(w, HistTTFT), ITL: quantile(w, HistITL),
		GPU: w.GPUUtil, Power: w.Power,
	}
}

// quantile is the 99th percentile of what a window observed.
func quantile(w *Window, h Hist) stat.Opt { return w.Hist[h].Quantile(0.99) }
