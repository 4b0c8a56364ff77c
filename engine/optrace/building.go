package optrace

import (
	"slices"
	"time"
)

// building is a graph in progress.
type building struct {
	Graph
	pid     int32
	main    *thread   // the thread that began it
	first   *worker   // the compute thread of main
	workers []*worker // by index, nil if no thread was seen
	width   uint16    // number of compute threads, 0 if unknown
	call    *callWork
}

// beginGraph begins a graph on a thread without an open one.
func (a *Assembler) beginGraph(th *thread, e *Event) {
	if th.work != nil {
		a.leaveGraph(th.work)
	}
	if e.At < a.lossy {
		a.partial++
		th.stray = true
		return
	}
	if len(a.open) >= maxOpenGraphs {
		a.drop(a.open[0])
	}
	th.stray = false
	g := &building{pid: th.pid, main: th, call: th.call}
	g.Graph = Graph{Call: -1, Addr: e.Addr, Nodes: int(max(e.N, 0)), Begin: e.At, TID: th.tid, DAG: a.dags.begin(e)}
	if th.split == e.Addr {
		g.Backend = th.backend
	}
	th.split, th.backend = 0, 0
	w := newWorker(th, 0, 0)
	w.graph = g
	g.first, g.workers = w, []*worker{w}
	th.graph, th.work = g, w
	a.open = append(a.open, g)
}

// endGraph handles the return of ggml_graph_compute.
func (a *Assembler) endGraph(th *thread, at time.Duration) {
	switch {
	case th.graph != nil:
		a.close(th.graph, at)
	case !th.stray:
		a.partial++ // begun before the trace
	}
	th.stray = false
}

// strayGraph counts the graph of a thread that computes one whose begin was not seen.
func (a *Assembler) strayGraph(th *thread) {
	if !th.stray {
		th.stray = true
		a.partial++
	}
}

// ownWorker returns the compute thread for the thread that began a graph. Its first operator has its
// index and the number of compute threads; workers that attached earlier and do not fit are dropped.
func (a *Assembler) ownWorker(g *building, e *Event) *worker {
	w := g.first
	if len(w.Spans) > 0 {
		return w // another graph would have begun with a GraphBegin
	}
	others := g.workers
	w.index, w.count = e.Thread, e.Threads
	g.width, g.workers = e.Threads, nil
	g.addWorker(w)
	for _, o := range others {
		switch {
		case o == nil || o == w:
		case g.fits(o):
			g.addWorker(o)
		default:
			a.dropLoose(o)
		}
	}
	return w
}

// fits reports whether a compute thread can be part of the graph.
func (g *building) fits(w *worker) bool {
	if g.width > 0 && w.count > 0 && g.width != w.count {
		return false
	}
	return int(w.index) >= len(g.workers) || g.workers[w.index] == nil
}

func (g *building) addWorker(w *worker) {
	for int(w.index) >= len(g.workers) {
		g.workers = append(g.workers, nil)
	}
	g.workers[w.index] = w
}

// attach makes a compute thread part of the graph. The thread may have been off its CPU when
// the graph began.
func (w *worker) attach(g *building) {
	w.graph = g
	g.addWorker(w)
	w.th.servedLast = g.main.tid
	w.addEarlierAbsence(w.th.lastAway, g.Begin)
}

// endBefore estimates when a graph ended whose return was not seen: with the last barrier of
// its threads if barriers are traced, or else at.
func (g *building) endBefore(at time.Duration) time.Duration {
	if w := g.first; w.waiting || w.ended == never {
		return at
	}
	end := never
	for _, w := range g.workers {
		if w == nil {
			continue
		}
		end = max(end, w.ended, w.barrier)
		if s := w.span(); s != nil {
			end = max(end, s.Begin)
		}
	}
	return end
}

// close ends a graph and, if it is complete, passes it to the receiver.
func (a *Assembler) close(g *building, at time.Duration) {
	g.End = max(at, g.Begin)
	a.takeLoose(g)
	a.disk.endAll(g)
	g.Threads = make([]Thread, max(len(g.workers), int(g.width)))
	for i, w := range g.workers {
		if w != nil {
			a.finish(w, g.End)
			g.Threads[i] = w.Thread
		}
	}
	g.main.hint = len(g.first.Spans)
	a.remove(g)
	if a.dags.lacksEvents(g) || a.dags.lacksProducts(g) {
		a.partial++
		return
	}
	g.Index = a.graphs
	a.graphs++
	a.calls.assignGraph(g)
	g.Critical = CriticalPath(&g.Graph)
	a.to.Graph(&g.Graph)
}

// takeLoose attaches the loose compute threads whose last operator the graph's own thread
// computed too.
func (a *Assembler) takeLoose(g *building) {
	if len(a.loose) == 0 {
		return
	}
	began := map[uint64]struct{}{}
	for i := range g.first.Spans {
		began[g.first.Spans[i].Addr] = struct{}{}
	}
	for _, w := range slices.Clone(a.loose) {
		s := w.span()
		if s == nil || s.Begin < g.Begin || w.th.pid != g.pid || !g.fits(w) {
			continue
		}
		if _, ok := began[s.Addr]; ok {
			a.attachLoose(w, g)
		}
	}
}

// drop leaves out an incomplete graph.
func (a *Assembler) drop(g *building) {
	a.partial++
	g.main.stray = true
	g.End = a.now
	a.disk.endAll(g)
	a.remove(g)
}

// remove removes a graph from the open ones, and its workers from their threads.
func (a *Assembler) remove(g *building) {
	if i := slices.Index(a.open, g); i >= 0 {
		a.open = slices.Delete(a.open, i, i+1)
	}
	g.main.graph = nil
	for _, w := range g.workers {
		if w == nil {
			continue
		}
		a.spans -= cap(w.Spans)
		if w.th.work == w {
			w.th.work = nil
		}
	}
	a.expire()
}

// finish ends the span, absence and system call of a compute thread at the end of its graph.
func (a *Assembler) finish(w *worker, end time.Duration) {
	th := w.th
	if th.work == w {
		if th.away && th.out < end {
			w.addAbsent(th.until(end))
		}
		if th.inSyscall {
			w.SyscallTime += max(end-max(th.syscall, w.graph.Begin), 0)
		}
	}
	w.endSpan(end)
	// If the end was inferred, time after it may have been counted.
	longest := end - w.graph.Begin
	for _, d := range []*time.Duration{&w.Off, &w.Preempted, &w.Waking, &w.Tracer, &w.OffWaiting, &w.SyscallTime} {
		*d = min(*d, longest)
	}
}
