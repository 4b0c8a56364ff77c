//go:build amd64 || arm64

package ggml

import (
	"slices"

	"github.com/cilium/ebpf/asm"

	layouts "github.com/rooftop-dev/rooftop/collect/ggml/binary"
	"github.com/rooftop-dev/rooftop/engine/optrace"
)

// offsets are what programs must know of the target's structures.
type offsets struct {
	layouts.Layout
	raw      int // bytes of a tensor to copy
	mulMatID int // the number of MUL_MAT_ID, -1 if unknown
}

// offsetsOf returns the offsets of a layout; ops are the names of operators by number.
func offsetsOf(l layouts.Layout, ops []string, raw int) offsets {
	return offsets{l, raw, slices.Index(ops, "MUL_MAT_ID")}
}

// experts reports whether the ids of experts can be found.
func (o *offsets) experts() bool {
	return o.mulMatID > 0 && min(o.NE, o.NB, o.Op, o.Src, o.Data) >= 0
}

// graph reports whether the nodes of a graph can be found.
func (o *offsets) graph() bool { return min(o.GraphNodes, o.GraphCount, o.NE) >= 0 }

// skipUnless jumps to a label if none of the details is recorded.
func (c *code) skipUnless(detail optrace.Detail, label string) {
	c.add(
		asm.LoadMem(asm.R1, asm.RFP, stackDetail, asm.Word),
		asm.And.Imm(asm.R1, int32(detail)),
		asm.JEq.Imm(asm.R1, 0, label),
	)
}

