package optrace

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

const (
	// worthwhile is the least expected gain for which a setting is changed: windows of
	// one process resolve 1 %, two runs of a server differ by up to 8 % (measured), and
	// a change has its price.
	worthwhile = 0.03
	// checkCommand compares the trace before with the one after.
	checkCommand = "rooftop trace compare before.jsonl.gz after.jsonl.gz"
)

// advise picks one remedy: of the first kind that there is, the one with the largest
// expected gain, a known one before an unknown one.
func advise(v *view, causes []cause) Advice {
	a := Advice{Rejected: []string{}}
	var open []*cause
	for i := range causes {
		c := &causes[i]
		switch {
		case c.remedy == nil:
			if c.instead != "" {
				a.Rejected = append(a.Rejected, c.ID+": "+c.instead)
			}
		case v.few() && c.remedy.kind != remedyTrace:
			a.Rejected = append(a.Rejected, fmt.Sprintf("%s: fewer than %d graphs were seen, too few to change anything by", c.ID, fewestGraphs))
		case c.remedy.gain.high.OK && c.remedy.gain.high.V < worthwhile && c.remedy.kind == remedyFlag && c.ID != "threads-above-memory-roof":
			a.Rejected = append(a.Rejected, fmt.Sprintf("%s: at most %s to gain, less than two runs differ by", c.ID, spellPercent(c.remedy.gain.high.V)))
		default:
			open = append(open, c)
		}
	}
	slices.SortStableFunc(open, func(x, y *cause) int {
		return cmp.Or(cmp.Compare(x.remedy.kind, y.remedy.kind), cmp.Compare(y.remedy.gain.mid.Or(0), x.remedy.gain.mid.Or(0)))
	})
	interferenceFirst(open)
	if len(open) == 0 {
		return leaveAll(v, a, causes)
	}
	best := open[0]
	r := best.remedy
	a.Finding, a.Do, a.Flag, a.Value, a.Why, a.Price = best.ID, r.do, r.flag, r.value, r.why, r.price
	a.Gain, a.GainLow, a.GainHigh = r.gain.mid, r.gain.low, r.gain.high
	a.Check = checkCommand
	for _, c := range open[1:] {
		if c.Severity == severityGood {
			continue // it asks for nothing
		}
		a.Rejected = append(a.Rejected, c.ID+": "+c.behind(best))
	}
	a.Rejected = append(a.Rejected, v.unseen()...)
	return a
}

// farMore is how many times what the probes take others must take from the target, to come
// before them: who had the CPUs is told by the kernel's switches, which probes do not bend.
const farMore = 2

// interferenceFirst puts what keeps lanes off their CPUs before the advice to trace again
// with less detail, where it costs the target far more of its time.
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

// behind says why a remedy is not the one that is given.
func (c *cause) behind(best *cause) string {
	if c.instead != "" {
		return c.instead
	}
	switch g := c.remedy.gain.mid; {
	case best.remedy.kind == remedyTrace:
		return "the figures have to hold first"
	case best.remedy.kind == remedyHost && c.remedy.kind > remedyHost:
		return "a setting is judged on a machine that does not disturb it"
	case c.ID == "observer-effect":
		return fmt.Sprintf("it costs %s of the time, this %s", spellPercent(c.Cost.Or(0)), spellPercent(best.Cost.Or(0)))
	case c.remedy.kind > best.remedy.kind:
		return "what can be set comes first"
	case !g.OK:
		return "its gain cannot be reckoned from this trace"
	default:
		return fmt.Sprintf("less to gain (%s expected)", spellPercent(g.V))
	}
}

// GapEverything is the What of the gap of a trace that was refused or came too late.
const GapEverything = "every figure"

// leaveAll is the advice to leave everything as it is.
func leaveAll(v *view, a Advice, causes []cause) Advice {
	a.Rejected = append(a.Rejected, v.unseen()...)
	a.Price = "none"
	switch refused, cut := v.gap(GapEverything), v.gap(GapEnd); {
	case v.decode == nil && v.prefill == nil && refused != nil:
		a.Do = "Nothing: nothing was traced."
		a.Why = "It was not traced: " + refused.Why + "."
	case v.Empty() && cut != nil:
		a.Do = "Nothing: the recording was cut short, and no graph is left in it."
		a.Why = "Of what was recorded there is no more: " + cut.Why + "."
	case v.decode == nil && v.prefill == nil:
		a.Do, a.Why = v.tooLittle()
	case v.few() && slices.ContainsFunc(causes, func(c cause) bool { return c.remedy != nil }):
		a.Do = fmt.Sprintf("Nothing yet: too early, %d of %d graphs.", v.graphs, fewestGraphs)
		a.Why = "What so few graphs point to may be chance. Trace for longer, while requests are served."
	case len(causes) > 0 && rank(causes[0].Severity) <= rank(severityWarn):
		a.Do = "Change nothing."
		a.Why = "No setting is known to remove what costs time here. " + causes[0].Title + " (" + causes[0].ID + ")"
		if causes[0].instead != "" {
			a.Why += ": " + causes[0].instead
		}
		a.Why += "."
	case v.decode == nil:
		a.Do = "Change nothing."
		a.Why = fmt.Sprintf("Nothing in this trace costs more than its limit. Of decoding fewer than %d graphs were seen, and nothing is said about it.", fewestGraphs)
	case v.Roof.From == RoofDisturbed:
		a.Do = "Change nothing."
		a.Why = "Nothing in this trace costs more than its limit. How far decode is from what the machine can do is not known: other programs ran while its roof was measured."
	case !v.Roof.Known() && slices.ContainsFunc(v.Gaps, func(g Gap) bool { return g.What == GapRoof }):
		a.Do = "Change nothing."
		a.Why = "Nothing in this trace costs more than its limit. How far decode is from what the machine can do is not known: its roof could not be measured."
	case !v.Roof.Known():
		a.Do = "Change nothing."
		a.Why = "Nothing in this trace costs more than its limit. How far decode is from what the machine can do is not known: its roof was not measured (rooftop trace roof)."
	default:
		a.Do = "Change nothing."
		a.Why = "Nothing in this trace costs more than its limit."
	}
	a.Gain, a.GainLow, a.GainHigh = stat.None, stat.None, stat.None
	return a
}

// tooLittle says why nothing is said of a decode or a prefill.
func (v *view) tooLittle() (do, why string) {
	decodes := 0
	for i := range v.Phases {
		if p := &v.Phases[i]; p.Phase == PhaseDecode.String() {
			decodes = p.Graph.Count
		}
	}
	switch {
	case decodes > 0:
		return fmt.Sprintf("Nothing yet: too early, %d of %d graphs of a decode.", decodes, fewestGraphs),
			"What so few graphs point to may be chance. Trace for longer, while requests are served."
	case v.graphs > 0:
		return "Nothing: neither a decode nor a prefill was seen.", "What was computed is neither, or nothing says which: no advice is known for it."
	case v.Coverage.Calls > 0 || v.Coverage.Partial > 0:
		return "Nothing: no graph was seen as a whole.", "Advice follows from graphs: trace for longer, at a level with graphs, while requests are served."
	}
	return "Nothing: nothing was computed while the trace ran.", "Trace while requests are served."
}

// unseen says what could not be looked for, since it was not traced.
func (v *view) unseen() []string {
	var out []string
	if !v.preempted().ok && len(v.Threads) > 0 {
		out = append(out, "preempted: not ruled out, scheduling was not traced")
	}
	if v.lanes > 1 && !v.barriers().ok {
		out = append(out, "sync-bound: not ruled out, barriers were not traced")
	}
	return out
}
