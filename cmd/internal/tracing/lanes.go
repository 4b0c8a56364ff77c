package tracing

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/engine/optrace"
)

// graphs draws the graphs and, below them, what each compute thread did for them.
func (p *painter) graphs(graphs []*optrace.Graph) {
	rows := intoRows(graphs, func(g *optrace.Graph) (from, to time.Duration) { return g.Begin, g.End })
	for n, row := range rows {
		on := p.track(rowName("graphs", n), orderGraphs+n)
		lanes := 0
		for _, g := range row {
			p.span(on, "graph", fmt.Sprintf("%s graph %d", g.Phase, g.Index), g.Begin, g.End,
				Int("graph", int64(g.Index)), Int("call", int64(g.Call)), Int("tokens", int64(g.Tokens)), Int("nodes", int64(g.Nodes)), Int("dag", int64(g.DAG)),
				Int("lanes", int64(len(g.Threads))), Text("backend", p.t.Name(g.Backend)))
			lanes = max(lanes, len(g.Threads))
		}
		for lane := range lanes {
			p.lane(row, n, lane)
		}
	}
}

// lane draws one compute thread of a row of graphs: its operators on a track, and its kernel
// events on another if there are any.
func (p *painter) lane(row []*optrace.Graph, n, lane int) {
	name := rowName(fmt.Sprintf("lane %d", lane), n)
	order := orderLanes*(n+1) + 2*lane
	on := p.track(name, order)
	var kernel []piece
	for _, g := range row {
		if lane >= len(g.Threads) {
			continue
		}
		l := &g.Threads[lane]
		events := p.within(l.TID, g.Begin, g.End)
		for _, x := range nested(append(p.operators(g, l), waits(events, l.Spans, g.End)...), g.Begin, g.End) {
			p.span(on, x.category, x.name, x.from, x.to, x.args...)
		}
		for _, e := range events {
			if e.Kind == optrace.PageFault {
				name := "page fault"
				if e.N == 1 {
					name = "page fault, from disk"
				}
				p.instant(on, "kernel", name, e.At, Text("address", fmt.Sprintf("0x%x", e.Addr)))
			}
		}
		kernel = append(kernel, nested(kernelPieces(events, g), g.Begin, g.End)...)
	}
	if len(kernel) == 0 {
		return
	}
	below := p.track(name+" off CPU", order+1)
	for _, x := range kernel {
		p.span(below, x.category, x.name, x.from, x.to, x.args...)
	}
}

// piece is an interval to draw on a track.
type piece struct {
	category, name string
	from, to       time.Duration
	args           []Arg
}

// nested sorts pieces by begin and, if equal, longest first, and clips them to an interval and
// to the pieces that they are in.
func nested(list []piece, from, to time.Duration) []piece {
	slices.SortStableFunc(list, func(a, b piece) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(b.to, a.to)) })
	var out, open []piece
	for _, x := range list {
		x.from, x.to = min(max(x.from, from), to), min(max(x.to, from), to)
		x.to = max(x.from, x.to)
		for len(open) > 0 && open[len(open)-1].to <= x.from {
			open = open[:len(open)-1]
		}
		if len(open) > 0 {
			x.to = min(x.to, open[len(open)-1].to)
		}
		open = append(open, x)
		out = append(out, x)
	}
	return out
}

// operators returns the spans of a compute thread.
func (p *painter) operators(g *optrace.Graph, l *optrace.Thread) []piece {
	out := make([]piece, 0, len(l.Spans))
	for i := range l.Spans {
		s := &l.Spans[i]
		out = append(out, piece{"operator", p.spanName(s), s.Begin, s.End, p.spanArgs(g, s)})
	}
	return out
}

func (p *painter) spanName(s *optrace.Span) string {
	op := p.t.Operator(s.Operator)
	name := cmp.Or(op.Op, "operator")
	for _, f := range op.Fused {
		name += "+" + f
	}
	return strings.TrimSpace(name + " " + p.t.Tensor(op.Out).Name)
}

// mostOperands is the number of sources of an operator that are shown.
const mostOperands = 4

