package optrace

import (
	"fmt"
	"slices"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

// unevenGraphs is how many times longer one decode graph in twenty is than the median
// one, from which on something comes between that is not the model: alone on a machine
// the ratio is 1.1 to 1.3 (real runtimes, one and two threads), and contexts that grow
// within a trace hardly double a graph.
const unevenGraphs = 2.5

// GapExpertTimes is the What of the gap of times by expert that say nothing of experts.
const GapExpertTimes = "times by expert"

// doubtExpertTimes leaves the times of experts out where graphs take very different times
// and nothing tells whether a batch lost its CPU: a few of these make an expert look
// tens of times slower.
func (s *Summary) doubtExpertTimes() {
	if s.Experts == nil || !slices.ContainsFunc(s.Findings, func(f Finding) bool { return f.ID == "uneven-graphs" }) {
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
		s.Gaps = append(s.Gaps, Gap{
			What: GapExpertTimes, Why: "tokens take very different times, and scheduling was not traced: a batch that waited for a CPU looks like a slow expert",
			Next: "trace again with " + levelFlag + " sched",
		})
	}
}

// findUneven is decode graphs of very different length in a trace that does not tell
// time off the CPU from computing: threads that wait for a CPU look like slow operators.
func findUneven(v *view) (cause, bool) {
	if v.decode == nil || v.preempted().ok {
		return cause{}, false
	}
	d := &v.decode.Graph
	ratio := float64(d.P95) / float64(max(d.P50, 1))
	if ratio < unevenGraphs {
		return cause{}, false
	}
	return cause{
		Finding: Finding{ID: "uneven-graphs", Severity: severityWarn, Title: "Tokens take very different times, and scheduling was not traced", Cost: stat.None, Evidence: []string{
			fmt.Sprintf("Half of the decode graphs took at most %s, one in twenty more than %s, %.1f times as long.", spellTime(d.P50), spellTime(d.P95), ratio),
			"At this level a thread that waits for a CPU looks like one that computes: times of operators and layers may be those of other programs.",
		}},
		remedy: &remedy{
			kind: remedyTrace, do: "Trace again with scheduling before changing anything.", flag: levelFlag, value: "sched",
			why:   "Others may take the CPU, and no figure here tells that from a slow operator.",
			price: "hardly any: a probe at each switch of a thread",
		},
	}, true
}
