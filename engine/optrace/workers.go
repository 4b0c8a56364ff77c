package optrace

import (
	"math"
	"slices"
	"time"
)

// worker is a compute thread of a graph in progress.
type worker struct {
	Thread
	th    *thread
	graph *building // nil while it is unknown: the worker is loose
	index uint16
	count uint16 // number of the graph's compute threads, 0 if unknown

	// Barriers since the begin of the span, or of the worker: barrier is when the last one
	// began, or never; waiting reports whether it is open; ended is when it ended.
	barrier, ended time.Duration
	waiting        bool
	// inside is the time of the span in barriers and off the CPU that lies before its end in
	// any case; since is that after the last barrier began.
	inside, since time.Duration

	// base and baseBefore are refs of the counters at the begin of the span and of the previous
	// one, 0 if none.
	base, baseBefore uint32
}

// never is the time that means "never".
const never time.Duration = -1

func newWorker(th *thread, index, count uint16) *worker {
	return &worker{Thread: Thread{TID: th.tid}, th: th, index: index, count: count, barrier: never, ended: never}
}

// span returns the open span, nil before the first.
func (w *worker) span() *Span {
	if len(w.Spans) == 0 {
		return nil
	}
	return &w.Spans[len(w.Spans)-1]
}

// beginOperator begins a span on the compute thread that th works as.
func (a *Assembler) beginOperator(th *thread, e *Event) {
	if e.Thread >= maxWorkers || e.Threads > maxWorkers || e.Threads > 0 && e.Thread >= e.Threads {
		return
	}
	w := th.work
	if w == nil || w.index != e.Thread || e.Threads != w.count {
		if w = a.join(th, e); w == nil {
			return
		}
	}
	if !a.makeRoom(w) {
		return
	}
	w.begin(e)
	if w.graph == nil {
		a.findGraph(w)
	}
}

// begin ends the open span and begins the next.
func (w *worker) begin(e *Event) {
	w.endSpan(e.At)
	s := Span{Operator: e.Ref, Addr: e.Addr, Begin: e.At, End: e.At, CPU: e.CPU}
	if e.Kind == FusedBegin {
		s.Fused = uint16(min(max(e.N, 0), math.MaxUint16))
	}
	w.Spans = append(w.Spans, s)
	w.countFrom(e.At)
}

// endSpan ends the open span at its last barrier or, without one, at. An open barrier ends at.
func (w *worker) endSpan(at time.Duration) {
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
	w.barrier, w.ended, w.inside, w.since = never, never, 0, 0
}

func (w *worker) beginBarrier(at time.Duration) {
	w.inside += w.since // the previous barrier was within the operator
	w.barrier, w.since, w.waiting = at, 0, true
}

func (w *worker) endBarrier(at time.Duration) {
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

// makeRoom makes room for one more span and drops the oldest graphs if necessary. It returns false
// if the worker itself was dropped.
func (a *Assembler) makeRoom(w *worker) bool {
	if len(w.Spans) < cap(w.Spans) {
		return true
	}
	if w.graph == nil && len(w.Spans) >= maxLooseSpans {
		a.dropLoose(w)
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
			a.dropLoose(w)
			return false
		}
		a.drop(a.open[0])
		if w.th.work != w {
			return false // the graph was its own, or it fits no other
		}
	}
	before := cap(w.Spans)
	w.Spans = slices.Grow(w.Spans, more)
	a.spans += cap(w.Spans) - before
	return true
}

// join assigns a thread that begins an operator to a graph and returns its compute thread, nil
// if it can belong to no graph whose begin was seen.
func (a *Assembler) join(th *thread, e *Event) *worker {
	if th.graph != nil {
		return a.ownWorker(th.graph, e)
	}
	if th.work != nil {
		a.leaveGraph(th.work)
	}
	if e.Thread == 0 {
		a.strayGraph(th)
		return nil
	}
	w := newWorker(th, e.Thread, e.Threads)
	g, possible := a.graphOf(w, e.Addr)
	switch {
	case g != nil:
		w.attach(g)
	case !possible || len(a.loose) >= maxLoose:
		return nil
	default:
		a.loose = append(a.loose, w)
	}
	th.work = w
	return w
}

// leaveGraph drops the graph or worker of a thread that now computes something else. No thread
// leaves a graph before its end, so the end was missed, or the worker belonged to another
// graph.
func (a *Assembler) leaveGraph(w *worker) {
	if w.graph == nil {
		a.dropLoose(w)
		return
	}
	a.drop(w.graph)
}

// findGraph looks for the graph of a loose compute thread.
func (a *Assembler) findGraph(w *worker) {
	addrs := w.Spans[max(len(w.Spans)-2, 0):]
	for i := len(addrs) - 1; i >= 0; i-- {
		g, possible := a.graphOf(w, addrs[i].Addr)
		if g != nil {
			a.attachLoose(w, g)
			return
		}
		if !possible {
			a.dropLoose(w)
			return
		}
	}
}

// attachLoose attaches a loose compute thread to a graph.
func (a *Assembler) attachLoose(w *worker, g *building) {
	a.unlist(w)
	w.trim(g.Begin)
	w.attach(g)
}

// trim removes what a loose compute thread did before a graph began, for another graph,
// together with its kernel events.
func (w *worker) trim(begin time.Duration) {
	first := slices.IndexFunc(w.Spans, func(s Span) bool { return s.Begin >= begin })
	switch first {
	case 0:
		return
	case -1:
		first = len(w.Spans)
	}
	w.Thread = Thread{TID: w.TID, Spans: slices.Delete(w.Spans, 0, first)}
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
}

// expire drops loose compute threads whose last operator began in no open graph.
func (a *Assembler) expire() {
	for i := len(a.loose) - 1; i >= 0; i-- {
		w := a.loose[i]
		s := w.span()
		if s == nil || !slices.ContainsFunc(a.open, func(g *building) bool {
			return g.pid == w.th.pid && g.Begin <= s.Begin && g.fits(w)
		}) {
			a.dropLoose(w)
		}
	}
}

// dropLoose drops a loose compute thread.
func (a *Assembler) dropLoose(w *worker) {
	a.unlist(w)
	a.spans -= cap(w.Spans)
	w.Spans = nil
	if w.th.work == w {
		w.th.work = nil
	}
}

func (a *Assembler) unlist(w *worker) {
	if i := slices.Index(a.loose, w); i >= 0 {
		a.loose = slices.Delete(a.loose, i, i+1)
	}
}

// graphOf returns the open graph that a compute thread belongs to, judged by an operator. If it
// is nil, possible reports whether a graph may still turn out to be the one.
func (a *Assembler) graphOf(w *worker, addr uint64) (found *building, possible bool) {
	for i := len(a.open) - 1; i >= 0; i-- {
		g := a.open[i]
		if g.pid != w.th.pid || !g.fits(w) {
			continue
		}
		possible = true
		if !a.hasOperator(g, addr) {
			continue
		}
		if g.main.tid == w.th.servedLast {
			return g, true
		}
		if found == nil {
			found = g
		}
	}
	return found, possible
}

// recentSteps is the number of compute thread 0's latest steps in which an operator of another
// compute thread is searched: its present one, the previous one, and more for events of the
// same moment.
const recentSteps = 4

// hasOperator reports whether an operator belongs to a graph.
func (a *Assembler) hasOperator(g *building, addr uint64) bool {
	if _, ok := a.dags.addresses(g.DAG)[addr]; ok {
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
