package bench

import (
	"slices"
	"time"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Tally is what clients measure between two times, independent of the metrics page. Latencies count
// from the intended time of sending.
type Tally struct {
	From, To time.Duration // the window; events outside do not count

	Sent, Retried, Finished, Failed, Left int
	Tokens                                int
	ttft, itl, e2e                        []float64 // s
}

// count adds to one of the counters, observe to one of the lists, if the time is in the window.
func (t *Tally) count(at time.Duration, counter *int, n int) {
	if at >= t.From && at < t.To {
		*counter += n
	}
}

func (t *Tally) observe(at time.Duration, list *[]float64, took time.Duration) {
	if at >= t.From && at < t.To {
		*list = append(*list, took.Seconds())
	}
}

func (t *Tally) sent(at time.Duration, attempt int) {
	t.count(at, &t.Sent, 1)
	t.count(at, &t.Retried, min(attempt, 1))
}

func (t *Tally) finished(at, took time.Duration) {
	t.count(at, &t.Finished, 1)
	t.observe(at, &t.e2e, took)
}

// add adds another stream's tally of the same window.
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

// metrics adds the metrics of the tally to a map, with a prefix before each name. Latencies without
// observations are absent.
func (t *Tally) metrics(prefix string, into map[string]float64) {
	seconds := (t.To - t.From).Seconds()
	put := func(name string, v stat.Opt) {
		if v.OK {
			into[prefix+name] = v.V
		}
	}
	for _, rate := range []struct {
		name  string
		count int
	}{{"tokens", t.Tokens}, {"requests", t.Finished}, {"failed", t.Failed}, {"left", t.Left}} {
		put(rate.name+"_per_s", stat.Finite(float64(rate.count)/seconds))
	}
	for _, l := range []struct {
		name string
		v    []float64
	}{{"ttft", t.ttft}, {"itl", t.itl}, {"e2e", t.e2e}} {
		slices.Sort(l.v)
		put(l.name+"_mean_s", stat.Mean(l.v))
		put(l.name+"_p50_s", stat.NearestRank(l.v, 0.50))
		put(l.name+"_p99_s", stat.NearestRank(l.v, 0.99))
		put(l.name+"_p999_s", stat.NearestRank(l.v, 0.999))
		put(l.name+"_max_s", stat.NearestRank(l.v, 1))
	}
}
