package bench

import (
	"slices"
	"time"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

// metrics returns what the clients measured between two times, in all and by stream.
func (w *World) metrics(from, to time.Duration) map[string]float64 {
	out := map[string]float64{}
	all := Tally{From: from, To: to}
	for _, c := range w.clients {
		if c.name != "" {
			c.tally.metrics(c.name+".", out)
		}
		all.add(c.tally)
	}
	all.metrics("", out)
	return out
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
