//go:build amd64 || arm64

package ggml

import (
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"github.com/rooftop-dev/rooftop/engine/optrace"
)

// Places on the stack of a program, below the frame pointer.
const (
	stackKey    = -4        // u32, a key of a map
	stackDetail = -8        // u32, the details that are on
	stackAt     = -16       // u64
	stackCookie = -24       // u64
	stackLanes  = -32       // i32 index, i32 count
	stackArg    = -40       // u64, a saved argument
	stackWord   = -48       // u64, what was read last
	stackCount  = -56       // u64, records of a loop that were written
	stackLoop   = -104      // the context of a loop's callback: 6 words
	stackTensor = -256      // what was read of a tensor
	stackNode   = stackLoop // the same in a callback, whose frame is its own: both are 512 bytes at most
)

// Of BPF's own interface (include/uapi/linux/bpf.h).
const (
	mapAny     = 0          // BPF_ANY
	currentCPU = 0xffffffff // BPF_F_CURRENT_CPU
)

// code is a program in the making. Registers: R6 the context, R7 the record, R8 PID and
// TID, R9 what the program works on.
type code struct {
	asm.Instructions
	maps   *maps
	only   *uint64 // the cookie of its one place, nil where it has several
	graphs bool    // a program sees each graph begin
	labels int
	label  string // for the next instruction
}

// maps are what programs share with this process.
type maps struct {
	ring   *ebpf.Map // see ring_linux.go
	size   int       // of its data
	spare  int       // that stays free
	state  *ebpf.Map // what every program reads, in one cache line: see [state]
	shared *state    // that, mapped in page
	page   []byte
	lanes  *ebpf.Map                     // by thread: which lane of which graph it is, see [code.lane]
	marks  *ebpf.Map                     // per CPU: u64 until when its switches are told, 0 they are not
	graphs *ebpf.Map                     // address of a graph and its PID → what it looked like last
	pmu    map[optrace.Counter]*ebpf.Map // counters of CPUs
	blocks *ebpf.Map                     // a disk request on its way → the thread that began it
	none   *ebpf.Map                     // programs that could be called: none, see [code.ownStack]
}

// state is what every hit reads. It is one cache line, because weights stream through the
// caches between two hits, so that each line costs a read of main memory.
type state struct {
	details uint32 // that are recorded
	unknown uint32 // what PID 0 means: followFirst, followAll
	target  uint32 // PID of the target, 0 not known yet
	begun   uint32 // graphs that have begun: what was known of a thread before is old
	lost    uint64 // records that found no room
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

// What the target's PID 0 means.
const (
	followFirst = 0 // the first process that hits becomes the target
	followAll   = 1
)

// add appends instructions.
func (c *code) add(ins ...asm.Instruction) {
	if c.label != "" && len(ins) > 0 {
		ins[0] = ins[0].WithSymbol(c.label)
		c.label = ""
	}
	c.Instructions = append(c.Instructions, ins...)
}

// unique is a label that nothing else has.
func (c *code) unique(name string) string {
	c.labels++
	return fmt.Sprintf("%s_%d", name, c.labels)
}

// at puts a label before the next instruction.
func (c *code) at(label string) {
	if c.label != "" { // two labels at one place
		c.add(asm.Mov.Imm(asm.R0, 0))
	}
	c.label = label
}

// exit ends the program.
func (c *code) exit() { c.add(asm.Mov.Imm(asm.R0, 0), asm.Return()) }

// stack loads an address on the stack.
func stack(dst asm.Register, offset int32) []asm.Instruction {
	return []asm.Instruction{asm.Mov.Reg(dst, asm.RFP), asm.Add.Imm(dst, offset)}
}

// atomically is op on what lies at dst+offset. The library leaves out which operation it
// is: all would be additions that return nothing (asm.Instruction.Marshal of
// github.com/cilium/ebpf v0.22.0 takes the constant before it sets it).
func atomically(op asm.AtomicOp, dst, src asm.Register, size asm.Size, offset int16) asm.Instruction {
	ins := op.Mem(dst, src, size, offset)
	ins.Constant = int64(op >> 8) // as the library keeps it: above the eight bits of the opcode
	return ins
}

// begin takes the context, lets pass only the target, and keeps time and details.
func (c *code) begin() {
	c.add(asm.Mov.Reg(asm.R6, asm.R1))
	c.ownStack()
	c.filter("exit")
	c.time()
}

// ownStack keeps the program on the stack of the thread that runs it. From Linux 6.13 on
// programs of probes have one for each CPU instead, but for those that call others
// (check_max_stack_depth in kernel/bpf/verifier.c). Nothing keeps a uprobe's program from
// being preempted by another thread's, which then writes to the same stack: records came out
// with the lane of another. The call is never reached; the verifier sees that and takes it
// out.
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

// filter jumps where the thread that runs is not of the target. It fills R8.
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

// time keeps the moment.
func (c *code) time() {
	c.add(asm.FnKtimeGetNs.Call(), asm.StoreMem(asm.RFP, stackAt, asm.R0, asm.DWord))
}

// keepCookie keeps what the probe knows of its place. A call that asks for it is 15 to 40 ns
// of each hit.
func (c *code) keepCookie() {
	if c.only != nil {
		c.add(asm.LoadImm(asm.R0, int64(*c.only), asm.DWord))
	} else {
		c.add(asm.Mov.Reg(asm.R1, asm.R6), asm.FnGetAttachCookie.Call())
	}
	c.add(asm.StoreMem(asm.RFP, stackCookie, asm.R0, asm.DWord))
}

// argument loads an argument of the watched function.
func (c *code) argument(dst asm.Register, index int) {
	c.add(asm.LoadMem(dst, asm.R6, argumentOffsets[index], asm.DWord))
}

// readUser copies from the target's memory onto the stack; from is clobbered. R0 is 0
// where it succeeded.
func (c *code) readUser(to int32, size int32, from asm.Register, offset int32) {
	c.add(asm.Mov.Reg(asm.R3, from))
	if offset != 0 {
		c.add(asm.Add.Imm(asm.R3, offset))
	}
	c.add(asm.Mov.Imm(asm.R2, size))
	c.add(stack(asm.R1, to)...)
	c.add(asm.FnProbeReadUser.Call())
}

// reserve makes room for a record in R7 and fills its header but for addr, n, extra and
// the lanes, which are 0. Without room it counts the loss and jumps.
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
		asm.StoreMem(asm.R7, offLane, asm.R1, asm.Word),
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

// submit hands the record over, without waking the reader. What it writes is not on the
// stack, which may be that of the CPU (see [code.ownStack]): a wrong word would stop the
// reader for good.
func (c *code) submit() {
	c.add(asm.LoadMem(asm.R1, asm.R7, -ringWord, asm.DWord), asm.Or.Imm(asm.R1, ringDone))
	c.add(publish(asm.R7, -ringWord, asm.R1))
}

// finish puts the common exit.
func (c *code) finish() {
	c.at("exit")
	c.exit()
}
