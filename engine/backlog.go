package engine

import (
	"math"

	"github.com/rooftop-dev/rooftop/engine/roofline"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

const (
	// backlogWindows is how many windows tell a trend of the requests in the server
	// from their scatter.
	backlogWindows = 6
	// backlogSure is how many of its standard errors the trend must reach: windows
	// are not independent, so it is more than the usual two or three.
	backlogSure = 5
	// backlogGrown is the growth over the run, as a share of the mean, from which
	// it counts, and backlogLeast the same in requests.
	backlogGrown = 0.1
	backlogLeast = 3
	// backlogStands is the share of the mean queue that the shortest one must have
	// for the queue to be one that never ends.
	backlogStands = 0.5
	// allThinking is the variance over the mean from which requests come as if
	// nobody waited for an answer: by chance (Poisson has 1).
	allThinking = 0.9
)

// offered works out how the requests come, from how many are in the server over
// time. A queue that grows is an open loop above capacity: what comes exceeds what
// is finished by the growth. Clients of a closed loop that answer at once keep the
// number constant; those that think in between make it vary, by the binomial law:
// the variance over the mean is the share of clients that think. Where the server is
// full, whoever thinks is missing from a constant number, and their number varies
// like Poisson's, so that the variance is their mean (machine-repair model, e.g.
// Lazowska et al., Quantitative System Performance, ch. 5).
func (r *Run) offered() (o roofline.Offered) {
	finished := r.Agg.Rate[CounterRequestSuccess]
	var at, in []float64
	waiting, least := weighted{}, math.Inf(1)
	seconds := 0.0
	for i := range r.Windows {
		w := &r.Windows[i]
		if !w.Evaluable || !w.Running.OK || !w.Waiting.OK {
			continue
		}
		at = append(at, (w.Start + w.Duration/2).Seconds())
		in = append(in, w.Running.V+w.Waiting.V)
		waiting.add(w.Waiting, w.Seconds())
		least = min(least, w.Waiting.V)
		seconds += w.Seconds()
	}
	if len(in) < backlogWindows || finished.Or(0) <= 0 {
		return o
	}
	filled := filling(in)
	at, in = at[filled:], in[filled:]
	if len(in) < backlogWindows { // of the rest too little is known
		return o
	}
	n := float64(len(in))
	mean, slope, residual := line(at, in)
	span := at[len(at)-1] - at[0]
	spread := 0.0
	for _, t := range at {
		spread += (t - at[0] - span/2) * (t - at[0] - span/2)
	}
	sure := math.Abs(slope) >= backlogSure*math.Sqrt(residual/max(1e-9, spread))
	if grown := slope * span; sure && grown >= max(backlogLeast, backlogGrown*mean) {
		o.Growing, o.Demand = true, stat.Some(1+slope/finished.V)
		return o
	}
	if mean <= 0 {
		return o
	}
	if q := waiting.mean(); q.Or(0) >= 1 && least >= backlogStands*q.V {
		o.Thinking = stat.Some(residual / float64(max(1, r.Agg.Ranks)))
		return o
	}
	// A window's mean varies less than the number itself where requests are shorter
	// than the window: the variance of the mean of a process whose correlation dies
	// out over the time that a request stays.
	stay := mean / finished.V
	x := seconds / n / stay
	averaged := 2 / x * (1 - (1-math.Exp(-x))/x)
	share := residual / mean / max(averaged, 0.05)
	if share >= allThinking {
		o.Demand = stat.Some(1)
		return o
	}
	o.Thinking = stat.Some(mean / float64(max(1, r.Agg.Ranks)) * share / (1 - share))
	return o
}

// filling is how many values at the beginning are of a load that only comes in, as
// after a restart: clients that arrive one after the other are no trend. What is
// left out makes the standard error of the mean of the rest smallest (MSER: White,
// Simulation 69, 1997), and is at most half.
func filling(in []float64) (cut int) {
	best := math.Inf(1)
	for k := 0; k <= len(in)/2; k++ {
		rest := in[k:]
		n, mean, squares := float64(len(rest)), 0.0, 0.0
		for _, v := range rest {
			mean += v / n
		}
		for _, v := range rest {
			squares += (v - mean) * (v - mean)
		}
		if e := squares / (n * n); e < best-1e-9 {
			best, cut = e, k
		}
	}
	return cut
}

// line fits a straight line; residual is the variance about it.
func line(x, y []float64) (mean, slope, residual float64) {
	n := float64(len(x))
	mx := 0.0
	for i := range x {
		mx += x[i] / n
		mean += y[i] / n
	}
	sxx, sxy := 0.0, 0.0
	for i := range x {
		sxx += (x[i] - mx) * (x[i] - mx)
		sxy += (x[i] - mx) * (y[i] - mean)
	}
	if sxx > 0 {
		slope = sxy / sxx
	}
	for i := range x {
		d := y[i] - mean - slope*(x[i]-mx)
		residual += d * d / (n - 2)
	}
	return mean, slope, residual
}

// frontShare is the share of its one core that the API server's process uses;
// absent where there are several, or where it shares the process with the engine.
func (r *Run) frontShare() stat.Opt {
	f := r.Facts
	if f.APIServerCount.Known && f.APIServerCount.Value > 1 || f.V0.Value {
		return stat.None
	}
	return r.Agg.Rate[CounterProcessCPUSeconds]
}
