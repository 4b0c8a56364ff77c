//go:build amd64 || arm64

package ggml

import (
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"

	"github.com/rooftop-dev/rooftop/engine/optrace"
)

// maxGraphNodes is how many nodes of a graph are looked at; the largest graphs of
// known models have some ten thousand.
const maxGraphNodes = 1 << 16

// How a graph is looked at to tell whether it is new. A look at a node costs 0.2 us where
// the caches are cold. Where a cache grows, its views of K and V change with their
// permutations, four nodes in a row of each layer that attends: one node of three shows
// it for sure. Layers change alike, and so each graph is looked at in one part of several
// in turn: what changes in all layers is seen at once as a rule, and what changes in one
// after as many graphs as there are parts at the latest, but for the last node, which is
// always looked at. Where the number of tokens changes nearly all nodes do.
const (
	lookApart = 3
	lookPart  = 64 // nodes of a part at least: two layers as a rule
	lookParts = 8  // at most, a power of two
)

// mixture is a prime that spreads the bits of a sum (FNV-1a, 64 bits).
const mixture = 0x100000001b3

// offsets are what programs must know of the target's structures; -1 is unknown.
type offsets struct {
	raw                    int // bytes of a tensor to copy
	ne, nb, op, src, data  int
	graphNodes, graphCount int
	mulMatID               int // the number of MUL_MAT_ID
	thread                 int // of the parameters of an operator: its index, then how many there are
}

// experts says that the ids of experts can be found.
func (o *offsets) experts() bool {
	return o.mulMatID > 0 && o.ne >= 0 && o.nb >= 0 && o.op >= 0 && o.src >= 0 && o.data >= 0
}

// graph says that the nodes of a graph can be found.
func (o *offsets) graph() bool { return o.graphNodes >= 0 && o.graphCount >= 0 && o.ne >= 0 }

// details tells which bits of the details are on: it jumps to a label where none is.
func (c *code) unless(detail optrace.Detail, label string) {
	c.add(
		asm.LoadMem(asm.R1, asm.RFP, stackDetail, asm.Word),
		asm.And.Imm(asm.R1, int32(detail)),
		asm.JEq.Imm(asm.R1, 0, label),
	)
}

// operator watches the begin of an operator: (params, tensor) or, fused, (params,
// tensor, tensor). params begins with the thread's index and the number of threads.
func operator(c *code, o *offsets, fused bool, task *taskOffsets) asm.Instructions {
	tensors := int32(1)
	if fused {
		tensors = 2
	}
	c.begin()
	c.keepCookie()
	c.lane(o)
	c.argument(asm.R9, 1)
	head := func() {
		c.add(
			asm.StoreMem(asm.R7, offAddr, asm.R9, asm.DWord),
			asm.LoadMem(asm.R1, asm.RFP, stackLanes, asm.Word),
			asm.StoreMem(asm.R7, offLane, asm.R1, asm.Half),
			asm.LoadMem(asm.R1, asm.RFP, stackLanes+4, asm.Word),
			asm.StoreMem(asm.R7, offLanes, asm.R1, asm.Half),
			asm.Mov.Imm(asm.R1, tensors),
			asm.StoreMem(asm.R7, offN, asm.R1, asm.DWord),
		)
		if fused {
			c.argument(asm.R1, 2)
			c.add(asm.StoreMem(asm.R7, offExtra, asm.R1, asm.DWord))
		}
	}
	// Operators alone come first and in one piece: code that weights have pushed out of
	// the caches costs the target 10 ns and more a line.
	c.add(
		asm.LoadMem(asm.R1, asm.RFP, stackDetail, asm.Word),
		asm.And.Imm(asm.R1, int32(optrace.DetailTensor|optrace.DetailExperts|optrace.DetailCounters)),
		asm.JNE.Imm(asm.R1, 0, "detailed"),
	)
	c.reserve(headerSize, "exit")
	head()
	c.submit()
	c.finish()
	c.at("detailed")
	c.unless(optrace.DetailTensor, "short")
	c.reserve(headerSize+tensors*int32(o.raw), "more")
	head()
	c.copyUser(headerSize, int32(o.raw), asm.R9)
	if fused {
		c.argument(asm.R1, 2)
		c.copyUser(headerSize+int32(o.raw), int32(o.raw), asm.R1)
	}
	c.submit()
	c.add(asm.Ja.Label("more"))
	c.at("short")
	c.reserve(headerSize, "more")
	head()
	c.submit()
	c.at("more")
	if task != nil {
		c.counters(task)
	}
	if o.experts() && !fused {
		c.experts(o)
	}
	c.add(asm.Ja.Label("exit"))
	return c.Instructions
}

