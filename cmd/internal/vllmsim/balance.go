package vllmsim

import "time"

// published is how often the coordinator tells the API servers what their
// engines hold (vLLM v1/engine/coordinator.py).
const published = 100 * time.Millisecond

// balancer chooses the engine of a request as vLLM's DPLBAsyncMPClient does
// (v1/engine/core_client.py): each API server goes by the counts that the
// coordinator published last and by what it sent since.
type balancer struct {
	newer   bool // 0.32: by requests in flight, with a penalty for full pools
	fronts  []view
	at      time.Duration // of the last publication
	changed bool          // a rank has reported since
}

// view is what one API server knows.
type view struct {
	start   int
	waiting []int
	running []int
	usage   []float64
	// inFlight is exact: requests that this API server sent to each engine and that
	// the engine has not ended.
	inFlight []int
}

func (b *balancer) init(ranks, fronts int, newer bool) {
	b.newer = newer
	b.at = -published
	for i := range fronts {
		b.fronts = append(b.fronts, view{
			start:   ranks * i / fronts,
			waiting: make([]int, ranks), running: make([]int, ranks),
			usage: make([]float64, ranks), inFlight: make([]int, ranks),
		})
	}
}

// publish tells the API servers how the engines stand, if that is due.
func (v *Server) publish(now time.Duration) {
	b := &v.balancer
	if !b.changed || now < b.at+published {
		return
	}
	b.changed, b.at = false, now
	for i := range b.fronts {
		for k, r := range v.ranks {
			b.fronts[i].waiting[k] = r.state.WaitingCapacity + r.state.WaitingDeferred
			b.fronts[i].running[k] = r.state.Running
			b.fronts[i].usage[k] = r.state.KVUsage
		}
	}
}

// choose returns the rank for a request of an API server.
func (v *Server) choose(front int, now time.Duration) int {
	if len(v.ranks) == 1 {
		return 0
	}
	f := &v.balancer.fronts[front]
	best, least := 0, 0.0
	if w := v.active(skew, -1, now); w != nil {
		best = max(0, w.rank)
	} else {
		v.publish(now)
		for i := range v.ranks {
			k := (f.start + i) % len(v.ranks)
			if score := v.balancer.score(f, k); i == 0 || score < least {
				best, least = k, score
			}
		}
		if v.balancer.newer {
			f.start = (f.start + 1) % len(v.ranks)
		}
	}
	f.waiting[best] += len(v.fronts)
	f.inFlight[best]++
	return best
}

// score is how loaded an engine looks to an API server.
func (b *balancer) score(f *view, rank int) float64 {
	waiting, running := f.waiting[rank], f.running[rank]
	if !b.newer {
		return float64(4*waiting + running)
	}
	score := float64(max(len(b.fronts)*f.inFlight[rank], waiting+running))
	// A queue before a full pool drains slowly.
	return score + float64(waiting)*6*max(0, f.usage[rank]-0.5)
}
