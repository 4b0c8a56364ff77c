package verdict

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

// slowServer is a server with few requests, whose latencies are log-normal about a varying level.
type slowServer struct {
	name   string
	rate   float64       // requests a second
	level  float64       // SD of the logarithm of the level
	memory time.Duration // its time constant
	each   float64       // SD of a request about it
}

// start returns a start of it, with the share late of requests later than a second.
func (w *slowServer) start(r *rand.Rand, length time.Duration, late float64) Incarnation {
	middle := -math.Hypot(w.level, w.each) * math.Sqrt2 * math.Erfinv(1-2*late)
	phi := 0.0
	if w.memory > 0 {
		phi = math.Exp(-piece.Seconds() / w.memory.Seconds())
	}
	level := w.level * r.NormFloat64()
	out := make(Incarnation, int(length/piece))
	for i := range out {
		level = phi*level + w.level*math.Sqrt(1-phi*phi)*r.NormFloat64()
		out[i] = requests(i, poisson(r, w.rate*piece.Seconds()), func() float64 { return math.Exp(middle + level + w.each*r.NormFloat64()) })
		out[i].Tokens = stat.Some(2000 * (1 + 0.02*r.NormFloat64()))
	}
	return out
}

// requests returns a slice with this many requests and the time that each waits.
func requests(i int, n float64, wait func() float64) Slice {
	d := stat.Delta{Bounds: ladder, Counts: make([]float64, len(ladder)), OK: true}
	for range int(n) {
		x := wait()
		at, _ := slices.BinarySearch(ladder, x)
		d.Counts[at]++
		d.Sum += x
		d.Count++
	}
	return Slice{Start: time.Duration(i) * piece, Length: piece, Finished: stat.Some(n), Running: stat.Some(16), Waiting: stat.Some(8), TTFT: d}
}

// claimed returns whether a p99 is said to meet a limit of a second, or to miss it, at one of the looks at a
// start.
func claimed(l Incarnation) (kept, missed bool) {
	looks := Looks(20*time.Second, time.Duration(len(l))*piece)
	for i, at := range looks {
		s := prepare(&Side{Incarnations: []Incarnation{l[:int(at/piece)]}})
		s.cutWarmUp()
		s.weigh(0, 1)
		_, q := s.quantile(ttft, 0.99)
		t := s.shares(&q, ttft, 1)
		s.estimate()
		plan := Plan{Look: i, Looks: len(looks)}
		rate := plan.level(0, 1)
		low, high := q.boundsFromFew(s.effectiveShare(t.near, rate), s.effectiveShare(t.all, rate), rate)
		kept, missed = kept || high <= 1, missed || low >= 1
	}
	return kept, missed
}

// TestFewRequestsSeldomMislead compares claims about the p99 of few requests with the truth over all looks: at
// most one in twenty may be false, even right at the limit and with correlated slow and fast requests, and most
// must be right far from the limit.
func TestFewRequestsSeldomMislead(t *testing.T) {
	n, long := pairs(150)
	for _, w := range []slowServer{
		{"independent", 2, 0, 0, 0.5},
		{"a slow wander", 2, 0.1, 20 * time.Second, 0.5},
		{"a wide wander", 2, 0.3, 10 * time.Second, 0.4},
		{"a wide and slow wander", 2, 0.3, 30 * time.Second, 0.4},
		{"a wider wander", 2, 0.6, 20 * time.Second, 0.3},
		{"three a second", 3, 0.3, 20 * time.Second, 1},
	} {
		for _, c := range []struct {
			late                   float64 // share of requests beyond the limit
			falseKept, falseMissed bool
			rightly                float64 // least share found to be so
		}{
			{1e-7, false, true, 0.5},
			{0.0099, false, true, 0},
			{0.0101, true, false, 0},
			{0.2, true, false, 0.5},
		} {
			kept, missed := 0, 0
			for i := range n {
				k, m := claimed(w.start(rand.New(rand.NewPCG(9, uint64(i))), 300*time.Second, c.late))
				if k {
					kept++
				}
				if m {
					missed++
				}
			}
			wrong, right := missed, kept
			if c.falseKept {
				wrong, right = kept, missed
			}
			if long {
				t.Logf("%-22s  %5.2f %% late: kept %5.1f %%, missed %5.1f %%", w.name, 100*c.late, 100*float64(kept)/float64(n), 100*float64(missed)/float64(n))
			}
			// A sample of few may show a little more.
			if allowed := errorRate*float64(n) + 2*math.Sqrt(errorRate*float64(n)); float64(wrong) > allowed {
				t.Errorf("%s, %v late: %d of %d claims are wrong", w.name, c.late, wrong, n)
			}
			if float64(right) < c.rightly*float64(n) {
				t.Errorf("%s, %v late: only %d of %d are found", w.name, c.late, right, n)
			}
		}
	}
}

