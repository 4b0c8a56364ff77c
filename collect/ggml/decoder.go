package ggml

import (
	"bytes"
	"encoding/binary"
	"time"

	layouts "github.com/rooftop-dev/rooftop/collect/ggml/binary"
	"github.com/rooftop-dev/rooftop/engine/optrace"
)

// Limits of what a target can make a decoder keep.
const (
	maxProcesses  = 256     // if a file is watched instead of a process
	maxAddresses  = 1 << 18 // tensors of all processes; beyond the limit all are forgotten and learnt again
	maxPending    = 1 << 16 // nodes, of all processes, of graphs whose GraphBegin is pending
	maxGraphs     = 1 << 12 // addresses of graphs
	maxBatch      = 1 << 24 // tokens; more must have been misread
	maxPlausible  = 16      // number of tensors that fit the layout for it to count as verified
	minMisfits    = 4       // number of tensors that do not fit for names to be withheld
	misfitsPerFit = 4       // names are withheld if more than one in this many does not fit
)

// memory reads len(to) bytes of a process's memory.
type memory func(pid int32, addr uint64, to []byte) error

// watched is what a decoder must know of a place.
type watched struct {
	ref uint32 // a CallKind or CopyKind
}

// Decoder converts records to events. It is pure except for reading the target's memory through
// a function. It keeps which tensor is at which address of each process.
type Decoder struct {
	layout  layouts.Layout
	names   layouts.Names
	raw     int // bytes of a tensor in a record
	places  []watched
	memory  memory
	backend func(pid int32, addr uint64) string
	// forget makes the programs send a graph of a process again.
	forget func(pid int32, graph uint64)
	have   uint16 // counters that are read
	// running converts counts of CPUs to totals of threads.
	running running

	tables    *interner
	out       order
	processes map[int32]*process
	last      *process
	lastPID   int32
	addresses int    // tensors of all processes
	waiting   int    // nodes of all processes
	dropped   uint32 // lost records, as reported by records

	calls          int64 // begins of calls since counted
	graphs, hits   int64 // begins of graphs and of operators since counted
	counted        time.Duration
	fits, misfits  int64 // tensors that fit the layout, and that do not
	withheld       string
	malformed      int64         // invalid records
	newestRecorded time.Duration // processOf the last record
	newest         time.Duration // processOf all records
	scratch        []byte
	sources        []uint64
	read0          layouts.RawTensor // reused, to avoid allocations
}

// process is the state of one process.
type process struct {
	pid      int32
	tensors  map[uint64]*tensor
	pending  map[int32][]pendingNode // by thread
	graphs   map[uint64]uint32       // ref of the newest graph at each address
	backends map[uint64]uint32
}

// tensor is the tensor at an address, as it was seen last.
type tensor struct {
	raw      []byte // its bytes; nil if only its shape is known
	shape    uint32 // ref of its Tensor
	operator uint32
	sources  []*tensor // nil for a slot that is empty or could not be read
	refs     []uint32  // shapes of the sources when the operator was made
	fused    *tensor   // the fused operator that begins with this tensor
}

// pendingNode is a node of a graph that is about to begin.
type pendingNode struct {
	graph uint64
	addr  uint64
	raw   []byte
}

// newDecoder returns a decoder for a layout.
func newDecoder(layout layouts.Layout, names layouts.Names, places []watched) *Decoder {
	d := &Decoder{
		memory:    func(int32, uint64, []byte) error { return errNoMemory },
		backend:   func(int32, uint64) string { return "" },
		forget:    func(int32, uint64) {},
		tables:    newInterner(),
		processes: map[int32]*process{},
	}
	d.setRuntime(layout, names, places)
	return d
}

// setRuntime switches to another runtime; tables and events are kept.
func (d *Decoder) setRuntime(layout layouts.Layout, names layouts.Names, places []watched) {
	d.layout, d.names, d.raw, d.places = layout, names, rawSize(&layout), places
	d.fits, d.misfits, d.withheld = 0, 0, ""
	if !layout.Complete() {
		d.withheld = "the layout of tensors could not be read from the runtime's files"
	}
	d.forgetAll()
}

