package report

import (
	"cmp"
	"slices"
	"strings"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// quantities lists what was measured in the order of the document: every name
// of engine.MeasuredNames, also one that d lacks, then what else d has.
func quantities(d *engine.Diagnosis) []engine.NamedQuantity {
	var list []engine.NamedQuantity
	for _, name := range engine.MeasuredNames {
		q := finiteQuantity(d.Quantity(name))
		q.Unit, q.Source = cmp.Or(q.Unit, unitOf(name)), cmp.Or(q.Source, engine.Measured)
		list = append(list, engine.NamedQuantity{Name: name, Quantity: q})
	}
	for _, q := range d.Measured {
		if !slices.ContainsFunc(list, func(have engine.NamedQuantity) bool { return have.Name == q.Name }) {
			q.Quantity = finiteQuantity(q.Quantity)
			q.Source = cmp.Or(q.Source, engine.Measured)
			list = append(list, q)
		}
	}
	return list
}

// finiteQuantity makes a value that JSON and people cannot read as a number
// absent, and gives every absence a reason.
func finiteQuantity(q engine.Quantity) engine.Quantity {
	switch {
	case number(q.Value) != nil:
		q.Reason = ""
	case q.Value.OK:
		q.Value, q.AtLeast, q.Reason = stat.None, false, "not a finite number"
	default:
		q.AtLeast, q.Reason = false, cmp.Or(q.Reason, "not measured")
	}
	return q
}

// shown formats a quantity with its unit; a lower limit is marked as one.
func shown(q engine.Quantity) string { return atLeast(q) + figure.Show(q.Value, q.Unit) }

// atLeast is the sign before a value that is known to be larger, "" before
// others.
func atLeast(q engine.Quantity) string {
	if q.AtLeast {
		return ">" + nbsp
	}
	return ""
}

// unitOf is the unit of a name that was not measured, as its ending says.
func unitOf(name string) string {
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
