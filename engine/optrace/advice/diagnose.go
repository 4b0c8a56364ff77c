// Package advice finds what costs a traced runtime time, and derives the one change to
// make. Each check has a file of its own with its limits and their reasons.
package advice

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Severities of a finding, the most serious first.
const (
	severityBad  = "bad"
	severityWarn = "warn"
	severityInfo = "info"
	severityGood = "good"
)

// severityRank returns the position of a severity, 0 for the most serious.
func severityRank(severity string) int {
	return slices.Index([]string{severityBad, severityWarn, severityInfo, severityGood}, severity)
}

// severityFrom returns bad from a limit on, and warn below it.
func severityFrom(value, limit float64) string {
	if value >= limit {
		return severityBad
	}
	return severityWarn
}

// subject is the trace under diagnosis.
type subject struct {
	*optrace.View
	names dialect
}

// cause is a finding with the change that would remove it.
type cause struct {
	optrace.Finding
	remedy *remedy // nil if no remedy is known
	// instead says why there is no remedy, or why it comes second. It is listed among what
	// was rejected.
	instead string
}

// newCause returns a cause without a remedy.
func newCause(severity, title string, cost stat.Opt, evidence ...string) *cause {
	return &cause{Finding: optrace.Finding{Severity: severity, Title: title, Cost: cost, Evidence: evidence}}
}

// remedy is a change that may become the advice.
type remedy struct {
	kind           remedyKind
	do, why, price string
	flag, value    string
	gain           gain
}

// remedyKind orders remedies: figures must be sound before a setting is judged by them, and a
// flag comes before another model file.
type remedyKind uint8

const (
	remedyTrace  remedyKind = iota // trace again, because the figures are not sound
	remedyHost                     // the machine, not the runtime
	remedyFlag                     // a setting of the runtime
	remedyModel                    // another model file
	remedyBeyond                   // outside the runtime: the application, the hardware
)

// setting completes the remedy that sets an option of the runtime to a value.
func (v *subject) setting(o option, value string, r remedy) *remedy {
	r.kind = remedyFlag
	r.flag, r.value = v.names.spell(o, value)
	r.why += v.names.unrecognisedNote()
	return &r
}

// gain is the expected relative change of tokens per second with its range.
type gain struct{ mid, low, high stat.Opt }

// gainOf returns a gain whose three figures are known. The range is widened to hold mid.
func gainOf(low, mid, high float64) gain {
	return gain{mid: stat.Some(mid), low: stat.Some(min(low, mid)), high: stat.Some(max(high, mid))}
}

// freed returns the gain of saving a share of the time: share/(1-share).
func freed(share float64) float64 {
	share = min(max(share, 0), mostFreed)
	return share / (1 - share)
}

// mostFreed keeps the gain of a share finite.
const mostFreed = 0.9

// checks are all checks by the id of their finding.
var checks = []struct {
	id  string
	run func(*subject) *cause
}{
	{"observer-effect", findObserver}, {"events-lost", findLost}, {"uneven-graphs", findUneven},
	{"preempted", findPreempted}, {"oversubscribed", findOversubscribed},
	{"sync-bound", findSync},
	{"mmap-cold", findCold}, {"prefill-batch-too-small", findSmallBatch}, {"attention-grows", findAttention},
	{"repacking-unused", findRepacking}, {"offload-copies", findCopies}, {"time-between-calls", findBetween},
	{"slow-layer", findSlowLayer}, {"quantisation", findQuantisation}, {"decode-at-memory-peak", findAtPeak},
	{"experts-uneven", findExperts},
}

// Diagnose returns what costs a traced runtime time, the worst first, and the one change to
// make, or that there is none. It uses only the summary and makes no claim about what was not
// traced.
func Diagnose(s *optrace.Summary) ([]optrace.Finding, optrace.Advice) {
	v := &subject{optrace.NewView(s), dialectOf(&s.Target)}
	var causes []*cause
	for _, check := range checks {
		if c := check.run(v); c != nil {
			c.ID = check.id
			c.makeFinite()
			if v.FewGraphs() {
				c.markPreliminary(v.Graphs)
			}
			causes = append(causes, c)
		}
	}
	slices.SortStableFunc(causes, func(a, b *cause) int {
		return cmp.Or(cmp.Compare(severityRank(a.Severity), severityRank(b.Severity)), cmp.Compare(b.Cost.Or(0), a.Cost.Or(0)))
	})
	findings := make([]optrace.Finding, len(causes))
	for i, c := range causes {
		findings[i] = c.Finding
	}
	return findings, advise(v, causes)
}

// markPreliminary downgrades a bad finding that is based on too few graphs. Findings about the figures
// themselves keep their severity.
func (c *cause) markPreliminary(graphs int) {
	if c.Severity != severityBad || c.remedy != nil && c.remedy.kind == remedyTrace {
		return
	}
	c.Severity = severityWarn
	c.Evidence = append(c.Evidence, fmt.Sprintf("This is preliminary: the trace has %d of the %d graphs that a verdict needs.", graphs, optrace.FewestGraphs))
}

// makeFinite bounds cost and gain, which may be out of range in a recording that was altered.
func (c *cause) makeFinite() {
	if math.IsNaN(c.Cost.V) {
		c.Cost = stat.None
	}
	c.Cost.V = min(max(c.Cost.V, 0), 1)
	if c.remedy == nil {
		return
	}
	if g := &c.remedy.gain; !stat.IsFinite(g.low.V) || !stat.IsFinite(g.mid.V) || !stat.IsFinite(g.high.V) {
		*g = gain{}
	}
}
