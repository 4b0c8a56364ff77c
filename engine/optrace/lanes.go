package optrace

import (
	"math"
	"slices"
	"time"
)

// laneWork is a lane of a graph that is computed.
type laneWork struct {
	Lane
	th    *thread
	graph *building // nil while it is not known: the lane is loose
	index uint16
	lanes uint16 // of the graph, 0 unknown

	// Barriers since the begin of the span, or of the lane: the last began at barrier,
	// none where it is negative, and waits while waiting is set; ended is when it ended.
	barrier, ended time.Duration
	waiting        bool
	// inside is the time of the span in barriers and off the CPU that lies before its
	// end whatever comes; since is what has come after the last barrier began.
	inside, since time.Duration

	// Refs of the counters at the begin of the span and of the one before, 0 none.
	base, baseBefore uint32
}

// none is a moment that never was.
const none time.Duration = -1

func newLane(th *thread, index, lanes uint16) *laneWork {
	return &laneWork{Lane: Lane{TID: th.tid}, th: th, index: index, lanes: lanes, barrier: none, ended: none}
}

// span is the one that goes on, nil before the first.
func (w *laneWork) span() *Span {
	if len(w.Spans) == 0 {
		return nil
	}
	return &w.Spans[len(w.Spans)-1]
}

// beginOperator begins a span on the lane of a thread.
func (a *Assembler) beginOperator(th *thread, e *Event) {
	if e.Lane >= maxLanes || e.Lanes > maxLanes || e.Lanes > 0 && e.Lane >= e.Lanes {
		return
	}
	w := th.lane
	if w == nil || w.index != e.Lane || e.Lanes != w.lanes {
		if w = a.join(th, e); w == nil {
			return
		}
	}
	if !a.room(w) {
		return
	}
	w.begin(e)
	if w.graph == nil {
		a.settle(w)
	}
}

// begin ends the span that goes on and begins the next.
func (w *laneWork) begin(e *Event) {
	w.endSpan(e.At)
	s := Span{Operator: e.Ref, Addr: e.Addr, Begin: e.At, End: e.At, CPU: e.CPU}
	if e.Kind == FusedBegin {
		s.Fused = uint16(min(max(e.N, 0), math.MaxUint16))
	}
	w.Spans = append(w.Spans, s)
	w.countFrom(e.At)
}

// endSpan ends the span that goes on, at the last barrier in it or, without one, at.
// What the lane waited for is closed with it.
func (w *laneWork) endSpan(at time.Duration) {
	w.endBarrier(at)
	if s := w.span(); s != nil {
		s.End = at
		if w.barrier >= 0 {
			s.End = w.barrier
		} else {
			w.inside += w.since
		}
		w.Busy += s.End - s.Begin - w.inside
	}
	w.barrier, w.ended, w.inside, w.since = none, none, 0, 0
}

func (w *laneWork) beginBarrier(at time.Duration) {
	w.inside += w.since // the barrier before was within the operator
	w.barrier, w.since, w.waiting = at, 0, true
}

func (w *laneWork) endBarrier(at time.Duration) {
	if !w.waiting {
		return
	}
	w.waiting, w.ended = false, at
	wait := at - w.barrier
	w.Sync += wait
	w.since += wait
	if s := w.span(); s != nil {
		s.Sync += wait
	}
}

// room makes room for one more span. Where there is none the oldest graph is dropped,
// and it is false where this was the lane's.
func (a *Assembler) room(w *laneWork) bool {
	if len(w.Spans) < cap(w.Spans) {
		return true
	}
	if w.graph == nil && len(w.Spans) >= maxLooseSpans {
		a.letGo(w)
		return false
	}
	more := len(w.Spans)
	if more == 0 {
		more = firstSpans
		if w.graph != nil {
			more = min(max(w.graph.main.hint, firstSpans), maxFirstSpans)
		}
	}
	for a.spans+more > maxOpenSpans {
		if len(a.open) == 0 {
			a.letGo(w)
			return false
		}
		a.drop(a.open[0])
		if w.th.lane != w {
			return false // its own, or it can be no other's
		}
	}
	before := cap(w.Spans)
	w.Spans = slices.Grow(w.Spans, more)
	a.spans += cap(w.Spans) - before
	return true
}

// join finds the lane of a thread that begins an operator, nil where it belongs to no
// graph that was seen to begin.
func (a *Assembler) join(th *thread, e *Event) *laneWork {
	if th.graph != nil {
		return a.own(th.graph, e)
	}
	if th.lane != nil {
		a.leaveLane(th.lane)
	}
	if e.Lane == 0 {
		a.strayGraph(th)
		return nil
	}
	w := newLane(th, e.Lane, e.Lanes)
	g, possible := a.graphOf(w, e.Addr)
	switch {
	case g != nil:
		w.attach(g)
	case !possible || len(a.loose) >= maxLoose:
		return nil
	default:
		a.loose = append(a.loose, w)
	}
	th.lane = w
	return w
}

