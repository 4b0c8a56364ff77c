package verdict

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

const (
	turns        = 3                 // starts of a change without a verdict, at most
	turnRestart  = time.Minute       // until the load is steady again
	turnRepeated = time.Minute       // how long the setting before is measured again
	turnLongest  = 300 * time.Second // how long a start with the change is measured
)

// inTurns judges a change as the loop does that gets no verdict from one start: A B A B A B. It returns the time since
// the first change.
func inTurns(r *rand.Rand, before, after *server) outcome {
	a, b := &Side{Incarnations: []Incarnation{before.run(r, 120*time.Second)}}, &Side{}
	var took time.Duration
	var last Result
	for turn := range turns {
		if turn > 0 {
			took += turnRestart + turnRepeated
			a.Incarnations = append(a.Incarnations, before.run(r, turnRepeated))
		}
		took += turnRestart
		full := after.run(r, turnLongest)
		looks := Looks(20*time.Second, turnLongest)
		p := Plan{Spread: Widen(startDifferences(a.Incarnations)), Looks: len(looks)}
		for i, at := range looks {
			p.Look, p.Last = i, i == len(looks)-1
			side := &Side{Incarnations: append(slices.Clip(b.Incarnations), full[:int(at/piece)])}
			if last = Judge(a, side, p); last.Settled {
				took += at
				b = side
				break
			}
		}
		if last.Direction != Inconclusive {
			break
		}
	}
	return outcome{Result: last, took: took}
}

// startDifferences returns the differences of log throughput between starts of one configuration in turn.
func startDifferences(starts []Incarnation) (out []float64) {
	rate := func(l Incarnation) float64 {
		sum, t := 0.0, 0.0
		for i := range l {
			sum, t = sum+l[i].Tokens.V, t+l[i].Length.Seconds()
		}
		return sum / t
	}
	for i := 1; i < len(starts); i++ {
		out = append(out, math.Log(rate(starts[i])/rate(starts[i-1])))
	}
	return out
}

// TestChangesAreStartedInTurns has servers whose starts differ by 4 %, of which nothing is known: of one start of each
// +15 % is told in six of ten.
func TestChangesAreStartedInTurns(t *testing.T) {
	n, table := pairs(200)
	gains := []float64{0, 0.15}
	if table {
		gains = []float64{0, 0.1, 0.15, 0.2}
	}
	kept, all, found, planted := 0, 0, 0, 0
	for _, d := range disturbances[:2] {
		for _, gain := range gains {
			d.before.restart, d.after.restart = 0.04, 0.04
			before, after := usual(saturated, d.before), usual(saturated, d.after)
			before.bare, after.bare = true, true
			after.speed = 1 + gain
			var times []float64
			got := many(n, 7, func(r *rand.Rand) outcome { return inTurns(r, &before, &after) })
			if table {
				for i := range uint64(n) {
					times = append(times, inTurns(rand.New(rand.NewPCG(7, i)), &before, &after).took.Seconds())
				}
				slices.SortFunc(times, cmp.Compare[float64])
				t.Logf("%-18s %+3.0f %%  %v  median %.0f, nine of ten %.0f, worst %.0f s", d.name, 100*gain, got, times[n/2], times[n*9/10], times[n-1])
			}
			switch gain {
			case 0:
				kept, all = kept+got.by[Better], all+n
			case 0.15:
				found, planted = found+got.by[Better], planted+n
			}
		}
	}
	if t.Logf("%d of %d equal pairs are kept, %d of %d gains of 15 %% are found", kept, all, found, planted); float64(kept) > allowed(all) {
		t.Errorf("%d of %d equal pairs are kept", kept, all)
	}
	if float64(found) < 0.8*float64(planted) {
		t.Errorf("%d of %d gains of 15 %% are found", found, planted)
	}
}
