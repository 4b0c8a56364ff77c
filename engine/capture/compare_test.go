package capture

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/compare"
	"github.com/rooftop-dev/rooftop/engine/longtest"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// side returns a probe whose requests vary by a relative scatter around the same times, all
// multiplied by a factor.
func side(r *rand.Rand, requests int, factor, scatter float64) *Record {
	const tokens = 16
	noise := func() float64 { return factor * math.Exp(scatter*r.NormFloat64()) }
	s := &Record{
		Setup:   Setup{Version: "1.2.0", Target: engine.Target{Model: "m", Engine: "vLLM", EngineVersion: "0.32.0"}, Request: &RequestSetup{API: Chat, PromptSHA256: "ab", MaxTokens: tokens, Repeat: requests, Concurrency: 1}},
		Capture: &Capture{Kind: Probe, Period: 50 * time.Millisecond, Tree: Tree{CPUs: 16}},
		Summary: &Summary{Requests: &RequestsSummary{Sent: requests, Whole: requests}},
	}
	at := time.Duration(0)
	for i := range requests {
		q := Request{ID: i, Sent: at, OutputTokens: stat.Some(tokens)}
		itl := Seconds(0.01 * noise())
		at += Seconds(0.05 * noise())
		for range tokens {
			q.Chunks = append(q.Chunks, Chunk{At: at})
			at += itl
		}
		q.End = at
		s.Capture.Requests = append(s.Capture.Requests, q)
	}
	n := stat.Some(float64(requests * tokens))
	s.Capture.End = at
	s.Summary.Span = at
	s.Summary.Requests.Tokens = Tokens{Usage: n, Counter: n, Used: n, From: fromUsage}
	s.Summary.Requests.OutputPerSecond = n.Div(stat.Some(at.Seconds()))
	s.Summary.Tree = &TreeUsage{Total: ProcessUsage{CPUSeconds: stat.Some(at.Seconds()), RSS: Row{Peak: stat.Some(1 << 30)}}}
	s.Summary.Derived = []engine.NamedQuantity{{Name: JoulesPerToken, Quantity: engine.Quantity{Value: stat.Some(.5), Unit: "J"}}}
	return s
}

// together makes the requests of each round of size share their times, like those of one batch.
func together(r *rand.Rand, s *Record, size int) *Record {
	s.Setup.Request.Concurrency = size
	factor := 1.0
	for i := range s.Capture.Requests {
		if i%size == 0 {
			factor = math.Exp(.1 * r.NormFloat64())
		}
		q := &s.Capture.Requests[i]
		at := func(t time.Duration) time.Duration { return q.Sent + time.Duration(factor*float64(t-q.Sent)) }
		for j := range q.Chunks {
			q.Chunks[j].At = at(q.Chunks[j].At)
		}
		q.End = at(q.End)
	}
	return s
}

// TestRequestsOfOneBatchAreOne checks the coverage of intervals if the noise is shared by all
// concurrent requests.
func TestRequestsOfOneBatchAreOne(t *testing.T) {
	const size = 8
	trials := trialsOf(2000)
	r := seeded(11)
	named := map[string]int{}
	for range trials {
		a, b := together(r, side(r, 10*size, 1, .02), size), together(r, side(r, 10*size, 1, .02), size)
		for _, f := range Compare(a, b).Changes {
			if f.Verdict == compare.Faster || f.Verdict == compare.Slower {
				named[f.Name]++
			}
		}
	}
	if len(named) != len(perRequest) {
		t.Errorf("%d figures were ever told apart, want %d: is any tested?", len(named), len(perRequest))
	}
	for name, n := range named {
		t.Logf("%s: %.2f %%", name, 100*float64(n)/float64(trials))
		if share := float64(n) / float64(trials); share > .05+3*math.Sqrt(.05*.95/float64(trials)) {
			t.Errorf("%s is told apart in %.1f %% of equal pairs", name, 100*share)
		}
	}
}

// trialsOf returns the number of trials of a statistic: a quarter in builds without the tag "long".
func trialsOf(long int) int {
	if longtest.Tests {
		return long
	}
	return long / 4
}

func seeded(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 4)) }

