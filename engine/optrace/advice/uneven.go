package advice

import (
	"fmt"
	"slices"

	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// unevenGraphs is the ratio of the 95th percentile of decode graphs to their median from which
// something other than the model delays them: on an idle machine it is 1.1 to 1.3 (real
// runtimes, one and two threads), and contexts that grow within a trace hardly double a graph.
const unevenGraphs = 2.5

// GapExpertTimes is the What of the gap of times by expert that are not meaningful.
const GapExpertTimes = "times by expert"

// DoubtExpertTimes removes the times by expert if graphs take very different times and it is
// unknown whether a batch lost its CPU: a few of these make an expert look tens of times
// slower.
func DoubtExpertTimes(s *optrace.Summary) {
	if s.Experts == nil || !slices.ContainsFunc(s.Findings, func(f optrace.Finding) bool { return f.ID == "uneven-graphs" }) {
		return
	}
	timed := s.Experts.TimeCV.OK
	s.Experts.TimeCV = stat.None
	for i := range s.Experts.Layers {
		times := s.Experts.Layers[i].Time
		timed = timed || slices.ContainsFunc(times, func(t stat.Opt) bool { return t.OK })
		clear(times)
	}
	if timed {
		s.Gaps = append(s.Gaps, optrace.Gap{
			What: GapExpertTimes, Why: "tokens take very different times and scheduling was not traced, so a batch that waited for a CPU looks like a slow expert",
			Next: "trace again with " + optrace.LevelFlag + " sched",
		})
	}
}

// findUneven finds decode graphs of very different length in a trace without scheduling, where
// threads that wait for a CPU look like slow operators.
func findUneven(v *subject) *cause {
	if v.Decode == nil || v.PreemptedSpread().OK {
		return nil
	}
	d := &v.Decode.Graph
	ratio := float64(d.P95) / float64(max(d.P50, 1))
	if ratio < unevenGraphs {
		return nil
	}
	c := newCause(severityWarn, "Tokens take very different times, and scheduling was not traced", stat.None,
		fmt.Sprintf("The median decode graph takes %s, the 95th percentile is %s, %.1f times as long.", figure.Duration(d.P50), figure.Duration(d.P95), ratio),
		"At this level a thread that waits for a CPU looks like one that computes: times of operators and layers may include other programs.")
	c.remedy = &remedy{
		kind: remedyTrace, do: "Trace again with scheduling before changing anything.", flag: optrace.LevelFlag, value: "sched",
		why:   "Other programs may take the CPU; these figures cannot distinguish that from a slow operator.",
		price: "hardly any: a probe at each context switch",
	}
	return c
}
