package ggml

import "github.com/cilium/ebpf/asm"

// argumentOffsets are where the arguments of a function lie in the context of a probe:
// x0 to x5 (AAPCS64) in struct user_pt_regs (arch/arm64/include/uapi/asm/ptrace.h).
var argumentOffsets = [...]int16{0, 8, 16, 24, 32, 40}

// stackPointerOffset is where the stack pointer lies there.
const stackPointerOffset = 248

// stackArguments is how far above the stack pointer arguments on the stack lie at the
// entry.
const stackArguments = 0

// batchOnStack says that a structure as large as llama_batch is passed on the stack:
// on arm64 its address is the second argument.
const batchOnStack = false

// faultAddress is where struct bpf_perf_event_data holds the address: behind
// user_pt_regs (272 bytes) and the period.
const faultAddress = 280

// publish stores a word behind all that was stored before it: an exchange is a full barrier
// (Documentation/bpf/standardization/instruction-set.rst, XCHG; include/linux/atomic.h).
func publish(to asm.Register, offset int16, from asm.Register) asm.Instruction {
	return atomically(asm.Xchg, to, from, asm.DWord, offset)
}

// oldestMinor is of the oldest kernel: bpf_loop is of 5.17, and additions that return what
// was there before are compiled on this machine from 5.18 on.
const oldestMinor = 18
