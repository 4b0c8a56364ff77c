package ggml

import "github.com/cilium/ebpf/asm"

// argumentOffsets are where the arguments of a function lie in the context of a probe:
// rdi, rsi, rdx, rcx, r8, r9 (System V ABI) in struct pt_regs
// (arch/x86/include/uapi/asm/ptrace.h).
var argumentOffsets = [...]int16{112, 104, 96, 88, 72, 64}

// stackPointerOffset is where the stack pointer lies there.
const stackPointerOffset = 152

// stackArguments is how far above the stack pointer arguments on the stack lie at the
// entry: the return address is below them.
const stackArguments = 8

// batchOnStack says that a structure as large as llama_batch is passed on the stack.
const batchOnStack = true

// faultAddress is where struct bpf_perf_event_data holds the address: behind pt_regs
// (168 bytes) and the period.
const faultAddress = 176

// publish stores a word behind all that was stored before it: this machine keeps the order
// of stores.
func publish(to asm.Register, offset int16, from asm.Register) asm.Instruction {
	return asm.StoreMem(to, offset, from, asm.DWord)
}

// oldestMinor is of the oldest kernel: bpf_loop is of 5.17, attach cookies of 5.15.
const oldestMinor = 17
