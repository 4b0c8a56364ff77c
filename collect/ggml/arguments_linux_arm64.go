package ggml

import "github.com/cilium/ebpf/asm"

// argumentOffsets are the offsets of a function's arguments in the context of a probe: x0 to x5
// (AAPCS64) in struct user_pt_regs (arch/arm64/include/uapi/asm/ptrace.h).
var argumentOffsets = [...]int16{0, 8, 16, 24, 32, 40}

// stackPointerOffset is the offset of the stack pointer in the context.
const stackPointerOffset = 248

// stackArguments is the offset of stack arguments from the stack pointer at the entry.
const stackArguments = 0

// batchOnStack reports whether a structure as large as llama_batch is passed on the stack:
// on arm64 its address is the second argument.
const batchOnStack = false

// faultAddress is the offset of the address in struct bpf_perf_event_data: after user_pt_regs
// (272 bytes) and the period.
const faultAddress = 280

// publish stores a word after all earlier stores: an exchange is a full barrier
// (Documentation/bpf/standardization/instruction-set.rst, XCHG; include/linux/atomic.h).
func publish(to asm.Register, offset int16, from asm.Register) asm.Instruction {
	return atomically(asm.Xchg, to, from, asm.DWord, offset)
}

// oldestMinor is the minor version of the oldest kernel: bpf_loop came with 5.17, and the arm64
// JIT compiles additions that return the old value since 5.18.
const oldestMinor = 18
