//go:build amd64 || arm64

package ggml

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"

	"github.com/rooftop-dev/rooftop/engine/optrace"
)

// taskOffsets are the fields of the kernel's task_struct that programs read, from the
// kernel's own type information.
type taskOffsets struct {
	pid, tgid                int16
	runtime, migrations      int16 // se.sum_exec_runtime, se.nr_migrations
	voluntary, involuntary   int16 // nvcsw, nivcsw
	minorFaults, majorFaults int16

	requestSector, requestBytes int16
	blocks                      bool // the two above are known
}

// kernelTypes reads the offsets.
func kernelTypes() (*taskOffsets, error) {
	spec, err := btf.LoadKernelSpec()
	if err != nil {
		return nil, fmt.Errorf("the kernel's type information (BTF): %w", err)
	}
	var task, entity, request *btf.Struct
	if err := spec.TypeByName("task_struct", &task); err != nil {
		return nil, err
	}
	if err := spec.TypeByName("sched_entity", &entity); err != nil {
		return nil, err
	}
	t := &taskOffsets{}
	se, err := offsetOf(task, "se")
	if err != nil {
		return nil, err
	}
	for _, field := range []struct {
		of   *btf.Struct
		name string
		base int16
		to   *int16
	}{
		{task, "pid", 0, &t.pid}, {task, "tgid", 0, &t.tgid},
		{task, "nvcsw", 0, &t.voluntary}, {task, "nivcsw", 0, &t.involuntary},
		{task, "min_flt", 0, &t.minorFaults}, {task, "maj_flt", 0, &t.majorFaults},
		{entity, "sum_exec_runtime", se, &t.runtime}, {entity, "nr_migrations", se, &t.migrations},
	} {
		at, err := offsetOf(field.of, field.name)
		if err != nil {
			return nil, err
		}
		*field.to = field.base + at
	}
	if spec.TypeByName("request", &request) == nil {
		sector, err1 := offsetOf(request, "__sector")
		bytes, err2 := offsetOf(request, "__data_len")
		if errors.Join(err1, err2) == nil {
			t.requestSector, t.requestBytes, t.blocks = sector, bytes, true
		}
	}
	return t, nil
}

// offsetOf is a field's offset in bytes.
func offsetOf(s *btf.Struct, name string) (int16, error) {
	for _, m := range s.Members {
		if m.Name == name && m.Offset%8 == 0 && m.Offset/8 < 1<<15 {
			return int16(m.Offset / 8), nil
		}
		if m.Name != "" {
			continue
		}
		inner, ok := btf.UnderlyingType(m.Type).(*btf.Struct)
		if !ok {
			continue
		}
		if at, err := offsetOf(inner, name); err == nil {
			return at + int16(m.Offset/8), nil
		}
	}
	return 0, fmt.Errorf("the kernel's %s has no field %s", s.Name, name)
}

// counters reads what the kernel counts for the thread that runs, exact totals of this
// thread without opening an event, and what the hardware counts on this CPU.
func (c *code) counters(t *taskOffsets) {
	end := c.unique("counted")
	c.unless(optrace.DetailCounters, end)
	c.reserve(headerSize+8*int32(optrace.NumCounters), end)
	c.add(
		asm.Mov.Imm(asm.R1, int32(optrace.CountersRead)),
		asm.StoreMem(asm.R7, offCookie, asm.R1, asm.Word),
	)
	store := func(counter optrace.Counter, from asm.Register) {
		c.add(asm.StoreMem(asm.R7, headerSize+8*int16(counter), from, asm.DWord))
	}
	for _, e := range hardware {
		c.add(asm.Mov.Imm(asm.R1, 0), asm.StoreMem(asm.RFP, stackTensor, asm.R1, asm.DWord))
		if m := c.maps.pmu[e.counter]; m != nil {
			c.readCounter(m)
		}
		c.add(asm.LoadMem(asm.R1, asm.RFP, stackTensor, asm.DWord))
		store(e.counter, asm.R1)
	}
	c.add(asm.FnGetCurrentTaskBtf.Call())
	for _, field := range []struct {
		counter optrace.Counter
		offset  int16
	}{
		{optrace.TaskClock, t.runtime}, {optrace.Migrations, t.migrations},
		{optrace.MinorFaults, t.minorFaults}, {optrace.MajorFaults, t.majorFaults},
	} {
		c.add(asm.LoadMem(asm.R1, asm.R0, field.offset, asm.DWord))
		store(field.counter, asm.R1)
	}
	c.add(
		asm.LoadMem(asm.R1, asm.R0, t.voluntary, asm.DWord),
		asm.LoadMem(asm.R2, asm.R0, t.involuntary, asm.DWord),
		asm.Add.Reg(asm.R1, asm.R2),
	)
	store(optrace.ContextSwitches, asm.R1)
	c.submit()
	c.at(end)
}