// The memory of which lane a thread is: a slot of one cache line for each of so many
// threads, by their IDs, and a word in it. The word has, from the top, 22 bits of the
// thread's ID (the largest that Linux gives), 22 of how many graphs had begun, and
// laneBits each of the index and of the number of threads.
const (
	laneSlots = 256
	laneSlot  = 64
	laneBits  = 10 // GGML computes with 512 threads at most (GGML_MAX_N_THREADS)
	laneMost  = 1<<laneBits - 1
	begunBits = 22
)

// lane finds which of how many threads of the graph this one is, into stackLanes. It is
// read from the target's memory, which takes 100 ns, for the first operator of a thread
// in a graph, and remembered until the next graph begins.
func (c *code) lane(o *offsets) {
	c.argument(asm.R1, 0)
	c.add(asm.Mov.Imm(asm.R2, 0), asm.StoreMem(asm.RFP, stackLanes, asm.R2, asm.DWord))
	if !c.graphs || o.thread != 0 { // in steps a thread is one lane and another in turn
		c.readUser(stackLanes, 8, asm.R1, int32(o.thread))
		return
	}
	c.add(
		asm.Mov.Reg(asm.R7, asm.R8),
		asm.LSh.Imm(asm.R7, 2*laneBits+begunBits),
		asm.LoadMapValue(asm.R2, c.maps.state.FD(), stateBegun),
		asm.LoadMem(asm.R2, asm.R2, 0, asm.Word),
		asm.And.Imm(asm.R2, 1<<begunBits-1),
		asm.LSh.Imm(asm.R2, 2*laneBits),
		asm.Or.Reg(asm.R7, asm.R2),
		asm.Mov.Reg(asm.R2, asm.R8),
		asm.And.Imm(asm.R2, laneSlots-1),
		asm.Mul.Imm(asm.R2, laneSlot),
		asm.LoadMapValue(asm.R9, c.maps.lanes.FD(), 0),
		asm.Add.Reg(asm.R9, asm.R2),
		asm.LoadMem(asm.R2, asm.R9, 0, asm.DWord),
		asm.Mov.Reg(asm.R3, asm.R2),
		asm.Xor.Reg(asm.R3, asm.R7),
		asm.JGT.Imm(asm.R3, 1<<(2*laneBits)-1, "unknown_lane"),
		asm.Mov.Reg(asm.R3, asm.R2),
		asm.And.Imm(asm.R2, laneMost),
		asm.StoreMem(asm.RFP, stackLanes+4, asm.R2, asm.Word),
		asm.RSh.Imm(asm.R3, laneBits),
		asm.And.Imm(asm.R3, laneMost),
		asm.StoreMem(asm.RFP, stackLanes, asm.R3, asm.Word),
		asm.Ja.Label("lane"),
	)
	c.at("unknown_lane")
	c.readUser(stackLanes, 8, asm.R1, 0)
	c.add(
		asm.LoadMem(asm.R1, asm.RFP, stackLanes, asm.Word),
		asm.JGT.Imm(asm.R1, laneMost, "lane"),
		asm.LoadMem(asm.R2, asm.RFP, stackLanes+4, asm.Word),
		asm.JGT.Imm(asm.R2, laneMost, "lane"),
		asm.JEq.Imm(asm.R2, 0, "lane"), // could not be read
		asm.LSh.Imm(asm.R1, laneBits),
		asm.Or.Reg(asm.R1, asm.R2),
		asm.Or.Reg(asm.R1, asm.R7),
		asm.StoreMem(asm.R9, 0, asm.R1, asm.DWord),
	)
	c.at("lane")
}

