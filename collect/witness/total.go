package witness

import (
	"math"
	"slices"
	"strings"

	"github.com/rooftop-dev/rooftop/collect/promtext"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// isCopy says that a label tells apart processes which report the same thing: the
// ranks of one replica (SGLang with --enable-metrics-for-all-schedulers), and for
// gauges the API servers of vLLM 0.9.2 to 0.11, of which all but one show stale zeros
// while each counts its own.
func isCopy(label string, how merge) bool {
	switch label {
	case "tp_rank", "pp_rank", "moe_ep_rank":
		return true
	case "pid":
		return how != counted
	}
	return false
}

// first is the value of the best name that the page has.
func (w *Witness) first(f *field) stat.Opt {
	for _, name := range f.names {
		if slices.ContainsFunc(w.families.Samples, func(s promtext.Sample) bool { return s.Name == name }) {
			return w.total(name, f.merge)
		}
	}
	return stat.None
}

// total is the value of a family over all its series: of copies the largest, and
// these together. One value that is none makes it absent: a part would look like a
// fall.
func (w *Witness) total(name string, how merge) stat.Opt {
	var groups []float64      // of copies the largest, in the page's order
	index := map[string]int{} // into groups
	for _, s := range w.families.Samples {
		switch {
		case s.Name != name:
			continue
		case s.Value < 0 || math.IsNaN(s.Value) || math.IsInf(s.Value, 0):
			return stat.None
		}
		key := common(s.Labels, how)
		if at, known := index[key]; known {
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
		return finite(sum)
	}
	return ratio(sum / float64(len(groups)))
}

// common is the text of all labels that tell no copies apart.
func common(labels []promtext.Label, how merge) string {
	var b strings.Builder
	for _, l := range labels {
		if !isCopy(l.Name, how) {
			b.WriteString(l.Name + "\xff" + l.Value + "\xff") // \xff is in no UTF-8 text
		}
	}
	return b.String()
}

func finite(v float64) stat.Opt {
	if math.IsInf(v, 0) {
		return stat.None
	}
	return stat.Some(v)
}

// ratio is a share as it is valid, 0..1. Rounding may exceed 1 by a little; anything
// else has another unit, which is not ours to guess.
func ratio(v float64) stat.Opt {
	if v > 1.01 {
		return stat.None
	}
	return stat.Some(min(v, 1))
}

// product is a whole number that a page gives as two factors.
func product(a, b stat.Opt) stat.Opt {
	if !a.OK || !b.OK {
		return stat.None
	}
	return finite(math.Round(a.V * b.V))
}