func (p *painter) spanArgs(g *optrace.Graph, s *optrace.Span) []Arg {
	op := p.t.Operator(s.Operator)
	args := []Arg{Int("graph", int64(g.Index)), Int("cpu", int64(s.CPU))}
	if op.Sub != "" {
		args = append(args, Text("function", op.Sub))
	}
	if op.Out != 0 {
		args = append(args, Text("out", shapeText(p.t.Tensor(op.Out))))
	}
	for i, in := range op.In {
		if in != 0 && i < mostOperands {
			args = append(args, Text(fmt.Sprintf("in%d", i), shapeText(p.t.Tensor(in))))
		}
	}
	for _, d := range []struct {
		key string
		v   time.Duration
	}{{"waits_us", s.Sync}, {"off_cpu_us", s.Off}, {"preempted_us", s.Preempted}} {
		if d.v > 0 {
			args = append(args, Real(d.key, float64(d.v)/1e3))
		}
	}
	if s.MinorFaults+s.MajorFaults > 0 {
		args = append(args, Int("minor_faults", int64(s.MinorFaults)), Int("major_faults", int64(s.MajorFaults)))
	}
	if x := p.t.Choice(s.Experts); x != nil {
		args = append(args, Text("experts", expertsText(x)))
	}
	if c := s.Counters; c != nil {
		for _, x := range counterNames {
			if c.Have&(1<<x.counter) != 0 {
				args = append(args, Int(x.key, int64(min(c.Value[x.counter], 1<<62))))
			}
		}
	}
	return args
}

// shapeText formats a tensor like GGML's own tools, without trailing dimensions of one element.
func shapeText(t optrace.Tensor) string {
	n := len(t.NE)
	for n > 1 && t.NE[n-1] <= 1 {
		n--
	}
	var dims []string
	for _, d := range t.NE[:n] {
		dims = append(dims, fmt.Sprint(d))
	}
	return strings.TrimSpace(t.Name + " " + cmp.Or(t.Type, "?") + "[" + strings.Join(dims, ",") + "]")
}

// mostRows is the number of rows of chosen experts that are shown.
const mostRows = 16

func expertsText(x *optrace.ExpertChoice) string {
	var rows []string
	for i := 0; x.Used > 0 && i+x.Used <= len(x.IDs) && len(rows) < mostRows; i += x.Used {
		rows = append(rows, strings.Trim(fmt.Sprint(x.IDs[i:i+x.Used]), "[]"))
	}
	s := strings.Join(rows, "; ")
	if len(rows) < x.Tokens {
		s += fmt.Sprintf(" … of %d tokens", x.Tokens)
	}
	return s
}

// waits returns a thread's waits in barriers, inside operators and between them. A wait that
// crosses the end of an operator is split there.
func waits(events []*optrace.Event, spans []optrace.Span, end time.Duration) []piece {
	var out []piece
	began := time.Duration(-1)
	add := func(from, to time.Duration) {
		i, _ := slices.BinarySearchFunc(spans, from, func(s optrace.Span, at time.Duration) int { return cmp.Compare(s.End, at+1) })
		for ; from < to; i++ {
			cut := to
			if i < len(spans) {
				if s := &spans[i]; from < s.Begin {
					cut = min(to, s.Begin)
					i--
				} else {
					cut = min(to, s.End)
				}
			}
			if cut > from {
				out = append(out, piece{category: "wait", name: "wait for the others", from: from, to: cut})
			}
			from = max(cut, from)
			if i >= len(spans) {
				break
			}
		}
	}
	for _, e := range events {
		switch {
		case e.Kind == optrace.BarrierBegin:
			began = e.At
		case e.Kind == optrace.BarrierEnd && began >= 0:
			add(began, e.At)
			began = -1
		}
	}
	if began >= 0 {
		add(began, end)
	}
	return out
}

// kernelPieces returns the times of a thread off its CPU and in system calls.
func kernelPieces(events []*optrace.Event, g *optrace.Graph) []piece {
	var out []piece
	var off, call *optrace.Event
	offName := func(e *optrace.Event) string {
		if optrace.OffReason(e.N) == optrace.OffPreempted {
			return "preempted"
		}
		return "blocked"
	}
	for _, e := range events {
		switch e.Kind {
		case optrace.SwitchOut:
			off = e
		case optrace.SwitchIn:
			from, name := g.Begin, "off CPU"
			if off != nil {
				from, name = off.At, offName(off)
			}
			out = append(out, piece{"kernel", name, from, e.At, []Arg{Int("process_before", e.N), Int("cpu", int64(e.CPU))}})
			off = nil
		case optrace.SyscallBegin:
			call = e
		case optrace.SyscallEnd:
			if call != nil {
				out = append(out, piece{"kernel", fmt.Sprintf("system call %d", call.N), call.At, e.At, nil})
			}
			call = nil
		}
	}
	if off != nil {
		out = append(out, piece{"kernel", offName(off), off.At, g.End, nil})
	}
	return out
}
