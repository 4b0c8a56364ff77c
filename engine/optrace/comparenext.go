package optrace

import (
	"fmt"
	"slices"
	"strings"
)

// next is what to do where the headline cannot tell, "" where it can.
func (c *comparing) next(out *Comparison) string {
	p := out.main()
	if p == nil || out.OtherModel != "" || p.Rate.Word != ChangeUnclear && p.Rate.Word != "" {
		return ""
	}
	switch names, disturbed := c.disturbers(); {
	case len(names) > 0:
		return fmt.Sprintf("Measure both again without %s, which had the CPUs of the threads.", strings.Join(names, " and "))
	case disturbed:
		return "Measure both again on a quiet machine: threads were put off their CPUs."
	}
	for _, v := range []*view{c.a, c.b} {
		if d := callsOf(v, p.Phase); d != nil && d.Count < fewestGraphs {
			return fmt.Sprintf("Trace both for longer, while requests are served: one side has %d of the %d calls of a %s that a comparison needs.", d.Count, fewestGraphs, p.Phase)
		}
	}
	if !c.a.preempted().ok || !c.b.preempted().ok {
		return "Trace both again with " + levelFlag + " sched, which tells whether others had the CPUs."
	}
	return "Trace both for longer, one after the other, with the same requests."
}

// main is the phase that the headline is about: decode, else the first; nil where there
// is none.
func (c *Comparison) main() *PhaseChange {
	if len(c.Phases) == 0 {
		return nil
	}
	return &c.Phases[max(0, slices.IndexFunc(c.Phases, func(p PhaseChange) bool { return p.Phase == PhaseDecode.String() }))]
}

// callsOf are the times of the calls of a phase, or of its graphs where no call was seen;
// nil where it did not occur.
func callsOf(v *view, phase string) *Distribution {
	for i := range v.Phases {
		if p := &v.Phases[i]; p.Phase == phase {
			return p.calls()
		}
	}
	return nil
}

// disturbers are the processes that took most of the CPUs in either trace, and whether any
// was disturbed. Who is not known has no name; the one that traced is in both.
func (c *comparing) disturbers() (names []string, disturbed bool) {
	for _, v := range []*view{c.a, c.b} {
		if p := v.preempted(); !p.ok || p.max < preemptedLimit {
			continue
		}
		disturbed = true
		list := v.takers()
		at := slices.IndexFunc(list, func(o OtherRow) bool {
			return o.Name != "" && o.Name != OwnName && o.Share.Or(0) >= thiefLimit
		})
		if at >= 0 && !slices.Contains(names, list[at].Name) {
			names = append(names, list[at].Name)
		}
	}
	return names, disturbed
}