// experts reads the ids that a MUL_MAT_ID goes by: its third source, one row for each
// token. One thread of the graph does it, lane 0.
func (c *code) experts(o *offsets) {
	const (
		ne   = stackTensor
		nb   = stackTensor + 32
		data = stackTensor + 64
	)
	c.unless(optrace.DetailExperts, "exit")
	c.add(asm.LoadMem(asm.R1, asm.RFP, stackLanes, asm.Word), asm.JNE.Imm(asm.R1, 0, "exit"))
	c.readUser(stackWord, 4, asm.R9, int32(o.op))
	c.add(
		asm.JNE.Imm(asm.R0, 0, "exit"),
		asm.LoadMem(asm.R1, asm.RFP, stackWord, asm.Word),
		asm.JNE.Imm(asm.R1, int32(o.mulMatID), "exit"),
	)
	c.readUser(stackArg, 8, asm.R9, int32(o.src)+16)
	for _, field := range []struct{ to, size, offset int32 }{{ne, 16, int32(o.ne)}, {nb, 16, int32(o.nb)}, {data, 8, int32(o.data)}} {
		c.add(asm.LoadMem(asm.R1, asm.RFP, stackArg, asm.DWord))
		c.readUser(field.to, field.size, asm.R1, field.offset)
		c.add(asm.JNE.Imm(asm.R0, 0, "exit"))
	}
	c.add(
		asm.LoadMem(asm.R1, asm.RFP, ne, asm.DWord),
		asm.JEq.Imm(asm.R1, 0, "exit"),
		asm.JGT.Imm(asm.R1, expertSlot, "exit"),
		asm.LoadMem(asm.R1, asm.RFP, ne+8, asm.DWord),
		asm.JEq.Imm(asm.R1, 0, "exit"),
		asm.JGT.Imm(asm.R1, expertRowsSmall, "large"),
	)
	c.expertRows(expertRowsSmall, ne, nb, data)
	c.add(asm.Ja.Label("exit"))
	c.at("large")
	c.expertRows(expertRowsLarge, ne, nb, data)
}

// expertRows writes a record with room for so many rows.
func (c *code) expertRows(rows int32, ne, nb, data int16) {
	loop, end := c.unique("rows"), c.unique("written")
	c.reserve(headerSize+rows*expertSlot*4, "exit")
	c.add(
		asm.Mov.Imm(asm.R1, int32(optrace.ExpertsChosen)),
		asm.StoreMem(asm.R7, offCookie, asm.R1, asm.Word),
		asm.StoreMem(asm.R7, offAddr, asm.R9, asm.DWord),
		asm.LoadMem(asm.R1, asm.RFP, ne+8, asm.DWord),
		asm.StoreMem(asm.R7, offN, asm.R1, asm.DWord),
		asm.LoadMem(asm.R1, asm.RFP, ne, asm.DWord),
		asm.StoreMem(asm.R7, offExtra, asm.R1, asm.DWord),
		asm.Mov.Imm(asm.R9, 0),
	)
	c.at(loop)
	c.add(
		asm.LoadMem(asm.R1, asm.RFP, ne+8, asm.DWord),
		asm.JGE.Reg(asm.R9, asm.R1, end),
		asm.LoadMem(asm.R2, asm.RFP, ne, asm.DWord),
		asm.JGT.Imm(asm.R2, expertSlot, end), // known already, but not to the verifier
		asm.LSh.Imm(asm.R2, 2),
		asm.LoadMem(asm.R3, asm.RFP, nb+8, asm.DWord),
		asm.Mul.Reg(asm.R3, asm.R9),
		asm.LoadMem(asm.R1, asm.RFP, data, asm.DWord),
		asm.Add.Reg(asm.R3, asm.R1),
		asm.Mov.Reg(asm.R1, asm.R9),
		asm.Mul.Imm(asm.R1, expertSlot*4),
		asm.Add.Reg(asm.R1, asm.R7),
		asm.Add.Imm(asm.R1, headerSize),
		asm.FnProbeReadUser.Call(),
		asm.Add.Imm(asm.R9, 1),
		asm.JLT.Imm(asm.R9, rows, loop),
	)
	c.at(end)
	c.submit()
}

// mark watches a place of which only thread and moment count.
func mark(c *code) asm.Instructions {
	c.begin()
	c.keepCookie()
	c.reserve(headerSize, "exit")
	c.submit()
	c.finish()
	return c.Instructions
}

