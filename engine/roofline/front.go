package roofline

import "github.com/rooftop-dev/rooftop/engine/stat"

// Front is the measurement of the API servers.
type Front struct {
	Inside float64 // mean requests of one replica in the API servers
	Share  float64 // share of the API servers in the time to first token, 0..1
	Busy   float64 // share of a core used by each
}

// MoreServers predicts a multiple of the API servers, each with its own core. In a closed loop, the
// requests that wait in the front end move to the engine, as many as it then admits. The remaining
// time in the front end follows the queue of a single server (M/M/1: busy over idle).
func (p *Performance) MoreServers(times float64, f Front) Gain {
	m := &p.Measured
	batch := m.Batch + f.Inside
	for _, limit := range [...]stat.Opt{m.MaxNumSeqs, m.holds(m.KVCapacity)} {
		if positive(limit) {
			batch = max(m.Batch, min(batch, limit.V))
		}
	}
	ch := p.fuller(batch)
	open := m.Offered.Demand.OK
	ch.clients = !open
	ch.servers = times
	ch.worst = Point{} // the same requests are in the server, only further along
	g := p.predict(ch)
	if !positive(m.TTFTSeconds) {
		return g
	}
	// The part outside the front end is a prompt's processing and the steps around it.
	rest := 1 - f.Share
	if m.PrefillSeconds.OK {
		rest = min(rest, (m.PrefillSeconds.V+2*m.StepSeconds.Or(0))/m.TTFTSeconds.V)
	}
	first := func(rate, itl stat.Opt) float64 {
		wait := func(busy float64) float64 {
			busy = min(busy, frontFull)
			return busy / (1 - busy)
		}
		then := wait(f.Busy*(1+rate.V)/times) / max(1e-3, wait(f.Busy))
		return f.Share*min(1, then) + rest*(1+itl.V)
	}
	mid := first(g.Throughput.Mid, g.ITL.Mid)
	g.TTFT = ofFirst.interval(max(mid, 1e-4), 0, 0)
	return g
}
