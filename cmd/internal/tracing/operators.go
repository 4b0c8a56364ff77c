package tracing

import (
	"cmp"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// WriteOperators writes a recording of operators as a trace. The target is one group with
// tracks for its calls and its graphs, and for each compute thread a track of its operators
// with the waits inside them, and one of its kernel events. Tokens per second, bytes per second
// and counters are counter tracks.
//
// Graphs that were computed concurrently, by several contexts, have tracks of their own, so
// that nothing on a track overlaps.
func WriteOperators(w io.Writer, r *optrace.Recording) error {
	t := r.Tables
	if t == nil {
		t = &optrace.Tables{}
	}
	if !slices.IsSortedFunc(r.Events, byMoment) {
		sorted := *r
		sorted.Events = slices.SortedStableFunc(slices.Values(r.Events), byMoment)
		r = &sorted
	}
	var all assembly
	optrace.Replay(r, t, &all)
	first := r.Begin
	if len(r.Events) > 0 {
		first = min(first, r.Events[0].At)
	}
	p := &painter{shift: -first, t: t, r: r, pid: 1, last: 1}
	var missing []string
	for _, g := range r.Gaps {
		missing = append(missing, g.What+": "+g.Why)
	}
	p.Writer = NewWriter(w, r.Origin.Add(first-r.Begin),
		Text("program", "rooftop"), Text("kind", "operators"), Text("runtime", r.Target.Runtime), Text("hook", r.Target.Hook), Text("detail", r.Detail.String()),
		Text("dropped_events", fmt.Sprint(r.Dropped)), Text("left_out_events", fmt.Sprint(r.LeftOut)), Text("not_known", strings.Join(missing, "; ")))
	p.Process(p.pid, targetName(&r.Target), 1)
	p.groupEvents()
	p.calls(all.calls)
	p.graphs(all.graphs)
	p.rates(all.calls)
	p.work(all.graphs)
	p.disk()
	return p.Close()
}

// painter draws one recording: it assigns numbers to tracks, and shifts times.
type painter struct {
	*Writer
	t     *optrace.Tables
	r     *optrace.Recording
	shift time.Duration
	pid   int // of the only group
	last  int // last assigned number of a track
	// byTID are the events of threads that are drawn on the tracks of compute threads, in
	// order.
	byTID map[int32][]*optrace.Event
}

func (p *painter) track(name string, order int) Track {
	p.last++
	at := Track{PID: p.pid, TID: p.last}
	p.Thread(at, name, order)
	return at
}

// span draws from one time to another; its length is 0 if they are in the wrong order.
func (p *painter) span(on Track, category, name string, from, to time.Duration, args ...Arg) {
	p.Span(on, category, name, from+p.shift, max(0, to-from), args...)
}

func (p *painter) instant(on Track, category, name string, at time.Duration, args ...Arg) {
	p.Instant(on, category, name, at+p.shift, args...)
}

func (p *painter) counter(name, unit string, at time.Duration, v stat.Opt) {
	if v.OK {
		p.Counter(p.pid, name, at+p.shift, unit, v.V)
	}
}

func byMoment(a, b optrace.Event) int { return cmp.Compare(a.At, b.At) }

// assembly is a receiver that keeps graphs and calls.
type assembly struct {
	graphs []*optrace.Graph
	calls  []*optrace.Call
}

func (a *assembly) Graph(g *optrace.Graph) { a.graphs = append(a.graphs, g) }
func (a *assembly) Call(c *optrace.Call)   { a.calls = append(a.calls, c) }

func targetName(t *optrace.Target) string {
	name, _, _ := strings.Cut(strings.TrimSpace(t.Command), " ")
	if name != "" {
		name = filepath.Base(name)
	} else if len(t.Files) > 0 {
		name = filepath.Base(t.Files[0].Path)
	}
	name = cmp.Or(name, "target")
	if t.PID > 0 {
		name += fmt.Sprintf(" PID %d", t.PID)
	}
	return name
}

// groupEvents groups the events for the tracks of compute threads by thread.
func (p *painter) groupEvents() {
	p.byTID = map[int32][]*optrace.Event{}
	for i := range p.r.Events {
		e := &p.r.Events[i]
		switch e.Kind {
		case optrace.BarrierBegin, optrace.BarrierEnd, optrace.SwitchOut, optrace.SwitchIn, optrace.WakeUp, optrace.SyscallBegin, optrace.SyscallEnd, optrace.PageFault:
			p.byTID[e.TID] = append(p.byTID[e.TID], e)
		}
	}
}

// within returns the events of a thread in an interval.
func (p *painter) within(tid int32, from, to time.Duration) []*optrace.Event {
	list := p.byTID[tid]
	i, _ := slices.BinarySearchFunc(list, from, func(e *optrace.Event, at time.Duration) int { return cmp.Compare(e.At, at) })
	j, _ := slices.BinarySearchFunc(list, to, func(e *optrace.Event, at time.Duration) int { return cmp.Compare(e.At, at+1) })
	return list[i:max(i, j)]
}

// intoRows distributes items over rows, in the order of their begins, so that none begins
// before the previous one in its row has ended.
func intoRows[T any](list []T, when func(T) (from, to time.Duration)) [][]T {
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b T) int {
		x, _ := when(a)
		y, _ := when(b)
		return cmp.Compare(x, y)
	})
	var rows [][]T
	for _, x := range list {
		from, _ := when(x)
		free := slices.IndexFunc(rows, func(row []T) bool {
			begin, end := when(row[len(row)-1])
			return max(begin, end) <= from
		})
		if free < 0 {
			free = len(rows)
			rows = append(rows, nil)
		}
		rows[free] = append(rows[free], x)
	}
	return rows
}

