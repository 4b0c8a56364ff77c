package optrace

import (
	"slices"
	"time"
)

// building is a graph that is computed.
type building struct {
	Graph
	pid   int32
	main  *thread     // that began it
	first *laneWork   // its lane
	lanes []*laneWork // by index, nil where no thread was seen
	width uint16      // how many there are, 0 unknown
	call  *callWork
}

// beginGraph begins a graph on a thread that has none.
func (a *Assembler) beginGraph(th *thread, e *Event) {
	if th.lane != nil {
		a.leaveLane(th.lane)
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
	g.Graph = Graph{Call: -1, Addr: e.Addr, Nodes: int(max(e.N, 0)), Begin: e.At, TID: th.tid, DAG: a.newestDAG(e), Detail: a.detailOf(e.PID)}
	if th.split == e.Addr {
		g.Backend = th.backend
	}
	th.split, th.backend = 0, 0
	w := newLane(th, 0, 0)
	w.graph = g
	g.first, g.lanes = w, []*laneWork{w}
	th.graph, th.lane = g, w
	a.open = append(a.open, g)
}

// newestDAG is the DAG that a graph has from its begin on: the one that was read then,
// or else the last one of its address, if it has as many nodes.
func (a *Assembler) newestDAG(e *Event) uint32 {
	key := graphKey{e.PID, e.Addr}
	if e.Ref == 0 || int(e.Ref) > len(a.t.DAGs) {
		ref := a.newest[key]
		if ref == 0 || int(ref) > len(a.t.DAGs) {
			return 0
		}
		if d := &a.t.DAGs[ref-1]; e.N > 0 && int64(len(d.Nodes)+d.Truncated) != e.N {
			return 0
		}
		return ref
	}
	if len(a.newest) >= maxNewestDAGs {
		clear(a.newest)
	}
	a.newest[key] = e.Ref
	return e.Ref
}

// endGraph is the return of ggml_graph_compute.
func (a *Assembler) endGraph(th *thread, at time.Duration) {
	switch {
	case th.graph != nil:
		a.close(th.graph, at)
	case !th.stray:
		a.partial++ // begun before the trace
	}
	th.stray = false
}

// strayGraph is a thread that computes a graph whose begin was not seen.
func (a *Assembler) strayGraph(th *thread) {
	if !th.stray {
		th.stray = true
		a.partial++
	}
}

// own is the lane of the thread that began a graph. Its first operator says which
// lane it is and how many there are; others that came before and do not fit are let go.
func (a *Assembler) own(g *building, e *Event) *laneWork {
	w := g.first
	if len(w.Spans) > 0 {
		return w // an operator of another graph would have been begun as one
	}
	others := g.lanes
	w.index, w.lanes = e.Lane, e.Lanes
	g.width, g.lanes = e.Lanes, nil
	g.put(w)
	for _, o := range others {
		switch {
		case o == nil || o == w:
		case g.free(o):
			g.put(o)
		default:
			a.letGo(o)
		}
	}
	return w
}

// free says whether a lane can be one of the graph.
func (g *building) free(w *laneWork) bool {
	if g.width > 0 && w.lanes > 0 && g.width != w.lanes {
		return false
	}
	return int(w.index) >= len(g.lanes) || g.lanes[w.index] == nil
}

func (g *building) put(w *laneWork) {
	for int(w.index) >= len(g.lanes) {
		g.lanes = append(g.lanes, nil)
	}
	g.lanes[w.index] = w
}

// attach makes a lane one of the graph. The thread may have been off its CPU when the
// graph began.
func (w *laneWork) attach(g *building) {
	w.graph = g
	g.put(w)
	w.th.worker = g.main.tid
	w.before(w.th.lastAway, g.Begin)
}

// endBefore is when a graph ended whose return was not seen, if it ended before at:
// with the last barrier of its threads, where barriers are traced.
func (g *building) endBefore(at time.Duration) time.Duration {
	if w := g.first; w.waiting || w.ended == none {
		return at
	}
	end := none
	for _, w := range g.lanes {
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

// close ends a graph that was seen whole and hands it over.
func (a *Assembler) close(g *building, at time.Duration) {
	g.End = max(at, g.Begin)
	a.takeLoose(g)
	a.endRequests(g)
	g.Lanes = make([]Lane, max(len(g.lanes), int(g.width)))
	for i, w := range g.lanes {
		if w != nil {
			a.finish(w, g.End)
			g.Lanes[i] = w.Lane
		}
	}
	g.main.hint = len(g.first.Spans)
	a.remove(g)
	if a.torn(g) || a.stripped(g) {
		a.partial++
		return
	}
	g.Index = a.graphs
	a.graphs++
	a.charge(g)
	g.Critical = CriticalPath(&g.Graph)
	a.to.Graph(&g.Graph)
}

// torn says whether events of a graph are missing that no loss has told of yet: losses
// are told with the next event of their CPU, which may come after the graph's end. All
// lanes of GGML pass all nodes, so that they have as many operators. Where they never do
// in graphs of a DAG, that is how they are computed, and they are whole.
func (a *Assembler) torn(g *building) bool {
	n, lanes, even := 0, 0, true
	for _, w := range g.lanes {
		if w == nil || len(w.Spans) == 0 {
			continue
		}
		if lanes++; lanes > 1 && len(w.Spans) != n {
			even = false
		}
		n = len(w.Spans)
	}
	if lanes < 2 {
		return false
	}
	if len(a.uneven) >= maxNewestDAGs {
		clear(a.uneven)
	}
	switch {
	case even:
		a.uneven[g.DAG] = everEven
		return false
	case a.uneven[g.DAG] == everEven:
		return true
	}
	a.uneven[g.DAG]++
	return a.uneven[g.DAG] <= maxUneven
}

// stripped says whether a graph lacks the products that others of its DAG had: the probes of
// its operators were taken off, or put on, while it was computed, which is told later.
func (a *Assembler) stripped(g *building) bool {
	if len(g.first.Spans) == 0 || g.DAG == 0 {
		return false
	}
	if a.shape(g).tokens > 0 {
		if len(a.products) >= maxNewestDAGs {
			clear(a.products)
		}
		a.products[g.DAG] = struct{}{}
		return false
	}
	_, had := a.products[g.DAG]
	return had
}

// everEven stands for a DAG whose lanes are even.
const everEven = -1

// takeLoose gives a graph that ends the loose lanes whose last operators its own thread
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
		if s == nil || s.Begin < g.Begin || w.th.pid != g.pid || !g.free(w) {
			continue
		}
		if _, ok := began[s.Addr]; ok {
			a.take(w, g)
		}
	}
}

// drop leaves a graph out that was not seen whole.
func (a *Assembler) drop(g *building) {
	a.partial++
	g.main.stray = true
	g.End = a.now
	a.endRequests(g)
	a.remove(g)
}

// remove takes a graph out of the open ones, and its threads off it.
func (a *Assembler) remove(g *building) {
	if i := slices.Index(a.open, g); i >= 0 {
		a.open = slices.Delete(a.open, i, i+1)
	}
	g.main.graph = nil
	for _, w := range g.lanes {
		if w == nil {
			continue
		}
		a.spans -= cap(w.Spans)
		if w.th.lane == w {
			w.th.lane = nil
		}
	}
	a.expire()
}

// finish ends what goes on in a lane with its graph.
func (a *Assembler) finish(w *laneWork, end time.Duration) {
	th := w.th
	if th.lane == w {
		if th.away && th.out < end {
			w.gone(a.absenceOf(th, end))
		}
		if th.inSyscall {
			w.SyscallTime += max(end-max(th.syscall, w.graph.Begin), 0)
		}
	}
	w.endSpan(end)
	// Where the end was inferred, something may have been counted after it.
	longest := end - w.graph.Begin
	for _, d := range []*time.Duration{&w.Off, &w.Preempted, &w.Waking, &w.OffWaiting, &w.SyscallTime} {
		*d = min(*d, longest)
	}
}