// call watches a call with a llama_batch by value, whose first field is the number of
// its tokens (llama.h, int32_t n_tokens).
func call(c *code) asm.Instructions {
	c.begin()
	c.keepCookie()
	c.add(asm.Mov.Imm(asm.R1, 0), asm.StoreMem(asm.RFP, stackWord, asm.R1, asm.DWord))
	if batchOnStack {
		c.add(
			asm.LoadMem(asm.R9, asm.R6, stackPointerOffset, asm.DWord),
			asm.LoadMem(asm.R1, asm.RFP, stackCookie, asm.DWord),
			asm.RSh.Imm(asm.R1, 32),
			asm.Add.Reg(asm.R9, asm.R1),
		)
	} else {
		c.argument(asm.R9, 1)
	}
	c.readUser(stackWord, 4, asm.R9, stackArguments)
	c.reserve(headerSize, "exit")
	c.add(asm.LoadMem(asm.R1, asm.RFP, stackWord, asm.Word), asm.StoreMem(asm.R7, offN, asm.R1, asm.DWord))
	c.submit()
	c.finish()
	return c.Instructions
}

// split watches (backend, graph).
func split(c *code, o *offsets) asm.Instructions {
	c.begin()
	c.keepCookie()
	c.argument(asm.R9, 1)
	c.add(asm.Mov.Imm(asm.R1, 0), asm.StoreMem(asm.RFP, stackWord, asm.R1, asm.DWord))
	if o.graphCount >= 0 {
		c.readUser(stackWord, 4, asm.R9, int32(o.graphCount))
	}
	c.reserve(headerSize, "exit")
	c.add(asm.StoreMem(asm.R7, offAddr, asm.R9, asm.DWord))
	c.argument(asm.R1, 0)
	c.add(
		asm.StoreMem(asm.R7, offExtra, asm.R1, asm.DWord),
		asm.LoadMem(asm.R1, asm.RFP, stackWord, asm.Word),
		asm.StoreMem(asm.R7, offN, asm.R1, asm.DWord),
	)
	c.submit()
	c.finish()
	return c.Instructions
}

// transfer watches a copy whose arguments have the tensor and the size at the given
// places; size < 0 is that of the tensor, which is copied into the record.
func transfer(c *code, o *offsets, tensor, size int) asm.Instructions {
	c.begin()
	c.keepCookie()
	c.argument(asm.R9, tensor)
	room := int32(headerSize)
	if size < 0 {
		room += int32(o.raw)
	}
	c.reserve(room, "exit")
	c.add(asm.StoreMem(asm.R7, offAddr, asm.R9, asm.DWord))
	if size < 0 {
		c.copyUser(headerSize, int32(o.raw), asm.R9)
	} else {
		c.argument(asm.R1, size)
		c.add(asm.StoreMem(asm.R7, offN, asm.R1, asm.DWord))
	}
	c.submit()
	c.finish()
	return c.Instructions
}

// The context of a loop over a graph's nodes: words from stackLoop on.
const (
	loopNodes = iota * 8 // address of the array of pointers
	loopSum
	loopWritten
	loopGraph
	loopAt
	loopFirst // the index of the first node that is looked at
)

// What is remembered of a graph: a sum for each part, and which part is next.
const (
	seenNext  = 8 * lookParts
	seenBytes = seenNext + 8
	stackSeen = stackTensor           // in a program that reads no tensor
	stackSame = stackSeen + seenBytes // the key: address and PID
)

