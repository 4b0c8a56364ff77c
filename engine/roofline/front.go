package roofline

import "github.com/rooftop-dev/rooftop/engine/stat"

// Front is what a run says of its API servers.
type Front struct {
	Inside float64 // requests in them at once, of one replica, mean
	Share  float64 // their part of the time to the first token, 0..1
	Busy   float64 // share of a core that each uses
}

// MoreServers predicts times as many API servers, each with a core of its own. Those
// who wait in the front end of a closed loop come to the engine, as many as it then
// takes in; the rest of the front end's own time follows the queue of a single server
// (M/M/1: busy over idle).
func (p *Performance) MoreServers(times float64, f Front) Gain {
	m := &p.Measured
	ch := p.fuller(m.Batch + f.Inside)
	open := m.Offered.Demand.OK
	ch.clients = !open
	ch.servers = times
	ch.worst = Point{} // the same requests are in as before, only further in
	g := p.predict(ch)
	if !positive(m.TTFTSeconds) {
		return g
	}
	// What is not the front end's is a prompt's own processing and the steps about it.
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
	g.TTFT = ofFirst.around(max(mid, 1e-4), 0, 0)
	return g
}
