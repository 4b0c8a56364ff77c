package capture

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

// paced multiplies the times of each request of a side by a factor.
func paced(s *Side, factor func(i int) float64) *Side {
	for i := range s.Capture.Requests {
		q, f := &s.Capture.Requests[i], factor(i)
		for j := range q.Chunks {
			q.Chunks[j].At = q.Sent + time.Duration(f*float64(q.Chunks[j].At-q.Sent))
		}
		q.End = q.Sent + time.Duration(f*float64(q.End-q.Sent))
	}
	return s
}

// wandering is noise of which each request keeps a share.
func wandering(r *rand.Rand, keep, scatter float64) func(int) float64 {
	x := r.NormFloat64()
	return func(int) float64 {
		x = keep*x + math.Sqrt(1-keep*keep)*r.NormFloat64()
		return math.Exp(scatter * x)
	}
}

// TestNeighboursThatResembleEachOther holds that noise which lasts for several requests
// (a neighbour of the server's machine, its clocks) is not taken for as many
// observations as there are requests.
func TestNeighboursThatResembleEachOther(t *testing.T) {
	const trials = 1000
	for _, c := range []struct {
		name     string
		requests int
		keep     float64
		most     float64
	}{{"half", 50, .5, .09}, {"most of it", 100, .8, .12}} {
		t.Run(c.name, func(t *testing.T) {
			r := seeded(21)
			named := map[string]int{}
			for range trials {
				a := paced(side(r, c.requests, 1, .01), wandering(r, c.keep, .1))
				b := paced(side(r, c.requests, 1, .01), wandering(r, c.keep, .1))
				for _, f := range Compare(a, b).Changes {
					if f.Word == Faster || f.Word == Slower {
						named[f.Name]++
					}
				}
			}
			for name, n := range named {
				t.Logf("%s: %.1f %%", name, 100*float64(n)/trials)
				if share := float64(n) / trials; share > c.most {
					t.Errorf("%s is told apart in %.1f %% of equal pairs", name, 100*share)
				}
			}
		})
	}
}

// TestAWarmUpIsNoDirection holds that of equal servers the run with more requests is
// not called faster because its warm-up weighs less.
func TestAWarmUpIsNoDirection(t *testing.T) {
	const trials = 500
	r := seeded(22)
	named := map[string]int{}
	warming := func(n int) *Side {
		return paced(side(r, n, 1, .02), func(i int) float64 { return 1 + math.Exp(-float64(i)/5) })
	}
	for range trials {
		for _, f := range Compare(warming(10), warming(100)).Changes {
			if f.Word == Faster || f.Word == Slower {
				named[f.Name]++
			}
		}
	}
	for name, n := range named {
		t.Logf("%s: %.1f %%", name, 100*float64(n)/trials)
		if float64(n) > .08*trials {
			t.Errorf("%s is told apart in %d of %d equal pairs", name, n, trials)
		}
	}
}

// TestGapsOfChunksThatHoldMoreTokens holds that a server which sends three tokens at a
// time is not called slower because its chunks are further apart.
func TestGapsOfChunksThatHoldMoreTokens(t *testing.T) {
	r := seeded(23)
	a, b := side(r, 20, 1, .02), side(r, 20, 1, .02)
	for i := range b.Capture.Requests { // every second chunk goes, the times stay
		q := &b.Capture.Requests[i]
		var kept []Chunk
		for j, k := range q.Chunks {
			if j%2 == 1 || j == 0 {
				kept = append(kept, k)
			}
		}
		q.Chunks = kept
	}
	for _, f := range Compare(a, b).Changes {
		if f.Name == "itl_p50_s" && (f.Word != "" || !strings.Contains(f.Reason, "tokens a chunk") || !f.Ratio.OK) {
			t.Errorf("%q, %q", f.Word, f.Reason)
		}
		if f.Name == "tpot_s" && f.Word == "" {
			t.Errorf("TPOT has no verdict: %s", f.Reason)
		}
	}
}

