package loop

import (
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// point converts a window to a chart point.
func point(w *engine.Window, iteration int) Point {
	temperature, clock := gpuExtremes(w)
	return Point{
		T: w.End(), Iteration: iteration,
		Tokens: w.Rate[engine.CounterGenerationTokens], Prompt: w.Rate[engine.CounterPromptTokens],
		Requests: w.Rate[engine.CounterRequestSuccess], Preempted: w.Rate[engine.CounterPreemptions],
		Running: w.Running, Waiting: w.Waiting, KV: w.KVPeak,
		TTFT: quantile(w, engine.HistTTFT), ITL: quantile(w, engine.HistITL),
		TTFTBucket: bucket(w, engine.HistTTFT), ITLBucket: bucket(w, engine.HistITL),
		GPU: w.GPUUtil, Power: w.Power, Temperature: temperature, Clock: clock,
	}
}

// gpuExtremes returns the temperature of the hottest GPU and the clock of the slowest.
func gpuExtremes(w *engine.Window) (temperature, clock stat.Opt) {
	for i := range w.GPUs {
		g := &w.GPUs[i]
		temperature = temperature.Max(g.Peak[engine.GPUTemperatureC])
		if c := g.Mean[engine.GPUSMClockMHz]; c.OK && (!clock.OK || c.V < clock.V) {
			clock = c
		}
	}
	return temperature, clock
}

// bucket returns the bucket of that quantile.
func bucket(w *engine.Window, h engine.Hist) stat.Bucket { return w.Hist[h].Bucket(0.99) }

// quantile returns the 99th percentile of a histogram in a window.
func quantile(w *engine.Window, h engine.Hist) stat.Opt { return w.Hist[h].Quantile(0.99) }
