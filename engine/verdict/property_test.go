package verdict

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

// pair is a side of each of two servers with histograms.
func pair(seed uint64, s shape, gain float64) (before, after Side) {
	r := rand.New(rand.NewPCG(seed, 7))
	b, a := usual(s, quiet10), usual(s, quiet10)
	a.speed = 1 + gain
	return Side{Incarnations: []Incarnation{b.run(r, 120*time.Second)}}, Side{Incarnations: []Incarnation{a.run(r, 120*time.Second)}}
}

func TestSwappedSidesMirror(t *testing.T) {
	mirrored := map[Direction]Direction{Better: Worse, Worse: Better, Plateau: Plateau, Inconclusive: Inconclusive, NotComparable: NotComparable}
	for seed := range uint64(12) {
		before, after := pair(seed, saturated, []float64{0, 0.1, 0.3}[seed%3])
		there := Judge(&before, &after, Plan{Last: true, Spread: Spread{SD: 0.01}})
		back := Judge(&after, &before, Plan{Last: true, Spread: Spread{SD: 0.01}})
		if back.Direction != mirrored[there.Direction] {
			t.Errorf("%d: %s, swapped %s\n%s\n%s", seed, there.Direction, back.Direction, there.Reason, back.Reason)
		}
		if d := math.Log1p(there.Effect.Mid) + math.Log1p(back.Effect.Mid); math.Abs(d) > 1e-9 {
			t.Errorf("%d: effects %v and %v", seed, there.Effect, back.Effect)
		}
	}
}

func TestLivesHaveNoOrder(t *testing.T) {
	one, after := pair(2, saturated, 0.08)
	two, _ := pair(3, saturated, 0)
	starts := []Incarnation{one.Incarnations[0], two.Incarnations[0]}
	p := Plan{Last: true, Spread: Spread{SD: 0.02}}
	a := Judge(&Side{Incarnations: starts}, &after, p)
	slices.Reverse(starts)
	b := Judge(&Side{Incarnations: starts}, &after, p)
	if a.Direction != b.Direction || math.Abs(a.Effect.Mid-b.Effect.Mid) > 1e-9 || math.Abs(a.Measured-b.Measured) > 1e-9 {
		t.Errorf("%v %v, reversed %v %v", a.Direction, a.Effect, b.Direction, b.Effect)
	}
	single := Judge(&one, &after, p)
	if !(a.Restart < single.Restart) {
		t.Errorf("two starts leave restarts %v of the interval, one %v", a.Restart, single.Restart)
	}
}

// TestScaleDoesNotMatter checks that a machine ten times as fast gives the same verdict.
func TestScaleDoesNotMatter(t *testing.T) {
	before, after := pair(4, saturated, 0.1)
	p := Plan{Last: true, Spread: Spread{SD: 0.01}}
	a := Judge(&before, &after, p)
	for _, s := range []*Side{&before, &after} {
		for _, l := range s.Incarnations {
			for i := range l {
				for _, v := range []*stat.Opt{&l[i].Tokens, &l[i].Prompt, &l[i].Computed, &l[i].Finished, &l[i].Hits, &l[i].Queries} {
					*v = v.Times(10)
				}
			}
		}
	}
	b := Judge(&before, &after, p)
	if a.Direction != b.Direction || math.Abs(a.Effect.Mid-b.Effect.Mid) > 1e-9 || math.Abs(a.Effect.Low-b.Effect.Low) > 1e-6 {
		t.Errorf("%v %v, ten times %v %v", a.Direction, a.Effect, b.Direction, b.Effect)
	}
}

// TestSlotsThatGainAreBetter raises slots from 16 to 64, with 80 % more output while each request gets less of
// the hardware, which the PROFILE direction calls worse.
func TestSlotsThatGainAreBetter(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	b, a := usual(saturated, quiet10), usual(saturated, quiet10)
	b.load, a.load, a.slots = 3, 3, 64
	before, after := b.run(r, 60*time.Second), a.run(r, 60*time.Second)
	got := Judge(&Side{Incarnations: []Incarnation{before}}, &Side{Incarnations: []Incarnation{after}}, Plan{Spread: Widen(nil), Touch: Touch{Batch: true}, Look: 3, Looks: 8})
	if got.Direction != Better || !got.Settled {
		t.Errorf("got %s: %s", got.Direction, got.Reason)
	}
}

