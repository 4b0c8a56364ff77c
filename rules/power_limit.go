package rules

import (
	"fmt"
	"math"
	"slices"

	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/roofline"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Limits of power-limit.
const (
	powerAtLimit      = 0.95 // power draw over the limit, at least
	powerBelowRated   = 0.97 // power limit over rated power below which the limit was lowered
	powerConfidence   = 0.80
	thermalConfidence = 0.85
	// thermalLast is the number of latest windows that thermal throttling must last to count at once:
	// the share of a long run that went well before says nothing about a GPU that is hot now.
	thermalLast = 3
)

var powerLimit = definition{engine.Rule{
	ID: engine.PowerLimit, Code: "beyond", Title: "Power or temperature limit", Group: engine.GroupHardware, Impact: 2,
	Check: checkPowerLimit, Conclude: concludePowerLimit,
}, Explanation{
	Condition: []string{
		"requests run, and a GPU reports that it is throttled",
		"throttled for power, the GPU also draws at least " + figure.PercentSign(powerAtLimit) + " of its power limit; thermal or hardware throttling is enough by itself",
	},
	Thresholds: []Threshold{
		{"power / power limit", ">=", powerAtLimit, "ratio", fromJudgement},
		{"power limit / rated power (remedy)", "<", powerBelowRated, "ratio", fromJudgement},
	},
	Gate: fmt.Sprintf("%s; or thermal or hardware throttling in each of the last %d windows", standardGate, thermalLast),
	Formula: []string{
		"steps shorten at most by the ratio of the device's highest clock to the run's mean one while the GPU is busy (of several ranks: their mean); expected, no further than to the achievable step (est), so a GPU with full clocks or a step that memory bandwidth limits gains nothing; without the physical model the square root of the ratio",
		"for power, at most the cube root of rated power / power limit",
		"gain = that of output, at most what arrivals and clients that pause between requests ask for; the larger gain of output and inter-token latency sets the impact",
	},
	Confidence: []string{fmt.Sprintf("%v for power", powerConfidence), fmt.Sprintf("%v for temperature", thermalConfidence)},
	Remedy: []string{
		"if the limit is below the rated power of the GPU: raise it",
		"at the rated power, or if memory bandwidth limits the step: listed, not recommended",
		"temperature: improve cooling",
	},
	Limits: []string{"a GPU at its rated power during prefill is normal"},
}}

func checkPowerLimit(w *engine.Window, _ *engine.Facts) engine.Check {
	if !w.Evaluable {
		return lacks(inputWindow)
	}
	if len(w.GPUs) == 0 {
		return lacks("a readable GPU")
	}
	if !loaded(w) {
		return idle()
	}
	readable, capped, share := false, false, stat.None
	for i := range w.GPUs {
		g := &w.GPUs[i]
		if !g.ThrottleOK {
			continue
		}
		readable = true
		if g.Throttle&catalog.Thermal != 0 {
			c := fired("thermal or hardware throttling, at most", comparison{g.Peak[engine.GPUTemperatureC], "", 0, "C"})
			c.Critical = thermalFiring
			return c
		}
		drawn := g.Mean[engine.GPUPowerW].Div(g.Last[engine.GPUPowerLimitW])
		share = share.Max(drawn)
		if g.Throttle&catalog.Power == 0 {
			continue
		}
		if capped = true; drawn.Or(0) >= powerAtLimit {
			return above("throttled for power; share of the power limit drawn", drawn, powerAtLimit, "ratio")
		}
	}
	if !readable {
		return lacks("the GPU's throttle reasons")
	}
	if capped {
		return notFired("a GPU is throttled for power at times; share of the limit drawn on average", comparison{share, "<", powerAtLimit, "ratio"})
	}
	return notFired("no GPU is throttled; share of the power limit drawn", comparison{share, "<", powerAtLimit, "ratio"})
}

// thermalFiring marks a firing for temperature (engine.Check.Critical).
const thermalFiring = 1

// hotAtTheEnd reports whether the GPUs were throttled for temperature in each of the last windows.
func hotAtTheEnd(r *engine.Run) bool {
	hot := 0
	for i := len(r.Windows) - 1; i >= 0 && hot < thermalLast; i-- {
		if w := &r.Windows[i]; w.Evaluable {
			if checkPowerLimit(w, r.Facts).Critical != thermalFiring {
				return false
			}
			hot++
		}
	}
	return hot == thermalLast
}

// throttled is a GPU that was throttled in a run.
type throttled struct {
	gpu     *engine.GPUSummary
	thermal bool
}

// worstGPU returns the most affected GPU of a run, false if none was throttled. Temperature takes
// precedence over power.
func worstGPU(r *engine.Run) (throttled, bool) {
	var worst throttled
	most := -1.0
	for i := range r.Agg.GPUs {
		g := &r.Agg.GPUs[i]
		if !g.ThrottleOK || g.Throttle&catalog.Harmful == 0 {
			continue
		}
		thermal := g.Throttle&catalog.Thermal != 0
		share := g.Mean[engine.GPUPowerW].Div(g.Last[engine.GPUPowerLimitW]).Or(0)
		if thermal {
			share += 2
		}
		if share > most {
			most, worst = share, throttled{g, thermal}
		}
	}
	return worst, worst.gpu != nil
}

func concludePowerLimit(r *engine.Run, t engine.Tally, f *engine.Finding) {
	f.Confidence = powerConfidence
	f.Significant = f.Significant || hotAtTheEnd(r)
	worst, ok := worstGPU(r)
	if !ok {
		f.Reason = "a GPU was throttled"
		return
	}
	g := worst.gpu
	power, limit := g.Mean[engine.GPUPowerW], g.Last[engine.GPUPowerLimitW]
	if worst.thermal {
		f.Confidence = thermalConfidence
		f.Reason = fmt.Sprintf("thermal or hardware throttling of GPU %d", g.Index)
		hottest, limit := g.Peak[engine.GPUTemperatureC], g.Last[engine.GPUTemperatureLimitC]
		text := fmt.Sprintf("GPU %d reached %s and was throttled", g.Index, figure.Show(hottest, "C"))
		if limit.OK {
			addEvidence(f, compared("temperature_peak_c", hottest, "C", ">=", limit.V, engine.FromGPU, text))
		} else {
			addEvidence(f, measured("temperature_peak_c", hottest, "C", text))
		}
	} else {
		f.Reason = fmt.Sprintf("GPU %d is throttled for power", g.Index)
		if share := power.Div(limit); share.OK {
			f.Reason = fmt.Sprintf("GPU %d draws %s of its power limit and is throttled", g.Index, figure.PercentSign(share.V))
		}
		if limit.OK {
			addEvidence(f, compared("power_w", power, "W", ">=", powerAtLimit*limit.V, engine.FromGPU, fmt.Sprintf("GPU %d draws %s of %s", g.Index, figure.Show(power, "W"), figure.Show(limit, "W"))))
		} else {
			addEvidence(f, sourced("power_w", power, "W", engine.FromGPU, fmt.Sprintf("GPU %d draws %s; its power limit was not read", g.Index, figure.Show(power, "W"))))
		}
	}
	addClock(f, g)
	f.Fix = morePower(r, worst)
}

// addClock adds the mean SM clock of a GPU beside the highest of the device, or else of the run.
func addClock(f *engine.Finding, g *engine.GPUSummary) {
	clock, most, of := g.Mean[engine.GPUSMClockMHz], g.Last[engine.GPUSMClockMaxMHz], "the device's highest is"
	if !most.OK {
		most, of = g.Peak[engine.GPUSMClockMHz], "the highest of the run is"
	}
	if clock.OK && most.OK {
		addEvidence(f, compared("sm_clock_mhz", clock, "MHz", "<=", most.V, engine.FromGPU,
			fmt.Sprintf("its SM clock is %s on average; %s %s", figure.Show(clock, "MHz"), of, figure.Show(most, "MHz"))))
	}
}

func morePower(r *engine.Run, worst throttled) *engine.Fix {
	g := worst.gpu
	if worst.thermal {
		return &engine.Fix{
			Kind:      engine.KindHardware,
			Command:   fmt.Sprintf("cool GPU %d: check airflow, adjacent GPUs and the inlet temperature", g.Index),
			Why:       "The GPU lowers its clocks to stay within its temperature limit. No server flag helps.",
			Costs:     []string{"none on the server"},
			Predicted: fullClocks(r, math.Inf(1)).predictions(),
		}
	}
	limit := g.Last[engine.GPUPowerLimitW]
	rated := stat.None
	if r.Facts.GPUKnown && r.Facts.GPU.TDPW > 0 {
		rated = stat.Some(r.Facts.GPU.TDPW)
	}
	fix := &engine.Fix{
		Kind: engine.KindHardware, From: fmt.Sprintf("%.0f W", limit.Or(0)),
		Command: fmt.Sprintf("raise the power limit of GPU %d", g.Index),
		Why:     "The power limit keeps the clocks low. No server flag helps.",
		Costs:   []string{"more power drawn and more heat"},
	}
	if rated.OK {
		fix.To = fmt.Sprintf("%.0f W", rated.V)
		fix.Command = fmt.Sprintf("nvidia-smi -i %d -pl %.0f (as root): the GPU is rated for it", g.Index, rated.V)
	}
	switch {
	case !rated.OK || !limit.OK:
		fix.Withheld = "the rated power of the GPU is unknown"
	case limit.V >= powerBelowRated*rated.V:
		fix.Withheld = fmt.Sprintf("the limit of %s is already the rated power of the GPU", figure.Value(limit.V, "W"))
	default:
		g := fullClocks(r, math.Cbrt(rated.V/limit.V)) // clocks rise with about the cube root of power near the limit
		if memoryBound(r) && (!g.ITL.Mid.OK || -g.ITL.Mid.V < gainFloor) {
			fix.Withheld = "memory bandwidth limits the step, and the power limit does not lower it"
			break
		}
		fix.Predicted = g.predictions()
	}
	return fix
}

// fullClocks predicts the gain of GPUs that are no longer throttled, whose clocks rise at most by the factor most.
func fullClocks(r *engine.Run, most float64) gain {
	share := clockShare(r)
	if !share.OK && math.IsInf(most, 1) {
		return gain{}
	}
	most = max(1, min(most, 1/share.Or(1/most)))
	g := gain{modelled: r.Perf != nil}
	low, mid := 1.0, math.Sqrt(most)
	if r.Perf != nil && r.Perf.Raw > 0 {
		mid = r.Perf.Raw
		if o := r.Ceiling.Physical; o != nil {
			low = mid * o.AchievableLower.Div(o.AchievableTokensPerS).Or(0)
		}
	}
	steps := roofline.Range{Low: stat.Some(low), Mid: stat.Some(mid), High: stat.Some(most)}.Map(func(o stat.Opt) stat.Opt {
		return stat.Some(min(max(o.V, 1), most))
	})
	g.Throughput = steps.Map(func(o stat.Opt) stat.Opt { return stat.Some(served(r, o.V) - 1) })
	if o := r.Offered; !o.Demand.OK && !o.Thinking.OK {
		g.Throughput.Low = stat.Some(0) // independent arrivals may not ask for more
	}
	g.ITL = steps.Map(func(o stat.Opt) stat.Opt { return o.Plus(stat.Some(-1)) }).Inverse()
	return g
}

// served returns the output of a server whose steps are faster by a factor, over the present one: no more than arrives,
// and clients that pause between two requests pause as long as before.
func served(r *engine.Run, faster float64) float64 {
	if d := r.Offered.Demand; d.OK {
		// A multiple of the requests that ended: of a load that piles up, the output has tokens of others too.
		ended := r.Agg.Rate[engine.CounterRequestSuccess].Times(r.Agg.OutputLen.V).Div(r.Agg.Rate[engine.CounterGenerationTokens])
		return min(faster, max(1, d.V*min(1, ended.Or(1))))
	}
	in := r.Agg.Running.Plus(r.Agg.Waiting).Times(1 / float64(max(1, r.Agg.Ranks)))
	computing := in.Div(in.Plus(r.Offered.Thinking)).Or(1)
	return 1 / (1 - computing + computing/faster)
}

// clockShare returns the share of its highest speed, 0..1, that a server's throttled GPUs leave it: the clocks of the slowest
// GPU of each rank, in the share of the time that it computes. It is absent if no clock was read.
func clockShare(r *engine.Run) stat.Opt {
	gpus, ranks := r.Agg.GPUs, max(1, r.Agg.Ranks)
	if len(gpus)%ranks != 0 {
		ranks = 1
	}
	var mean stat.Average
	for rank := range slices.Chunk(gpus, max(1, len(gpus)/ranks)) {
		slowest := stat.None
		for i := range rank {
			g := &rank[i]
			clock := g.Mean[engine.GPUSMClockMHz].Div(g.Last[engine.GPUSMClockMaxMHz])
			if !clock.OK || clock.V <= 0 {
				continue
			}
			share := 1.0
			if busy := g.Mean[engine.GPUUtil].Or(1); g.Throttle&catalog.Harmful != 0 {
				share = 1 - busy + busy*min(1, clock.V)
			}
			if !slowest.OK || share < slowest.V {
				slowest = stat.Some(share)
			}
		}
		mean.Add(slowest, 1)
	}
	return mean.Mean()
}

// memoryBound reports whether reading weights or KV cache takes the largest part of a step;
// false without a physical model.
func memoryBound(r *engine.Run) bool {
	if r.Perf == nil {
		return false
	}
	b := r.Perf.Now.Achievable.Binding()
	return b == "weights" || b == "kv"
}
