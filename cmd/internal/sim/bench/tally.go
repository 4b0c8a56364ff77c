package bench

import "time"

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