// TestFarFewerRequestsThanAThousand checks that a few minutes of a slow server decide about distant limits, and
// that a gain within them is kept.
func TestFarFewerRequestsThanAThousand(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	answer := func(tokens float64, slices int, each, wait float64) *Side {
		start := make(Incarnation, slices)
		for i := range start {
			start[i] = requests(i, each, func() float64 { return wait * math.Exp(0.3*r.NormFloat64()) })
			start[i].Tokens = stat.Some(2 * tokens * (1 + 0.02*r.NormFloat64()))
			start[i].OutputLen = stat.Delta{Sum: 150 * each, Count: each, OK: true}
		}
		return &Side{Incarnations: []Incarnation{start}}
	}
	p := Plan{Look: 7, Looks: 8, Last: true, Objectives: []Objective{{Name: "ttft_p99", Metric: MetricTTFT, Quantile: 0.99, Limit: 2}}}
	for _, c := range []struct {
		name          string
		before, after *Side
		want          Direction
		says          string
	}{
		{"kept, two requests a second", answer(1000, 50, 4, 0.2), answer(4000, 150, 4, 0.2), Better, "output +"},
		{"no longer kept, one request a slice", answer(1000, 150, 4, 0.2), answer(4000, 40, 1, 15), Worse, "was met before, and is missed now"},
		{"kept now, one request a slice before", answer(1000, 40, 1, 15), answer(900, 150, 4, 0.2), Better, "is met now"},
		{"near the limit", answer(1000, 150, 4, 0.2), answer(4000, 150, 4, 1.2), Inconclusive, "unresolved"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := Judge(c.before, c.after, p)
			if got.Direction != c.want || !says(&got, c.says) {
				t.Errorf("got %s: %s, want %s with %q", got.Direction, got.Reason, c.want, c.says)
			}
			if h := got.Objectives[0]; h.After.OK || !h.Low.OK {
				t.Errorf("of a p99 that is not known only the interval is: %+v", h)
			}
		})
	}
}

// TestTheVetoHasStandins checks that, with too few requests for the p99 of the time to first token, the known
// quantiles veto a gain.
func TestTheVetoHasStandins(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	answer := func(tokens, each, wait, late, then float64) *Side { // so many late, after another time
		start := make(Incarnation, 75)
		for i := range start {
			start[i] = requests(i, each, func() float64 {
				if r.Float64() < late {
					return then
				}
				return wait * math.Exp(0.3*r.NormFloat64())
			})
			start[i].Tokens = stat.Some(2 * tokens * (1 + 0.02*r.NormFloat64()))
			start[i].OutputLen = stat.Delta{Sum: 150 * each, Count: each, OK: true}
		}
		return &Side{Incarnations: []Incarnation{start}}
	}
	for _, c := range []struct {
		name          string
		before, after *Side
		want          Direction
		says          string
	}{
		{"all are late", answer(1000, 4, 0.3, 0, 0), answer(1150, 4, 6, 0, 0), Plateau, "95th percentile of the time to first token"},
		{"of 150 all are late", answer(1000, 2, 0.3, 0, 0), answer(1150, 2, 6, 0, 0), Plateau, "90th percentile of the time to first token"},
		{"of 75 all are late", answer(1000, 1, 0.3, 0, 0), answer(1150, 1, 6, 0, 0), Plateau, "median of the time to first token"},
		{"four of a hundred are late", answer(1000, 4, 0.3, 0, 0), answer(1150, 4, 0.3, 0.04, 15), Plateau, "mean of the time to first token"},
		{"as late as before", answer(1000, 4, 0.3, 0, 0), answer(1150, 4, 0.3, 0, 0), Better, ""},
		{"sooner", answer(1000, 4, 6, 0, 0), answer(1150, 4, 0.3, 0, 0), Better, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := Judge(c.before, c.after, Plan{Last: true})
			if got.Direction != c.want || !says(&got, c.says) {
				t.Errorf("got %s: %s, want %s with %q", got.Direction, got.Reason, c.want, c.says)
			}
			if vetoed := strings.Contains(got.Reason, "99th percentile is not known"); vetoed != (c.want == Plateau) {
				t.Errorf("a stand-in is named or not: %s", got.Reason)
			}
			for _, m := range got.Measures {
				if m.Quantile == 0.95 || m.Quantile == 0.9 {
					t.Errorf("a stand-in is listed: %+v", m)
				}
				if m.Metric == MetricTTFT && m.Quantile == 0.99 && m.Known {
					t.Errorf("a p99 of %v requests is known: %+v", m.Count, m)
				}
			}
		})
	}
}

// TestAStandinWaits checks that a stand-in for a p99 does not end a trial while further measuring can determine
// the p99.
func TestAStandinWaits(t *testing.T) {
	before, after := steadyLife(1, 1000, 0.2, 16, 8), steadyLife(2, 2500, 3, 16, 8)
	for _, c := range []struct {
		name          string
		before, after Incarnation
		settled       bool
	}{
		{"after is short", before, after[:20], false},
		{"both are short", before[:20], after[:20], true},
		{"its p99 is known", before, after, true},
	} {
		got := Judge(&Side{Incarnations: []Incarnation{c.before}}, &Side{Incarnations: []Incarnation{c.after}}, Plan{Look: 4, Looks: 8})
		if got.Direction != Plateau || got.Settled != c.settled {
			t.Errorf("%s: %s, settled %v: %s", c.name, got.Direction, got.Settled, got.Reason)
		}
	}
}