// leaveLane is a thread that computes something else now than its lane. No thread
// leaves a graph before its end: the end was missed, or the lane was another graph's.
func (a *Assembler) leaveLane(w *laneWork) {
	if w.graph == nil {
		a.letGo(w)
		return
	}
	a.drop(w.graph)
}

// settle looks for the graph of a loose lane.
func (a *Assembler) settle(w *laneWork) {
	addrs := w.Spans[max(len(w.Spans)-2, 0):]
	for i := len(addrs) - 1; i >= 0; i-- {
		g, possible := a.graphOf(w, addrs[i].Addr)
		if g != nil {
			a.take(w, g)
			return
		}
		if !possible {
			a.letGo(w)
			return
		}
	}
}

// take gives a loose lane to a graph.
func (a *Assembler) take(w *laneWork, g *building) {
	a.unlist(w)
	w.trim(g.Begin)
	w.attach(g)
}

// trim drops what a loose lane did before a graph began: it was for another, and with
// it goes what the kernel said of the lane.
func (w *laneWork) trim(begin time.Duration) {
	first := slices.IndexFunc(w.Spans, func(s Span) bool { return s.Begin >= begin })
	switch first {
	case 0:
		return
	case -1:
		first = len(w.Spans)
	}
	before := w.Lane
	w.Lane = Lane{TID: w.TID, Spans: slices.Delete(w.Spans, 0, first)}
	for i := range w.Spans {
		s := &w.Spans[i]
		w.Sync += s.Sync
		w.Off += s.Off
		w.Preempted += s.Preempted
		w.OffWaiting += s.OffWaiting
		if i < len(w.Spans)-1 {
			w.Busy += max(s.End-s.Begin-(s.Off-s.OffWaiting), 0)
		}
	}
	kept := cpuTimes{ran: before.Ran, queued: before.Queued}.part(w.Preempted, before.Preempted)
	w.Ran, w.Queued = kept.ran, kept.queued
}

// expire lets loose lanes go that began their last operator in no open graph.
func (a *Assembler) expire() {
	for i := len(a.loose) - 1; i >= 0; i-- {
		w := a.loose[i]
		s := w.span()
		if s == nil || !slices.ContainsFunc(a.open, func(g *building) bool {
			return g.pid == w.th.pid && g.Begin <= s.Begin && g.free(w)
		}) {
			a.letGo(w)
		}
	}
}

// letGo drops a loose lane.
func (a *Assembler) letGo(w *laneWork) {
	a.unlist(w)
	a.spans -= cap(w.Spans)
	w.Spans = nil
	if w.th.lane == w {
		w.th.lane = nil
	}
}

func (a *Assembler) unlist(w *laneWork) {
	if i := slices.Index(a.loose, w); i >= 0 {
		a.loose = slices.Delete(a.loose, i, i+1)
	}
}

// graphOf is the open graph that a lane belongs to, judged by an operator of it. It is
// nil where none has a place for it, and possible says whether one still may.
func (a *Assembler) graphOf(w *laneWork, addr uint64) (found *building, possible bool) {
	for i := len(a.open) - 1; i >= 0; i-- {
		g := a.open[i]
		if g.pid != w.th.pid || !g.free(w) {
			continue
		}
		possible = true
		if !a.has(g, addr) {
			continue
		}
		if g.main.tid == w.th.worker {
			return g, true
		}
		if found == nil {
			found = g
		}
	}
	return found, possible
}

// recentSteps are those of lane 0 in which an operator of another lane is looked for:
// the one it is in, the one before, and one more for events of the same moment.
const recentSteps = 4

// has says whether an operator has a place in a graph.
func (a *Assembler) has(g *building, addr uint64) bool {
	if _, ok := a.place(g.DAG)[addr]; ok {
		return true
	}
	spans := g.first.Spans
	for i := len(spans) - 1; i >= max(len(spans)-recentSteps, 0); i-- {
		if spans[i].Addr == addr {
			return true
		}
	}
	return false
}

// place are the addresses of the nodes of a DAG.
func (a *Assembler) place(dag uint32) map[uint64]struct{} {
	if dag == 0 || int(dag) > len(a.t.DAGs) {
		return nil
	}
	if set, ok := a.places[dag]; ok {
		return set
	}
	if len(a.places) >= maxPlaces {
		clear(a.places)
	}
	nodes := a.t.DAGs[dag-1].Nodes
	set := make(map[uint64]struct{}, len(nodes))
	for i := range nodes {
		set[nodes[i].Addr] = struct{}{}
	}
	a.places[dag] = set
	return set
}
