package verdict

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

// steadyLife is a life of a minute or two with what is given, scattered by two per
// cent, and a thousand requests and more.
func steadyLife(seed uint64, tokens, ttft, running, waiting float64) Life {
	r := rand.New(rand.NewPCG(seed, 11))
	out := make(Life, 75)
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
		{"no queue is left", one{1000, 0.2, 16, 16, 0}, one{1800, 0.2, 32, 0, 0}, Plan{}, Better, "may be more"},
		{"fewer requests on a server with room", one{1000, 0.2, 16, 0, 0}, one{700, 0.2, 10, 0, 0}, Plan{}, NotComparable, "the load differs"},
		{"restarts hide it", one{1000, 0.2, 16, 8, 0}, one{1060, 0.2, 16, 8, 0}, Plan{Spread: Widen(nil)}, Inconclusive, "starts of one configuration"},
		{"requests are faster", one{1000, 0.2, 16, 0, 0}, one{1250, 0.2, 16, 0, 0}, Plan{Goal: Latency}, Better, "the time of a request −20 %"},
		{"output per dollar falls", one{1000, 0.2, 16, 8, 2}, one{1100, 0.2, 16, 8, 4}, Plan{Goal: Cost}, Worse, "output per dollar −45 %"},
		{"the price of one side is not known", one{1000, 0.2, 16, 8, 2}, one{1100, 0.2, 16, 8, 0}, Plan{Goal: Cost}, Inconclusive, "price"},
		{"an objective is kept now", one{1000, 3, 16, 8, 0}, one{950, 0.2, 16, 8, 0}, Plan{Objectives: p99(1)}, Better, "is kept now"},
		{"an objective is kept no more", one{1000, 0.2, 16, 8, 0}, one{1300, 3, 16, 8, 0}, Plan{Objectives: p99(1)}, Worse, "is not"},
		{"a broken objective gets worse", one{1000, 3, 16, 8, 0}, one{1300, 12, 16, 8, 0}, Plan{Objectives: p99(1)}, Worse, "before nor after"},
		{"an objective within its bucket", one{1000, 0.62, 16, 8, 0}, one{1300, 0.62, 16, 8, 0}, Plan{Objectives: p99(0.9)}, Inconclusive, "not clear"},
		{"an objective is kept throughout", one{1000, 0.2, 16, 8, 0}, one{1300, 0.2, 16, 8, 0}, Plan{Objectives: p99(1)}, Better, "output"},
	} {
		t.Run(c.name, func(t *testing.T) {
			side := func(seed uint64, o *one) *Side {
				s := &Side{Lives: []Life{steadyLife(seed, o.tokens, o.ttft, o.running, o.waiting)}}
				if o.cost > 0 {
					s.CostPerHour = stat.Some(o.cost)
				}
				return s
			}
			c.plan.Last = true
			got := judge(side(1, &c.before), side(2, &c.after), c.plan, fewer)
			if got.Direction != c.want || !strings.Contains(got.Reason, c.says) {
				t.Errorf("got %s: %s, want %s with %q", got.Direction, got.Reason, c.want, c.says)
			}
		})
	}
}

// TestQuantilesNeedObservations: below ten beyond it, a quantile has no value; what
// is known of the others vetoes all the same.
func TestQuantilesNeedObservations(t *testing.T) {
	few := func(seed uint64, tokens, ttft float64) *Side { // 600 requests
		return &Side{Lives: []Life{steadyLife(seed, tokens, ttft, 16, 8)[:15]}}
	}
	r := judge(few(1, 1000, 0.2), few(2, 2500, 3), Plan{Last: true}, fewer)
	for _, m := range r.Measures {
		if m.Metric == MetricTTFT && m.Quantile == 0.99 && m.Known {
			t.Errorf("p99 of %v requests is known: %+v", m.Count, m)
		}
		if m.Metric == MetricTTFT && m.Quantile == 0.5 && (!m.Known || !m.Moved || !m.Resolution.OK) {
			t.Errorf("median of %v requests: %+v", m.Count, m)
		}
	}
	if r.Direction != Plateau || !strings.Contains(r.Reason, "95th percentile") {
		t.Errorf("%s: %s", r.Direction, r.Reason)
	}
}

// What no bucket tells is not said to be too few requests, and not waited for.
func TestAVetoBeyondTheLastBucket(t *testing.T) {
	slow := func(seed uint64, tokens, ttft float64) *Side {
		return &Side{Lives: []Life{steadyLife(seed, tokens, ttft, 16, 8)}}
	}
	r := judge(slow(1, 1000, 1500), slow(2, 2500, 3500), Plan{}, fewer)
	if r.Direction != Plateau || !r.Settled || !strings.Contains(r.Reason, "beyond the last bucket") {
		t.Errorf("%s, settled %v: %s", r.Direction, r.Settled, r.Reason)
	}
}

