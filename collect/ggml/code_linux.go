//go:build amd64 || arm64

package ggml

import (
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"github.com/rooftop-dev/rooftop/engine/optrace"
)

// Offsets on the stack of a program, from the frame pointer.
const (
	stackKey    = -4        // u32, a key of a map
	stackDetail = -8        // u32, the recorded details
	stackAt     = -16       // u64
	stackCookie = -24       // u64
	stackIth    = -32       // i32 index, i32 count
	stackArg    = -40       // u64, a saved argument
	stackWord   = -48       // u64, the last value read
	stackCount  = -56       // u64, number of records that a loop has written
	stackLoop   = -104      // the context of a loop's callback: 6 words
	stackTensor = -256      // copied part of a tensor
	stackNode   = stackLoop // the same in a callback, which has its own frame; both together have at most 512 bytes
)

// Constants of BPF's interface (include/uapi/linux/bpf.h).
const (
	mapAny     = 0          // BPF_ANY
	currentCPU = 0xffffffff // BPF_F_CURRENT_CPU
)

// code is a program under construction. Registers: R6 the context, R7 the record, R8 PID and
// TID, R9 depends on the program.
type code struct {
	asm.Instructions
	maps   *maps
	only   *uint64 // the cookie of its only place, nil if it has several
	graphs bool    // the begin of every graph is probed
	labels int
	label  string // for the next instruction
}

// maps are the maps that programs share with this process.
type maps struct {
	ring    *ebpf.Map // see ring_linux.go
	size    int       // of its data
	spare   int       // bytes that stay free
	state   *ebpf.Map // see [state]
	shared  *state    // the value of state, mapped in page
	page    []byte
	threads *ebpf.Map                     // index of each thread in its graph, see [code.ith]
	graphs  *ebpf.Map                     // address of a graph and its PID → its last checksums
	pmu     map[optrace.Counter]*ebpf.Map // counters of CPUs
	blocks  *ebpf.Map                     // pending disk request → the thread that began it
	none    *ebpf.Map                     // an empty map of programs, see [code.ownStack]
}

// state is read by every probe hit. It is one cache line, because weights stream through the
// caches between two hits, so each line costs a read of main memory.
type state struct {
	details uint32 // the recorded details
	unknown uint32 // the meaning of PID 0: followFirst, followAll
	target  uint32 // PID of the target, 0 if not known yet
	begun   uint32 // number of graphs that have begun; invalidates the indices of threads
	lost    uint64 // records for which there was no room
}

// Offsets in state.
const (
	stateDetails = 0
	stateUnknown = 4
	stateTarget  = 8
	stateBegun   = 12
	stateLost    = 16
	stateBytes   = 24
)

// Meanings of PID 0 as the target.
const (
	followFirst = 0 // the first process that hits a probe becomes the target
	followAll   = 1 // every process is a target
)

// add appends instructions, and attaches a pending label to the first.
func (c *code) add(ins ...asm.Instruction) {
	if c.label != "" && len(ins) > 0 {
		ins[0] = ins[0].WithSymbol(c.label)
		c.label = ""
	}
	c.Instructions = append(c.Instructions, ins...)
}

// unique returns a new label.
func (c *code) unique(name string) string {
	c.labels++
	return fmt.Sprintf("%s_%d", name, c.labels)
}

// at sets a label before the next instruction.
func (c *code) at(label string) {
	if c.label != "" { // two labels at one place
		c.add(asm.Mov.Imm(asm.R0, 0))
	}
	c.label = label
}

// exit returns 0 from the program.
func (c *code) exit() { c.add(asm.Mov.Imm(asm.R0, 0), asm.Return()) }

// stack loads the address of an offset on the stack.
func stack(dst asm.Register, offset int32) []asm.Instruction {
	return []asm.Instruction{asm.Mov.Reg(dst, asm.RFP), asm.Add.Imm(dst, offset)}
}

// atomically returns an atomic operation on the value at dst+offset. The library loses which
// operation it is: all would be additions that return nothing (asm.Instruction.Marshal of
// github.com/cilium/ebpf v0.22.0 takes the constant before it sets it).
func atomically(op asm.AtomicOp, dst, src asm.Register, size asm.Size, offset int16) asm.Instruction {
	ins := op.Mem(dst, src, size, offset)
	ins.Constant = int64(op >> 8) // the library's encoding: above the eight bits of the opcode
	return ins
}

// begin saves the context, exits unless the thread is of the target, and saves time and
// details.
func (c *code) begin() {
	c.add(asm.Mov.Reg(asm.R6, asm.R1))
	c.ownStack()
	c.filter("exit")
	c.time()
}

