package ggml

import "github.com/cilium/ebpf/asm"

// argumentOffsets are the offsets of a function's arguments in the context of a probe: rdi,
// rsi, rdx, rcx, r8, r9 (System V ABI) in struct pt_regs (arch/x86/include/uapi/asm/ptrace.h).
var argumentOffsets = [...]int16{112, 104, 96, 88, 72, 64}

// stackPointerOffset is the offset of the stack pointer in the context.
const stackPointerOffset = 152

// stackArguments is the offset of stack arguments from the stack pointer at the entry: the
// return address is below them.
const stackArguments = 8

// batchOnStack reports whether a structure as large as llama_batch is passed on the stack.
const batchOnStack = true

// faultAddress is the offset of the address in struct bpf_perf_event_data: after pt_regs (168
// bytes) and the period.
const faultAddress = 176

// publish stores a word after all earlier stores: x86 keeps the order of stores.
func publish(to asm.Register, offset int16, from asm.Register) asm.Instruction {
	return asm.StoreMem(to, offset, from, asm.DWord)
}

// oldestMinor is the minor version of the oldest kernel: bpf_loop came with 5.17, attach
// cookies with 5.15.
const oldestMinor = 17
