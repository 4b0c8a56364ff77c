package verdict

import (
	"fmt"
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
	stands     = [...]stood{isKept, isMissed, isDoubtful}
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

// wanted returns the expected direction of a change: by its effect on each objective, or else on the output.
func wanted(output Direction, was, is []stood) Direction {
	gained, open, amiss := output == Better, false, false
	for i := range was {
		switch b, a := was[i], is[i]; {
		case b == isKept && a == isMissed:
			return Worse
		case b == isMissed && a == isKept:
			gained = true
		case b == isDoubtful && a == isMissed:
			amiss = true
		case b != isMissed && a == isDoubtful:
			open = true
		}
	}
	switch {
	case !gained:
		return output
	case amiss:
		return Plateau
	case open:
		return Inconclusive
	}
	return Better
}

// TestWhatBecomesOfObjectives covers all transitions of one and two objectives, with more, equal and less output. A newly
// missed objective is never compensated, and the reported state of each is true.
func TestWhatBecomesOfObjectives(t *testing.T) {
	objectives := []Objective{
		{Name: "ttft_p99", Metric: MetricTTFT, Quantile: 0.99, Limit: limited},
		{Name: "itl_p99", Metric: MetricITL, Quantile: 0.99, Limit: limited},
	}
	judgedTo := func(t *testing.T, output Direction, was, is []stood) {
		tokens := map[Direction]float64{Better: 1400, Plateau: 1001, Worse: 700}[output]
		second := func(s []stood) float64 { return s[len(s)-1].latency }
		p := Plan{Last: true, Objectives: objectives[:len(was)]}
		got := Judge(answering(1, 1000, was[0].latency, second(was)), answering(2, tokens, is[0].latency, second(is)), p)
		if want := wanted(output, was, is); got.Direction != want {
			t.Errorf("got %s: %s, want %s", got.Direction, got.Reason, want)
		}
		for i := range was {
			name := limitOf(&got.Objectives[i])
			for text, holds := range map[string]bool{
				" was met before, and is missed now": was[i] == isKept && is[i] == isMissed,
				" is met now, and was missed before": was[i] == isMissed && is[i] == isKept,
				" is missed before and after":        was[i] == isMissed && is[i] == isMissed,
			} {
				if strings.Contains(got.Reason, name+text) != holds {
					t.Errorf("%q is said or not, against the truth: %s", name+text, got.Reason)
				}
			}
		}
	}
	for _, output := range [...]Direction{Better, Plateau, Worse} {
		for i := range 9 {
			was, is := stands[i/3], stands[i%3]
			t.Run(fmt.Sprintf("output %s, %s to %s", output, was.name, is.name), func(t *testing.T) {
				judgedTo(t, output, []stood{was}, []stood{is})
			})
			for j := range 9 {
				and, then := stands[j/3], stands[j%3]
				t.Run(fmt.Sprintf("output %s, %s to %s and %s to %s", output, was.name, is.name, and.name, then.name), func(t *testing.T) {
					judgedTo(t, output, []stood{was, and}, []stood{is, then})
				})
			}
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