// rowName returns the name of a track in row n.
func rowName(name string, n int) string {
	if n == 0 {
		return name
	}
	return fmt.Sprintf("%s (concurrent %d)", name, n)
}

// Orders of tracks: calls, graphs, then the compute threads of each row of graphs.
const (
	orderCalls  = 0
	orderGraphs = 100
	orderLanes  = 1000
)

// calls draws the calls of the runtime's interface, and events of the recording itself.
func (p *painter) calls(calls []*optrace.Call) {
	rows := intoRows(calls, callTime)
	for n := range max(1, len(rows)) {
		on := p.track(rowName("calls", n), orderCalls+n)
		if n < len(rows) {
			for _, c := range rows[n] {
				from, to := callTime(c)
				p.span(on, "call", callName(c), from, to, Int("call", int64(c.Index)), Text("phase", c.Phase.String()), Int("tokens", int64(c.Tokens)), Int("graphs", int64(len(c.Graphs))), Int("thread", int64(c.TID)))
			}
		}
		if n == 0 {
			p.marks(on)
		}
	}
}

// callTime returns the interval of a call; it is empty if the end was not seen.
func callTime(c *optrace.Call) (from, to time.Duration) { return c.Begin, max(c.Begin, c.End) }

func callName(c *optrace.Call) string {
	name := c.Phase.String()
	if c.Phase == optrace.PhaseUnknown {
		name = "call"
	}
	switch c.Tokens {
	case 0:
		return name
	case 1:
		return name + ", 1 token"
	}
	return fmt.Sprintf("%s, %d tokens", name, c.Tokens)
}

// marks draws what belongs to no compute thread: sampling, splits, copies, gaps of the
// recording.
func (p *painter) marks(on Track) {
	for i := range p.r.Events {
		e := &p.r.Events[i]
		switch e.Kind {
		case optrace.SampleBegin:
			p.instant(on, "call", "sample", e.At)
		case optrace.SplitBegin:
			p.instant(on, "backend", "split to "+cmp.Or(p.t.Name(e.Ref), "a backend"), e.At, Int("nodes", e.N))
		case optrace.CopyBegin:
			p.instant(on, "backend", copyNames[min(optrace.CopyKind(e.Ref), optrace.CopyAcross+1)], e.At, Int("bytes", e.N))
		case optrace.Lost:
			p.instant(on, "recording", "events lost", e.At, Int("events", e.N))
		case optrace.TargetExec:
			p.instant(on, "recording", "the target became another program", e.At)
		case optrace.TargetExit:
			p.instant(on, "recording", "the target ended", e.At)
		case optrace.DetailChanged:
			p.instant(on, "recording", "detail changed", e.At, Text("detail", optrace.Detail(max(0, e.N)).String()))
		}
	}
}

// copyNames are the names of the kinds of copies.
var copyNames = [...]string{
	optrace.CopyOther: "copy", optrace.CopySet: "copy into a backend", optrace.CopyGet: "copy out of a backend", optrace.CopyAcross: "copy between backends",
	optrace.CopyAcross + 1: "copy", // of a later version
}

// disk draws disk requests, with the duration of each.
func (p *painter) disk() {
	ends := map[uint64][]time.Duration{}
	any := false
	for i := range p.r.Events {
		switch e := &p.r.Events[i]; e.Kind {
		case optrace.BlockIOBegin:
			any = true
		case optrace.BlockIOEnd:
			ends[e.Addr] = append(ends[e.Addr], e.At)
		}
	}
	if !any {
		return
	}
	on := p.track("disk requests", orderGraphs-1)
	for i := range p.r.Events {
		e := &p.r.Events[i]
		if e.Kind != optrace.BlockIOBegin {
			continue
		}
		args := []Arg{Int("bytes", e.N), Int("thread", int64(e.TID))}
		for list := ends[e.Addr]; len(list) > 0; list = ends[e.Addr] {
			ends[e.Addr] = list[1:]
			if list[0] >= e.At {
				args = append(args, Real("took_us", float64(list[0]-e.At)/1e3))
				break
			}
		}
		p.instant(on, "kernel", "disk request", e.At, args...)
	}
}
