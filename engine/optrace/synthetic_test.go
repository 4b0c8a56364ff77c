package optrace_test

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/rooftop-dev/rooftop/engine/optrace"
)

// scene describes a synthetic target, whose events have a known truth.
type scene struct {
	seed       uint64
	contexts   int // number of concurrent contexts
	rounds     int // calls per context
	ubatches   int // graphs of the first call
	lanes      int
	nodes      int // that are computed
	prompt     int // tokens of the first call
	barriers   bool
	sched      bool
	counters   bool
	experts    bool
	fresh      bool // new workers for each graph
	dag        bool // DAGs are read
	noReturn   bool // the return of a graph is not probed
	noCallEnds bool
	noTokens   bool // the batch cannot be read
}

// plain is a decoder that answers one prompt.
var plain = scene{seed: 1, contexts: 1, rounds: 4, ubatches: 2, lanes: 2, nodes: 12, prompt: 24, dag: true, fresh: true}

// made is a stream of events with the expected graphs and calls.
type made struct {
	tables *optrace.Tables
	events []optrace.Event
	graphs []optrace.Graph // by begin
	calls  []optrace.Call  // by begin
}

const (
	targetPID = 100
	thiefPID  = 666
)

// maker generates the events of a scene.
type maker struct {
	scene
	made
	rnd     *rand.Rand
	nextTID int32
}

func (s scene) make() *made {
	m := &maker{scene: s, rnd: rand.New(rand.NewPCG(s.seed, 7)), nextTID: 1000}
	m.tables = &optrace.Tables{}
	m.tables.Tensors = append(m.tables.Tensors, optrace.Tensor{Name: "blk.0.attn_q.weight", Type: "q4_0", NE: [4]int64{64, 64, 1, 1}})
	for c := range s.contexts {
		m.context(c)
	}
	slices.SortStableFunc(m.events, func(a, b optrace.Event) int { return cmp.Compare(a.At, b.At) })
	slices.SortFunc(m.graphs, func(a, b optrace.Graph) int { return cmp.Compare(a.End, b.End) })
	for i := range m.graphs {
		m.graphs[i].Index = i
	}
	return &m.made
}

func (m *maker) tid() int32 { m.nextTID++; return m.nextTID }

func (m *maker) between(low, high int) time.Duration {
	return time.Duration(low + m.rnd.IntN(high-low+1))
}

// operators returns the operators of a graph with some tokens, by node.
func (m *maker) operators(tokens, outputs int) []uint32 {
	refs := make([]uint32, m.nodes)
	for i := range refs {
		op, name, ne := "ADD", "ffn_out-0", int64(tokens)
		if i%3 == 0 {
			op, name = "MUL_MAT", "Qcur-0"
		}
		if i == m.nodes-1 {
			op, name, ne = "MUL_MAT", optrace.LogitsName, int64(outputs)
		}
		m.tables.Tensors = append(m.tables.Tensors, optrace.Tensor{Name: name, Type: "f32", NE: [4]int64{64, ne, 1, 1}})
		m.tables.Operators = append(m.tables.Operators, optrace.Operator{Op: op, Out: uint32(len(m.tables.Tensors)), In: []uint32{1}})
		refs[i] = uint32(len(m.tables.Operators))
	}
	return refs
}

// context emits one thread that calls and computes, with its workers.
func (m *maker) context(c int) {
	main := m.tid()
	workers := make([]int32, m.lanes)
	for l := range workers {
		workers[l] = m.tid()
	}
	addr := uint64(0x7000_0000_0000) + uint64(c)<<24
	at := time.Duration(1_000_000) + m.between(0, 5000)
	refs := map[int][]uint32{}
	dag := uint32(0)
	for k := range m.rounds {
		tokens, graphs := 1, 1
		if k == 0 {
			tokens, graphs = m.prompt, max(m.ubatches, 1)
		}
		call := optrace.Call{Index: -1, Kind: optrace.CallDecode, Tokens: tokens, TID: main, Begin: at}
		call.Phase = optrace.PhaseDecode
		if tokens > 1 {
			call.Phase = optrace.PhasePrefill
		}
		m.emit(optrace.Event{At: at, Kind: optrace.CallBegin, N: int64(tokens), Ref: uint32(optrace.CallDecode), TID: main})
		if m.noTokens {
			m.events[len(m.events)-1].N = 0
		}
		at += m.between(100, 1000)
		for range graphs {
			if refs[tokens] == nil {
				refs[tokens] = m.operators(tokens, 1)
			}
			if m.fresh {
				for l := range workers {
					workers[l] = m.tid()
				}
			}
			g := optrace.Graph{Call: -1, Phase: call.Phase, Tokens: tokens, Addr: addr, Nodes: m.nodes, TID: main}
			ref := uint32(0)
			if m.dag && dag == 0 {
				dag = m.readDAG(addr, refs[tokens])
				ref = dag
			}
			g.DAG = dag
			at = m.graph(&g, ref, refs[tokens], main, workers, at)
			m.graphs = append(m.graphs, g)
			call.End = at
			at += m.between(200, 1000)
		}
		if !m.noCallEnds {
			call.End = at
			m.emit(optrace.Event{At: at, Kind: optrace.CallEnd, TID: main})
		}
		m.calls = append(m.calls, call)
		at += m.between(500, 2000)
		m.emit(optrace.Event{At: at, Kind: optrace.SampleBegin, TID: main})
		at += m.between(500, 2000)
	}
}

