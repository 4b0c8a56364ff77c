// Package effect holds the effect of a change: what was measured on either side, their difference, and the
// verdict on it in the words of screen and reports.
package effect

import (
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/stat"
	"github.com/rooftop-dev/rooftop/engine/verdict"
)

// Thresholds of the documented comparison, which PROFILE calls provisional.
const (
	BetterPoints    = 0.02  // efficiency points, as a ratio of the ceiling: better above
	WorsePoints     = -0.05 // likewise: worse below
	ThroughputShift = 0.10  // relative to the throughput before
	LatencyVeto     = 0.20  // relative to the TTFT p99 before
)

// Delta is the effect of a change, from one run before and one after. Changes are relative to
// the value before: 0.5 is +50 %.
type Delta struct {
	Throughput stat.Opt // change of output tokens per second
	Efficiency stat.Opt // PROFILE efficiency after minus before; 0.02 is two points
	TTFTP99    stat.Opt // change of the 99th percentile of time to first token

	// Direction is by throughput with a latency veto. Classic is the documented direction by
	// efficiency. They differ if more slots raise the throughput but lower what each request
	// gets of the hardware.
	Direction     verdict.Direction
	Reason        string
	Classic       verdict.Direction
	ClassicReason string

	// Verdict is the basis of Direction and Reason: the interval of the effect, what else
	// changed, and the traffic. It is nil if nothing was judged.
	Verdict *verdict.Result

	Metrics []MetricDelta
}

// MetricDelta is a measured quantity before and after a change.
type MetricDelta struct {
	Name          string // name in docs/interfaces.md section 3
	Before, After engine.Quantity
	Change        stat.Opt // relative; absent if the value before is 0 or absent
}

// ComparedQuantities are the quantities reported beside a direction, in the order in which they are shown.
var ComparedQuantities = []string{
	"generation_tokens_per_s", "requests_per_s", "running_mean", "waiting_mean", "kv_usage_peak", "preemptions_per_s", "prefix_hit_rate",
	"ttft_mean_s", "ttft_p99_s", "itl_mean_s", "itl_p99_s", "e2e_mean_s", "power_w", "tokens_per_watt", "usd_per_million_tokens",
}

// Compare compares two runs. It does not account for noise: a difference within the scatter of
// one configuration counts like any other.
func Compare(before, after *engine.Diagnosis) Delta {
	var d Delta
	for _, name := range ComparedQuantities {
		m := MetricDelta{Name: name, Before: observed(before.Quantity(name)), After: observed(after.Quantity(name))}
		m.Change = Relative(m.Before.Value, m.After.Value)
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

// observed returns a quantity of a run, absent if nothing was observed in it: a comparison does not use the
// server's lifetime.
func observed(q engine.Quantity) engine.Quantity {
	if q.Lifetime() {
		return engine.Quantity{Unit: q.Unit, Source: q.Source, Reason: "nothing was observed in the run"}
	}
	return q
}

// Relative returns the change from before to after, relative to before: 0.5 is +50 %. It is absent
// if one of them is, or before is 0.
func Relative(before, after stat.Opt) stat.Opt {
	if !before.OK || !after.OK || before.V == 0 {
		return stat.None
	}
	return stat.Some((after.V - before.V) / before.V)
}

// shiftLimit is ThroughputShift as printed.
var shiftLimit = figure.PercentSign(ThroughputShift)

func (d *Delta) byThroughput() (verdict.Direction, string) {
	if !d.Throughput.OK {
		return verdict.Inconclusive, "the throughput of one of the two runs is not known"
	}
	shift := "output " + figure.ChangeSign(d.Throughput.V)
	switch {
	case d.Throughput.V < -ThroughputShift:
		return verdict.Worse, shift
	case d.Throughput.V <= ThroughputShift:
		return verdict.Plateau, shift + ", within " + shiftLimit
	case d.latencyVetoed():
		return verdict.Plateau, shift + ", but TTFT p99 " + figure.ChangeSign(d.TTFTP99.V)
	}
	return verdict.Better, shift
}

// byEfficiency returns the documented direction. If an efficiency is unknown, it falls back to
// throughput without the veto.
func (d *Delta) byEfficiency() (verdict.Direction, string) {
	if !d.Efficiency.OK {
		const unknown = "no efficiency is known; "
		switch {
		case !d.Throughput.OK:
			return verdict.Plateau, unknown + "and neither is the output"
		case d.Throughput.V > ThroughputShift:
			return verdict.Better, unknown + "output rose by more than " + shiftLimit
		case d.Throughput.V < -ThroughputShift:
			return verdict.Worse, unknown + "output fell by more than " + shiftLimit
		}
		return verdict.Plateau, unknown + "output moved by " + shiftLimit + " at most"
	}
	points := "efficiency per running request unchanged"
	if d.Efficiency.V != 0 {
		points = "efficiency per running request " + figure.Change(d.Efficiency.V) + " points"
	}
	switch {
	case d.Efficiency.V < WorsePoints:
		return verdict.Worse, points
	case d.Efficiency.V <= BetterPoints:
		return verdict.Plateau, points
	case d.latencyVetoed():
		return verdict.Plateau, points + ", but TTFT p99 " + figure.ChangeSign(d.TTFTP99.V)
	}
	return verdict.Better, points
}

// latencyVetoed reports whether the time to first token grew too much for a gain to count.
func (d *Delta) latencyVetoed() bool { return d.TTFTP99.OK && d.TTFTP99.V > LatencyVeto }
