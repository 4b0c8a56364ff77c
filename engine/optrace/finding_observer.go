package optrace

import (
	"fmt"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

const (
	// observerMeasured is the share of its speed that the target loses by tracing, the lower end of its interval, above
	// which shares of operators are no longer those of the runtime alone: each probe adds
	// about as much to a small operator as to a large one.
	observerMeasured = 0.05
	// observerExpected is the same for a share that was reckoned, which is right
	// within half of itself (measured on five runtimes).
	observerExpected = 0.10
	// observerBad is where small operators show more of the probe than of themselves.
	observerBad = 0.20
	// lostShare is the share of events, or of graphs, from which on what is left may be
	// another sample than the whole.
	lostShare = 0.05
	// levelFlag is rooftop's own option for the level of detail.
	levelFlag = "--level"
)

// findObserver is tracing that changes what it traces.
func findObserver(v *view) (cause, bool) {
	o := &v.Observer
	// Of what is expected as much counts as will be lost at least; what rooftop had of the
	// CPUs was seen.
	slow, least, cost := o.Cost(), o.Expected*observerMeasured/observerExpected+o.tookCPU(), o.OfMean().Or(o.Cost())
	if o.Windows > 0 {
		slow, least, cost = o.MeasuredLow, o.MeasuredLow, o.MeasuredLow
	}
	if !(least > observerMeasured) {
		return cause{}, false
	}
	severity := severityWarn
	if cost > observerBad {
		severity = severityBad
	}
	do := "Trace again with less detail before changing anything."
	if o.Windows == 0 && o.tookCPU() > o.Expected {
		do = "Trace again with less detail, or leave rooftop a CPU of its own, before changing anything."
	}
	evidence := o.evidence()
	if v.Coverage.Detail != "" && o.Windows == 0 && o.HitsPerToken > 0 {
		evidence[0] = "At level " + v.Coverage.Detail + ", " + evidence[0]
	}
	return cause{
		Finding: Finding{ID: "observer-effect", Severity: severity, Title: "Tracing slows the target down", Evidence: evidence, Cost: stat.Some(cost)},
		remedy: &remedy{
			kind: remedyTrace, do: do, flag: levelFlag, value: v.lighter(),
			why:   "Figures that tracing bends by " + spellPercent(slow) + " do not tell which setting costs time.",
			price: "fewer figures: what the level leaves out is absent",
		},
	}, true
}

// evidence is what tracing costs, and where that is known from.
func (o *Observer) evidence() []string {
	var out []string
	if o.Windows > 0 {
		out = append(out, fmt.Sprintf("With probes the target loses %s of its speed (95 %% interval %s to %s, %d windows on and off in turn).", spellPercent(o.Measured), spellPercent(o.MeasuredLow), spellPercent(o.MeasuredHigh), o.Windows))
	} else {
		if o.HitsPerToken > 0 {
			out = append(out, fmt.Sprintf("%s probe hits a token on a thread, %s each in the mean, are expected to take %s of the target's speed (est).", spellThree(o.HitsOfThread()), spellTime(o.CostPerHit), spellPercent(o.Expected)))
		}
		if o.TookCPU() {
			out = append(out, fmt.Sprintf("rooftop itself had a compute thread's CPU for %s of the time of graphs: %s together.", spellPercent(o.tookCPU()), spellPercent(o.Cost())))
		}
		if mean := o.OfMean(); mean.OK {
			out = append(out, fmt.Sprintf("That is by the median token. The mean one takes %s, what holds it up included: tracing takes %s of that.", spellTime(o.MeanGraph), spellPercent(mean.V)))
		}
	}
	return append(out, "Small operators look longer than they are, and their shares with them.")
}

// mostlyOperators is how many times the hits on operators all hits may be, for less than
// these to save next to nothing.
const mostlyOperators = 1.5

// lighter is the name of a level that costs clearly less: without what is more than
// tensors, or without operators at all, each of which is a hit on each lane.
func (v *view) lighter() string {
	hits, operators := v.Observer.HitsPerToken, v.Coverage.OpsPerToken.Or(0)*float64(max(v.lanes, 1))
	if hits > 0 && hits <= mostlyOperators*operators {
		return "graph"
	}
	switch v.Coverage.Detail {
	case "tensor", "operator", "graph", "token":
		return "graph"
	default:
		return "tensor"
	}
}

// findLost is events or graphs that are missing from the figures.
func findLost(v *view) (cause, bool) {
	c := &v.Coverage
	events, graphs := shareOf(float64(c.Dropped), float64(c.Events)), shareOf(float64(c.Partial), float64(c.Graphs))
	// One partial graph begins and one ends most traces.
	if c.Partial <= 2 {
		graphs = 0
	}
	if max(events, graphs) <= lostShare {
		return cause{}, false
	}
	return cause{
		Finding: Finding{ID: "events-lost", Severity: severityWarn, Title: "Part of the trace was lost", Cost: stat.None, Evidence: []string{
			fmt.Sprintf("%d events were lost beside %d that came; %d graphs are incomplete and left out beside %d whole ones.", c.Dropped, c.Events, c.Partial, c.Graphs),
			"Totals are too low. Rates hold as far as the graphs that are left are like the others.",
		}},
		remedy: &remedy{
			kind: remedyTrace, do: "Trace again with less detail, or with fewer other programs on the machine.", flag: levelFlag, value: v.lighter(),
			why: "The reader did not keep up with the events.", price: "fewer figures",
		},
	}, true
}

// shareOf is lost/(lost+kept), 0 where nothing was lost.
func shareOf(lost, kept float64) float64 {
	if lost <= 0 {
		return 0
	}
	return lost / (lost + kept)
}