func (m *maker) emit(e optrace.Event) {
	e.PID = targetPID
	m.events = append(m.events, e)
}

func node(addr uint64, i int) uint64 { return addr + 0x1000 + uint64(i)*0x150 }

func (m *maker) readDAG(addr uint64, refs []uint32) uint32 {
	d := optrace.DAG{Addr: addr}
	for i, ref := range refs {
		n := optrace.Node{Addr: node(addr, i), Operator: ref, Sources: []uint64{addr + 8}}
		if i > 0 {
			n.Sources = append(n.Sources, node(addr, i-1))
		}
		d.Nodes = append(d.Nodes, n)
	}
	d.Leaves = []optrace.Node{{Addr: addr + 8, Operator: refs[0]}}
	m.tables.DAGs = append(m.tables.DAGs, d)
	return uint32(len(m.tables.DAGs))
}

// graph emits one graph, stores its truth, and returns when it ended.
func (m *maker) graph(g *optrace.Graph, ref uint32, refs []uint32, main int32, workers []int32, at time.Duration) time.Duration {
	m.emit(optrace.Event{At: at, Kind: optrace.GraphBegin, Addr: g.Addr, N: int64(g.Nodes), Ref: ref, TID: main})
	g.Begin = at
	g.Threads = make([]optrace.Thread, m.lanes)
	ready := make([]time.Duration, m.lanes) // when a lane may begin the next operator
	for l := range g.Threads {
		g.Threads[l].TID = workers[l]
		ready[l] = at + m.between(50, 900)
		if l == 0 {
			g.Threads[l].TID = main
		}
	}
	fused := m.between(0, m.nodes-1)
	for i, op := range refs {
		arrived := make([]time.Duration, m.lanes)
		for l := range g.Threads {
			lane := &g.Threads[l]
			kind, n := optrace.OpBegin, int64(0)
			if i == int(fused) {
				kind, n = optrace.FusedBegin, 2
			}
			begin := ready[l]
			cpu := uint16(l)
			m.emit(optrace.Event{At: begin, Kind: kind, N: n, Addr: node(g.Addr, i), Ref: op, TID: lane.TID, Thread: uint16(l), Threads: uint16(m.lanes), CPU: cpu})
			lane.Spans = append(lane.Spans, optrace.Span{Operator: op, Addr: node(g.Addr, i), Begin: begin, CPU: cpu, Fused: uint16(n)})
			s := &lane.Spans[len(lane.Spans)-1]
			if m.counters {
				m.read(lane, s, begin)
			}
			if m.experts && l == 0 && i == 1 {
				m.tables.Experts = append(m.tables.Experts, optrace.ExpertChoice{Used: 2, IDs: []int32{1, 5}, Tokens: 1})
				s.Experts = uint32(len(m.tables.Experts))
				m.emit(optrace.Event{At: begin + 1, Kind: optrace.ExpertsChosen, Ref: s.Experts, TID: lane.TID})
			}
			t := begin + m.between(500, 20_000)
			if m.sched && m.rnd.IntN(4) == 0 {
				t = m.absent(lane, s, t, m.rnd.IntN(2) == 0)
				t += m.between(100, 1000)
			}
			if m.sched && m.rnd.IntN(4) == 0 {
				t = m.kernel(lane, s, t)
			}
			if m.barriers && i%3 == 0 { // one within
				wait := m.between(100, 3000)
				m.wait(lane, s, t, t+wait)
				lane.Busy -= wait
				t += wait + m.between(100, 5000)
			}
			arrived[l] = t
		}
		release := slices.Max(arrived) + 30
		for l := range g.Threads {
			lane := &g.Threads[l]
			s := &lane.Spans[i]
			left := release + m.between(0, 300)
			ready[l] = left + m.between(20, 200)
			switch {
			case m.barriers:
				m.wait(lane, s, arrived[l], left)
				s.End = arrived[l]
			case i < len(refs)-1:
				s.End = ready[l]
			}
		}
	}
	g.End = slices.Max(ready) + 10
	g.Critical = make([]optrace.SpanRef, m.nodes)
	if m.counters {
		for l := range g.Threads { // what ends the last span
			lane := &g.Threads[l]
			m.read(lane, nil, g.End-5)
		}
	}
	if !m.noReturn {
		m.emit(optrace.Event{At: g.End, Kind: optrace.GraphEnd, TID: main})
	}
	for l := range g.Threads {
		lane := &g.Threads[l]
		for i := range lane.Spans {
			s := &lane.Spans[i]
			if s.End == 0 {
				s.End = g.End
			}
			lane.Busy += s.End - s.Begin - s.Off
		}
	}
	for i := range g.Critical {
		best := 0
		for l := range g.Threads {
			if g.Threads[l].Spans[i].End > g.Threads[best].Spans[i].End {
				best = l
			}
		}
		g.Critical[i] = optrace.SpanRef{Thread: best, Span: i}
	}
	return g.End
}

