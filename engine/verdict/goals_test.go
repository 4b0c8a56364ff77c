package verdict

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// steadyLife is a start of a minute or two with the given values, scattered by 2 %, and at least a thousand
// requests.
func steadyLife(seed uint64, tokens, ttft, running, waiting float64) Incarnation {
	r := rand.New(rand.NewPCG(seed, 11))
	out := make(Incarnation, 75)
	for i := range out {
		s := &out[i]
		scatter := 1 + 0.02*r.NormFloat64()
		s.Start, s.Length = time.Duration(i)*piece, piece
		s.Tokens, s.Finished = stat.Some(2*tokens*scatter), stat.Some(40*scatter)
		s.Running, s.Waiting = stat.Some(running), stat.Some(waiting)
		s.StepTime = stat.Some(running / tokens / scatter)
		s.TTFT = drawn(r, ladder, 40, ttft, 0.2)
		s.ITL = drawn(r, ladder, 40, running/tokens, 0.1)
		s.E2E = stat.Delta{Sum: 40 * scatter * 50 * running / tokens, Count: 40 * scatter, OK: true}
		s.PromptLen = stat.Delta{Sum: 40 * 600 * (1 + 0.02*r.NormFloat64()), Count: 40, OK: true}
		s.OutputLen = stat.Delta{Sum: 40 * 150 * (1 + 0.02*r.NormFloat64()), Count: 40, OK: true}
	}
	return out
}

func TestGoalsAndObjectives(t *testing.T) {
	p99 := func(limit float64) []Objective {
		return []Objective{{Name: "ttft_p99", Metric: MetricTTFT, Quantile: 0.99, Limit: limit}}
	}
	type one struct{ tokens, ttft, running, waiting, cost float64 }
	for _, c := range []struct {
		name          string
		before, after one
		plan          Plan
		want          Direction
		says          string
	}{
		{"more output", one{1000, 0.2, 16, 8, 0}, one{1300, 0.2, 16, 8, 0}, Plan{}, Better, "output +30 %"},
		{"less output", one{1000, 0.2, 16, 8, 0}, one{800, 0.2, 16, 8, 0}, Plan{}, Worse, "output −20 %"},
		{"the same", one{1000, 0.2, 16, 8, 0}, one{1002, 0.2, 16, 8, 0}, Plan{}, Plateau, "within 3 %"},
		{"more output, first tokens late", one{1000, 0.2, 16, 8, 0}, one{1300, 3, 16, 8, 0}, Plan{}, Plateau, "time to first token"},
		{"no veto within a bucket", one{1000, 0.30, 16, 8, 0}, one{1300, 0.34, 16, 8, 0}, Plan{}, Better, ""},
		{"no queue is left", one{1000, 0.2, 16, 16, 0}, one{1800, 0.2, 32, 0, 0}, Plan{}, Better, "may be higher"},
		{"fewer requests on a server with room", one{1000, 0.2, 16, 0, 0}, one{700, 0.2, 10, 0, 0}, Plan{}, NotComparable, "the load differs"},
		{"restarts hide it", one{1000, 0.2, 16, 8, 0}, one{1060, 0.2, 16, 8, 0}, Plan{Spread: Widen(nil)}, Inconclusive, "starts of one configuration"},
		{"requests are faster", one{1000, 0.2, 16, 0, 0}, one{1250, 0.2, 16, 0, 0}, Plan{Goal: Latency}, Better, "the time of a request −20 %"},
		{"output per dollar falls", one{1000, 0.2, 16, 8, 2}, one{1100, 0.2, 16, 8, 4}, Plan{Goal: Cost}, Worse, "output per dollar −45 %"},
		{"the price of one side is not known", one{1000, 0.2, 16, 8, 2}, one{1100, 0.2, 16, 8, 0}, Plan{Goal: Cost}, Inconclusive, "cost"},
		{"an objective is kept now", one{1000, 3, 16, 8, 0}, one{950, 0.2, 16, 8, 0}, Plan{Objectives: p99(1)}, Better, "is met now"},
		{"an objective is no longer kept", one{1000, 0.2, 16, 8, 0}, one{1300, 3, 16, 8, 0}, Plan{Objectives: p99(1)}, Worse, "is missed now"},
		{"a broken objective gets worse", one{1000, 3, 16, 8, 0}, one{1300, 12, 16, 8, 0}, Plan{Objectives: p99(1)}, Worse, "missed before and after"},
		{"an objective within its bucket", one{1000, 0.62, 16, 8, 0}, one{1300, 0.62, 16, 8, 0}, Plan{Objectives: p99(0.9)}, Inconclusive, "unresolved"},
		{"an objective is kept throughout", one{1000, 0.2, 16, 8, 0}, one{1300, 0.2, 16, 8, 0}, Plan{Objectives: p99(1)}, Better, "output"},
	} {
		t.Run(c.name, func(t *testing.T) {
			side := func(seed uint64, o *one) *Side {
				s := &Side{Incarnations: []Incarnation{steadyLife(seed, o.tokens, o.ttft, o.running, o.waiting)}}
				if o.cost > 0 {
					s.CostPerHour = stat.Some(o.cost)
				}
				return s
			}
			c.plan.Last = true
			got := Judge(side(1, &c.before), side(2, &c.after), c.plan)
			if got.Direction != c.want || !says(&got, c.says) {
				t.Errorf("got %s: %s, want %s with %q", got.Direction, got.Reason, c.want, c.says)
			}
		})
	}
}

