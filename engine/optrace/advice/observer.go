package advice

import (
	"fmt"

	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

const (
	// observerMeasured is the share of its speed that the target loses by tracing, by the lower
	// end of the interval, above which shares of operators are distorted: each probe adds about
	// as much to a small operator as to a large one.
	observerMeasured = 0.05
	// observerExpected is the same for an estimated share, which is right within half of itself
	// (measured on five runtimes).
	observerExpected = 0.10
	// observerBad is the share from which small operators show more of the probe than of
	// themselves.
	observerBad = 0.20
	// LostShare is the share of lost events, or partial graphs, from which the remaining ones
	// may not represent the whole.
	LostShare = 0.05
)

// findObserver finds tracing that distorts its own figures.
func findObserver(v *subject) *cause {
	o := &v.Observer
	// Expected cost counts with its lower bound; the CPU time that rooftop took was measured.
	slow, least, cost := o.Cost(), o.Expected*observerMeasured/observerExpected+o.ReaderShare(), o.ShareOfMean().Or(o.Cost())
	if o.Windows > 0 {
		slow, least, cost = o.MeasuredLow, o.MeasuredLow, o.MeasuredLow
	}
	if !(least > observerMeasured) {
		return nil
	}
	severity := severityWarn
	if cost > observerBad {
		severity = severityBad
	}
	c := newCause(severity, "Tracing slows the target down", stat.Some(cost), v.observerEvidence()...)
	c.remedy = &remedy{
		kind: remedyTrace, do: "Trace again with less detail before changing anything.", flag: optrace.LevelFlag, value: v.lighterLevel(),
		why:   "Tracing distorts these figures by " + figure.PercentSign(slow) + ", so they do not show which setting costs time.",
		price: "fewer figures: those that the level leaves out are absent",
	}
	if o.Windows == 0 && o.ReaderShare() > o.Expected {
		c.remedy.do = "Trace again with less detail, or leave rooftop a CPU of its own, before changing anything."
	}
	return c
}

// observerEvidence describes what tracing costs, and how that is known.
func (v *subject) observerEvidence() []string {
	o := &v.Observer
	var out []string
	if o.Windows > 0 {
		out = append(out, fmt.Sprintf("With probes the target loses %s of its speed (95 %% interval %s to %s, %d windows with and without probes in turn).", figure.PercentSign(o.Measured), figure.PercentSign(o.MeasuredLow), figure.PercentSign(o.MeasuredHigh), o.Windows))
	} else {
		if o.HitsPerToken > 0 {
			level := ""
			if v.Coverage.Detail != "" {
				level = "At level " + v.Coverage.Detail + ", "
			}
			out = append(out, level+fmt.Sprintf("%s probe hits per token and thread, %s each on average, are expected to cost %s of the target's speed (est).", figure.Significant(o.HitsOfThread()), figure.Duration(o.CostPerHit), figure.PercentSign(o.Expected)))
		}
		if o.TookCPU() {
			out = append(out, fmt.Sprintf("rooftop itself had the CPU of a compute thread for %s of the time of graphs: %s together.", figure.PercentSign(o.ReaderShare()), figure.PercentSign(o.Cost())))
		}
		if mean := o.ShareOfMean(); mean.OK {
			out = append(out, fmt.Sprintf("These are shares of the median token. The mean token takes %s, including delays; tracing takes %s of that.", figure.Duration(o.MeanGraph), figure.PercentSign(mean.V)))
		}
	}
	return append(out, "Small operators look longer than they are, and so do their shares.")
}

// mostlyOperators is the ratio of all hits to those on operators up to which a level that keeps
// operators saves almost nothing.
const mostlyOperators = 1.5

// lighterLevel returns the name of a level that costs clearly less: without anything beyond tensors,
// or without operators, each of which is a hit on each thread.
func (v *subject) lighterLevel() string {
	hits, operators := v.Observer.HitsPerToken, v.Coverage.OpsPerToken.Or(0)*float64(max(v.ThreadCount, 1))
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

// findLost finds events or graphs that are missing from the figures.
func findLost(v *subject) *cause {
	c := &v.Coverage
	events, graphs := ShareOf(float64(c.Dropped), float64(c.Events)), ShareOf(float64(c.Partial), float64(c.Graphs))
	// Most traces begin with one partial graph and end with one.
	if c.Partial <= 2 {
		graphs = 0
	}
	if max(events, graphs) <= LostShare {
		return nil
	}
	lost := newCause(severityWarn, "Part of the trace was lost", stat.None,
		fmt.Sprintf("%s were lost and %s arrived; %s are incomplete and left out, %s are complete.", figure.Counted(c.Dropped, "event"), figure.Whole(float64(c.Events)), figure.Counted(c.Partial, "graph"), figure.Whole(float64(c.Graphs))),
		"Totals are too low. Rates hold if the remaining graphs are like the lost ones.")
	lost.remedy = &remedy{
		kind: remedyTrace, do: "Trace again with less detail, or with fewer other programs on the machine.", flag: optrace.LevelFlag, value: v.lighterLevel(),
		why: "rooftop did not read events as fast as the target made them.", price: "fewer figures",
	}
	return lost
}

// ShareOf returns lost/(lost+kept), 0 if nothing was lost.
func ShareOf(lost, kept float64) float64 {
	if lost <= 0 {
		return 0
	}
	return lost / (lost + kept)
}