// TestEqualSidesAreSeldomToldApart checks the coverage of intervals: one in twenty of equal sides
// differs, for each figure.
func TestEqualSidesAreSeldomToldApart(t *testing.T) {
	trials := trialsOf(2000)
	for _, c := range []struct {
		name     string
		requests int
		scatter  float64
	}{{"two requests", 2, .1}, {"five requests", 5, .3}, {"thirty requests", 30, .05}} {
		t.Run(c.name, func(t *testing.T) {
			r := seeded(uint64(c.requests))
			named := map[string]int{}
			for range trials {
				for _, f := range Compare(side(r, c.requests, 1, c.scatter), side(r, c.requests, 1, c.scatter)).Changes {
					if f.Verdict == compare.Faster || f.Verdict == compare.Slower {
						named[f.Name]++
					}
				}
			}
			if len(named) != len(perRequest) {
				t.Errorf("%d figures were ever told apart, want %d: is any tested?", len(named), len(perRequest))
			}
			for name, n := range named {
				t.Logf("%s: %.2f %%", name, 100*float64(n)/float64(trials))
				// Three standard errors above one in twenty.
				if share := float64(n) / float64(trials); share > .05+3*math.Sqrt(.05*.95/float64(trials)) {
					t.Errorf("%s is told apart in %.1f %% of equal pairs", name, 100*share)
				}
			}
		})
	}
}

// TestATenthIsFound checks that thirty requests per side resolve an effect of 10 % with a scatter
// of 5 %.
func TestATenthIsFound(t *testing.T) {
	r := seeded(7)
	const trials = 200
	found := map[string]int{}
	for range trials {
		c := Compare(side(r, 30, 1.1, .05), side(r, 30, 1, .05))
		for _, f := range c.Changes {
			if f.Verdict == compare.Faster {
				found[f.Name]++
			}
			if f.Verdict == compare.Slower {
				t.Fatalf("%s is said to be slower", f.Name)
			}
		}
	}
	for _, f := range perRequest {
		if found[f.name] < trials*99/100 {
			t.Errorf("%s: found in %d of %d", f.name, found[f.name], trials)
		}
	}
}

func TestCompareWords(t *testing.T) {
	r := seeded(1)
	fast, slow := side(r, 20, 1, .02), side(r, 20, 1.5, .02)
	for _, c := range []struct {
		name string
		a, b *Record
		want compare.Verdict
	}{{"faster", slow, fast, compare.Faster}, {"slower", fast, slow, compare.Slower}} {
		t.Run(c.name, func(t *testing.T) {
			got := Compare(c.a, c.b)
			if len(got.Changes) != len(perRequest)+len(perRun) {
				t.Fatalf("%d figures", len(got.Changes))
			}
			for i, f := range got.Changes {
				want := c.want
				if i >= len(perRequest) {
					want = ""
				}
				if f.Verdict != want || f.Verdict == "" && f.Reason == "" {
					t.Errorf("%s: %q (%s), want %q", f.Name, f.Verdict, f.Reason, want)
				}
				if f.Verdict != "" && !(f.Low.V < f.Ratio.V && f.Ratio.V < f.High.V) {
					t.Errorf("%s: ratio %v is not within %v to %v", f.Name, f.Ratio.V, f.Low.V, f.High.V)
				}
			}
		})
	}
}

func TestTooFewRequestsHaveNoDirection(t *testing.T) {
	r := seeded(2)
	got := Compare(side(r, 1, 1, .1), side(r, 1, 3, .1))
	if len(got.Refused) > 0 || len(got.Changes) == 0 || len(got.Notes) == 0 {
		t.Fatalf("%+v", got)
	}
	for _, f := range got.Changes {
		if f.Verdict != "" || f.Low.OK || !f.A.OK || !f.B.OK {
			t.Errorf("%s: %q", f.Name, f.Verdict)
		}
	}
}

