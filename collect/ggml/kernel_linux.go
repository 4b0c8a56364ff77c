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

// taskOffsets are the offsets of the fields of the kernel's task_struct that programs read,
// from the kernel's own type information.
type taskOffsets struct {
	pid, tgid                int16
	runtime, migrations      int16 // se.sum_exec_runtime, se.nr_migrations
	voluntary, involuntary   int16 // nvcsw, nivcsw
	minorFaults, majorFaults int16

	requestSector, requestBytes int16
	blocks                      bool // the two offsets above are known
}

// kernelTypes reads the offsets. It fails if the kernel has no BTF or lacks a field, except
// those of requests.
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

// offsetOf returns the offset of a field in bytes, searching anonymous members too.
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

// counters reads the kernel's counters of the running thread, exact totals without opening an
// event, and the hardware counters of this CPU.
func (c *code) counters(t *taskOffsets) {
	end := c.unique("counted")
	c.skipUnless(optrace.DetailCounters, end)
	c.reserve(headerSize+8*int32(optrace.NumCounters), end)
	c.add(
		asm.Mov.Imm(asm.R1, int32(optrace.CountersRead)),
		asm.StoreMem(asm.R7, offCookie, asm.R1, asm.Word),
	)
	field := func(counter optrace.Counter) int16 { return headerSize + 8*int16(counter) }
	for _, e := range hardware {
		c.keep(stackTensor, 0)
		if m := c.maps.pmu[e.counter]; m != nil {
			c.readCounter(m)
		}
		c.put(field(e.counter), asm.RFP, stackTensor)
	}
	c.add(asm.FnGetCurrentTaskBtf.Call())
	c.put(field(optrace.TaskClock), asm.R0, t.runtime)
	c.put(field(optrace.Migrations), asm.R0, t.migrations)
	c.put(field(optrace.MinorFaults), asm.R0, t.minorFaults)
	c.put(field(optrace.MajorFaults), asm.R0, t.majorFaults)
	c.add(
		asm.LoadMem(asm.R1, asm.R0, t.voluntary, asm.DWord),
		asm.LoadMem(asm.R2, asm.R0, t.involuntary, asm.DWord),
		asm.Add.Reg(asm.R1, asm.R2),
		asm.StoreMem(asm.R7, field(optrace.ContextSwitches), asm.R1, asm.DWord),
	)
	c.submit()
	c.at(end)
}

// readCounter reads this CPU's counter (struct bpf_perf_event_value: the counter, the time it
// was enabled, and the time it ran) onto the stack, 0 if it cannot.
func (c *code) readCounter(m *ebpf.Map) {
	c.add(asm.LoadMapPtr(asm.R1, m.FD()), asm.LoadImm(asm.R2, currentCPU, asm.DWord))
	c.add(stack(asm.R3, stackTensor)...)
	c.add(asm.Mov.Imm(asm.R4, 24), asm.FnPerfEventReadValue.Call())
}

// kernelProgram is a program for a kernel event under construction, with the offsets of the
// kernel's tasks and requests.
type kernelProgram struct {
	*code
	task *taskOffsets
}