// TestStudyOfTheCourse plants a warm-up, a drift and an oscillation.
func TestStudyOfTheCourse(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	course := func(f func(i int) float64) Steadiness {
		slices := make([]Slice, 120)
		for i := range slices {
			slices[i] = Slice{Length: piece, Tokens: stat.Some(1000 * f(i) * (1 + 0.02*r.NormFloat64()))}
		}
		l := life{slices: slices}
		l.settle()
		return l.steady
	}
	if s := course(func(i int) float64 { return 1 - 0.6*math.Exp(-float64(i)/6) }); s.Cut < 10 || s.Cut > 60 {
		t.Errorf("a warm-up of some 15 slices: cut %d", s.Cut)
	}
	if s := course(func(i int) float64 { return 1 }); s.Cut != 0 || s.Drift != 0 || s.Period != 0 {
		t.Errorf("nothing planted: %+v", s)
	}
	if s := course(func(i int) float64 { return 1 + 0.2*float64(i)/120 }); s.Drift < 0.06 || s.Drift > 0.2 {
		t.Errorf("a drift of a tenth and more is %v", s.Drift)
	}
	if s := course(func(i int) float64 { return 1 + 0.15*math.Sin(2*math.Pi*float64(i)/9) }); s.Period < 8 || s.Period > 10 || s.Block < 8 {
		t.Errorf("a period of 9: %+v", s)
	}
}

// TestWiden holds the spread against what is known: nothing, a few, many, and
// repeats that differ by more than is assumed.
func TestWiden(t *testing.T) {
	nothing := Widen(nil)
	if nothing.SD != 0.04 || nothing.Repeats != 0 || nothing.DoF <= 0 {
		t.Errorf("nothing known: %+v", nothing)
	}
	equal := func(n int) Spread { return Widen(make([]float64, n)) }
	last := nothing.half()
	for _, n := range []int{1, 2, 4, 8, 16, 32} {
		s := equal(n)
		if s.half() > last+1e-12 || s.Repeats != n || s.From == "" {
			t.Errorf("%d equal repeats leave ±%v, fewer ±%v", n, s.half(), last)
		}
		last = s.half()
	}
	if math.Sqrt2*last > 0.03 {
		t.Errorf("32 equal repeats leave ±%v between two starts", math.Sqrt2*last)
	}
	if s := Widen([]float64{0.3, -0.25}); s.SD < 0.1 || s.half() < nothing.half() {
		t.Errorf("repeats that differ by 28 %%: %+v", s)
	}
	if s := Widen([]float64{math.NaN(), math.Inf(1)}); s.Repeats != 0 || s.SD != nothing.SD {
		t.Errorf("nonsense: %+v", s)
	}
}

// TestHostIsNamed: threads that waited for a core explain a loss.
func TestHostIsNamed(t *testing.T) {
	before := &Side{Lives: []Life{steadyLife(1, 1000, 0.2, 16, 8)}, Busy: stat.Some(0.05)}
	after := &Side{Lives: []Life{steadyLife(2, 800, 0.2, 16, 8)}, Busy: stat.Some(0.3)}
	if r := judge(before, after, Plan{Last: true}, fewer); r.Direction != Inconclusive || r.Cause != ByHost {
		t.Errorf("%s by %s: %s", r.Direction, r.Cause, r.Reason)
	}
	after.Busy = stat.Some(0.05)
	if r := judge(before, after, Plan{Last: true}, fewer); r.Direction != Worse || r.Cause != ByFlag {
		t.Errorf("on a quiet host %s by %s: %s", r.Direction, r.Cause, r.Reason)
	}
}

// TestBootstrapAgreesWithItsFormula holds the resampled variance of a mean against
// that of the stationary bootstrap in closed form (Politis & Romano 1994, lemma 1).
func TestBootstrapAgreesWithItsFormula(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 8))
	const n, block = 120, 7
	values, x := make([]float64, n), 0.0
	for i := range values {
		x = 0.7*x + r.NormFloat64()
		values[i] = x
	}
	m := average(values)
	p, want := 1.0/block, 0.0
	for lag := range n {
		c := 0.0
		for i := range values {
			c += (values[i] - m) * (values[(i+lag)%n] - m)
		}
		c /= n
		if lag == 0 {
			want += c
			continue
		}
		want += 2 * (1 - float64(lag)/n) * math.Pow(1-p, float64(lag)) * c
	}
	s := &sample{
		draws: 20_000, lives: []life{{slices: make([]Slice, n), steady: Steadiness{Block: block}, weight: 1}},
		columns: []column{{influence: [][]float64{values}}},
	}
	got, _ := s.vary(0)
	sum := got[0] * (n - block) / n / n // without the share put back, of a mean times n
	if math.Abs(sum/want-1) > 0.05 {
		t.Errorf("resampled %v, by formula %v", sum, want)
	}
}
