package optrace

import (
	"time"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

// diskRequests are pending disk requests, by sector.
type diskRequests map[uint64]request

// request is a pending disk request.
type request struct {
	worker *worker
	begin  time.Duration
}

// begin adds a request to the compute thread that makes it. Requests of other threads are
// ignored.
func (d diskRequests) begin(th *thread, e *Event) {
	if th.work == nil {
		return
	}
	th.work.IOBytes = stat.AddSaturating(th.work.IOBytes, max(e.N, 0))
	if len(d) >= maxRequests {
		clear(d) // their ends were not seen
	}
	d[e.Addr] = request{th.work, e.At}
}

func (d diskRequests) end(e *Event) {
	r, ok := d[e.Addr]
	if !ok {
		return
	}
	delete(d, e.Addr)
	r.worker.IOTime = stat.AddSaturating(r.worker.IOTime, e.At-r.begin)
}

// endAll ends the pending requests of a graph at the graph's end.
func (d diskRequests) endAll(g *building) {
	for sector, r := range d {
		if r.worker.graph == g {
			r.worker.IOTime = stat.AddSaturating(r.worker.IOTime, max(g.End-r.begin, 0))
			delete(d, sector)
		}
	}
}