// graph watches (graph, plan). Where the graph is not as it was seen last, its nodes
// are written first, one record each. The moment of GraphBegin is after that.
func graph(c *code, o *offsets) asm.Instructions {
	word := func(field int16) int16 { return stackLoop + field }
	c.begin()
	c.keepCookie()
	c.argument(asm.R9, 0)
	c.add(
		asm.LoadMapValue(asm.R1, c.maps.state.FD(), stateBegun),
		asm.Mov.Imm(asm.R2, 1),
		asm.StoreXAdd(asm.R1, asm.R2, asm.Word),
		asm.Mov.Imm(asm.R1, 0),
		asm.StoreMem(asm.RFP, stackCount, asm.R1, asm.DWord),
		asm.StoreMem(asm.RFP, word(loopWritten), asm.R1, asm.DWord),
		asm.StoreMem(asm.RFP, stackWord, asm.R1, asm.DWord),
		asm.StoreMem(asm.RFP, word(loopGraph), asm.R9, asm.DWord),
		asm.LoadMem(asm.R1, asm.RFP, stackAt, asm.DWord),
		asm.StoreMem(asm.RFP, word(loopAt), asm.R1, asm.DWord),
		asm.StoreMem(asm.RFP, stackSame, asm.R9, asm.DWord),
		asm.Mov.Reg(asm.R1, asm.R8),
		asm.RSh.Imm(asm.R1, 32),
		asm.StoreMem(asm.RFP, stackSame+8, asm.R1, asm.DWord),
	)
	if o.graphCount >= 0 {
		c.readUser(stackWord, 4, asm.R9, int32(o.graphCount))
	}
	if o.graph() {
		c.readUser(int32(word(loopNodes)), 8, asm.R9, int32(o.graphNodes))
		c.add(
			asm.JNE.Imm(asm.R0, 0, "begin"),
			asm.LoadMem(asm.R1, asm.RFP, stackWord, asm.Word),
			asm.JEq.Imm(asm.R1, 0, "begin"),
			asm.JGT.Imm(asm.R1, maxGraphNodes, "begin"),
		)
		c.seenBefore()
		c.at("new")
		c.rememberGraph()
		c.add(asm.LoadMem(asm.R1, asm.RFP, stackWord, asm.Word))
		c.loop("write")
		c.add(
			asm.LoadMem(asm.R1, asm.RFP, stackWord, asm.Word),
			asm.StoreMem(asm.RFP, stackCount, asm.R1, asm.DWord),
		)
	}
	c.at("begin")
	c.time()
	c.reserve(headerSize, "unsent")
	c.add(
		asm.StoreMem(asm.R7, offAddr, asm.R9, asm.DWord),
		asm.LoadMem(asm.R1, asm.RFP, stackWord, asm.Word),
		asm.StoreMem(asm.R7, offN, asm.R1, asm.DWord),
		asm.LoadMem(asm.R1, asm.RFP, stackCount, asm.DWord),
		asm.StoreMem(asm.R7, offExtra, asm.R1, asm.DWord),
	)
	c.submit()
	c.add(asm.Ja.Label("exit"))
	c.at("unsent") // nodes whose graph does not come are lost too: they are sent once more
	c.add(asm.LoadMem(asm.R1, asm.RFP, stackCount, asm.DWord), asm.JEq.Imm(asm.R1, 0, "exit"))
	c.seen()
	c.add(asm.FnMapDeleteElem.Call())
	c.finish()
	if o.graph() {
		main := btf.WithFuncMetadata(c.Instructions[0], programType("graph"))
		c.Instructions[0] = main
		c.look(o)
		c.write(o)
	}
	return c.Instructions
}

// seen loads the map of what is remembered of graphs, and the key of this one.
func (c *code) seen() {
	c.add(stack(asm.R2, stackSame)...)
	c.add(asm.LoadMapPtr(asm.R1, c.maps.graphs.FD()))
}

// seenBefore jumps to begin where the graph is as it was, as far as one part tells.
func (c *code) seenBefore() {
	c.seen()
	c.add(
		asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, "new"),
		asm.Mov.Reg(asm.R7, asm.R0),
		asm.LoadMem(asm.R2, asm.R7, seenNext, asm.DWord),
	)
	c.sumOfPart()
	c.parts(asm.R4)
	c.add(
		asm.LoadMem(asm.R1, asm.R7, seenNext, asm.DWord),
		asm.And.Imm(asm.R1, lookParts-1),
		asm.Mov.Reg(asm.R2, asm.R1),
		asm.LSh.Imm(asm.R2, 3),
		asm.Mov.Reg(asm.R3, asm.R7),
		asm.Add.Reg(asm.R3, asm.R2),
		asm.Add.Imm(asm.R1, 1),
		asm.Mod.Reg(asm.R1, asm.R4),
		asm.StoreMem(asm.R7, seenNext, asm.R1, asm.DWord),
		asm.LoadMem(asm.R2, asm.R3, 0, asm.DWord),
		asm.LoadMem(asm.R1, asm.RFP, stackLoop+loopSum, asm.DWord),
		asm.JEq.Reg(asm.R1, asm.R2, "begin"),
	)
}

