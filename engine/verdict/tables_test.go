package verdict

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/engine/longtest"
)

// pairs returns the number of pairs of a row: VERDICT_PAIRS, for the tables of docs/measurements.md, or a tenth of that in
// builds without the tag "long".
func pairs(few int) (n int, table bool) {
	if n, err := strconv.Atoi(os.Getenv("VERDICT_PAIRS")); err == nil {
		return n, true
	}
	if !longtest.Tests {
		few /= 10
	}
	return few, false
}

// tally counts verdicts.
type tally struct {
	n       int
	by      map[Direction]int
	seconds float64
}

func (t *tally) share(d Direction) float64 { return float64(t.by[d]) / float64(t.n) }

func (t *tally) String() string {
	return fmt.Sprintf("better %5.1f  worse %5.1f  plateau %5.1f  inconclusive %5.1f  not comparable %5.1f  %4.0f s",
		100*t.share(Better), 100*t.share(Worse), 100*t.share(Plateau), 100*t.share(Inconclusive), 100*t.share(NotComparable), t.seconds/float64(t.n))
}

// many judges n pairs, each with its own seed.
func many(n int, seed uint64, one func(*rand.Rand) outcome) *tally {
	t := &tally{n: n, by: map[Direction]int{}}
	var mu sync.Mutex
	var wg sync.WaitGroup
	work := make(chan uint64)
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for i := range work {
				res := one(rand.New(rand.NewPCG(seed, i)))
				mu.Lock()
				t.by[res.Direction]++
				t.seconds += res.took.Seconds()
				mu.Unlock()
			}
		})
	}
	for i := range n {
		work <- uint64(i)
	}
	close(work)
	wg.Wait()
	return t
}

// disturbances are the noises of the tables, before and after.
var disturbances = []struct {
	name          string
	before, after noise
}{
	{"white, 3 % in 10 s", quiet10, quiet10},
	{"drift 3 %, 20 s", drifting(20 * time.Second), drifting(20 * time.Second)},
	{"drift 3 %, 60 s", drifting(60 * time.Second), drifting(60 * time.Second)},
	{"waves 20 %, 14 s", waving(14 * time.Second), waving(14 * time.Second)},
	{"waves 20 %, 37 s", waving(37 * time.Second), waving(37 * time.Second)},
	{"bursts on both", bursting, bursting},
	{"bursts before", bursting, quiet10},
	{"bursts after", quiet10, bursting},
}

func drifting(memory time.Duration) noise {
	return noise{white: 0.03, drift: 0.03, memory: memory}
}

func waving(period time.Duration) noise {
	return noise{white: 0.02, wave: 0.2, period: period}
}

var bursting = noise{white: 0.03, bursts: 40 * time.Second, lasting: 6 * time.Second, depth: 0.4}

// asAssumed is the spread of restarts of a server drawn from the assumption of [Widen].
const asAssumed = -1

// restartsOf returns a server's spread of restarts, which is drawn if it is [asAssumed].
func restartsOf(r *rand.Rand, restart float64) float64 {
	if restart != asAssumed {
		return restart
	}
	squares := 0.0
	for range assumedDoF {
		x := r.NormFloat64()
		squares += x * x
	}
	return assumedSD * math.Sqrt(assumedDoF/squares)
}

// known is the knowledge about a server's restarts when judging a pair.
var known = []struct {
	name    string
	restart []float64 // true spreads
	spread  func(r *rand.Rand, restart float64) Spread
}{
	{"none, known", []float64{0}, func(*rand.Rand, float64) Spread { return Spread{} }},
	{"nothing known", []float64{0, 0.02, 0.04, 0.08, asAssumed}, func(*rand.Rand, float64) Spread { return Widen(nil) }},
	{"2 repeats", []float64{0, 0.02, 0.04, 0.08, asAssumed}, func(r *rand.Rand, sd float64) Spread { return Widen(repeats(r, 2, sd)) }},
	{"8 repeats", []float64{0, 0.02, 0.04, 0.08, asAssumed}, func(r *rand.Rand, sd float64) Spread { return Widen(repeats(r, 8, sd)) }},
}

