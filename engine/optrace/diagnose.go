package optrace

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Severities of a finding.
const (
	severityBad  = "bad"
	severityWarn = "warn"
	severityGood = "good"
	severityInfo = "info"
)

// cause is a finding with what would remove it.
type cause struct {
	Finding
	remedy *remedy // nil where nothing is known that would
	// instead says why there is no remedy, or why it stands behind others; it goes
	// among what was rejected.
	instead string
}

// remedy is a change that may become the advice.
type remedy struct {
	kind           remedyKind
	do, why, price string
	flag, value    string
	gain           gain
}

// remedyKind orders remedies: figures have to hold before a setting is judged by them,
// and a flag comes before another model file.
type remedyKind uint8

const (
	remedyTrace  remedyKind = iota // trace again: the figures do not hold
	remedyHost                     // the machine, not the runtime
	remedyFlag                     // a setting of the runtime
	remedyModel                    // another model file
	remedyBeyond                   // nothing of the runtime: the application, the hardware
)

// gain is the expected relative change of tokens a second with its range.
type gain struct{ mid, low, high stat.Opt }

// gainOf is a gain whose three figures are known; what is expected lies in its range.
func gainOf(low, mid, high float64) gain {
	return gain{mid: stat.Some(mid), low: stat.Some(min(low, mid)), high: stat.Some(max(high, mid))}
}

// freed is the gain of a share of the time that goes away: share/(1-share).
func freed(share float64) float64 {
	share = min(max(share, 0), mostFreed)
	return share / (1 - share)
}

// mostFreed keeps the gain of a share finite.
const mostFreed = 0.9

// checks are all that is looked for, each in a file of its own.
var checks = []func(*view) (cause, bool){
	findObserver, findLost, findUneven,
	findPreempted, findOversubscribed,
	findFewThreads, findManyThreads, findSync,
	findCold,
	findSmallBatch,
	findAttention,
	findRepacking,
	findCopies,
	findBetween,
	findSlowLayer,
	findQuantisation, findAtRoof,
	findExperts,
}

// Diagnose says what costs a traced runtime time, the worst first, and the one thing
// to change, or that there is none. It goes by the summary alone and asks for nothing
// that is not in it: what was not traced is not claimed. Every limit is a named
// constant with its reason beside the check.
func Diagnose(s *Summary) ([]Finding, Advice) {
	v := lookAt(s)
	var causes []cause
	for _, check := range checks {
		if c, ok := check(v); ok {
			c.bound()
			if v.few() {
				c.doubt(v.graphs)
			}
			causes = append(causes, c)
		}
	}
	slices.SortStableFunc(causes, func(a, b cause) int {
		return cmp.Or(cmp.Compare(rank(a.Severity), rank(b.Severity)), cmp.Compare(b.Cost.Or(0), a.Cost.Or(0)))
	})
	findings := make([]Finding, len(causes))
	for i := range causes {
		findings[i] = causes[i].Finding
	}
	return findings, advise(v, causes)
}

// doubt keeps what a few graphs point to from being called bad. Figures that do not hold
// are as bad as they are.
func (c *cause) doubt(graphs int) {
	if c.Severity != severityBad || c.remedy != nil && c.remedy.kind == remedyTrace {
		return
	}
	c.Severity = severityWarn
	c.Evidence = append(c.Evidence, fmt.Sprintf("It is too early to tell: %d of %d graphs were seen.", graphs, fewestGraphs))
}

// bound keeps what follows from figures that contradict each other (those of a recording
// that was altered) a share and a gain, or makes it absent.
func (c *cause) bound() {
	if math.IsNaN(c.Cost.V) {
		c.Cost = stat.None
	}
	c.Cost.V = min(max(c.Cost.V, 0), 1)
	if c.remedy == nil {
		return
	}
	if g := &c.remedy.gain; !finiteNumber(g.low.V) || !finiteNumber(g.mid.V) || !finiteNumber(g.high.V) {
		*g = gain{}
	}
}

func finiteNumber(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

func rank(severity string) int {
	return slices.Index([]string{severityBad, severityWarn, severityInfo, severityGood}, severity)
}
