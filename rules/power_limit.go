package rules

import (
	"fmt"
	"math"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// NVML's mask of clock-event reasons (nvml.h, nvmlClocksEventReasons).
const (
	reasonSWPowerCap        = 0x04 // the driver holds the clocks to the power limit
	reasonHWSlowdown        = 0x08
	reasonSWThermalSlowdown = 0x20
	reasonHWThermalSlowdown = 0x40
	reasonHWPowerBrake      = 0x80 // the board or chassis asks for less power

	reasonsPower   = reasonSWPowerCap | reasonHWPowerBrake
	reasonsThermal = reasonHWSlowdown | reasonSWThermalSlowdown | reasonHWThermalSlowdown
)

// Limits of power-limit.
const (
	powerAtLimit      = 0.95 // power draw over the limit, at least
	powerBelowRated   = 0.97 // limit over the card's rated power, below: it was lowered
	powerConfidence   = 0.80
	thermalConfidence = 0.85
)

func powerLimit() definition {
	return definition{
		rule: engine.Rule{
			ID: engine.PowerLimit, Code: "beyond", Title: "Power or temperature limit", Group: engine.GroupHardware, Impact: 2,
			Check: checkPowerLimit, Conclude: concludePowerLimit,
		},
		explain: Explanation{
			Condition: []string{
				"requests run, and a GPU reports that its clocks are held down",
				"for a power reason, the card also draws " + percent(powerAtLimit) + " of its limit and more; a thermal or hardware slowdown needs no more than itself",
			},
			Thresholds: []Threshold{
				{"power / power limit", ">=", powerAtLimit, "ratio", fromJudgement},
				{"power limit / rated power (remedy)", "<", powerBelowRated, "ratio", fromJudgement},
			},
			Formula:    []string{"gain = at most the ratio of the clocks, unknown until tried; nothing where memory bandwidth binds the step, which the limit does not lower"},
			Confidence: []string{number(powerConfidence) + " for power", number(thermalConfidence) + " for temperature"},
			Remedy: []string{
				"a limit below the card's rated power: raise it",
				"at the rated power, or with memory bandwidth binding: listed only",
				"temperature: cooling",
			},
			Limits: []string{"a card at its rated power under prefill is normal"},
		},
	}
}

func checkPowerLimit(w *engine.Window, _ *engine.Facts) engine.Check {
	if !w.Evaluable {
		return lacks(inputWindow)
	}
	if len(w.GPUs) == 0 {
		return lacks(inputGPU)
	}
	if !loaded(w) {
		return idle()
	}
	readable, share := false, stat.None
	for i := range w.GPUs {
		g := &w.GPUs[i]
		if !g.ThrottleOK {
			continue
		}
		readable = true
		if g.Throttle&reasonsThermal != 0 {
			return fired("a GPU slowed down for temperature or by its board", figure{g.Mean[engine.GPUTemperatureC], "", 0, "C"})
		}
		drawn := g.Mean[engine.GPUPowerW].Div(g.Last[engine.GPUPowerLimitW])
		share = share.Max(drawn)
		if g.Throttle&reasonsPower != 0 && drawn.Or(0) >= powerAtLimit {
			return fired("share of the power limit drawn, clocks held down", figure{drawn, ">=", powerAtLimit, "ratio"})
		}
	}
	if !readable {
		return lacks(inputThrottle)
	}
	return quiet("no GPU's clocks are held down at its power limit; share drawn", figure{share, "<", powerAtLimit, "ratio"})
}

// throttled is the most affected GPU of a run.
type throttled struct {
	gpu     *engine.GPUSummary
	thermal bool
}

func worstGPU(r *engine.Run) (throttled, bool) {
	var worst throttled
	most := -1.0
	for i := range r.Agg.GPUs {
		g := &r.Agg.GPUs[i]
		if !g.ThrottleOK || g.Throttle&(reasonsPower|reasonsThermal) == 0 {
			continue
		}
		thermal := g.Throttle&reasonsThermal != 0
		share := g.Mean[engine.GPUPowerW].Div(g.Last[engine.GPUPowerLimitW]).Or(0)
		if thermal {
			share += 2 // temperature before power
		}
		if share > most {
			most, worst = share, throttled{g, thermal}
		}
	}
	return worst, worst.gpu != nil
}

func concludePowerLimit(r *engine.Run, t engine.Tally, f *engine.Finding) {
	f.Confidence = powerConfidence
	worst, ok := worstGPU(r)
	if !ok {
		f.Reason = "a GPU's clocks were held down"
		return
	}
	g := worst.gpu
	power, limit := g.Mean[engine.GPUPowerW], g.Last[engine.GPUPowerLimitW]
	if worst.thermal {
		f.Confidence = thermalConfidence
		f.Reason = fmt.Sprintf("GPU %d slowed down for temperature or by its board", g.Index)
		f.Evidence = append(f.Evidence, measured("temperature_c", g.Peak[engine.GPUTemperatureC], "C", fmt.Sprintf("GPU %d reached %s C and slowed its clocks", g.Index, number(g.Peak[engine.GPUTemperatureC].Or(0)))))
	} else {
		share := power.Div(limit)
		f.Reason = fmt.Sprintf("GPU %d draws %s of its power limit, clocks held down", g.Index, percent(share.Or(0)))
		f.Evidence = append(f.Evidence, evidence("power_w", power, "W", ">=", limit.Times(powerAtLimit), engine.FromGPU,
			fmt.Sprintf("GPU %d draws %s W of %s W", g.Index, number(power.Or(0)), number(limit.Or(0)))))
	}
	clock, peak := g.Mean[engine.GPUSMClockMHz], g.Peak[engine.GPUSMClockMHz]
	if clock.OK && peak.OK {
		f.Evidence = append(f.Evidence, evidence("sm_clock_mhz", clock, "MHz", "<=", peak, engine.FromGPU,
			fmt.Sprintf("its SM clock is %s MHz on average and %s MHz at best", number(clock.V), number(peak.V))))
	}
	f.Fix = morePower(r, worst)
	setImpact(f, 2)
}

func morePower(r *engine.Run, worst throttled) *engine.Fix {
	g := worst.gpu
	if worst.thermal {
		return &engine.Fix{
			Kind:    engine.KindHardware,
			Command: fmt.Sprintf("cool GPU %d: airflow, neighbours in the chassis, inlet temperature", g.Index),
			Why:     "The GPU slows its clocks to stay within its temperature. No flag of the server helps.",
			Price:   []string{"none on the server"},
		}
	}
	limit := g.Last[engine.GPUPowerLimitW]
	rated := stat.None
	if r.Facts.GPUKnown && r.Facts.GPU.TDPW > 0 {
		rated = stat.Some(r.Facts.GPU.TDPW)
	}
	fix := &engine.Fix{
		Kind: engine.KindHardware, From: number(limit.Or(0)) + " W",
		Command: fmt.Sprintf("raise the power limit of GPU %d", g.Index),
		Why:     "The power limit holds the clocks down. No flag of the server helps.",
		Price:   []string{"more power drawn and more heat"},
	}
	if rated.OK {
		fix.To = number(rated.V) + " W"
		fix.Command = fmt.Sprintf("nvidia-smi -i %d -pl %s (as root): the card is rated for it", g.Index, number(rated.V))
	}
	switch {
	case !rated.OK || !limit.OK:
		fix.Withheld = "what the card is rated for is not known"
	case limit.V >= powerBelowRated*rated.V:
		fix.Withheld = fmt.Sprintf("the limit of %s W is what the card is rated for: there is nothing to raise", number(limit.V))
	case memoryBound(r):
		fix.Withheld = "memory bandwidth binds the step, and the power limit does not lower that"
	default:
		// Clocks rise with about the cube root of power near the limit.
		fix.Predicted = []engine.Prediction{{Metric: metricThroughput, Unit: "ratio", Low: stat.Some(0), High: stat.Some(math.Cbrt(rated.V/limit.V) - 1)}}
	}
	return fix
}

// memoryBound says whether reading weights or cache is the step's largest part.
func memoryBound(r *engine.Run) bool {
	if r.Perf == nil {
		return false
	}
	b := r.Perf.Now.Achievable.Binding()
	return b == "weights" || b == "kv"
}
