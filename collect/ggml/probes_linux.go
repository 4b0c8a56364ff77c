//go:build amd64 || arm64

package ggml

import (
	"github.com/cilium/ebpf/asm"

	"github.com/rooftop-dev/rooftop/engine/optrace"
)

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