// countFrom resets the counts of calls, graphs and operators at a moment. Earlier records may
// still be in the ring.
func (d *Decoder) countFrom(at time.Duration) { d.calls, d.graphs, d.hits, d.counted = 0, 0, 0, at }

// forgetAll forgets the tensors and graphs of every process.
func (d *Decoder) forgetAll() {
	clear(d.processes)
	d.last, d.addresses, d.waiting = nil, 0, 0
}

// Record processes one record of the ring. Invalid records are counted and ignored.
func (d *Decoder) Record(b []byte) {
	var h header
	if !parseHeader(b, &h) {
		d.malformed++
		return
	}
	d.newestRecorded, d.newest = h.at, max(d.newest, h.at)
	d.reportLost(h.dropped, h.pid)
	payload := b[headerSize:]
	if h.kind == recordNode {
		d.node(&h, payload)
		return
	}
	e := optrace.Event{At: h.at, PID: h.pid, TID: h.tid, CPU: uint16(h.cpu), Kind: optrace.Kind(h.kind)}
	if d.fill(&e, &h, payload) {
		d.out.add(e)
	}
}

// fill completes the event of a record, and reports whether there is one.
func (d *Decoder) fill(e *optrace.Event, h *header, payload []byte) bool {
	switch e.Kind {
	case optrace.OpBegin, optrace.FusedBegin:
		d.fillOperator(e, h, payload)
	case optrace.GraphBegin:
		d.graphs += d.counts(h)
		e.Addr, e.N, e.Ref = h.addr, h.n, d.graph(h)
	case optrace.CallBegin:
		d.calls += d.counts(h)
		e.Ref = d.place(h)
		if h.n > 0 && h.n <= maxBatch {
			e.N = h.n
		}
	case optrace.SplitBegin:
		e.Addr, e.N, e.Ref = h.addr, h.n, d.backendOf(h)
	case optrace.CopyBegin:
		e.Addr, e.N, e.Ref = h.addr, h.n, d.place(h)
		if len(payload) > 0 {
			e.N = d.size(payload)
		}
	case optrace.ExpertsChosen:
		e.Addr, e.Ref = h.addr, d.experts(h, payload)
		return e.Ref != 0
	case optrace.CountersRead:
		e.Ref = d.counters(h, payload)
		return e.Ref != 0
	case optrace.CallEnd, optrace.SampleBegin, optrace.GraphEnd, optrace.BarrierBegin, optrace.BarrierEnd,
		optrace.SwitchOut, optrace.SwitchIn, optrace.WakeUp, optrace.SyscallBegin, optrace.SyscallEnd,
		optrace.PageFault, optrace.BlockIOBegin, optrace.BlockIOEnd:
		e.Addr, e.N = h.addr, h.n
	case optrace.TargetExec:
	default:
		d.malformed++
		return false
	}
	return true
}

// fillOperator completes the event of an operator that begins.
func (d *Decoder) fillOperator(e *optrace.Event, h *header, payload []byte) {
	d.hits += d.counts(h)
	e.Addr, e.Thread, e.Threads = h.addr, h.ith, h.nth
	e.Ref = d.operator(h, payload)
	if e.Kind == optrace.FusedBegin {
		e.N = h.n
	}
}

// counts returns 1 for a record that counts, 0 for one from before countFrom.
func (d *Decoder) counts(h *header) int64 { return int64(b2i(h.at >= d.counted)) }

// reportLost emits an event for records that were lost on any CPU; dropped is their total so far.
// They are from around the time of the newest record: a program takes the time, then reserves
// room, then reads the number of losses, and may be interrupted in between.
func (d *Decoder) reportLost(dropped uint32, pid int32) {
	if more := int32(dropped - d.dropped); more > 0 {
		d.dropped = dropped
		d.out.add(optrace.Event{
			At: max(d.newest-holdBack, 0), Addr: uint64(d.newest + holdBack), Kind: optrace.Lost, N: int64(more), PID: pid,
		})
	}
}

