package enginepage

import (
	"math"
	"slices"
	"strings"

	"github.com/rooftop-dev/rooftop/collect"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// isCopy reports whether a label distinguishes processes that report the same value:
// the ranks of one replica (SGLang with --enable-metrics-for-all-schedulers), and for
// gauges the API servers of vLLM 0.9.2 to 0.11, all but one of which report stale
// zeros.
func isCopy(label string, how merge) bool {
	switch label {
	case "tp_rank", "pp_rank", "moe_ep_rank":
		return true
	case "pid":
		return how != counted
	}
	return false
}

// first returns the value of the first of the field's names that the page has.
func (r *Totals) first(f *field) stat.Opt {
	for _, name := range f.names {
		if slices.ContainsFunc(r.families.Samples, func(s collect.Sample) bool { return s.Name == name }) {
			return r.total(name, f.merge)
		}
	}
	return stat.None
}

// total merges all series of a family: it adds up the largest of each set of copies and,
// for averaged, divides by the number of sets. One invalid value makes the total absent,
// because a partial sum would look like a counter that fell.
func (r *Totals) total(name string, how merge) stat.Opt {
	var groups []float64      // the largest of each set of copies, in the page's order
	index := map[string]int{} // into groups
	for _, s := range r.families.Samples {
		switch {
		case s.Name != name:
			continue
		case s.Value < 0 || math.IsNaN(s.Value) || math.IsInf(s.Value, 0):
			return stat.None
		}
		key := identity(s.Labels, how)
		if at, seen := index[key]; seen {
			groups[at] = max(groups[at], s.Value)
		} else {
			index[key] = len(groups)
			groups = append(groups, s.Value)
		}
	}
	if len(groups) == 0 {
		return stat.None
	}
	var sum float64
	for _, most := range groups {
		sum += most
	}
	if how != averaged {
		return stat.Finite(sum)
	}
	return share(sum / float64(len(groups)))
}

// identity returns a key of all labels that do not mark copies.
func identity(labels []collect.Label, how merge) string {
	var b strings.Builder
	for _, l := range labels {
		if !isCopy(l.Name, how) {
			b.WriteString(l.Name + "\xff" + l.Value + "\xff") // \xff is in no UTF-8 text
		}
	}
	return b.String()
}

// share returns a share, 0..1. Values up to 1.01 are rounding errors and count as 1; a
// larger value has another unit and is absent.
func share(v float64) stat.Opt {
	if v > 1.01 {
		return stat.None
	}
	return stat.Some(min(v, 1))
}

// product returns the product of two factors, rounded to a whole number; absent if either
// is.
func product(a, b stat.Opt) stat.Opt {
	if !a.OK || !b.OK {
		return stat.None
	}
	return stat.Finite(math.Round(a.V * b.V))
}