// newKernelProgram begins a program: R6 is the context, R9 the target's PID, without which it
// exits; the cookie is the kind of event.
func newKernelProgram(m *maps, kind optrace.Kind, t *taskOffsets) *kernelProgram {
	c := &kernelProgram{&code{maps: m}, t}
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
func (c *kernelProgram) cookie(kind optrace.Kind) { c.keep(stackCookie, int32(kind)) }

// threadOf sets R8 to PID << 32 | TID of the task in a register.
func (c *kernelProgram) threadOf(task asm.Register) {
	c.add(
		asm.LoadMem(asm.R8, task, c.task.tgid, asm.Word),
		asm.LSh.Imm(asm.R8, 32),
		asm.LoadMem(asm.R1, task, c.task.pid, asm.Word),
		asm.Or.Reg(asm.R8, asm.R1),
	)
}

// Offsets on the stack of switches.
const (
	stackLeaves = stackArg  // u64, the process that leaves
	stackComes  = stackWord // u64, the process that comes
)

// Arguments of sched_switch(preempt, prev, next, prev_state) in the context.
const (
	switchPreempt = 8 * iota
	switchPrevious
	switchNext
	switchState
)

// switches handles sched_switch: which thread leaves a CPU and why, and which one gets it, with
// the other process.
func switches(m *maps, t *taskOffsets) asm.Instructions {
	c := newKernelProgram(m, optrace.SwitchOut, t)
	c.add(
		asm.LoadMem(asm.R2, asm.R6, switchPrevious, asm.DWord),
		asm.LoadMem(asm.R3, asm.R2, t.tgid, asm.Word),
		asm.StoreMem(asm.RFP, stackLeaves, asm.R3, asm.DWord),
		asm.LoadMem(asm.R1, asm.R6, switchNext, asm.DWord),
		asm.LoadMem(asm.R4, asm.R1, t.tgid, asm.Word),
		asm.StoreMem(asm.RFP, stackComes, asm.R4, asm.DWord),
		asm.JEq.Reg(asm.R3, asm.R9, "out"),
		asm.JEq.Reg(asm.R4, asm.R9, "came"),
		asm.Ja.Label("exit"),
	)
	c.at("out")
	c.switchOut()
	c.add(asm.LoadMem(asm.R1, asm.RFP, stackComes, asm.DWord), asm.JNE.Reg(asm.R1, asm.R9, "exit"))
	c.at("came")
	c.time()
	c.add(asm.LoadMem(asm.R2, asm.R6, switchNext, asm.DWord))
	c.threadOf(asm.R2)
	c.cookie(optrace.SwitchIn)
	return c.send(headerSize, func() { c.put(offN, asm.RFP, stackLeaves) })
}

// switchOut writes the record of a thread of the target that leaves its CPU.
func (c *kernelProgram) switchOut() {
	c.time()
	c.add(asm.LoadMem(asm.R2, asm.R6, switchPrevious, asm.DWord))
	c.threadOf(asm.R2)
	c.add(
		asm.Mov.Imm(asm.R2, int32(optrace.OffPreempted)),
		asm.LoadMem(asm.R1, asm.R6, switchPreempt, asm.DWord),
		asm.And.Imm(asm.R1, 1),
		asm.JNE.Imm(asm.R1, 0, "reason"),
		asm.LoadMem(asm.R1, asm.R6, switchState, asm.DWord),
		asm.LSh.Imm(asm.R1, 32), // prev_state is an unsigned int
		asm.JEq.Imm(asm.R1, 0, "reason"),
		asm.Mov.Imm(asm.R2, int32(optrace.OffBlocked)),
	)
	c.at("reason")
	c.add(asm.StoreMem(asm.RFP, stackCount, asm.R2, asm.DWord))
	c.reserve(headerSize, "in")
	c.put(offN, asm.RFP, stackCount)
	c.put(offAddr, asm.RFP, stackComes)
	c.submit()
	c.at("in")
}

// wakeUps handles sched_wakeup(task).
func wakeUps(m *maps, t *taskOffsets) asm.Instructions {
	c := newKernelProgram(m, optrace.WakeUp, t)
	c.add(
		asm.LoadMem(asm.R2, asm.R6, 0, asm.DWord),
		asm.LoadMem(asm.R3, asm.R2, t.tgid, asm.Word),
		asm.JNE.Reg(asm.R3, asm.R9, "exit"),
	)
	c.threadOf(asm.R2)
	c.time()
	return c.send(headerSize, nil)
}

// ofTarget exits unless the running thread is of the target, whose PID is in R9.
func (c *kernelProgram) ofTarget() {
	c.add(
		asm.FnGetCurrentPidTgid.Call(),
		asm.Mov.Reg(asm.R8, asm.R0),
		asm.RSh.Imm(asm.R0, 32),
		asm.JNE.Reg(asm.R0, asm.R9, "exit"),
	)
}

// ofThread writes a record of the running thread, if it is of the target.
func ofThread(m *maps, kind optrace.Kind, fill func(*kernelProgram)) asm.Instructions {
	c := newKernelProgram(m, kind, nil)
	c.ofTarget()
	c.time()
	return c.send(headerSize, func() { fill(c) })
}

// syscalls handles sys_enter(regs, number), or sys_exit(regs, result).
func syscalls(m *maps, kind optrace.Kind) asm.Instructions {
	return ofThread(m, kind, func(c *kernelProgram) {
		if kind == optrace.SyscallBegin {
			c.put(offN, asm.R6, 8)
		}
	})
}

// faults handles a software event of page faults. Its context is bpf_perf_event_data:
// registers, a period and the address.
func faults(m *maps, major bool) asm.Instructions {
	return ofThread(m, optrace.PageFault, func(c *kernelProgram) {
		c.put(offAddr, asm.R6, faultAddress)
		if major {
			c.add(asm.Mov.Imm(asm.R1, 1), asm.StoreMem(asm.R7, offN, asm.R1, asm.DWord))
		}
	})
}

// execs handles sched_process_exec: the target became another program.
func execs(m *maps) asm.Instructions { return ofThread(m, optrace.TargetExec, func(*kernelProgram) {}) }

// blockStart handles block_io_start(request), since Linux 6.4: it remembers the requesting
// thread.
func blockStart(m *maps) asm.Instructions {
	c := newKernelProgram(m, optrace.BlockIOBegin, nil)
	c.ofTarget()
	c.requestOf()
	c.remember()
	return c.finish()
}

// requestOf stores the request's address on the stack and in R9.
func (c *kernelProgram) requestOf() {
	c.add(asm.LoadMem(asm.R9, asm.R6, 0, asm.DWord), asm.StoreMem(asm.RFP, stackWord, asm.R9, asm.DWord))
}

// remember stores the thread in R8 as that of the request.
func (c *kernelProgram) remember() {
	c.add(asm.StoreMem(asm.RFP, stackArg, asm.R8, asm.DWord))
	c.update(c.maps.blocks, stackWord, stackArg)
}

// recall loads the request's thread into R8.
func (c *kernelProgram) recall(unknown string) {
	c.lookup(c.maps.blocks, stackWord, unknown)
	c.add(asm.LoadMem(asm.R8, asm.R0, 0, asm.DWord))
}

// issued marks the thread of a request that has begun: PIDs have 31 bits.
const issued = -1 << 63

// blockBegin handles block_rq_issue(request), which kernel threads may call for requests of the
// target.
func blockBegin(m *maps, t *taskOffsets) asm.Instructions {
	c := newKernelProgram(m, optrace.BlockIOBegin, t)
	c.add(asm.StoreMem(asm.RFP, stackIth, asm.R9, asm.DWord))
	c.requestOf()
	c.recall("mine")
	c.add(asm.Ja.Label("known"))
	c.at("mine")
	c.add(asm.LoadMem(asm.R9, asm.RFP, stackIth, asm.DWord))
	c.ofTarget()
	c.requestOf()
	c.at("known")
	c.add(
		asm.JSLT.Imm(asm.R8, 0, "exit"), // issued before, and requeued by a busy driver
		asm.LoadImm(asm.R1, issued, asm.DWord),
		asm.Or.Reg(asm.R8, asm.R1),
	)
	c.remember()
	return c.block()
}

// block writes the record of the request at stackWord, whose thread is in R8.
func (c *kernelProgram) block() asm.Instructions {
	c.add(asm.LSh.Imm(asm.R8, 1), asm.RSh.Imm(asm.R8, 1)) // clear issued
	c.time()
	c.requestOf()
	return c.send(headerSize, func() {
		c.put(offAddr, asm.R9, c.task.requestSector)
		c.add(asm.LoadMem(asm.R1, asm.R9, c.task.requestBytes, asm.Word), asm.StoreMem(asm.R7, offN, asm.R1, asm.DWord))
	})
}

// blockEnd handles block_rq_complete(request, error, bytes) of requests whose begin was seen,
// with the thread that began them.
func blockEnd(m *maps, t *taskOffsets) asm.Instructions {
	c := newKernelProgram(m, optrace.BlockIOEnd, t)
	c.requestOf()
	c.recall("exit")
	c.add(asm.JSGE.Imm(asm.R8, 0, "exit")) // not issued, or reported already
	c.remove(m.blocks, stackWord)
	return c.block()
}