// wait emits a barrier.
func (m *maker) wait(lane *optrace.Thread, s *optrace.Span, from, to time.Duration) {
	m.emit(optrace.Event{At: from, Kind: optrace.BarrierBegin, TID: lane.TID})
	m.emit(optrace.Event{At: to, Kind: optrace.BarrierEnd, TID: lane.TID})
	lane.Sync += to - from
	s.Sync += to - from
}

// absent takes a compute thread off its CPU, and returns when it is back.
func (m *maker) absent(lane *optrace.Thread, s *optrace.Span, at time.Duration, preempted bool) time.Duration {
	off := m.between(1000, 9000)
	cpu := uint16(lane.TID) // one of its own
	out := optrace.Event{At: at, Kind: optrace.SwitchOut, N: int64(optrace.OffBlocked), TID: lane.TID, CPU: cpu}
	in := optrace.Event{At: at + off, Kind: optrace.SwitchIn, TID: lane.TID, CPU: cpu}
	if preempted {
		out.N, out.Addr, in.N = int64(optrace.OffPreempted), thiefPID, thiefPID
		lane.Preempted += off
		s.Preempted += off
	} else {
		woken := m.between(100, 900)
		m.emit(optrace.Event{At: at + off - woken, Kind: optrace.WakeUp, TID: lane.TID})
		lane.Waking += woken
		lane.WakeUps = append(lane.WakeUps, woken)
	}
	m.emit(out)
	m.emit(in)
	lane.Switches++
	lane.Off += off
	s.Off += off
	return at + off
}

// kernel emits a system call, faults and a disk request.
func (m *maker) kernel(lane *optrace.Thread, s *optrace.Span, at time.Duration) time.Duration {
	took := m.between(500, 2000)
	sector := m.rnd.Uint64()
	for _, e := range []optrace.Event{
		{At: at, Kind: optrace.SyscallBegin, N: 202},
		{At: at + 10, Kind: optrace.PageFault, Addr: 0x1000, N: 1},
		{At: at + 20, Kind: optrace.PageFault, Addr: 0x2000},
		{At: at + 30, Kind: optrace.BlockIOBegin, Addr: sector, N: 4096},
		{At: at + 130, Kind: optrace.BlockIOEnd, Addr: sector, TID: 9},
		{At: at + took, Kind: optrace.SyscallEnd},
	} {
		if e.TID == 0 {
			e.TID = lane.TID
		}
		m.emit(e)
	}
	lane.Syscalls++
	lane.SyscallTime += took
	lane.MajorFaults++
	lane.MinorFaults++
	s.MajorFaults++
	s.MinorFaults++
	lane.IOBytes += 4096
	lane.IOTime += 100
	return at + took
}

// read emits a reading of counters at the begin of a span; nil is the end of the last one.
func (m *maker) read(lane *optrace.Thread, s *optrace.Span, at time.Duration) {
	set := optrace.CounterSet{Have: 1<<optrace.Instructions | 1<<optrace.MinorFaults}
	set.Value[optrace.Instructions] = uint64(at) * 3
	set.Value[optrace.MinorFaults] = uint64(at) / 1000
	m.tables.Counters = append(m.tables.Counters, set)
	m.emit(optrace.Event{At: at, Kind: optrace.CountersRead, Ref: uint32(len(m.tables.Counters)), TID: lane.TID})
	n := len(lane.Spans)
	if s != nil {
		n--
	}
	if n == 0 {
		return
	}
	before := &lane.Spans[n-1]
	c := &optrace.Counted{Have: set.Have}
	c.Value[optrace.Instructions] = uint64(at)*3 - uint64(before.Begin)*3
	c.Value[optrace.MinorFaults] = uint64(at)/1000 - uint64(before.Begin)/1000
	before.Counters = c
}

// kept is a Receiver that keeps everything.
type kept struct {
	graphs []*optrace.Graph
	calls  []*optrace.Call
}

func (k *kept) Graph(g *optrace.Graph) { k.graphs = append(k.graphs, g) }
func (k *kept) Call(c *optrace.Call)   { k.calls = append(k.calls, c) }

// assembled passes events through an assembler.
func assembled(t *optrace.Tables, events []optrace.Event) (*kept, *optrace.Assembler) {
	var k kept
	a := optrace.New(t, &k)
	for _, e := range events {
		a.Push(e)
	}
	if n := len(events); n > 0 {
		a.Flush(events[n-1].At)
	}
	return &k, a
}