func TestGroups(t *testing.T) {
	for _, c := range []struct {
		name string
		list []float64
		size int
		want []float64
	}{
		{"alone", []float64{1, 2}, 1, []float64{1, 2}},
		{"pairs", []float64{1, 3, 5, 7}, 2, []float64{2, 6}},
		{"one left over", []float64{1, 3, 5, 7, 9}, 2, []float64{2, 7}},
		{"less than one", []float64{1}, 2, nil},
		{"none", nil, 4, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := groups(c.list, c.size); !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func TestEqualTimesHaveNoNoise(t *testing.T) {
	r := seeded(3)
	got := Compare(side(r, 5, 1, 0), side(r, 5, 2, 0))
	for _, f := range got.Changes {
		if f.Name == "e2e_s" && (f.Verdict != "" || f.Reason == "") {
			t.Errorf("%s: %q (%s)", f.Name, f.Verdict, f.Reason)
		}
	}
}

func TestCompareRefuses(t *testing.T) {
	for _, c := range []struct {
		name string
		edit func(b *Record)
		says []string // one a reason, in order
	}{
		{"nothing", func(*Record) {}, nil},
		{"another kind", func(b *Record) { b.Capture.Kind = Observation }, []string{"probe and observation"}},
		{"another model", func(b *Record) { b.Setup.Target.Model = "" }, []string{"an unknown model"}},
		{"a simulated server", func(b *Record) { b.Setup.Target.Simulated = true }, []string{"simulated"}},
		{"another prompt", func(b *Record) { b.Setup.Request.PromptSHA256 = "cd" }, []string{"SHA-256 ab and SHA-256 cd"}},
		{"another API and limit", func(b *Record) { b.Setup.Request.API, b.Setup.Request.MaxTokens = Completion, 0 }, []string{"APIs", "the server's own"}},
		{"another concurrency", func(b *Record) { b.Setup.Request.Concurrency = 64 }, []string{"concurrent"}},
		{"no setup", func(b *Record) { b.Setup.Request = nil }, []string{"is unknown"}},
		{"longer answers", func(b *Record) {
			for i := range b.Capture.Requests {
				b.Capture.Requests[i].OutputTokens = stat.Some(18)
			}
		}, []string{"16 and 18 tokens"}},
		{"answers a tenth longer", func(b *Record) {
			for i := range b.Capture.Requests {
				b.Capture.Requests[i].OutputTokens = stat.Some(17.5)
			}
		}, nil},
		{"cut short", func(b *Record) { b.Capture.Ended = "interrupt" }, []string{"B was cut short: interrupt"}},
		{"failures", func(b *Record) { b.Summary.Requests.Whole = 8 }, []string{"2 of 10 requests of B were not completed"}},
		{"other clients", func(b *Record) { b.Summary.Requests.Tokens.Counter = stat.Some(400) }, []string{"grew by 400 tokens, usage says 160"}},
		{"requests of others", func(b *Record) {
			b.Capture.Pages = []PageSample{{At: -1, Requests: stat.Some(3)}, {At: b.Capture.End + 1, Requests: stat.Some(14)}}
		}, []string{"finished 11 requests, 10 were sent"}},
		{"a few tokens more", func(b *Record) { b.Summary.Requests.Tokens.Counter = stat.Some(170) }, nil},
		{"no requests", func(b *Record) { b.Capture.Requests, b.Summary.Requests = nil, &RequestsSummary{} }, []string{"no request"}},
		{"no figures of requests", func(b *Record) { b.Summary.Requests = nil }, []string{"no request figures"}},
		{"all at once", func(b *Record) {
			b.Setup.Target.Model, b.Capture.Ended, b.Setup.Request.Concurrency = "other", "server gone", 2
		}, []string{"models", "concurrent", "cut short"}},
		{"another version", func(b *Record) { b.Setup.Target.EngineVersion = "0.33.0" }, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, b := side(seeded(4), 10, 1, .1), side(seeded(5), 10, 1, .1)
			c.edit(b)
			got := Compare(a, b)
			if len(got.Refused) != len(c.says) {
				t.Fatalf("%q, want %q", got.Refused, c.says)
			}
			for i, s := range c.says {
				if !strings.Contains(got.Refused[i], s) {
					t.Errorf("%q does not say %q", got.Refused[i], s)
				}
			}
			if (len(got.Changes) == 0) != (len(c.says) > 0) {
				t.Errorf("%d figures of a comparison with %d refusals", len(got.Changes), len(c.says))
			}
		})
	}
}

func TestCompareNamesWhatDiffers(t *testing.T) {
	a, b := side(seeded(4), 10, 1, .1), side(seeded(5), 10, 1, .1)
	b.Setup.Target.EngineVersion = "0.33.0"
	b.Summary.GPUs = []GPUUsage{{Name: "NVIDIA L4"}, {Name: "NVIDIA L4"}}
	got := Compare(a, b).Differs
	want := []compare.Difference{{What: "engine version", A: "0.32.0", B: "0.33.0"}, {What: "GPUs", A: "", B: "2 × NVIDIA L4"}}
	if len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestObservationsStandBesideEachOther(t *testing.T) {
	window := func(tokens float64) *Record {
		return &Record{Capture: &Capture{Kind: Observation, End: 10 * time.Second, Counting: EachStep, Pages: []PageSample{{GenerationTokens: stat.Some(5)}, {}, {At: 10 * time.Second, GenerationTokens: stat.Some(5 + tokens)}}}, Summary: &Summary{
			Span: 10 * time.Second, Tree: &TreeUsage{Total: ProcessUsage{CPUSeconds: stat.Some(20)}},
		}}
	}
	got := Compare(window(100), window(200))
	if len(got.Refused) > 0 || len(got.Changes) != 2 || len(got.Notes) != 1 {
		t.Fatalf("%+v", got)
	}
	if c := got.Changes[0]; c.Name != "output_tokens_per_s" || c.A.V != 10 || c.B.V != 20 || c.Ratio.V != 2 || c.Verdict != "" {
		t.Errorf("%+v", c)
	}
	if c := got.Changes[1]; c.Name != "cpu_s_per_token" || c.Ratio.V != .5 {
		t.Errorf("%+v", c)
	}
}