// ownStack keeps the program on the stack of the thread that runs it. Since Linux 6.13,
// programs of probes share one stack per CPU instead, except those that call others
// (check_max_stack_depth in kernel/bpf/verifier.c). A program of a uprobe can be preempted by
// another thread's, which then writes to the same stack: records had the index of another
// thread. The call is never reached; the verifier sees that and removes it.
func (c *code) ownStack() {
	if c.maps.none == nil {
		return
	}
	own := c.unique("own_stack")
	c.add(
		asm.Mov.Imm(asm.R0, 0),
		asm.JEq.Imm(asm.R0, 0, own),
		asm.LoadMapPtr(asm.R2, c.maps.none.FD()),
		asm.Mov.Imm(asm.R3, 0),
		asm.FnTailCall.Call(),
	)
	c.at(own)
}

// filter jumps to other if the running thread is not of the target. It sets R8.
func (c *code) filter(other string) {
	ok, compare := c.unique("target"), c.unique("compare")
	c.add(
		asm.FnGetCurrentPidTgid.Call(),
		asm.Mov.Reg(asm.R8, asm.R0),
		asm.Mov.Reg(asm.R1, asm.R0),
		asm.RSh.Imm(asm.R1, 32),
		asm.LoadMapValue(asm.R3, c.maps.state.FD(), 0),
		asm.LoadMem(asm.R4, asm.R3, stateDetails, asm.Word),
		asm.StoreMem(asm.RFP, stackDetail, asm.R4, asm.Word),
		asm.LoadMem(asm.R4, asm.R3, stateUnknown, asm.Word),
		asm.JEq.Imm(asm.R4, followAll, ok),
		asm.LoadMem(asm.R2, asm.R3, stateTarget, asm.Word),
		asm.JNE.Imm(asm.R2, 0, compare),
		asm.Mov.Imm(asm.R0, 0),
		atomically(asm.CmpXchg, asm.R3, asm.R1, asm.Word, stateTarget),
		asm.JEq.Imm(asm.R0, 0, ok),
		asm.Mov.Reg(asm.R2, asm.R0),
	)
	c.at(compare)
	c.add(asm.JNE.Reg(asm.R1, asm.R2, other))
	c.at(ok)
}

// time saves the current time.
func (c *code) time() {
	c.add(asm.FnKtimeGetNs.Call(), asm.StoreMem(asm.RFP, stackAt, asm.R0, asm.DWord))
}

// keepCookie saves the cookie of the probe's place. Calling the kernel for it would cost 15 to
// 40 ns per hit, so the cookie of an only place is a constant.
func (c *code) keepCookie() {
	if c.only != nil {
		c.add(asm.LoadImm(asm.R0, int64(*c.only), asm.DWord))
	} else {
		c.add(asm.Mov.Reg(asm.R1, asm.R6), asm.FnGetAttachCookie.Call())
	}
	c.add(asm.StoreMem(asm.RFP, stackCookie, asm.R0, asm.DWord))
}

// argument loads an argument of the probed function.
func (c *code) argument(dst asm.Register, index int) {
	c.add(asm.LoadMem(dst, asm.R6, argumentOffsets[index], asm.DWord))
}

// readUser copies from the target's memory onto the stack; from is clobbered. R0 is 0 if it
// succeeded.
func (c *code) readUser(to int32, size int32, from asm.Register, offset int32) {
	c.add(asm.Mov.Reg(asm.R3, from))
	if offset != 0 {
		c.add(asm.Add.Imm(asm.R3, offset))
	}
	c.add(asm.Mov.Imm(asm.R2, size))
	c.add(stack(asm.R1, to)...)
	c.add(asm.FnProbeReadUser.Call())
}