// processOf returns the state of a process, a new one if it is unknown.
func (d *Decoder) processOf(pid int32) *process {
	if d.last != nil && d.lastPID == pid {
		return d.last
	}
	p := d.processes[pid]
	if p == nil {
		if len(d.processes) >= maxProcesses {
			d.forgetAll()
		}
		p = &process{
			pid: pid, tensors: map[uint64]*tensor{}, pending: map[int32][]pendingNode{},
			graphs: map[uint64]uint32{}, backends: map[uint64]uint32{},
		}
		d.processes[pid] = p
	}
	d.last, d.lastPID = p, pid
	return p
}

// place returns the ref of the place of a record.
func (d *Decoder) place(h *header) uint32 {
	if int(h.place) >= len(d.places) {
		return 0
	}
	return d.places[h.place].ref
}

// operator returns the ref of the operator that a record begins.
func (d *Decoder) operator(h *header, payload []byte) uint32 {
	if d.withheld != "" {
		return 0
	}
	p := d.processOf(h.pid)
	t := p.tensors[h.addr]
	fused := optrace.Kind(h.kind) == optrace.FusedBegin
	if len(payload) == 0 {
		if t == nil {
			return 0
		}
		if fused && t.fused != nil {
			return t.fused.operator
		}
		return t.operator
	}
	if len(payload) != d.raw*(1+b2i(fused)) {
		d.malformed++
		return 0
	}
	if t == nil {
		t = d.tensorAt(p, h.addr)
	}
	if !fused {
		d.learn(p, t, payload)
		return t.operator
	}
	if t.fused == nil {
		t.fused = &tensor{}
	}
	d.learnFused(p, t, d.tensorAt(p, h.extra), payload)
	return t.fused.operator
}

// tensorAt returns the tensor at an address, a new one if it is unknown.
func (d *Decoder) tensorAt(p *process, addr uint64) *tensor {
	t := p.tensors[addr]
	if t == nil {
		if d.addresses >= maxAddresses {
			for _, each := range d.processes {
				clear(each.tensors)
				clear(each.graphs) // makes programs send them again, with their tensors
			}
			d.addresses = 0
		}
		d.addresses++
		t = &tensor{}
		p.tensors[addr] = t
	}
	return t
}

// current reports whether nothing has changed since the operator was made.
func (t *tensor) current(raw []byte) bool {
	if t.operator == 0 || !bytes.Equal(t.raw, raw) {
		return false
	}
	for i, s := range t.sources {
		if s != nil && s.shape != t.refs[i] {
			return false
		}
	}
	return true
}

// learn updates a tensor from its bytes, and makes its operator if that is new.
func (d *Decoder) learn(p *process, t *tensor, raw []byte) {
	if t.current(raw) {
		return
	}
	r, ok := d.read(raw)
	if !ok {
		t.raw, t.operator = nil, 0
		return
	}
	t.raw = append(t.raw[:0], raw...)
	t.shape = d.tables.tensor(r.shape)
	d.sources = append(d.sources[:0], r.sources...) // reading a source overwrites them
	d.resolve(p, t, d.sources)
	t.operator = d.tables.operator(optrace.Operator{
		Op: r.op, Sub: r.sub, Out: t.shape, In: t.refs, Params: r.params,
	})
}