// rememberGraph keeps the sums of all parts.
func (c *code) rememberGraph() {
	c.add(asm.Mov.Imm(asm.R1, 0))
	for at := int16(0); at < seenBytes; at += 8 {
		c.add(asm.StoreMem(asm.RFP, stackSeen+at, asm.R1, asm.DWord))
	}
	for part := range int16(lookParts) {
		c.parts(asm.R1)
		c.add(asm.JLE.Imm(asm.R1, int32(part), "summed"), asm.Mov.Imm(asm.R2, int32(part)))
		c.sumOfPart()
		c.add(
			asm.LoadMem(asm.R1, asm.RFP, stackLoop+loopSum, asm.DWord),
			asm.StoreMem(asm.RFP, stackSeen+8*part, asm.R1, asm.DWord),
		)
	}
	c.at("summed")
	c.seen()
	c.add(stack(asm.R3, stackSeen)...)
	c.add(asm.Mov.Imm(asm.R4, mapAny), asm.FnMapUpdateElem.Call())
}

// parts is in how many parts a graph of stackWord nodes is looked at, 1 to lookParts.
func (c *code) parts(dst asm.Register) {
	few, some := c.unique("few"), c.unique("some")
	c.add(
		asm.LoadMem(dst, asm.RFP, stackWord, asm.Word),
		asm.Div.Imm(dst, lookPart),
		asm.JLE.Imm(dst, lookParts, few),
		asm.Mov.Imm(dst, lookParts),
	)
	c.at(few)
	c.add(asm.JGE.Imm(dst, 1, some), asm.Mov.Imm(dst, 1))
	c.at(some)
}

// sumOfPart looks at every so many nodes of the part of index R2 of a graph, and at the last
// node of all: how many outputs are asked for changes the last layer alone.
func (c *code) sumOfPart() {
	c.parts(asm.R3)
	c.add(
		asm.LoadMem(asm.R1, asm.RFP, stackWord, asm.Word),
		asm.StoreMem(asm.RFP, stackLoop+loopSum, asm.R1, asm.DWord),
		asm.Mov.Reg(asm.R4, asm.R1),
		asm.Mul.Reg(asm.R4, asm.R2),
		asm.Add.Reg(asm.R1, asm.R4),
		asm.Div.Reg(asm.R1, asm.R3),
		asm.Div.Reg(asm.R4, asm.R3),
		asm.StoreMem(asm.RFP, stackLoop+loopFirst, asm.R4, asm.DWord),
		asm.Sub.Reg(asm.R1, asm.R4),
		asm.Add.Imm(asm.R1, lookApart-1),
		asm.Div.Imm(asm.R1, lookApart),
	)
	c.loop("look")
	c.add(
		asm.LoadMem(asm.R1, asm.RFP, stackWord, asm.Word),
		asm.Sub.Imm(asm.R1, 1),
		asm.StoreMem(asm.RFP, stackLoop+loopFirst, asm.R1, asm.DWord),
		asm.Mov.Imm(asm.R1, 1),
	)
	c.loop("look")
}

// loop calls a function as often as R1 says.
func (c *code) loop(function string) {
	c.add(
		asm.Instruction{OpCode: asm.LoadImmOp(asm.DWord), Dst: asm.R2, Src: asm.PseudoFunc, Constant: -1}.WithReference(function),
	)
	c.add(stack(asm.R3, stackLoop)...)
	c.add(asm.Mov.Imm(asm.R4, 0), asm.FnLoop.Call())
}

// callback begins a function of a loop: R6 its context, R9 its index.
func (c *code) callback(name string) {
	start := len(c.Instructions)
	c.add(asm.Mov.Reg(asm.R6, asm.R2).WithSymbol(name), asm.Mov.Reg(asm.R9, asm.R1))
	c.Instructions[start] = btf.WithFuncMetadata(c.Instructions[start], callbackType(name))
}

