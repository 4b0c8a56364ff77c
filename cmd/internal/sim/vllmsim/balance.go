package vllmsim

import "time"

// publishInterval is the interval at which the coordinator reports the state of the engines to the API
// servers (vLLM v1/engine/coordinator.py).
const publishInterval = 100 * time.Millisecond

// balancer chooses the engine of a request as vLLM's DPLBAsyncMPClient does
// (v1/engine/core_client.py): each API server uses the counts that the coordinator published last, plus
// the requests that it has sent since.
type balancer struct {
	newer   bool // 0.32: uses requests in flight, with a penalty for full pools
	fronts  []view
	at      time.Duration // time of the last publication
	changed bool          // whether a rank has reported since
}

// view is the state of the engines as one API server knows it.
type view struct {
	start   int
	waiting []int
	running []int
	usage   []float64
	// inFlight is the exact number of requests that this API server sent to each engine and that
	// have not ended.
	inFlight []int
}

func (b *balancer) init(ranks, fronts int, newer bool) {
	b.newer = newer
	b.at = -publishInterval
	for i := range fronts {
		b.fronts = append(b.fronts, view{
			start:   ranks * i / fronts,
			waiting: make([]int, ranks), running: make([]int, ranks),
			usage: make([]float64, ranks), inFlight: make([]int, ranks),
		})
	}
}

// publish reports the state of the engines to the API servers if publishInterval has passed.
func (v *Server) publish(now time.Duration) {
	b := &v.balancer
	if !b.changed || now < b.at+publishInterval {
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
	if w := v.faults.active(skew, -1, now); w != nil {
		best = max(0, w.Rank)
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

// score returns the load of an engine as an API server sees it; the lowest is chosen.
func (b *balancer) score(f *view, rank int) float64 {
	waiting, running := f.waiting[rank], f.running[rank]
	if !b.newer {
		return float64(4*waiting + running)
	}
	score := float64(max(len(b.fronts)*f.inFlight[rank], waiting+running))
	// A queue before a full pool drains slowly.
	return score + float64(waiting)*6*max(0, f.usage[rank]-0.5)
}