// FuzzJudge checks that no numbers break a verdict, and that nonsense is never a gain.
func FuzzJudge(f *testing.F) {
	f.Add(uint64(1), 0.0, uint8(0), "throughput")
	f.Add(uint64(2), math.Inf(1), uint8(3), "latency")
	f.Add(uint64(3), math.NaN(), uint8(9), "cost")
	f.Add(uint64(4), -1e300, uint8(40), "")
	f.Fuzz(func(t *testing.T, seed uint64, wild float64, n uint8, goal string) {
		r := rand.New(rand.NewPCG(seed, 1))
		value := func() stat.Opt {
			switch r.IntN(5) {
			case 0:
				return stat.None
			case 1:
				return stat.Some(wild)
			case 2:
				return stat.Some(0)
			}
			return stat.Some(100 * r.Float64())
		}
		side := func() *Side {
			s := &Side{CostPerHour: value(), Host: Host{Wait: value(), Others: value()}}
			for range r.IntN(3) {
				l := make(Incarnation, int(n)%64)
				for i := range l {
					v := &l[i]
					v.Length = time.Duration(r.Int64N(int64(4*time.Second))) - time.Second
					v.Start = time.Duration(i)*piece + time.Duration(r.Int64N(int64(piece)))
					for _, o := range []*stat.Opt{&v.Tokens, &v.Prompt, &v.Computed, &v.Finished, &v.Hits, &v.Queries, &v.Running, &v.Waiting, &v.StepTime, &v.KV, &v.Preempts, &v.Power} {
						*o = value()
					}
					v.TTFT = stat.Delta{Bounds: []float64{0.1, 1, math.Inf(1)}, Counts: []float64{value().V, 3, value().V}, Sum: value().V, Count: value().V, OK: true}
					v.PromptLen = stat.Delta{Sum: value().V, Count: value().V, OK: true}
				}
				s.Incarnations = append(s.Incarnations, l)
			}
			return s
		}
		objective := Objective{Name: "ttft_p99", Metric: MetricTTFT, Quantile: 0.99, Limit: wild}
		res := Judge(side(), side(), Plan{Goal: Goal(goal), Precision: wild, Spread: Spread{SD: wild, DoF: wild}, Look: int(n), Looks: int(n) / 2, Last: true, Paired: seed%2 == 0, Objectives: []Objective{objective}})
		if res.Direction == "" || res.Reason == "" || !res.Settled {
			t.Fatalf("got %+v", res)
		}
		if res.Known && (math.IsNaN(res.Effect.Low) || math.IsNaN(res.Effect.Mid) || math.IsNaN(res.Effect.High)) {
			t.Fatalf("effect %+v", res.Effect)
		}
		if !res.Known && res.Direction == Better {
			t.Fatalf("better without an effect: %s", res.Reason)
		}
	})
}

// TestNonsenseIsNotAGain checks that empty or impossible sides are never better.
func TestNonsenseIsNotAGain(t *testing.T) {
	for _, v := range []float64{math.NaN(), math.Inf(1), -1, 1e300, 0} {
		before, after := pair(6, saturated, 0)
		for i := range after.Incarnations[0] {
			after.Incarnations[0][i].Tokens = stat.Some(v)
		}
		if r := Judge(&before, &after, Plan{Last: true}); r.Direction == Better || r.Direction == Plateau {
			t.Errorf("%v tokens after: %s: %s", v, r.Direction, r.Reason)
		}
	}
}

// BenchmarkTenMinutes measures a verdict on ten minutes in slices of two seconds,
// including its quantiles.
func BenchmarkTenMinutes(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 1))
	v := usual(saturated, quiet10)
	before, after := Side{Incarnations: []Incarnation{v.run(r, 300*time.Second)}}, Side{Incarnations: []Incarnation{v.run(r, 300*time.Second)}}
	b.ReportAllocs()
	for b.Loop() {
		Judge(&before, &after, Plan{})
	}
}

// An early look on an unsteady host has an interval that recognizes a server with four times the throughput in
// nine of ten trials.
func TestEarlyIntervalsAreOfUse(t *testing.T) {
	v := usual(saturated, noise{white: 0.05, drift: 0.1, memory: 10 * time.Second})
	v.bare = true
	const n = 100
	wide := 0
	for seed := range uint64(n) {
		r := rand.New(rand.NewPCG(seed, 5))
		before, after := Side{Incarnations: []Incarnation{v.run(r, 30*time.Second)}}, Side{Incarnations: []Incarnation{v.run(r, 20*time.Second)}}
		if Judge(&before, &after, Plan{Looks: 8, Spread: Widen(nil)}).Measured > math.Log(4) {
			wide++
		}
	}
	if wide > n/10 {
		t.Errorf("%d of %d intervals are wider than a fourfold gain", wide, n)
	}
}