// TestTheCauseOfNoVerdict checks that the load is named where it differs by more than noise, and noise where it does not.
func TestTheCauseOfNoVerdict(t *testing.T) {
	for running, want := range map[float64]Cause{16: ByNoise, 8: ByTraffic, 32: ByTraffic} {
		side := func(seed uint64, tokens, running float64) *Side {
			return &Side{Incarnations: []Incarnation{steadyLife(seed, tokens, 0.2, running, 0)}}
		}
		got := Judge(side(1, 1000, 16), side(2, 990, running), Plan{Last: true, Spread: Widen(nil)})
		if got.Direction != Inconclusive || got.Cause != want {
			t.Errorf("%v running after 16: %s by %s, want inconclusive by %s: %s", running, got.Direction, got.Cause, want, got.Reason)
		}
	}
}

// A limit within a bucket is not reported as too few requests, and not waited for.
func TestAVetoBeyondTheLastBucket(t *testing.T) {
	slow := func(seed uint64, tokens, ttft float64) *Side {
		return &Side{Incarnations: []Incarnation{steadyLife(seed, tokens, ttft, 16, 8)}}
	}
	r := Judge(slow(1, 1000, 1500), slow(2, 2500, 3500), Plan{})
	if r.Direction != Plateau || !r.Settled || !strings.Contains(r.Reason, "beyond the last bucket") {
		t.Errorf("%s, settled %v: %s", r.Direction, r.Settled, r.Reason)
	}
}

// TestStudyOfTheCourse plants a warm-up and a drift.
func TestStudyOfTheCourse(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	course := func(f func(i int) float64) Steadiness {
		slices := make([]Slice, 120)
		for i := range slices {
			slices[i] = Slice{Length: piece, Tokens: stat.Some(1000 * f(i) * (1 + 0.02*r.NormFloat64()))}
		}
		l := start{slices: slices}
		l.cutWarmUp()
		return l.steady
	}
	if s := course(func(i int) float64 { return 1 - 0.6*math.Exp(-float64(i)/6) }); s.Cut < 10 || s.Cut > 60 {
		t.Errorf("a warm-up of some 15 slices: cut %d", s.Cut)
	}
	if s := course(func(i int) float64 { return 1 }); s.Cut != 0 || s.Drift != 0 {
		t.Errorf("nothing planted: %+v", s)
	}
	if s := course(func(i int) float64 { return 1 + 0.2*float64(i)/120 }); s.Drift < 0.06 || s.Drift > 0.2 {
		t.Errorf("a drift of a tenth and more is %v", s.Drift)
	}
}