// operator probes the begin of an operator: (params, tensor) or, fused, (params, tensor,
// tensor). params begins with the thread's index and the number of threads.
func operator(c *code, o *offsets, fused bool, task *taskOffsets) asm.Instructions {
	tensors := int32(1)
	if fused {
		tensors = 2
	}
	c.begin()
	c.keepCookie()
	c.ith()
	c.argument(asm.R9, 1)
	head := func() {
		c.add(
			asm.StoreMem(asm.R7, offAddr, asm.R9, asm.DWord),
			asm.LoadMem(asm.R1, asm.RFP, stackIth, asm.Word),
			asm.StoreMem(asm.R7, offIth, asm.R1, asm.Half),
			asm.LoadMem(asm.R1, asm.RFP, stackIth+4, asm.Word),
			asm.StoreMem(asm.R7, offNth, asm.R1, asm.Half),
			asm.Mov.Imm(asm.R1, tensors),
			asm.StoreMem(asm.R7, offN, asm.R1, asm.DWord),
		)
		if fused {
			c.put(offExtra, asm.R6, argumentOffsets[2])
		}
	}
	// Operators without details come first and in one piece: code that weights evicted from
	// the caches costs the target 10 ns and more per line.
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
	c.skipUnless(optrace.DetailTensor, "short")
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

// The cache of the indices of threads in their graphs (GGML's ith): a slot of one cache line
// for each of threadSlots thread IDs, with one word. The word has, from the top, 22 bits of the
// thread's ID (the largest that Linux assigns), 22 bits of the number of graphs begun, and
// ithBits each of the index and of the number of threads.
const (
	threadSlots = 256
	threadSlot  = 64
	ithBits     = 10 // GGML computes with 512 threads at most (GGML_MAX_N_THREADS)
	ithMost     = 1<<ithBits - 1
	begunBits   = 22
)

// ith loads the index of this thread in its graph and their number into stackIth. They are read
// from the target's memory, which takes 100 ns, for the first operator of a thread in a graph,
// and cached until the next graph begins.
func (c *code) ith() {
	c.argument(asm.R1, 0)
	c.add(asm.Mov.Imm(asm.R2, 0), asm.StoreMem(asm.RFP, stackIth, asm.R2, asm.DWord))
	if !c.graphs {
		c.readUser(stackIth, 8, asm.R1, 0)
		return
	}
	c.add(
		asm.Mov.Reg(asm.R7, asm.R8),
		asm.LSh.Imm(asm.R7, 2*ithBits+begunBits),
		asm.LoadMapValue(asm.R2, c.maps.state.FD(), stateBegun),
		asm.LoadMem(asm.R2, asm.R2, 0, asm.Word),
		asm.And.Imm(asm.R2, 1<<begunBits-1),
		asm.LSh.Imm(asm.R2, 2*ithBits),
		asm.Or.Reg(asm.R7, asm.R2),
		asm.Mov.Reg(asm.R2, asm.R8),
		asm.And.Imm(asm.R2, threadSlots-1),
		asm.Mul.Imm(asm.R2, threadSlot),
		asm.LoadMapValue(asm.R9, c.maps.threads.FD(), 0),
		asm.Add.Reg(asm.R9, asm.R2),
		asm.LoadMem(asm.R2, asm.R9, 0, asm.DWord),
		asm.Mov.Reg(asm.R3, asm.R2),
		asm.Xor.Reg(asm.R3, asm.R7),
		asm.JGT.Imm(asm.R3, 1<<(2*ithBits)-1, "unknown_ith"),
		asm.Mov.Reg(asm.R3, asm.R2),
		asm.And.Imm(asm.R2, ithMost),
		asm.StoreMem(asm.RFP, stackIth+4, asm.R2, asm.Word),
		asm.RSh.Imm(asm.R3, ithBits),
		asm.And.Imm(asm.R3, ithMost),
		asm.StoreMem(asm.RFP, stackIth, asm.R3, asm.Word),
		asm.Ja.Label("ith"),
	)
	c.at("unknown_ith")
	c.readUser(stackIth, 8, asm.R1, 0)
	c.add(
		asm.LoadMem(asm.R1, asm.RFP, stackIth, asm.Word),
		asm.JGT.Imm(asm.R1, ithMost, "ith"),
		asm.LoadMem(asm.R2, asm.RFP, stackIth+4, asm.Word),
		asm.JGT.Imm(asm.R2, ithMost, "ith"),
		asm.JEq.Imm(asm.R2, 0, "ith"), // could not be read
		asm.LSh.Imm(asm.R1, ithBits),
		asm.Or.Reg(asm.R1, asm.R2),
		asm.Or.Reg(asm.R1, asm.R7),
		asm.StoreMem(asm.R9, 0, asm.R1, asm.DWord),
	)
	c.at("ith")
}

// experts reads the ids that a MUL_MAT_ID uses: its third source, one row per token. Only
// thread 0 of the graph does it.
func (c *code) experts(o *offsets) {
	const (
		ne   = stackTensor
		nb   = stackTensor + 32
		data = stackTensor + 64
	)
	c.skipUnless(optrace.DetailExperts, "exit")
	c.add(asm.LoadMem(asm.R1, asm.RFP, stackIth, asm.Word), asm.JNE.Imm(asm.R1, 0, "exit"))
	c.readUser(stackWord, 4, asm.R9, int32(o.Op))
	c.add(
		asm.JNE.Imm(asm.R0, 0, "exit"),
		asm.LoadMem(asm.R1, asm.RFP, stackWord, asm.Word),
		asm.JNE.Imm(asm.R1, int32(o.mulMatID), "exit"),
	)
	c.readUser(stackArg, 8, asm.R9, int32(o.Src)+16)
	for _, field := range []struct{ to, size, offset int32 }{{ne, 16, int32(o.NE)}, {nb, 16, int32(o.NB)}, {data, 8, int32(o.Data)}} {
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

// expertRows writes a record with room for a number of rows.
func (c *code) expertRows(rows int32, ne, nb, data int16) {
	loop, end := c.unique("rows"), c.unique("written")
	c.reserve(headerSize+rows*expertSlot*4, "exit")
	c.add(
		asm.Mov.Imm(asm.R1, int32(optrace.ExpertsChosen)),
		asm.StoreMem(asm.R7, offCookie, asm.R1, asm.Word),
		asm.StoreMem(asm.R7, offAddr, asm.R9, asm.DWord),
	)
	c.put(offN, asm.RFP, ne+8)
	c.put(offExtra, asm.RFP, ne)
	c.add(asm.Mov.Imm(asm.R9, 0))
	c.at(loop)
	c.add(
		asm.LoadMem(asm.R1, asm.RFP, ne+8, asm.DWord),
		asm.JGE.Reg(asm.R9, asm.R1, end),
		asm.LoadMem(asm.R2, asm.RFP, ne, asm.DWord),
		asm.JGT.Imm(asm.R2, expertSlot, end), // always false, but the verifier needs it
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

// mark probes a place of which only thread and time matter.
func mark(c *code) asm.Instructions {
	c.begin()
	c.keepCookie()
	return c.send(headerSize, nil)
}

// call probes a call with a llama_batch by value, whose first field is the number of its tokens
// (llama.h, int32_t n_tokens).
func call(c *code) asm.Instructions {
	c.begin()
	c.keepCookie()
	c.keep(stackWord, 0)
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
	return c.send(headerSize, c.count)
}

// count stores the last 4 bytes read as the record's number.
func (c *code) count() {
	c.add(asm.LoadMem(asm.R1, asm.RFP, stackWord, asm.Word), asm.StoreMem(asm.R7, offN, asm.R1, asm.DWord))
}

// split probes (backend, graph).
func split(c *code, o *offsets) asm.Instructions {
	c.begin()
	c.keepCookie()
	c.argument(asm.R9, 1)
	c.keep(stackWord, 0)
	if o.GraphCount >= 0 {
		c.readUser(stackWord, 4, asm.R9, int32(o.GraphCount))
	}
	return c.send(headerSize, func() {
		c.add(asm.StoreMem(asm.R7, offAddr, asm.R9, asm.DWord))
		c.put(offExtra, asm.R6, argumentOffsets[0])
		c.count()
	})
}

// transfer probes a copy. tensor and size are the indices of these arguments; with size < 0 the
// size is that of the tensor, which is copied into the record.
func transfer(c *code, o *offsets, tensor, size int) asm.Instructions {
	c.begin()
	c.keepCookie()
	c.argument(asm.R9, tensor)
	room := int32(headerSize)
	if size < 0 {
		room += int32(o.raw)
	}
	return c.send(room, func() {
		c.add(asm.StoreMem(asm.R7, offAddr, asm.R9, asm.DWord))
		if size < 0 {
			c.copyUser(headerSize, int32(o.raw), asm.R9)
		} else {
			c.put(offN, asm.R6, argumentOffsets[size])
		}
	})
}
