package tuning

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/page"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Quantities returns the quantities of engine.MeasuredNames, including those that d lacks, then the other
// quantities of d. Each absent one has a reason.
func Quantities(d *engine.Diagnosis) []engine.NamedQuantity {
	var list []engine.NamedQuantity
	for _, name := range engine.MeasuredNames {
		q := Quantity(d, name)
		q.Unit, q.Source = cmp.Or(q.Unit, UnitOf(name)), cmp.Or(q.Source, engine.Measured)
		list = append(list, engine.NamedQuantity{Name: name, Quantity: q})
	}
	for _, q := range d.Measured {
		if !slices.ContainsFunc(list, func(have engine.NamedQuantity) bool { return have.Name == q.Name }) {
			q.Quantity = q.Quantity.Finite()
			q.Source = cmp.Or(q.Source, engine.Measured)
			list = append(list, q)
		}
	}
	return list
}

// Quantity returns a quantity of a diagnosis, absent with a reason unless its value is finite.
func Quantity(d *engine.Diagnosis, name string) engine.Quantity {
	if d == nil {
		return engine.Quantity{Reason: "not measured"}
	}
	return d.Quantity(name).Finite()
}

// Show formats a quantity with its unit, marking a lower limit.
func Show(q engine.Quantity) string {
	if !q.Value.OK {
		return figure.Absent
	}
	return AtLeast(q) + figure.ValueWithin(q.Value.V, q.Bucket.Width(), q.Unit)
}

// AtLeast returns the sign before a value that is a lower limit, or "".
func AtLeast(q engine.Quantity) string {
	if q.AtLeast && q.Value.OK {
		return ">" + nbsp
	}
	return ""
}

// FormatPair formats two values of one unit, which is returned separately if both have it.
func FormatPair(before, after engine.Quantity) (b, a, unit string) {
	before, after = before.Finite(), after.Finite()
	if before.Value.OK && after.Value.OK {
		x, unitX := figure.AmountWithin(before.Value.V, before.Bucket.Width(), before.Unit)
		y, unitY := figure.AmountWithin(after.Value.V, after.Bucket.Width(), after.Unit)
		if unitX == unitY {
			if unitX == "req" { // running and waiting are requests by their names
				unitX = ""
			}
			return AtLeast(before) + x, AtLeast(after) + y, unitX
		}
	}
	return Show(before), Show(after), ""
}

// FromTo formats a value and the value after a change, with a common unit only once; "" if neither is
// known.
func FromTo(now engine.Quantity, then stat.Opt) string {
	switch {
	case !now.Value.OK && !then.OK:
		return ""
	case !then.OK:
		return Show(now)
	case !now.Value.OK:
		return "→" + nbsp + figure.Show(then, now.Unit)
	}
	a, b, unit := FormatPair(now, engine.Quantity{Value: then, Unit: now.Unit})
	return strings.TrimSuffix(a+nbsp+"→"+nbsp+b+nbsp+figure.Unbroken(unit), nbsp)
}

// UnitOf returns the unit that the suffix of a name implies.
func UnitOf(name string) string {
	for _, u := range []struct{ ending, unit string }{
		{"_tokens_per_s", "tok/s"}, {"requests_per_s", "req/s"}, {"_per_s", "1/s"},
		{"usd_per_million_tokens", "USD"}, {"_usd_per_hour", "USD/h"}, {"tokens_per_watt", "tok/s/W"}, {"joules_per_token", "J"},
		{"_tokens_mean", "tok"}, {"_bytes", "B"}, {"_w", "W"}, {"_c", "C"}, {"_mhz", "MHz"}, {"_s", "s"},
		{"_rate", "ratio"}, {"_util", "ratio"}, {"kv_usage_mean", "ratio"}, {"_peak", "ratio"}, {"_mean", "req"}, {"throttled", "bool"},
	} {
		if strings.HasSuffix(name, u.ending) {
			return u.unit
		}
	}
	return ""
}

// Failures returns the rates of requests that the server failed or refused, "" if there were none.
func Failures(d *engine.Diagnosis) string {
	var parts []string
	for _, f := range [...]struct{ name, words string }{
		{"http_5xx_per_s", "failed (5xx)"}, {"rejections_per_s", "refused (503)"}, {"http_4xx_per_s", "invalid (4xx)"},
	} {
		if q := Quantity(d, f.name); q.Value.Or(0) > 0 {
			parts = append(parts, figure.Show(q.Value, "req/s")+" "+f.words)
		}
	}
	return strings.Join(parts, ", ")
}

// Output is the quantity that changes are judged by.
const Output = "generation_tokens_per_s"

// metricName returns the display name of a quantity of predictions and verdicts.
func metricName(name string) string {
	names := map[string]string{
		Output: "output", "prompt_tokens_per_s": "prompt", "requests_per_s": "requests",
		"ttft_mean_s": "TTFT mean", "ttft_p99_s": "TTFT p99", "itl_mean_s": "ITL mean", "itl_p99_s": "ITL p99", "tpot_mean_s": "TPOT",
		"e2e_mean_s": "end to end", "queue_mean_s": "queue", "usd_per_million_tokens": "$/1M output",
		"running_mean": "running", "waiting_mean": "waiting", "kv_usage_peak": "KV peak", "preemptions_per_s": "preempted",
		"prefix_hit_rate": "prefix hits", "power_w": "power", "tokens_per_watt": "tok/W",
	}
	return cmp.Or(names[name], name)
}

// plainChange is the relative change up to which a difference has no tone.
const plainChange = 0.02

// ChangeTone returns the tone of a relative change by its effect on users of the server: Body for quantities
// that are neither better nor worse, such as running requests.
func ChangeTone(metric string, change float64) page.Tone {
	switch {
	case math.Abs(change) <= plainChange, metric == "running_mean", metric == "waiting_mean", metric == "kv_usage_peak", metric == "power_w":
		return page.Body
	case MoreIsBetter(metric) == (change > 0):
		return page.OK
	}
	return page.Bad
}

// MoreIsBetter reports whether larger values of a quantity are better, as opposed to latencies and costs.
func MoreIsBetter(name string) bool {
	switch name {
	case Output, "prompt_tokens_per_s", "requests_per_s", "prefix_hit_rate", "tokens_per_watt":
		return true
	}
	return false
}
