package advice

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/optrace"
)

const (
	// worthwhile is the smallest expected gain for which a setting is changed: windows of
	// one process resolve 1 %, two runs of a server differ by up to 8 % (measured), and
	// every change has a cost.
	worthwhile = 0.03
	// checkAgain is how to see whether the change helped.
	checkAgain = "trace again under the same load and compare tok/s"
)

// advise picks one remedy: among the first kind that occurs, the one with the largest expected
// gain, known gains first.
func advise(v *subject, causes []*cause) optrace.Advice {
	a := optrace.Advice{Rejected: []string{}}
	var open []*cause
	reject := func(c *cause, why string) { a.Rejected = append(a.Rejected, c.ID+": "+why) }
	for _, c := range causes {
		switch {
		case c.remedy == nil:
			if c.instead != "" {
				reject(c, c.instead)
			}
		case v.FewGraphs() && c.remedy.kind != remedyTrace:
			reject(c, fmt.Sprintf("the trace has fewer than %d graphs, too few to change a setting", optrace.FewestGraphs))
		case c.remedy.gain.high.OK && c.remedy.gain.high.V < worthwhile && c.remedy.kind == remedyFlag:
			reject(c, fmt.Sprintf("the gain is at most %s, less than the difference between two runs", figure.PercentSign(c.remedy.gain.high.V)))
		default:
			open = append(open, c)
		}
	}
	slices.SortStableFunc(open, func(x, y *cause) int {
		return cmp.Or(cmp.Compare(x.remedy.kind, y.remedy.kind), cmp.Compare(y.remedy.gain.mid.Or(0), x.remedy.gain.mid.Or(0)))
	})
	interferenceFirst(open)
	if len(open) == 0 {
		a.Rejected, a.Price = append(a.Rejected, v.untraced()...), "none"
		a.Do, a.Why = v.adviseNothing(causes)
		return a
	}
	best := open[0]
	r := best.remedy
	a.Finding, a.Do, a.Flag, a.Value, a.Why, a.Price = best.ID, r.do, r.flag, r.value, r.why, r.price
	a.Gain, a.GainLow, a.GainHigh = r.gain.mid, r.gain.low, r.gain.high
	a.Check = checkAgain
	for _, c := range open[1:] {
		if c.Severity != severityGood { // a good finding asks for nothing
			reject(c, c.whySecond(best))
		}
	}
	a.Rejected = append(a.Rejected, v.untraced()...)
	return a
}

// farMore is how many times the cost of the probes interference must cost to be advised first:
// the kernel's switches show which processes had the CPUs, and probes do not distort that.
const farMore = 2

// interferenceFirst moves interference before the advice to trace with less detail, if it costs
// the target far more.
func interferenceFirst(open []*cause) {
	probes := slices.IndexFunc(open, func(c *cause) bool { return c.ID == "observer-effect" })
	if probes < 0 {
		return
	}
	for i, c := range open[probes:] {
		if (c.ID == "preempted" || c.ID == "oversubscribed") && c.Cost.Or(0) > farMore*open[probes].Cost.Or(0) {
			copy(open[probes+1:probes+i+1], open[probes:probes+i])
			open[probes] = c
			return
		}
	}
}

// whySecond returns why another remedy is advised first.
func (c *cause) whySecond(best *cause) string {
	if c.instead != "" {
		return c.instead
	}
	switch g := c.remedy.gain.mid; {
	case best.remedy.kind == remedyTrace:
		return "the figures must be sound first"
	case best.remedy.kind == remedyHost && c.remedy.kind > remedyHost:
		return "settings can be judged only on an undisturbed machine"
	case c.ID == "observer-effect":
		return fmt.Sprintf("it costs %s of the time, %s costs %s", figure.PercentSign(c.Cost.Or(0)), best.ID, figure.PercentSign(best.Cost.Or(0)))
	case c.remedy.kind > best.remedy.kind:
		return "settings come first"
	case !g.OK:
		return "this trace does not show its gain"
	default:
		return fmt.Sprintf("the expected gain is smaller (%s)", figure.PercentSign(g.V))
	}
}

// GapEverything is the What of the gap of a trace that was refused or came too late.
const GapEverything = "every figure"

const (
	noCost    = "Nothing in this trace costs more than its limit."
	traceMore = "So few graphs may mislead. Trace for longer, while the server handles requests."
)

// adviseNothing returns the advice to change nothing, with the reason.
func (v *subject) adviseNothing(causes []*cause) (do, why string) {
	switch refused, cut := v.FindGap(GapEverything), v.FindGap(optrace.GapEnd); {
	case v.Decode == nil && v.Prefill == nil && refused != nil:
		return "Nothing: nothing was traced.", "The trace was not made: " + refused.Why + "."
	case v.Empty() && cut != nil:
		return "Nothing: the recording was cut short and holds no graph.", "The rest of the recording is missing: " + cut.Why + "."
	case v.Decode == nil && v.Prefill == nil:
		return v.tooLittle()
	case v.FewGraphs() && slices.ContainsFunc(causes, func(c *cause) bool { return c.remedy != nil }):
		return fmt.Sprintf("Nothing yet: the trace has only %d of %d graphs.", v.Graphs, optrace.FewestGraphs), traceMore
	case len(causes) > 0 && severityRank(causes[0].Severity) <= severityRank(severityWarn):
		why = "No setting is known to fix the main finding: " + causes[0].Title + " (" + causes[0].ID + ")"
		if causes[0].instead != "" {
			why += ": " + causes[0].instead
		}
		return "Change nothing.", why + "."
	case v.Decode == nil:
		return "Change nothing.", fmt.Sprintf("%s The trace has fewer than %d decode graphs, so decode is not judged.", noCost, optrace.FewestGraphs)
	case v.Peak.Known():
		return "Change nothing.", noCost
	}
	return "Change nothing.", noCost + " How far decode is from the machine's peak is unknown: no data sheet of the CPU is known (--catalog takes one)."
}

// tooLittle returns why neither a decode nor a prefill is judged.
func (v *subject) tooLittle() (do, why string) {
	decodes := 0
	for i := range v.Phases {
		if p := &v.Phases[i]; p.Phase == optrace.PhaseDecode.String() {
			decodes = p.Graph.Count
		}
	}
	switch {
	case decodes > 0:
		return fmt.Sprintf("Nothing yet: the trace has only %d of %d decode graphs.", decodes, optrace.FewestGraphs), traceMore
	case v.Graphs > 0:
		return "Nothing: the trace has neither a decode nor a prefill.", "The graphs are of another kind, or their kind is unknown; rooftop has no advice for them."
	case v.Coverage.Calls > 0 || v.Coverage.Partial > 0:
		return "Nothing: the trace has no complete graph.", "Advice needs graphs. Trace for longer, at level graph or above, while the server handles requests."
	}
	return "Nothing: the target computed nothing while the trace ran.", "Trace while the server handles requests."
}

// untraced lists the findings that could not be checked because their events were not traced.
func (v *subject) untraced() []string {
	var out []string
	if !v.PreemptedSpread().OK && len(v.Threads) > 0 {
		out = append(out, "preempted: not ruled out, because scheduling was not traced")
	}
	if v.ThreadCount > 1 && !v.Barriers().OK {
		out = append(out, "sync-bound: not ruled out, because barriers were not traced")
	}
	return out
}