// learnFused is like learn for an operator that computes a second tensor from the first: it
// writes the second one, and reads the sources of both.
func (d *Decoder) learnFused(p *process, first, second *tensor, raw []byte) {
	if first.fused.current(raw) {
		return
	}
	d.learn(p, first, raw[:d.raw])
	d.learn(p, second, raw[d.raw:])
	if first.operator == 0 || second.operator == 0 {
		first.fused.operator = 0
		return
	}
	f := first.fused
	f.raw = append(f.raw[:0], raw...)
	f.sources, f.refs = append(f.sources[:0], first.sources...), append(f.refs[:0], first.refs...)
	for i, s := range second.sources {
		if s != nil && s != first {
			f.sources, f.refs = append(f.sources, s), append(f.refs, second.refs[i])
		}
	}
	a, b := d.tables.Operator(first.operator), d.tables.Operator(second.operator)
	f.operator = d.tables.operator(optrace.Operator{
		Op: a.Op, Sub: a.Sub, Out: second.shape, In: f.refs, Params: a.Params, Fused: []string{b.Op},
	})
}

// resolve finds the sources of a tensor by their addresses, and reads those that no graph has
// shown.
func (d *Decoder) resolve(p *process, t *tensor, sources []uint64) {
	t.sources, t.refs = t.sources[:0], t.refs[:0]
	for _, addr := range sources {
		if addr == 0 {
			t.sources, t.refs = append(t.sources, nil), append(t.refs, 0)
			continue
		}
		s := d.tensorAt(p, addr)
		if s.shape == 0 && d.tables.hasRoom() {
			d.fetch(p, addr, s)
		}
		t.sources, t.refs = append(t.sources, s), append(t.refs, s.shape)
	}
	for len(t.refs) > 0 && t.sources[len(t.sources)-1] == nil {
		t.sources, t.refs = t.sources[:len(t.sources)-1], t.refs[:len(t.refs)-1]
	}
}

// fetch reads a tensor's shape from the target's memory, and reports whether that succeeded.
func (d *Decoder) fetch(p *process, addr uint64, t *tensor) (readTensor, bool) {
	if len(d.scratch) != d.raw {
		d.scratch = make([]byte, d.raw)
	}
	if d.memory(p.pid, addr, d.scratch) != nil {
		return readTensor{}, false
	}
	r, ok := d.read(d.scratch)
	if ok {
		t.shape = d.tables.tensor(r.shape)
	}
	return r, ok
}

// node keeps a node until its graph begins.
func (d *Decoder) node(h *header, payload []byte) {
	if len(payload) != d.raw {
		d.malformed++
		return
	}
	p := d.processOf(h.pid)
	if d.waiting >= maxPending {
		for _, each := range d.processes {
			clear(each.pending)
		}
		d.waiting = 0
	}
	d.waiting++
	p.pending[h.tid] = append(p.pending[h.tid], pendingNode{h.extra, h.addr, bytes.Clone(payload)})
}

// graph returns the ref of the graph that a record begins: made of the nodes before it, or else
// the newest one at its address.
func (d *Decoder) graph(h *header) uint32 {
	p := d.processOf(h.pid)
	pending := p.pending[h.tid]
	delete(p.pending, h.tid)
	d.waiting -= len(pending)
	nodes := pending[:0]
	for _, n := range pending {
		if n.graph == h.addr {
			nodes = append(nodes, n)
		}
	}
	if d.withheld != "" {
		return 0
	}
	if h.extra == 0 {
		ref, known := p.graphs[h.addr]
		if !known { // it was forgotten after it was sent: another runtime, too many addresses
			d.forget(h.pid, h.addr)
		}
		return ref
	}
	ref := d.dag(p, h.addr, nodes, int(h.extra))
	if len(p.graphs) >= maxGraphs {
		clear(p.graphs)
	}
	p.graphs[h.addr] = ref
	return ref
}

