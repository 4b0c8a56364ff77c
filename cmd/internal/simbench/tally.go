package simbench

import (
	"math"
	"slices"
	"time"
)

// Tally is what clients see between two times: their truth, beside the page's.
// Latencies count from the intended time of sending.
type Tally struct {
	From, To time.Duration // the window; what happens outside is not counted

	Sent, Retried, Finished, Failed, Left int
	Tokens                                int
	ttft, itl, e2e                        []float64 // s
}

func (t *Tally) in(at time.Duration) bool { return at >= t.From && at < t.To }

func (t *Tally) sent(at time.Duration, attempt int) {
	if t.in(at) {
		t.Sent++
		if attempt > 0 {
			t.Retried++
		}
	}
}

func (t *Tally) first(at, took time.Duration) {
	if t.in(at) {
		t.ttft = append(t.ttft, took.Seconds())
	}
}

func (t *Tally) next(at, gap time.Duration) {
	if t.in(at) {
		t.itl = append(t.itl, gap.Seconds())
	}
}

func (t *Tally) tokens(at time.Duration, n int) {
	if t.in(at) {
		t.Tokens += n
	}
}

func (t *Tally) finished(at, took time.Duration) {
	if t.in(at) {
		t.Finished++
		t.e2e = append(t.e2e, took.Seconds())
	}
}

func (t *Tally) failed(at time.Duration) {
	if t.in(at) {
		t.Failed++
	}
}

func (t *Tally) left(at time.Duration) {
	if t.in(at) {
		t.Left++
	}
}

// add joins another stream's tally of the same window.
func (t *Tally) add(o *Tally) {
	t.Sent += o.Sent
	t.Retried += o.Retried
	t.Finished += o.Finished
	t.Failed += o.Failed
	t.Left += o.Left
	t.Tokens += o.Tokens
	t.ttft = append(t.ttft, o.ttft...)
	t.itl = append(t.itl, o.itl...)
	t.e2e = append(t.e2e, o.e2e...)
}

// metrics names what was counted, each name behind a prefix. Times of a window
// in which nothing came are absent.
func (t *Tally) metrics(prefix string, into map[string]float64) {
	seconds := (t.To - t.From).Seconds()
	put := func(name string, v float64) {
		if !math.IsNaN(v) {
			into[prefix+name] = v
		}
	}
	put("tokens_per_s", float64(t.Tokens)/seconds)
	put("requests_per_s", float64(t.Finished)/seconds)
	put("failed_per_s", float64(t.Failed)/seconds)
	put("left_per_s", float64(t.Left)/seconds)
	for _, l := range []struct {
		name string
		v    []float64
	}{{"ttft", t.ttft}, {"itl", t.itl}, {"e2e", t.e2e}} {
		slices.Sort(l.v)
		put(l.name+"_mean_s", mean(l.v))
		put(l.name+"_p50_s", quantile(l.v, 0.50))
		put(l.name+"_p99_s", quantile(l.v, 0.99))
		put(l.name+"_p999_s", quantile(l.v, 0.999))
		put(l.name+"_max_s", quantile(l.v, 1))
	}
}

func mean(sorted []float64) float64 {
	sum := 0.0
	for _, v := range sorted {
		sum += v
	}
	return sum / float64(len(sorted)) // NaN of none
}

// quantile is the nearest-rank quantile; NaN of nothing.
func quantile(sorted []float64, q float64) float64 {
	if len(sorted) == 0 {
		return math.NaN()
	}
	i := int(math.Ceil(q*float64(len(sorted)))) - 1
	return sorted[min(max(i, 0), len(sorted)-1)]
}