func TestDifferencesOfCounting(t *testing.T) {
	r := seeded(24)
	a, b := side(r, 10, 1, .02), side(r, 10, 1, .02)
	b.Summary.Requests.Tokens.From = fromChunks
	a.Summary.Requests.PromptTokens, b.Summary.Requests.PromptTokens = stat.Some(1000), stat.Some(1000)
	a.Summary.Requests.CachedTokens, b.Summary.Requests.CachedTokens = stat.Some(0), stat.Some(960)
	got := Compare(a, b).Differs
	want := []Difference{{"tokens counted by", "usage", "chunks"}, {"prompt tokens from the prefix cache", "0 %", "96 %"}}
	if len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestNoIntervalIsExplainedWhereThereIsNone holds that a note about intervals stands
// beside one.
func TestNoIntervalIsExplainedWhereThereIsNone(t *testing.T) {
	r := seeded(25)
	for _, c := range []struct {
		name string
		b    *Side
		want bool
	}{
		{"with one", side(r, 10, 1, .02), true},
		{"times that run backwards", paced(side(r, 10, 1, .02), func(int) float64 { return -1 }), false},
	} {
		got := Compare(side(r, 10, 1, .02), c.b)
		if has := strings.Contains(strings.Join(got.Notes, " "), "each interval"); has != c.want || len(got.Changes) == 0 {
			t.Errorf("%s: %q", c.name, got.Notes)
		}
	}
}

// TestWordsOfIntervals holds that "no difference" is said only where the whole interval
// is small.
func TestWordsOfIntervals(t *testing.T) {
	longer, rate := requestFigure{}, requestFigure{rate: true}
	for _, c := range []struct {
		name      string
		low, high float64
		want      [2]Word // of a time, of a rate
	}{
		{"small", .95, 1.05, [2]Word{Equal, Equal}},
		{"to the edge", .9, 1.1, [2]Word{Equal, Equal}},
		{"above", .95, 1.11, [2]Word{Unclear, Unclear}},
		{"below", .89, 1.01, [2]Word{Unclear, Unclear}},
		{"of two groups", .001, 285.83, [2]Word{Unclear, Unclear}},
		{"a little more", 1.01, 1.05, [2]Word{Slower, Faster}},
		{"a little less", .95, .99, [2]Word{Faster, Slower}},
		{"much more", 1.2, 40, [2]Word{Slower, Faster}},
	} {
		if got := [2]Word{longer.word(c.low, c.high), rate.word(c.low, c.high)}; got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

// TestCannotTellSaysWhatToDo holds that a pair which settles nothing has advice, and one
// that settles all has none.
func TestCannotTellSaysWhatToDo(t *testing.T) {
	for _, c := range []struct {
		name     string
		requests int
		scatter  float64
		want     bool
	}{{"two requests", 2, .3, true}, {"many of one length", 60, .001, false}} {
		r := seeded(26)
		got := Compare(side(r, c.requests, 1, c.scatter), side(r, c.requests, 1, c.scatter))
		if has := strings.Contains(strings.Join(got.Notes, " "), "(--repeat) make it narrower"); has != c.want {
			t.Errorf("%s: %q", c.name, got.Notes)
		}
	}
}

// TestARunIsNotHeldAgainstItself holds that one document under two names is refused, and
// that two runs which began at one moment are not.
func TestARunIsNotHeldAgainstItself(t *testing.T) {
	wall := time.Date(2026, 11, 21, 22, 0, 0, 0, time.UTC)
	at := func(seed uint64, wall time.Time) *Side {
		s := side(seeded(seed), 10, 1, .1)
		s.Capture.Wall = wall
		return s
	}
	if got := Compare(at(1, wall), at(1, wall)).Refused; len(got) != 1 || !strings.Contains(got[0], "one run") {
		t.Errorf("of one run: %q", got)
	}
	for name, b := range map[string]*Side{"other requests": at(2, wall), "another start": at(1, wall.Add(time.Second))} {
		if got := Compare(at(1, wall), b).Refused; len(got) != 0 {
			t.Errorf("%s: %q", name, got)
		}
	}
}