// readCounter reads what this CPU counts (struct bpf_perf_event_value: the counter, the
// time it was enabled, and the time it ran) onto the stack, 0 where it cannot.
func (c *code) readCounter(m *ebpf.Map) {
	c.add(asm.LoadMapPtr(asm.R1, m.FD()), asm.LoadImm(asm.R2, currentCPU, asm.DWord))
	c.add(stack(asm.R3, stackTensor)...)
	c.add(asm.Mov.Imm(asm.R4, 24), asm.FnPerfEventReadValue.Call())
}

// kernelCode begins a program of the kernel's layer: R6 the context, R9 the target's
// PID, which must be known; the cookie is the kind of event.
func kernelCode(m *maps, kind optrace.Kind) *code {
	c := &code{maps: m}
	c.add(
		asm.Mov.Reg(asm.R6, asm.R1),
		asm.LoadMapValue(asm.R2, m.state.FD(), stateTarget),
		asm.LoadMem(asm.R9, asm.R2, 0, asm.Word),
		asm.JEq.Imm(asm.R9, 0, "exit"),
	)
	c.cookie(kind)
	return c
}

// cookie sets the kind of the next record.
func (c *code) cookie(kind optrace.Kind) {
	c.add(asm.Mov.Imm(asm.R1, int32(kind)), asm.StoreMem(asm.RFP, stackCookie, asm.R1, asm.DWord))
}

// threadOf makes R8 of the task in a register: PID << 32 | TID.
func (c *code) threadOf(task asm.Register, t *taskOffsets) {
	c.add(
		asm.LoadMem(asm.R8, task, t.tgid, asm.Word),
		asm.LSh.Imm(asm.R8, 32),
		asm.LoadMem(asm.R1, task, t.pid, asm.Word),
		asm.Or.Reg(asm.R8, asm.R1),
	)
}

// markFor is how long switches of a CPU are told after a thread of the target was
// preempted on it, in ns: one that has waited for longer may have gone elsewhere.
const markFor = 1_000_000_000

// Addresses on the stack of switches.
const (
	stackLeaves = stackArg  // u64, the process that leaves
	stackComes  = stackWord // u64, the process that comes
)

// switches follows sched_switch(preempt, prev, next, prev_state): who leaves a CPU and
// why, who comes and whose it was; and who else has a CPU that the target was put off.
func switches(m *maps, t *taskOffsets) asm.Instructions {
	c := kernelCode(m, optrace.SwitchOut)
	c.add(
		asm.LoadMem(asm.R2, asm.R6, 8, asm.DWord),
		asm.LoadMem(asm.R3, asm.R2, t.tgid, asm.Word),
		asm.StoreMem(asm.RFP, stackLeaves, asm.R3, asm.DWord),
		asm.LoadMem(asm.R1, asm.R6, 16, asm.DWord),
		asm.LoadMem(asm.R4, asm.R1, t.tgid, asm.Word),
		asm.StoreMem(asm.RFP, stackComes, asm.R4, asm.DWord),
		asm.JEq.Reg(asm.R3, asm.R9, "out"),
		asm.JEq.Reg(asm.R4, asm.R9, "came"),
		asm.JEq.Reg(asm.R4, asm.R3, "exit"), // threads of one process
	)
	c.taken()
	c.at("out")
	c.time()
	c.add(asm.LoadMem(asm.R2, asm.R6, 8, asm.DWord))
	c.threadOf(asm.R2, t)
	c.add(
		asm.Mov.Imm(asm.R2, int32(optrace.OffPreempted)),
		asm.LoadMem(asm.R1, asm.R6, 0, asm.DWord),
		asm.And.Imm(asm.R1, 1),
		asm.JNE.Imm(asm.R1, 0, "reason"),
		asm.LoadMem(asm.R1, asm.R6, 24, asm.DWord),
		asm.LSh.Imm(asm.R1, 32), // prev_state is an unsigned int
		asm.JEq.Imm(asm.R1, 0, "reason"),
		asm.Mov.Imm(asm.R2, int32(optrace.OffBlocked)),
	)
	c.at("reason")
	c.add(asm.StoreMem(asm.RFP, stackCount, asm.R2, asm.DWord), asm.JEq.Imm(asm.R2, int32(optrace.OffBlocked), "told"))
	c.markOf("told")
	c.add(
		asm.LoadMem(asm.R1, asm.RFP, stackAt, asm.DWord),
		asm.Add.Imm(asm.R1, markFor),
		asm.StoreMem(asm.R0, 0, asm.R1, asm.DWord),
	)
	c.at("told")
	c.reserve(headerSize, "in")
	c.add(
		asm.LoadMem(asm.R1, asm.RFP, stackCount, asm.DWord),
		asm.StoreMem(asm.R7, offN, asm.R1, asm.DWord),
		asm.LoadMem(asm.R1, asm.RFP, stackComes, asm.DWord),
		asm.StoreMem(asm.R7, offAddr, asm.R1, asm.DWord),
	)
	c.submit()
	c.at("in")
	c.add(asm.LoadMem(asm.R1, asm.RFP, stackComes, asm.DWord), asm.JNE.Reg(asm.R1, asm.R9, "exit"))
	c.at("came")
	c.time()
	c.add(asm.LoadMem(asm.R2, asm.R6, 16, asm.DWord))
	c.threadOf(asm.R2, t)
	c.cookie(optrace.SwitchIn)
	c.reserve(headerSize, "exit")
	c.add(
		asm.LoadMem(asm.R1, asm.RFP, stackLeaves, asm.DWord),
		asm.StoreMem(asm.R7, offN, asm.R1, asm.DWord),
	)
	c.submit()
	c.finish()
	return c.Instructions
}

