package capture

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/engine/compare"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// paced multiplies the times of each request of a side by a factor.
func paced(s *Record, factor func(i int) float64) *Record {
	for i := range s.Capture.Requests {
		q, f := &s.Capture.Requests[i], factor(i)
		for j := range q.Chunks {
			q.Chunks[j].At = q.Sent + time.Duration(f*float64(q.Chunks[j].At-q.Sent))
		}
		q.End = q.Sent + time.Duration(f*float64(q.End-q.Sent))
	}
	return s
}

// wandering returns correlated noise: each request keeps a share of the previous one's.
func wandering(r *rand.Rand, keep, scatter float64) func(int) float64 {
	x := r.NormFloat64()
	return func(int) float64 {
		x = keep*x + math.Sqrt(1-keep*keep)*r.NormFloat64()
		return math.Exp(scatter * x)
	}
}

// TestNeighboursThatResembleEachOther checks that noise that lasts for several requests (another
// tenant of the machine, clock changes) does not count as that many observations.
func TestNeighboursThatResembleEachOther(t *testing.T) {
	trials := trialsOf(1000)
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
					if f.Verdict == compare.Faster || f.Verdict == compare.Slower {
						named[f.Name]++
					}
				}
			}
			for name, n := range named {
				t.Logf("%s: %.1f %%", name, 100*float64(n)/float64(trials))
				if share := float64(n) / float64(trials); share > c.most {
					t.Errorf("%s is told apart in %.1f %% of equal pairs", name, 100*share)
				}
			}
		})
	}
}

// TestAWarmUpIsNoDirection checks that, of equal servers, the run with more requests is not called
// faster because its warm-up has less weight.
func TestAWarmUpIsNoDirection(t *testing.T) {
	trials := trialsOf(500)
	r := seeded(22)
	named := map[string]int{}
	warming := func(n int) *Record {
		return paced(side(r, n, 1, .02), func(i int) float64 { return 1 + math.Exp(-float64(i)/5) })
	}
	for range trials {
		for _, f := range Compare(warming(10), warming(100)).Changes {
			if f.Verdict == compare.Faster || f.Verdict == compare.Slower {
				named[f.Name]++
			}
		}
	}
	for name, n := range named {
		t.Logf("%s: %.1f %%", name, 100*float64(n)/float64(trials))
		if float64(n) > .08*float64(trials) {
			t.Errorf("%s is told apart in %d of %d equal pairs", name, n, trials)
		}
	}
}

// TestGapsOfChunksThatHoldMoreTokens checks that a server with three tokens per chunk is not called
// slower because its chunks are further apart.
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
		if f.Name == "itl_p50_s" && (f.Verdict != "" || !strings.Contains(f.Reason, "tokens per chunk") || !f.Ratio.OK) {
			t.Errorf("%q, %q", f.Verdict, f.Reason)
		}
		if f.Name == "tpot_s" && f.Verdict == "" {
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
	want := []compare.Difference{{What: "tokens counted by", A: "usage", B: "chunks"}, {What: "prompt tokens from the prefix cache", A: "0 %", B: "96 %"}}
	if len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestNoIntervalIsExplainedWhereThereIsNone checks that notes about intervals appear only with
// intervals.
func TestNoIntervalIsExplainedWhereThereIsNone(t *testing.T) {
	r := seeded(25)
	for _, c := range []struct {
		name string
		b    *Record
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

// TestWordsOfIntervals checks that "no difference" is used only if the whole interval is small.
func TestWordsOfIntervals(t *testing.T) {
	for _, c := range []struct {
		name      string
		low, high float64
		want      [2]compare.Verdict // of a time, of a rate
	}{
		{"small", .95, 1.05, [2]compare.Verdict{compare.Equal, compare.Equal}},
		{"to the edge", .9, 1.1, [2]compare.Verdict{compare.Equal, compare.Equal}},
		{"above", .95, 1.11, [2]compare.Verdict{compare.Unresolved, compare.Unresolved}},
		{"below", .89, 1.01, [2]compare.Verdict{compare.Unresolved, compare.Unresolved}},
		{"of two groups", .001, 285.83, [2]compare.Verdict{compare.Unresolved, compare.Unresolved}},
		{"a little more", 1.01, 1.05, [2]compare.Verdict{compare.Slower, compare.Faster}},
		{"a little less", .95, .99, [2]compare.Verdict{compare.Faster, compare.Slower}},
		{"much more", 1.2, 40, [2]compare.Verdict{compare.Slower, compare.Faster}},
	} {
		if got := [2]compare.Verdict{compare.Judge(c.low, c.high, false), compare.Judge(c.low, c.high, true)}; got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

// TestCannotTellSaysWhatToDo checks that an unresolved pair comes with advice, and a resolved one
// without.
func TestCannotTellSaysWhatToDo(t *testing.T) {
	for _, c := range []struct {
		name     string
		requests int
		scatter  float64
		want     bool
	}{{"two requests", 2, .3, true}, {"many of one length", 60, .001, false}} {
		r := seeded(26)
		got := Compare(side(r, c.requests, 1, c.scatter), side(r, c.requests, 1, c.scatter))
		if has := strings.Contains(strings.Join(got.Notes, " "), "(--repeat) narrow it"); has != c.want {
			t.Errorf("%s: %q", c.name, got.Notes)
		}
	}
}

// TestARunIsNotHeldAgainstItself checks that comparing a document with itself is refused, but two
// runs with the same start time are compared.
func TestARunIsNotHeldAgainstItself(t *testing.T) {
	wall := time.Date(2026, 11, 21, 22, 0, 0, 0, time.UTC)
	at := func(seed uint64, wall time.Time) *Record {
		s := side(seeded(seed), 10, 1, .1)
		s.Capture.Wall = wall
		return s
	}
	if got := Compare(at(1, wall), at(1, wall)).Refused; len(got) != 1 || !strings.Contains(got[0], "the same run") {
		t.Errorf("of one run: %q", got)
	}
	for name, b := range map[string]*Record{"other requests": at(2, wall), "another start": at(1, wall.Add(time.Second))} {
		if got := Compare(at(1, wall), b).Refused; len(got) != 0 {
			t.Errorf("%s: %q", name, got)
		}
	}
}