// allowed returns the number of false verdicts among many that the error rate allows, with two standard errors.
func allowed(all int) float64 {
	mean := errorRate * float64(all)
	return mean + 2*math.Sqrt(mean)
}

// TestEqualServersAreSeldomDistinguished judges pairs of equal servers: at most one in twenty may be called different.
func TestEqualServersAreSeldomDistinguished(t *testing.T) {
	n, table := pairs(20)
	for _, s := range [...]shape{saturated, room, open} {
		wrong, all := 0, 0
		for ki, k := range known {
			for _, restart := range k.restart {
				if !table && (s != saturated && ki > 0 || ki > 2 || ki > 0 && restart == 0) {
					continue
				}
				t.Run(fmt.Sprintf("%v/%s/%v", s, k.name, restart), func(t *testing.T) {
					for _, d := range disturbances {
						before, after := bareServer(s, d.before, 0), bareServer(s, d.after, 0)
						got := many(n, 1, func(r *rand.Rand) outcome {
							length := [...]time.Duration{20, 60, 300}[r.IntN(3)] * time.Second
							b, a, sd := before, after, restartsOf(r, restart)
							b.restart, a.restart = sd, sd
							return trial(r, &b, &a, length, Plan{Spread: k.spread(r, sd)})
						})
						if restart <= 0.04 { // the assumption covers few servers whose starts differ by more
							wrong += got.by[Better] + got.by[Worse]
							all += n
						}
						if table {
							t.Logf("%-9v  %-18s  restarts %2.0f %%, %-13s  %v", s, d.name, 100*restart, k.name, got)
						}
					}
				})
			}
		}
		if t.Logf("%v: %d of %d distinguished", s, wrong, all); float64(wrong) > allowed(all) {
			t.Errorf("%v: %d of %d equal pairs are distinguished", s, wrong, all)
		}
	}
}

// TestEffectsAreFound plants effects with 3 % variation of ten-second windows and none between restarts. For an effect
// of 5 %, four of five verdicts must be right within ten minutes.
func TestEffectsAreFound(t *testing.T) {
	n, table := pairs(200)
	gains := []float64{-0.05, 0.05}
	if table {
		gains = []float64{-0.1, -0.05, 0.03, 0.05, 0.1, 0.15, 0.2}
	}
	for _, c := range []struct {
		name    string
		noise   noise
		restart float64
		spread  func(*rand.Rand) Spread
		least   float64 // share of right verdicts at five per cent
	}{
		{"white, no spread", quiet10, 0, func(*rand.Rand) Spread { return Spread{} }, 0.8},
		{"drift 20 s, no spread", drifting(20 * time.Second), 0, func(*rand.Rand) Spread { return Spread{} }, 0.5},
		{"waves 14 s, no spread", waving(14 * time.Second), 0, func(*rand.Rand) Spread { return Spread{} }, 0.8},
		{"waves 37 s, no spread", waving(37 * time.Second), 0, func(*rand.Rand) Spread { return Spread{} }, 0},
		{"white, 1 %, 16 repeats", quiet10, 0.01, func(r *rand.Rand) Spread { return Widen(repeats(r, 16, 0.01)) }, 0},
		{"white, 4 %, 16 repeats", quiet10, 0.04, func(r *rand.Rand) Spread { return Widen(repeats(r, 16, 0.04)) }, 0},
		{"white, 0 %, 2 repeats", quiet10, 0, func(r *rand.Rand) Spread { return Widen(repeats(r, 2, 0)) }, 0},
		{"white, 2 %, 2 repeats", quiet10, 0.02, func(r *rand.Rand) Spread { return Widen(repeats(r, 2, 0.02)) }, 0},
		{"white, 0 %, nothing known", quiet10, 0, func(*rand.Rand) Spread { return Widen(nil) }, 0},
		{"white, 4 %, nothing known", quiet10, 0.04, func(*rand.Rand) Spread { return Widen(nil) }, 0},
		{"drift 20 s, 4 %, nothing known", drifting(20 * time.Second), 0.04, func(*rand.Rand) Spread { return Widen(nil) }, 0},
		{"waves 37 s, 4 %, nothing known", waving(37 * time.Second), 0.04, func(*rand.Rand) Spread { return Widen(nil) }, 0},
		{"bursts, 4 %, nothing known", bursting, 0.04, func(*rand.Rand) Spread { return Widen(nil) }, 0},
	} {
		if !table && c.least == 0 {
			continue
		}
		for _, gain := range gains {
			before, after := bareServer(saturated, c.noise, c.restart), bareServer(saturated, c.noise, c.restart)
			after.speed = 1 + gain
			got := many(n, 2, func(r *rand.Rand) outcome {
				return trial(r, &before, &after, 300*time.Second, Plan{Spread: c.spread(r)})
			})
			t.Logf("%-30s %+5.0f %%  %v", c.name, 100*gain, got)
			right := Better
			if gain < 0 {
				right = Worse
			}
			if math.Abs(gain) >= 0.05 && got.share(right) < c.least {
				t.Errorf("%s, %+.0f %%: %.0f %% are right", c.name, 100*gain, 100*got.share(right))
			}
		}
	}
}

