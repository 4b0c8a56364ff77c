package comparison

import (
	"fmt"
	"slices"

	"github.com/rooftop-dev/rooftop/engine/compare"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/engine/optrace/evidence"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// nextStep returns the next step if the headline is unresolved, "" if it is not.
func (c *comparing) nextStep(out *Comparison) string {
	p := out.mainPhase()
	if p == nil || out.OtherModel != "" || p.Rate.Verdict != compare.Unresolved && p.Rate.Verdict != "" {
		return ""
	}
	switch names, disturbed := c.disturbers(); {
	case len(names) > 0:
		return fmt.Sprintf("Measure both again without %s, which took the CPUs of compute threads.", figure.List(names...))
	case disturbed:
		return "Measure both again on a quiet machine: compute threads were preempted."
	}
	for _, v := range []*evidence.View{c.a, c.b} {
		if d := callsOf(v, p.Phase); d != nil && d.Count < optrace.FewestGraphs {
			return fmt.Sprintf("Trace both for longer, while the server handles requests: one side has %d of the %d %s calls that a comparison needs.", d.Count, optrace.FewestGraphs, p.Phase)
		}
	}
	if !c.a.PreemptedSpread().OK || !c.b.PreemptedSpread().OK {
		return "Trace both again with " + optrace.LevelFlag + " sched, which shows whether other programs had the CPUs."
	}
	return "Trace both for longer, one after the other, with the same requests."
}

// mainPhase returns the phase of the headline: decode, or else the first; nil if there is none.
func (c *Comparison) mainPhase() *PhaseChange {
	if len(c.Phases) == 0 {
		return nil
	}
	return &c.Phases[max(0, slices.IndexFunc(c.Phases, func(p PhaseChange) bool { return p.Phase == optrace.PhaseDecode.String() }))]
}

// callsOf returns the times of the calls of a phase, or of its graphs if no call was seen; nil
// if the phase did not occur.
func callsOf(v *evidence.View, phase string) *stat.Distribution {
	for i := range v.Phases {
		if p := &v.Phases[i]; p.Phase == phase {
			return p.CallTimes()
		}
	}
	return nil
}

// disturbers returns the names of the processes that took most CPU time in either trace, and
// whether either was disturbed. An unknown process has no name.
func (c *comparing) disturbers() (names []string, disturbed bool) {
	for _, v := range []*evidence.View{c.a, c.b} {
		if p := v.PreemptedSpread(); !p.OK || p.Max < evidence.PreemptedLimit {
			continue
		}
		disturbed = true
		list := v.Takers()
		at := slices.IndexFunc(list, func(o optrace.OtherRow) bool {
			return o.Name != "" && o.Name != optrace.OwnName && o.Share.Or(0) >= evidence.TakerLimit
		})
		if at >= 0 && !slices.Contains(names, list[at].Name) {
			names = append(names, list[at].Name)
		}
	}
	return names, disturbed
}