// taken tells of a switch between other processes on a CPU with a mark. The mark ends
// with its time, or where the CPU is idle: then nobody waits for it.
func (c *code) taken() {
	c.markOf("exit")
	c.add(
		asm.LoadMem(asm.R8, asm.R0, 0, asm.DWord),
		asm.JEq.Imm(asm.R8, 0, "exit"),
	)
	c.time()
	c.add(
		asm.LoadMem(asm.R1, asm.RFP, stackComes, asm.DWord),
		asm.JEq.Imm(asm.R1, 0, "unmark"),
		asm.JLE.Reg(asm.R0, asm.R8, "marked"),
		asm.Mov.Imm(asm.R1, 0),
		asm.StoreMem(asm.RFP, stackComes, asm.R1, asm.DWord),
	)
	c.at("unmark")
	c.markOf("exit")
	c.add(asm.Mov.Imm(asm.R1, 0), asm.StoreMem(asm.R0, 0, asm.R1, asm.DWord))
	c.at("marked")
	c.add(asm.Mov.Reg(asm.R8, asm.R9), asm.LSh.Imm(asm.R8, 32))
	c.cookie(optrace.CPUTaken)
	c.reserve(headerSize, "exit")
	c.add(
		asm.LoadMem(asm.R1, asm.RFP, stackLeaves, asm.DWord),
		asm.StoreMem(asm.R7, offAddr, asm.R1, asm.DWord),
		asm.LoadMem(asm.R1, asm.RFP, stackComes, asm.DWord),
		asm.StoreMem(asm.R7, offN, asm.R1, asm.DWord),
	)
	c.submit()
	c.add(asm.Ja.Label("exit"))
}

// markOf loads the address of this CPU's mark into R0.
func (c *code) markOf(none string) {
	c.add(asm.Mov.Imm(asm.R0, 0), asm.StoreMem(asm.RFP, stackKey, asm.R0, asm.Word))
	c.add(stack(asm.R2, stackKey)...)
	c.add(
		asm.LoadMapPtr(asm.R1, c.maps.marks.FD()),
		asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, none),
	)
}

// wakeUps follows sched_wakeup(task).
func wakeUps(m *maps, t *taskOffsets) asm.Instructions {
	c := kernelCode(m, optrace.WakeUp)
	c.add(
		asm.LoadMem(asm.R2, asm.R6, 0, asm.DWord),
		asm.LoadMem(asm.R3, asm.R2, t.tgid, asm.Word),
		asm.JNE.Reg(asm.R3, asm.R9, "exit"),
	)
	c.threadOf(asm.R2, t)
	c.time()
	c.reserve(headerSize, "exit")
	c.submit()
	c.finish()
	return c.Instructions
}

// ofTarget goes on where the thread that runs is of the target, whose PID is in R9.
func (c *code) ofTarget() {
	c.add(
		asm.FnGetCurrentPidTgid.Call(),
		asm.Mov.Reg(asm.R8, asm.R0),
		asm.RSh.Imm(asm.R0, 32),
		asm.JNE.Reg(asm.R0, asm.R9, "exit"),
	)
}

// syscalls follows sys_enter(regs, number), or sys_exit(regs, result).
func syscalls(m *maps, kind optrace.Kind) asm.Instructions {
	c := kernelCode(m, kind)
	c.ofTarget()
	c.time()
	c.reserve(headerSize, "exit")
	if kind == optrace.SyscallBegin {
		c.add(asm.LoadMem(asm.R1, asm.R6, 8, asm.DWord), asm.StoreMem(asm.R7, offN, asm.R1, asm.DWord))
	}
	c.submit()
	c.finish()
	return c.Instructions
}

