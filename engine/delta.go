package engine

import (
	"fmt"

	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/stat"
	"github.com/rooftop-dev/rooftop/engine/verdict"
)

// Direction is where a change led.
type Direction = verdict.Direction

// Directions of a change.
const (
	Better        = verdict.Better
	Worse         = verdict.Worse
	Plateau       = verdict.Plateau
	Inconclusive  = verdict.Inconclusive
	NotComparable = verdict.NotComparable
)

// Thresholds of the closed-loop delta, from the product documentation of
// PROFILE, which calls them provisional.
const (
	betterPoints    = 0.02 // efficiency, as a ratio of the ceiling
	worsePoints     = -0.05
	throughputShift = 0.10 // of the throughput before, either way
	latencyVeto     = 0.20 // of the TTFT p99 before
)

// Delta is a change as two runs show it, one before and one after. Changes are
// ratios of the value before (0.5 is half as much again).
type Delta struct {
	Throughput stat.Opt // change of output tokens per second
	Efficiency stat.Opt // classic efficiency after minus before, 0.02 is two points
	TTFTP99    stat.Opt // change of the 99th percentile of time to first token

	// Direction is by throughput with the latency veto; Classic is the documented
	// one, by efficiency. The two differ where more seats raise the throughput and
	// lower what each request gets of the hardware.
	Direction     Direction
	Reason        string
	Classic       Direction
	ClassicReason string

	// Verdict is what Direction and Reason are taken from: the interval about the
	// effect, what else moved, the traffic; nil where nothing was judged.
	Verdict *verdict.Result

	Metrics []MetricDelta
}

// MetricDelta is one measured quantity before and after.
type MetricDelta struct {
	Name          string // of interfaces.md section 3
	Before, After Quantity
	Change        stat.Opt // ratio of the value before; absent where that is 0 or absent
}

// compared are the quantities that stand beside a direction.
var compared = [...]string{
	"generation_tokens_per_s", "requests_per_s", "running_mean", "waiting_mean", "kv_usage_peak", "preemptions_per_s", "prefix_hit_rate",
	"ttft_mean_s", "ttft_p99_s", "itl_mean_s", "itl_p99_s", "e2e_mean_s", "power_w", "tokens_per_watt", "usd_per_million_tokens",
}

// Compare sets two runs side by side. It knows nothing of noise: a difference
// that repeats of one configuration would show as often is not told apart.
func Compare(before, after *Diagnosis) Delta {
	var d Delta
	for _, name := range compared {
		m := MetricDelta{Name: name, Before: before.Quantity(name), After: after.Quantity(name)}
		m.Change = relative(m.Before.Value, m.After.Value)
		d.Metrics = append(d.Metrics, m)
		switch name {
		case "generation_tokens_per_s":
			d.Throughput = m.Change
		case "ttft_p99_s":
			d.TTFTP99 = m.Change
		}
	}
	if b, a := before.Ceiling.Classic, after.Ceiling.Classic; b != nil && a != nil && b.Efficiency.OK && a.Efficiency.OK {
		d.Efficiency = stat.Some(a.Efficiency.V - b.Efficiency.V)
	}
	d.Direction, d.Reason = d.byThroughput()
	d.Classic, d.ClassicReason = d.byEfficiency()
	return d
}

func relative(before, after stat.Opt) stat.Opt {
	if !before.OK || !after.OK || before.V == 0 {
		return stat.None
	}
	return stat.Some((after.V - before.V) / before.V)
}

func (d *Delta) byThroughput() (Direction, string) {
	if !d.Throughput.OK {
		return Inconclusive, "the throughput of one of the two runs is not known"
	}
	shift := "output " + signed("%+.0f %%", d.Throughput.V)
	switch {
	case d.Throughput.V < -throughputShift:
		return Worse, shift
	case d.Throughput.V <= throughputShift:
		return Plateau, shift + ", within 10 %"
	case d.vetoed():
		return Plateau, shift + ", but TTFT p99 " + signed("%+.0f %%", d.TTFTP99.V)
	}
	return Better, shift
}

// byEfficiency is the documented direction. It falls back to throughput, without
// the veto, where an efficiency is not known.
func (d *Delta) byEfficiency() (Direction, string) {
	if !d.Efficiency.OK {
		const unknown = "no efficiency is known; "
		switch {
		case !d.Throughput.OK:
			return Plateau, unknown + "nor is the output"
		case d.Throughput.V > throughputShift:
			return Better, unknown + "output rose by more than 10 %"
		case d.Throughput.V < -throughputShift:
			return Worse, unknown + "output fell by more than 10 %"
		}
		return Plateau, unknown + "output moved by 10 % at most"
	}
	points := "efficiency per running request " + signed("%+.1f points", d.Efficiency.V)
	switch {
	case d.Efficiency.V < worsePoints:
		return Worse, points
	case d.Efficiency.V <= betterPoints:
		return Plateau, points
	case d.vetoed():
		return Plateau, points + ", but TTFT p99 " + signed("%+.0f %%", d.TTFTP99.V)
	}
	return Better, points
}

// signed spells a ratio in hundredths, with a minus and not a hyphen.
func signed(format string, ratio float64) string {
	return figure.Minus(fmt.Sprintf(format, ratio*100))
}

func (d *Delta) vetoed() bool { return d.TTFTP99.OK && d.TTFTP99.V > latencyVeto }