// otherTraffic judges equal servers, and servers that a change made faster or slower, where those after the change have
// other traffic. A verdict that contradicts the truth is an error.
func otherTraffic(t *testing.T, seed uint64, judge func(r *rand.Rand, before, after *server) outcome) {
	n, table := pairs(10)
	for _, s := range [...]shape{saturated, room, open} {
		wrong, all := 0, 0
		for _, c := range []struct {
			name   string
			change func(*server)
		}{
			{"load x1.5", func(v *server) { v.load = 1.5 }},
			{"load x0.67", func(v *server) { v.load = 0.67 }},
			{"prompts +10 %", func(v *server) { v.prompt = 1.1 }},
			{"prompts +30 %", func(v *server) { v.prompt = 1.3 }},
			{"prompts +100 %", func(v *server) { v.prompt = 2 }},
			{"prompts -30 %", func(v *server) { v.prompt = 0.7 }},
			{"hits 30 to 60 %", func(v *server) { v.hit = 0.6 }},
			{"hits 30 to 0 %", func(v *server) { v.hit = 0 }},
		} {
			for _, gain := range []float64{-0.15, 0, 0.15} {
				before, after := bareServer(s, quiet10, 0), bareServer(s, quiet10, 0)
				c.change(&after)
				after.speed = 1 + gain
				got := many(n, seed, func(r *rand.Rand) outcome { return judge(r, &before, &after) })
				if gain <= 0 {
					wrong += got.by[Better]
				}
				if gain >= 0 {
					wrong += got.by[Worse]
				}
				all += n
				if table {
					t.Logf("%-9v  %-15s  change %+3.0f %%  %v", s, c.name, 100*gain, got)
				}
			}
		}
		if t.Logf("%v: %d of %d wrong", s, wrong, all); float64(wrong) > errorRate*float64(all) {
			t.Errorf("%v: %d of %d verdicts are wrong", s, wrong, all)
		}
	}
}

func TestOtherTrafficIsNotAnEffect(t *testing.T) {
	otherTraffic(t, 3, func(r *rand.Rand, before, after *server) outcome {
		return trial(r, before, after, 120*time.Second, Plan{})
	})
}

// TestAnUnevenBalancerIsNotAnEffect gives the server with the change other traffic than its siblings.
func TestAnUnevenBalancerIsNotAnEffect(t *testing.T) {
	otherTraffic(t, 23, func(r *rand.Rand, before, after *server) outcome {
		return pairedTrial(r, before, after, 3, &restless, knowsNone, Plan{})
	})
}