// dag returns the ref of a graph made of its nodes.
func (d *Decoder) dag(p *process, addr uint64, nodes []pendingNode, expected int) uint32 {
	g := optrace.DAG{Addr: addr, Truncated: max(expected-len(nodes), 0)}
	if g.Truncated > 0 {
		d.forget(p.pid, addr)
	}
	inside := make(map[uint64]bool, len(nodes))
	read := make([]readTensor, len(nodes))
	fits := make([]bool, len(nodes))
	for i, n := range nodes {
		inside[n.addr] = true
		if read[i], fits[i] = d.read(n.raw); fits[i] {
			read[i].sources = trimmed(read[i].sources)
			d.tensorAt(p, n.addr).shape = d.tables.tensor(read[i].shape)
		}
	}
	leaves := map[uint64]bool{}
	for i, n := range nodes {
		if !fits[i] {
			g.Truncated++
			continue
		}
		for _, s := range read[i].sources {
			if s != 0 && !inside[s] && !leaves[s] {
				leaves[s] = true
				g.Leaves = append(g.Leaves, d.leaf(p, s))
			}
		}
		t := d.tensorAt(p, n.addr)
		d.learn(p, t, n.raw)
		g.Nodes = append(g.Nodes, optrace.Node{Addr: n.addr, Operator: t.operator, Sources: read[i].sources, View: read[i].view})
	}
	return d.tables.dag(g)
}

// leaf reads a tensor that no node computes from the target's memory.
func (d *Decoder) leaf(p *process, addr uint64) optrace.Node {
	t := d.tensorAt(p, addr)
	r, ok := d.fetch(p, addr, t)
	if !ok {
		t.shape = 0
		return optrace.Node{Addr: addr}
	}
	op := d.tables.operator(optrace.Operator{Op: "NONE", Out: t.shape})
	return optrace.Node{Addr: addr, Operator: op, View: r.view}
}

// trimmed returns a copy of sources without empty slots at the end.
func trimmed(sources []uint64) []uint64 {
	n := len(sources)
	for n > 0 && sources[n-1] == 0 {
		n--
	}
	return append([]uint64(nil), sources[:n]...)
}

// backendOf returns the ref of a backend's name.
func (d *Decoder) backendOf(h *header) uint32 {
	p := d.processOf(h.pid)
	ref, ok := p.backends[h.extra]
	if !ok {
		if len(p.backends) >= maxNames {
			clear(p.backends)
		}
		ref = d.tables.name(d.backend(h.pid, h.extra))
		p.backends[h.extra] = ref
	}
	return ref
}

// size returns the size of a tensor in bytes, by its strides (ggml_nbytes); 0 if unknown.
func (d *Decoder) size(raw []byte) int64 {
	if len(raw) != d.raw || d.withheld != "" {
		return 0
	}
	r, ok := d.read(raw)
	if !ok {
		return 0
	}
	return r.bytes
}

// experts returns the ref of a mixture's choice, 0 if it is invalid.
func (d *Decoder) experts(h *header, payload []byte) uint32 {
	used, tokens := int(h.extra), int(h.n)
	rows := len(payload) / (expertSlot * 4)
	if used <= 0 || used > expertSlot || tokens <= 0 || tokens > maxBatch || d.withheld != "" {
		d.malformed++
		return 0
	}
	choice := optrace.ExpertChoice{Layer: -1, Used: used, Tokens: tokens}
	for row := range min(rows, tokens) {
		slot := payload[row*expertSlot*4:]
		for i := range used {
			choice.IDs = append(choice.IDs, int32(binary.LittleEndian.Uint32(slot[4*i:])))
		}
	}
	if t := d.processOf(h.pid).tensors[h.addr]; t != nil {
		choice.Layer, _ = optrace.LayerOf(d.tables.Tensor(t.shape).Name)
	}
	return d.tables.choice(choice)
}

// counters returns the ref of a reading of counters.
func (d *Decoder) counters(h *header, payload []byte) uint32 {
	if len(payload) != 8*int(optrace.NumCounters) {
		d.malformed++
		return 0
	}
	set := optrace.CounterSet{Have: d.have}
	for i := range set.Value {
		set.Value[i] = binary.LittleEndian.Uint64(payload[8*i:])
	}
	d.running.replaceCounts(h.tid, h.cpu, &set)
	return d.tables.counter(set)
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}