// faults follows a software event of page faults: its context is bpf_perf_event_data,
// registers, a period and the address.
func faults(m *maps, major bool) asm.Instructions {
	c := kernelCode(m, optrace.PageFault)
	c.ofTarget()
	c.time()
	c.reserve(headerSize, "exit")
	c.add(
		asm.LoadMem(asm.R1, asm.R6, faultAddress, asm.DWord),
		asm.StoreMem(asm.R7, offAddr, asm.R1, asm.DWord),
	)
	if major {
		c.add(asm.Mov.Imm(asm.R1, 1), asm.StoreMem(asm.R7, offN, asm.R1, asm.DWord))
	}
	c.submit()
	c.finish()
	return c.Instructions
}

// blockStart follows block_io_start(request), of Linux 6.4 on: the thread that asks.
func blockStart(m *maps) asm.Instructions {
	c := kernelCode(m, optrace.BlockIOBegin)
	c.ofTarget()
	c.requestOf()
	c.remember()
	c.finish()
	return c.Instructions
}

// requestOf keeps the request's address on the stack and in R9.
func (c *code) requestOf() {
	c.add(asm.LoadMem(asm.R9, asm.R6, 0, asm.DWord), asm.StoreMem(asm.RFP, stackWord, asm.R9, asm.DWord))
}

// remember notes the thread in R8 as that of the request.
func (c *code) remember() {
	c.add(asm.StoreMem(asm.RFP, stackArg, asm.R8, asm.DWord), asm.LoadMapPtr(asm.R1, c.maps.blocks.FD()))
	c.add(stack(asm.R2, stackWord)...)
	c.add(stack(asm.R3, stackArg)...)
	c.add(asm.Mov.Imm(asm.R4, mapAny), asm.FnMapUpdateElem.Call())
}

// recall loads the request's thread into R8.
func (c *code) recall(unknown string) {
	c.add(asm.LoadMapPtr(asm.R1, c.maps.blocks.FD()))
	c.add(stack(asm.R2, stackWord)...)
	c.add(
		asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, unknown),
		asm.LoadMem(asm.R8, asm.R0, 0, asm.DWord),
	)
}

// issued is set beside the thread of a request that has begun: PIDs have 31 bits.
const issued = -1 << 63

// blockBegin follows block_rq_issue(request): threads of the kernel may issue what the
// target asked for.
func blockBegin(m *maps, t *taskOffsets) asm.Instructions {
	c := kernelCode(m, optrace.BlockIOBegin)
	c.add(asm.StoreMem(asm.RFP, stackLanes, asm.R9, asm.DWord))
	c.requestOf()
	c.recall("mine")
	c.add(asm.Ja.Label("known"))
	c.at("mine")
	c.add(asm.LoadMem(asm.R9, asm.RFP, stackLanes, asm.DWord))
	c.ofTarget()
	c.requestOf()
	c.at("known")
	c.add(
		asm.JSLT.Imm(asm.R8, 0, "exit"), // issued before, and put back by a driver that was busy
		asm.LoadImm(asm.R1, issued, asm.DWord),
		asm.Or.Reg(asm.R8, asm.R1),
	)
	c.remember()
	c.add(asm.LSh.Imm(asm.R8, 1), asm.RSh.Imm(asm.R8, 1))
	c.time()
	c.requestOf()
	c.reserve(headerSize, "exit")
	c.block(t)
	c.submit()
	c.finish()
	return c.Instructions
}

// block fills in the sector and size of the request in R9.
func (c *code) block(t *taskOffsets) {
	c.add(
		asm.LoadMem(asm.R1, asm.R9, t.requestSector, asm.DWord),
		asm.StoreMem(asm.R7, offAddr, asm.R1, asm.DWord),
		asm.LoadMem(asm.R1, asm.R9, t.requestBytes, asm.Word),
		asm.StoreMem(asm.R7, offN, asm.R1, asm.DWord),
	)
}

// blockEnd follows block_rq_complete(request, error, bytes) of requests whose begin was
// seen, and gives them the thread that began them.
func blockEnd(m *maps, t *taskOffsets) asm.Instructions {
	c := kernelCode(m, optrace.BlockIOEnd)
	c.requestOf()
	c.recall("exit")
	c.add(asm.JSGE.Imm(asm.R8, 0, "exit")) // it was not issued, or was already told
	c.add(asm.LSh.Imm(asm.R8, 1), asm.RSh.Imm(asm.R8, 1))
	c.add(asm.LoadMapPtr(asm.R1, m.blocks.FD()))
	c.add(stack(asm.R2, stackWord)...)
	c.add(asm.FnMapDeleteElem.Call())
	c.time()
	c.reserve(headerSize, "exit")
	c.block(t)
	c.submit()
	c.finish()
	return c.Instructions
}

// execs follows sched_process_exec: the target became another program.
func execs(m *maps) asm.Instructions {
	c := kernelCode(m, optrace.TargetExec)
	c.ofTarget()
	c.time()
	c.reserve(headerSize, "exit")
	c.submit()
	c.finish()
	return c.Instructions
}