// reserve makes room for a record in R7 and fills its header; addr, n, extra and the index and
// number of threads are 0. Without room it counts the loss and jumps to none.
func (c *code) reserve(size int32, none string) {
	room := c.unique("room")
	c.add(
		asm.LoadMapValue(asm.R1, c.maps.ring.FD(), 0),
		asm.LoadMem(asm.R2, asm.R1, ringTail, asm.DWord),
		asm.LoadMem(asm.R3, asm.R1, ringHead, asm.DWord),
		asm.Sub.Reg(asm.R3, asm.R2),
		asm.JLE.Imm(asm.R3, int32(c.maps.size-c.maps.spare), room),
		asm.LoadMapValue(asm.R0, c.maps.state.FD(), stateLost),
		asm.Mov.Imm(asm.R1, 1),
		asm.StoreXAdd(asm.R0, asm.R1, asm.DWord),
		asm.Ja.Label(none),
	)
	c.at(room)
	c.add(
		asm.Mov.Imm(asm.R7, ringWord+(size+7)&^7),
		atomically(asm.FetchAdd, asm.R1, asm.R7, asm.DWord, ringHead),
		asm.LoadImm(asm.R2, int64(size)<<ringLength, asm.DWord),
		asm.Or.Reg(asm.R2, asm.R7),
		asm.And.Imm(asm.R7, int32(c.maps.size-1)),
		asm.Add.Reg(asm.R7, asm.R1),
		asm.Add.Imm(asm.R7, ringControl+ringWord),
		asm.StoreMem(asm.R7, -ringWord, asm.R2, asm.DWord),
		asm.LoadMapValue(asm.R1, c.maps.state.FD(), stateLost),
		asm.LoadMem(asm.R1, asm.R1, 0, asm.Word),
		asm.StoreMem(asm.R7, offDropped, asm.R1, asm.Word),
	)
	c.add(
		asm.FnGetSmpProcessorId.Call(),
		asm.StoreMem(asm.R7, offCPU, asm.R0, asm.Word),
		asm.LoadMem(asm.R1, asm.RFP, stackAt, asm.DWord),
		asm.StoreMem(asm.R7, offAt, asm.R1, asm.DWord),
		asm.StoreMem(asm.R7, offThread, asm.R8, asm.DWord),
		asm.LoadMem(asm.R1, asm.RFP, stackCookie, asm.DWord),
		asm.StoreMem(asm.R7, offCookie, asm.R1, asm.Word),
		asm.Mov.Imm(asm.R1, 0),
		asm.StoreMem(asm.R7, offAddr, asm.R1, asm.DWord),
		asm.StoreMem(asm.R7, offN, asm.R1, asm.DWord),
		asm.StoreMem(asm.R7, offExtra, asm.R1, asm.DWord),
		asm.StoreMem(asm.R7, offIth, asm.R1, asm.Word),
	)
}

// copyUser copies from the target's memory into the record.
func (c *code) copyUser(to int32, size int32, from asm.Register) {
	c.add(
		asm.Mov.Reg(asm.R3, from),
		asm.Mov.Imm(asm.R2, size),
		asm.Mov.Reg(asm.R1, asm.R7),
		asm.Add.Imm(asm.R1, to),
		asm.FnProbeReadUser.Call(),
	)
}

// submit completes the record, without waking the reader. It does not use values on the stack,
// which may be that of the CPU (see [code.ownStack]): a wrong word would stop the reader for
// good.
func (c *code) submit() {
	c.add(asm.LoadMem(asm.R1, asm.R7, -ringWord, asm.DWord), asm.Or.Imm(asm.R1, ringDone))
	c.add(publish(asm.R7, -ringWord, asm.R1))
}

// finish adds the common exit and returns the program.
func (c *code) finish() asm.Instructions {
	c.at("exit")
	c.exit()
	return c.Instructions
}

// send writes a record of a size in bytes with what fill stores in it (may be nil), and
// finishes the program.
func (c *code) send(size int32, fill func()) asm.Instructions {
	c.reserve(size, "exit")
	if fill != nil {
		fill()
	}
	c.submit()
	return c.finish()
}

// put copies 8 bytes of memory into a field of the record.
func (c *code) put(field int16, from asm.Register, offset int16) {
	c.add(asm.LoadMem(asm.R1, from, offset, asm.DWord), asm.StoreMem(asm.R7, field, asm.R1, asm.DWord))
}

// keep stores an 8-byte number on the stack.
func (c *code) keep(offset int16, n int32) {
	c.add(asm.Mov.Imm(asm.R1, n), asm.StoreMem(asm.RFP, offset, asm.R1, asm.DWord))
}

// key loads a map and the address of a key on the stack.
func (c *code) key(m *ebpf.Map, key int32) {
	c.add(stack(asm.R2, key)...)
	c.add(asm.LoadMapPtr(asm.R1, m.FD()))
}

// lookup loads the address of a map's value into R0, and jumps to none if there is none.
func (c *code) lookup(m *ebpf.Map, key int32, none string) {
	c.key(m, key)
	c.add(asm.FnMapLookupElem.Call(), asm.JEq.Imm(asm.R0, 0, none))
}

// update sets a map's value from the stack.
func (c *code) update(m *ebpf.Map, key, value int32) {
	c.key(m, key)
	c.add(stack(asm.R3, value)...)
	c.add(asm.Mov.Imm(asm.R4, mapAny), asm.FnMapUpdateElem.Call())
}

// remove deletes a key from a map.
func (c *code) remove(m *ebpf.Map, key int32) {
	c.key(m, key)
	c.add(asm.FnMapDeleteElem.Call())
}