// node loads the address of the node at index R9 into R9, 0 where it cannot be read.
func (c *code) node() {
	c.add(
		asm.LSh.Imm(asm.R9, 3),
		asm.LoadMem(asm.R1, asm.R6, loopNodes, asm.DWord),
		asm.Add.Reg(asm.R9, asm.R1),
	)
	c.add(asm.Mov.Imm(asm.R1, 0), asm.StoreMem(asm.RFP, stackWord, asm.R1, asm.DWord))
	c.readUser(stackWord, 8, asm.R9, 0)
	c.add(asm.LoadMem(asm.R9, asm.RFP, stackWord, asm.DWord))
}

// look adds a node's address and shape to the sum.
func (c *code) look(o *offsets) {
	c.callback("look")
	c.add(
		asm.Mul.Imm(asm.R9, lookApart),
		asm.LoadMem(asm.R1, asm.R6, loopFirst, asm.DWord),
		asm.Add.Reg(asm.R9, asm.R1),
	)
	c.node()
	for i := range int16(4) {
		c.add(asm.Mov.Imm(asm.R1, 0), asm.StoreMem(asm.RFP, stackNode+8*i, asm.R1, asm.DWord))
	}
	c.readUser(stackNode, 32, asm.R9, int32(o.ne))
	c.add(
		asm.LoadMem(asm.R1, asm.R6, loopSum, asm.DWord),
		asm.LoadImm(asm.R2, mixture, asm.DWord),
		asm.Xor.Reg(asm.R1, asm.R9),
		asm.Mul.Reg(asm.R1, asm.R2),
	)
	for i := range int16(4) {
		c.add(
			asm.LoadMem(asm.R3, asm.RFP, stackNode+8*i, asm.DWord),
			asm.Xor.Reg(asm.R1, asm.R3),
			asm.Mul.Reg(asm.R1, asm.R2),
		)
	}
	c.add(asm.StoreMem(asm.R6, loopSum, asm.R1, asm.DWord))
	c.exit()
}

// write writes a node's record.
func (c *code) write(o *offsets) {
	c.callback("write")
	c.node()
	c.add(
		asm.LoadMem(asm.R1, asm.R6, loopAt, asm.DWord),
		asm.StoreMem(asm.RFP, stackAt, asm.R1, asm.DWord),
		asm.Mov.Imm(asm.R1, recordNode),
		asm.StoreMem(asm.RFP, stackCookie, asm.R1, asm.DWord),
		asm.FnGetCurrentPidTgid.Call(),
		asm.Mov.Reg(asm.R8, asm.R0),
	)
	c.reserve(headerSize+int32(o.raw), "next")
	c.add(
		asm.StoreMem(asm.R7, offAddr, asm.R9, asm.DWord),
		asm.LoadMem(asm.R1, asm.R6, loopGraph, asm.DWord),
		asm.StoreMem(asm.R7, offExtra, asm.R1, asm.DWord),
		asm.LoadMem(asm.R1, asm.R6, loopWritten, asm.DWord),
		asm.StoreMem(asm.R7, offN, asm.R1, asm.DWord),
		asm.Add.Imm(asm.R1, 1),
		asm.StoreMem(asm.R6, loopWritten, asm.R1, asm.DWord),
	)
	c.copyUser(headerSize, int32(o.raw), asm.R9)
	c.submit()
	c.at("next")
	c.exit()
}

// programType and callbackType are the signatures that the kernel wants to know of
// programs with callbacks.
func programType(name string) *btf.Func {
	return &btf.Func{Name: name, Linkage: btf.GlobalFunc, Type: &btf.FuncProto{
		Return: &btf.Int{Name: "int", Size: 4, Encoding: btf.Signed},
		Params: []btf.FuncParam{{Name: "ctx", Type: &btf.Pointer{Target: (*btf.Void)(nil)}}},
	}}
}

func callbackType(name string) *btf.Func {
	return &btf.Func{Name: name, Linkage: btf.StaticFunc, Type: &btf.FuncProto{
		Return: &btf.Int{Name: "long", Size: 8, Encoding: btf.Signed},
		Params: []btf.FuncParam{
			{Name: "index", Type: &btf.Int{Name: "unsigned int", Size: 4, Encoding: btf.Unsigned}},
			{Name: "ctx", Type: &btf.Pointer{Target: (*btf.Void)(nil)}},
		},
	}}
}