// TestWiden checks the spread without repeats, with a few, with many, and with repeats that differ by more
// than assumed.
func TestWiden(t *testing.T) {
	nothing := Widen(nil)
	halfWidth := func(s Spread) float64 { return s.SD * stat.StudentQuantile(1-errorRate/2, s.dof()) }
	if nothing.SD != assumedSD || nothing.Repeats != 0 || nothing.DoF <= 0 {
		t.Errorf("nothing known: %+v", nothing)
	}
	equal := func(n int) Spread { return Widen(make([]float64, n)) }
	last := halfWidth(nothing)
	for _, n := range []int{1, 2, 4, 8, 16, 32} {
		s := equal(n)
		if halfWidth(s) > last+1e-12 || s.Repeats != n || s.From == "" {
			t.Errorf("%d equal repeats leave ±%v, fewer ±%v", n, halfWidth(s), last)
		}
		last = halfWidth(s)
	}
	if math.Sqrt2*last > 0.03 {
		t.Errorf("32 equal repeats leave ±%v between two starts", math.Sqrt2*last)
	}
	if s := Widen([]float64{0.3, -0.25}); s.SD < 0.1 || halfWidth(s) < halfWidth(nothing) {
		t.Errorf("repeats that differ by 28 %%: %+v", s)
	}
	if s := Widen([]float64{math.NaN(), math.Inf(1)}); s.Repeats != 0 || s.SD != nothing.SD {
		t.Errorf("nonsense: %+v", s)
	}
}

// TestHostIsNamed checks that threads waiting for a core explain a loss, unless they waited for one another.
func TestHostIsNamed(t *testing.T) {
	host := func(wait, others float64) Host {
		h := Host{Wait: stat.Some(wait)}
		if others >= 0 {
			h.Others = stat.Some(others)
		}
		return h
	}
	const unknown = -1
	for _, c := range []struct {
		name          string
		then          float64 // tokens a slice, 1000 before
		before, after Host
		direction     Direction
		cause         Cause
	}{
		{"threads wait more", 800, host(0.05, unknown), host(0.3, unknown), Inconclusive, ByHost},
		{"a quiet host", 800, host(0.05, unknown), host(0.05, unknown), Worse, ByFlag},
		{"a neighbour came", 800, host(0.05, 0.01), host(0.3, 0.25), Inconclusive, ByHost},
		{"they wait for one another", 800, host(0.05, 0.01), host(0.3, 0.02), Worse, ByFlag},
		{"threads wait less", 1300, host(0.6, unknown), host(0.3, unknown), Inconclusive, ByHost},
		{"a neighbour left", 1300, host(0.6, 0.4), host(0.3, 0.01), Inconclusive, ByHost},
		{"others used a little less, a busy server on two cores", 2960, host(0.872, 0.408), host(0.775, 0.347), Better, ByFlag},
		{"they wait less for one another, while clients do more", 1300, host(0.6, 0.02), host(0.3, 0.06), Better, ByFlag},
	} {
		before := &Side{Incarnations: []Incarnation{steadyLife(1, 1000, 0.2, 16, 8)}, Host: c.before}
		after := &Side{Incarnations: []Incarnation{steadyLife(2, c.then, 0.2, 16, 8)}, Host: c.after}
		if r := Judge(before, after, Plan{Last: true}); r.Direction != c.direction || r.Cause != c.cause {
			t.Errorf("%s: %s by %s: %s; want %s by %s", c.name, r.Direction, r.Cause, r.Reason, c.direction, c.cause)
		}
	}
}

// says reports whether the reason of a verdict contains these words, treating no-break spaces as spaces.
func says(r *Result, words string) bool {
	return strings.Contains(strings.ReplaceAll(r.Reason, figure.NBSP, " "), words)
}
