package optrace

import (
	"math"
	"time"
)

// request is a request to a disk that is under way.
type request struct {
	lane  *laneWork
	begin time.Duration
}

// beginRequest counts a request for the lane that makes it. Requests of threads that
// compute nothing are not followed.
func (a *Assembler) beginRequest(th *thread, e *Event) {
	if th.lane == nil {
		return
	}
	th.lane.IOBytes = addUp(th.lane.IOBytes, max(e.N, 0))
	if len(a.pending) >= maxRequests {
		clear(a.pending) // their ends were not seen
	}
	a.pending[e.Addr] = request{th.lane, e.At}
}

func (a *Assembler) endRequest(e *Event) {
	r, ok := a.pending[e.Addr]
	if !ok {
		return
	}
	delete(a.pending, e.Addr)
	r.lane.IOTime = addUp(r.lane.IOTime, e.At-r.begin)
}

// endRequests counts the requests of a graph that outlast it up to its end.
func (a *Assembler) endRequests(g *building) {
	for sector, r := range a.pending {
		if r.lane.graph == g {
			r.lane.IOTime = addUp(r.lane.IOTime, max(g.End-r.begin, 0))
			delete(a.pending, sector)
		}
	}
}

// addUp adds what is not negative, up to the largest number.
func addUp[T ~int64](a, b T) T {
	if b > math.MaxInt64-a {
		return math.MaxInt64
	}
	return a + b
}
