package verdict

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

// stood is the state of an objective on one side.
type stood struct {
	name    string
	latency float64 // of all requests, against a limit of 0.9 s
}

// A limit of 0.9 s lies inside the bucket from 0.75 to 1 s.
var (
	isKept     = stood{"kept", 0.2}
	isMissed   = stood{"missed", 3}
	isDoubtful = stood{"doubtful", 0.85}
)

const limited = 0.9

// answering is two and a half minutes of a server with the given values, with latencies equal to within 1 %.
func answering(seed uint64, tokens, ttft, itl float64) *Side {
	r := rand.New(rand.NewPCG(seed, 13))
	start := make(Incarnation, 75)
	for i := range start {
		s := &start[i]
		s.Start, s.Length = time.Duration(i)*piece, piece
		scatter := 1 + 0.02*r.NormFloat64()
		s.Tokens, s.Finished = stat.Some(2*tokens*scatter), stat.Some(tokens/25*scatter)
		s.Running, s.Waiting = stat.Some(16), stat.Some(8)
		s.TTFT, s.ITL = drawn(r, ladder, 40, ttft, 0.01), drawn(r, ladder, 40, itl, 0.01)
	}
	return &Side{Incarnations: []Incarnation{start}}
}

// TestWhatBecomesOfObjectives has two objectives, with more, equal and less output. A newly missed objective is never
// compensated. What becomes of one alone is in TestGoalsAndObjectives.
func TestWhatBecomesOfObjectives(t *testing.T) {
	const (
		more = 1400
		same = 1001
		less = 700
	)
	for _, c := range []struct {
		tokens       float64 // 1000 before
		ttft, ttftIs stood
		itl, itlIs   stood
		want         Direction
		says         string
	}{
		{more, isKept, isKept, isKept, isMissed, Worse, "itl_p99 ≤ 900 ms was met before, and is missed now"},
		{more, isMissed, isKept, isKept, isMissed, Worse, "was met before, and is missed now"},
		{less, isMissed, isKept, isKept, isKept, Better, "is met now, and was missed before"},
		{same, isMissed, isKept, isMissed, isMissed, Better, "is missed before and after"},
		{more, isMissed, isMissed, isMissed, isMissed, Better, "is missed before and after"},
		{more, isKept, isKept, isDoubtful, isMissed, Plateau, "is missed"},
		{less, isMissed, isKept, isDoubtful, isMissed, Plateau, "is missed"},
		{more, isKept, isKept, isKept, isDoubtful, Inconclusive, "is met is unresolved"},
		{more, isDoubtful, isDoubtful, isKept, isKept, Inconclusive, "is met is unresolved"},
		{same, isMissed, isKept, isKept, isDoubtful, Inconclusive, "is met is unresolved"},
		{same, isKept, isDoubtful, isKept, isKept, Plateau, ""},
		{less, isKept, isDoubtful, isMissed, isDoubtful, Worse, ""},
	} {
		p := Plan{Last: true, Objectives: []Objective{
			{Name: "ttft_p99", Metric: MetricTTFT, Quantile: 0.99, Limit: limited},
			{Name: "itl_p99", Metric: MetricITL, Quantile: 0.99, Limit: limited},
		}}
		got := Judge(answering(1, 1000, c.ttft.latency, c.itl.latency), answering(2, c.tokens, c.ttftIs.latency, c.itlIs.latency), p)
		if got.Direction != c.want || !says(&got, c.says) {
			t.Errorf("output %v, TTFT %s to %s, ITL %s to %s: got %s: %s, want %s with %q",
				c.tokens, c.ttft.name, c.ttftIs.name, c.itl.name, c.itlIs.name, got.Direction, got.Reason, c.want, c.says)
		}
	}
}

// TestAMissedObjectiveThatMoves checks that an objective missed before and after decides if it moves, and leaves the call
// to the goal otherwise.
func TestAMissedObjectiveThatMoves(t *testing.T) {
	for _, c := range []struct {
		name                 string
		tokens, before, then float64
		want                 Direction
		says                 string
	}{
		{"as before, more output", 2000, 3, 3, Better, "output +99.5 %"},
		{"by more, more output", 2000, 3, 8, Worse, "missed before and after, and by more"},
		{"by less, less output", 900, 8, 3, Better, "missed before and after, but by less"},
		{"beyond the last bound before", 1000, 200, 3, Better, "but by less"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := Plan{Last: true, Objectives: []Objective{{Name: "ttft_p99", Metric: MetricTTFT, Quantile: 0.99, Limit: limited}}}
			got := Judge(answering(1, 1000, c.before, 0.02), answering(2, c.tokens, c.then, 0.02), p)
			if got.Direction != c.want || !says(&got, c.says) || !strings.Contains(got.Reason, "missed before and after") {
				t.Errorf("got %s: %s, want %s with %q", got.Direction, got.Reason, c.want, c.says)
			}
		})
	}
}

// TestALookWaitsForTheObjectives checks that less output does not end a trial while a missed objective may still be met.
func TestALookWaitsForTheObjectives(t *testing.T) {
	p := Plan{Look: 7, Looks: 9, Objectives: []Objective{{Name: "ttft_p99", Metric: MetricTTFT, Quantile: 0.99, Limit: limited}}}
	for _, c := range []struct {
		is      stood
		settled bool
	}{{isDoubtful, false}, {isMissed, true}} {
		got := Judge(answering(1, 1000, isMissed.latency, 0.02), answering(2, 700, c.is.latency, 0.02), p)
		if got.Direction != Worse || got.Settled != c.settled {
			t.Errorf("%s after: %s, settled %v: %s", c.is.name, got.Direction, got.Settled, got.Reason)
		}
	}
}
