package engine

import (
	"math"
	"time"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

const (
	// settleLeast is how many windows with moving tokens a server needs before it
	// can be called steady; settleLook is how many are looked at.
	settleLeast = 3
	settleLook  = 5
	// settleMost is how long a server under load may take to become steady: what is
	// not steady by then is measured as it is.
	settleMost = 30 * time.Second
	// settleDrift is the change over the windows looked at, as a share of their
	// mean, that passes for steady whatever their scatter; settleScatter is how many
	// standard deviations of their scatter do.
	settleDrift   = 0.10
	settleScatter = 1.5
	// settleBack is the share of the requests that were in before the restart that
	// has to be back: clients reconnect one after the other.
	settleBack = 0.7
	// settlePace is the share of the throughput of before that shows without them
	// that the load is back: a faster server holds fewer.
	settlePace = 1 - throughputShift
	// settleBarely is the share below which there is too little load to compare.
	settleBarely = 0.25
)

// steady says whether the server that the windows show has found its pace: enough
// of them with moving tokens, and neither the requests that are in nor the
// throughput show a trend beyond their own scatter. Before is what ran before the
// restart, nil where nothing is known. Why is what it still waits for.
func steady(windows []Window, before *Diagnosis) (ok bool, why string) {
	moved := latestMoving(windows)
	if len(moved) == 0 {
		return false, waitsForLoad
	}
	if len(moved) < settleLeast {
		return false, "warming up"
	}
	look := moved[max(0, len(moved)-settleLook):]
	demand, rate := make([]float64, len(look)), make([]float64, len(look))
	for i := range look {
		demand[i], rate[i] = inFlight(&look[i]).Or(0), look[i].Rate[CounterGenerationTokens].Or(0)
	}
	switch {
	case !flatLately(demand, 1):
		return false, "the number of requests still changes"
	case !flatLately(rate, 0):
		return false, "the throughput still changes"
	case !loadBack(demand, rate, before):
		return false, "not all clients are back"
	}
	return true, ""
}

const waitsForLoad = "waiting for load: no tokens move"

// flatLately looks at the latest three windows, strictly, and at all of them: a
// server that was warming up in the first is steady when the last three agree.
func flatLately(values []float64, slack float64) bool {
	if len(values) > settleLeast && flat(values, slack) {
		return true
	}
	return flat(values[len(values)-settleLeast:], slack)
}

// latestMoving returns the windows at the end in which tokens moved.
func latestMoving(windows []Window) []Window {
	n := len(windows)
	for n > 0 && moving(&windows[n-1]) {
		n--
	}
	return windows[n:]
}

// firstMoving is the index of the first window in which tokens moved, -1 without
// one.
func firstMoving(windows []Window) int {
	for i := range windows {
		if moving(&windows[i]) {
			return i
		}
	}
	return -1
}

// moving says whether requests ran and tokens moved in a window.
func moving(w *Window) bool {
	return w.Evaluable && !w.Asleep && (w.Delta[CounterGenerationTokens].Or(0) > 0 || w.Delta[CounterPromptTokens].Or(0) > 0)
}

// inFlight is how many requests were in, running and waiting.
func inFlight(w *Window) stat.Opt { return w.Running.Plus(w.Waiting) }

// flat says whether values show no trend: the change of their fitted line over
// all of them is within settleDrift of their mean (and slack), or, where there are
// enough to tell scatter from a trend, within their scatter about it.
func flat(values []float64, slack float64) bool {
	n := float64(len(values))
	mean, slope := fit(values)
	drift := math.Abs(slope) * (n - 1)
	if drift <= max(settleDrift*math.Abs(mean), slack) {
		return true
	}
	if len(values) <= settleLeast {
		return false
	}
	squares := 0.0
	for i, v := range values {
		residual := v - mean - slope*(float64(i)-(n-1)/2)
		squares += residual * residual
	}
	return drift <= settleScatter*math.Sqrt(squares/(n-2))
}

// fit returns the mean and the slope of the least-squares line.
func fit(values []float64) (mean, slope float64) {
	n := float64(len(values))
	for _, v := range values {
		mean += v / n
	}
	sxy, sxx := 0.0, 0.0
	for i, v := range values {
		x := float64(i) - (n-1)/2
		sxy += x * (v - mean)
		sxx += x * x
	}
	if sxx == 0 {
		return mean, 0
	}
	return mean, sxy / sxx
}

// loadBack says whether the requests of before are in again, or the server does
// about as much without them.
func loadBack(demand, rate []float64, before *Diagnosis) bool {
	if before == nil {
		return true
	}
	then := before.demand()
	tokens := before.Quantity("generation_tokens_per_s").Value
	now, _ := fit(demand)
	pace, _ := fit(rate)
	return !then.OK || now >= settleBack*then.V || tokens.OK && pace >= settlePace*tokens.V
}

// barelyLoaded says that hardly anything is asked of the server, and it does hardly
// anything, beside before: to compare the two would be senseless.
func barelyLoaded(windows []Window, before *Diagnosis) bool {
	var demand, rate, n float64
	for i := range windows {
		if w := &windows[i]; moving(w) {
			demand += inFlight(w).Or(0)
			rate += w.Rate[CounterGenerationTokens].Or(0)
			n++
		}
	}
	if before == nil || n < settleLeast {
		return n < settleLeast
	}
	demand, rate = demand/n, rate/n
	then, tokens := before.demand(), before.Quantity("generation_tokens_per_s").Value
	return then.OK && tokens.OK && demand < settleBarely*then.V && rate < settleBarely*tokens.V
}

// demand is how many requests were in on the mean, running and waiting.
func (d *Diagnosis) demand() stat.Opt {
	return d.Quantity("running_mean").Value.Plus(d.Quantity("waiting_mean").Value)
}
