package engine

import (
	"math"

	"github.com/rooftop-dev/rooftop/engine/roofline"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

const (
	// backlogWindows is the number of windows needed to distinguish a trend in the number of
	// requests from scatter.
	backlogWindows = 6
	// backlogStdErrors is the number of standard errors that the trend must reach. Windows
	// are not independent, so it is more than the usual two or three.
	backlogStdErrors = 5
	// backlogGrowth is the least growth over the run that counts, as a share of the mean;
	// backlogRequests is the same in requests.
	backlogGrowth   = 0.1
	backlogRequests = 3
	// persistentQueueShare is the least share of the mean queue that the shortest queue must
	// have for the queue to count as one that never empties.
	persistentQueueShare = 0.5
	// poissonDispersion is the variance over the mean from which arrivals count as independent
	// of the answers (Poisson has 1).
	poissonDispersion = 0.9
	// frontBound is the share of a core from which the API server sets how many requests are in
	// the engine: their number then says nothing about the clients.
	frontBound = 0.9
)

// estimateOffered derives the arrival pattern from the number of requests in the server
// over time. A growing queue means an open loop above capacity: arrivals exceed
// completions by the growth. Clients of a closed loop that send their next request at once
// keep the number constant. Clients that think in between make it vary binomially: the
// variance over the mean is the share of thinking clients. If the server is full, thinking
// clients are missing from a constant number, and their number varies like Poisson's, so
// its variance is its mean (machine-repair model, e.g. Lazowska et al., Quantitative
// System Performance, ch. 5).
func (r *Run) estimateOffered() (o roofline.Offered) {
	if r.FrontShare().Or(0) >= frontBound {
		return o
	}
	finished := r.Agg.Rate[CounterRequestSuccess]
	var at, in []float64
	waiting, least := stat.Average{}, math.Inf(1)
	seconds := 0.0
	for i := range r.Windows {
		w := &r.Windows[i]
		if !w.Evaluable || !w.Running.OK || !w.Waiting.OK {
			continue
		}
		at = append(at, (w.Start + w.Duration/2).Seconds())
		in = append(in, w.Running.V+w.Waiting.V)
		waiting.Add(w.Waiting, w.Seconds())
		least = min(least, w.Waiting.V)
		seconds += w.Seconds()
	}
	if len(in) < backlogWindows || finished.Or(0) <= 0 {
		return o
	}
	filled := rampUpLength(in)
	at, in = at[filled:], in[filled:]
	if len(in) < backlogWindows { // too few windows left to judge
		return o
	}
	n := float64(len(in))
	mean, slope, residual := fitLine(at, in)
	span := at[len(at)-1] - at[0]
	spread := 0.0
	for _, t := range at {
		spread += (t - at[0] - span/2) * (t - at[0] - span/2)
	}
	sure := math.Abs(slope) >= backlogStdErrors*math.Sqrt(residual/max(1e-9, spread))
	if grown := slope * span; sure && grown >= max(backlogRequests, backlogGrowth*mean) {
		o.Growing, o.Demand = true, stat.Some(1+slope/finished.V)
		return o
	}
	if mean <= 0 {
		return o
	}
	if q := waiting.Mean(); q.Or(0) >= 1 && least >= persistentQueueShare*q.V {
		o.Thinking = stat.Some(residual / float64(max(1, r.Agg.Ranks)))
		return o
	}
	// The mean of a window varies less than the number itself if requests are shorter than
	// the window. This is the variance of the mean of a process whose correlation decays over
	// the time that a request stays.
	stay := mean / finished.V
	x := seconds / n / stay
	averaged := 2 / x * (1 - (1-math.Exp(-x))/x)
	share := residual / mean / max(averaged, 0.05)
	if share >= poissonDispersion {
		o.Demand = stat.Some(1)
		return o
	}
	o.Thinking = stat.Some(mean / float64(max(1, r.Agg.Ranks)) * share / (1 - share))
	return o
}

// rampUpLength returns the number of initial values that belong to a load that is still
// ramping up, such as after a restart: clients that arrive one after the other are not a
// trend. It minimizes the standard error of the mean of the remaining values (MSER: White,
// Simulation 69, 1997), and is at most half of them.
func rampUpLength(in []float64) (cut int) {
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

// fitLine fits a straight line. residual is the variance about it.
func fitLine(x, y []float64) (mean, slope, residual float64) {
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

// FrontShare returns the share of one core that the API server's process uses. It is absent
// if there are several API servers, or one that shares its process with the engine.
func (r *Run) FrontShare() stat.Opt {
	f := r.Facts
	if f.APIServerCount.Known && f.APIServerCount.Value > 1 || f.V0.Value {
		return stat.None
	}
	return r.Agg.Rate[CounterProcessCPUSeconds]
}
