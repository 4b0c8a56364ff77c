package binary

import (
	"bytes"
	"math"
	"time"

	"golang.org/x/arch/x86/x86asm"
)

// decode decodes an instruction; it is cheap if the kernel emulates it
// (arch/x86/kernel/uprobes.c: push of a register, jumps and calls of known distance, nop). A
// multi-byte nop is never chosen: kernels since 6.18 replace a five-byte one with a call, which
// overwrites what a leaf function keeps below its stack pointer.
func (x86) decode(address uint64, code []byte) (instruction, bool) {
	x, ok := x86Decode(code)
	if !ok {
		return instruction{}, false
	}
	i := instruction{length: x.Len, cost: costStepped, entry: x.Op == x86asm.PUSH}
	i.flow, i.target = x86Flow(&x, address+uint64(x.Len)) //nolint:gosec // positive
	if cost, cheap := x86Emulated(&x, code); cheap {
		i.cheap, i.cost = true, cost
	}
	return i, true
}

// x86Emulated reports whether the kernel emulates an instruction, and what a probe there costs.
func x86Emulated(i *x86asm.Inst, code []byte) (time.Duration, bool) {
	for _, p := range i.Prefix {
		// The kernel single-steps instructions with an operand-size prefix.
		if p&0xff == x86asm.PrefixDataSize {
			return 0, false
		}
	}
	switch i.Op {
	case x86asm.PUSH:
		_, register := i.Args[0].(x86asm.Reg)
		return costEmulated, register
	case x86asm.NOP:
		return costNop, i.Len == 1 && code[0] == 0x90
	}
	if f, _ := x86Flow(i, 0); f == jump || f == call || f == branch {
		_, direct := i.Args[0].(x86asm.Rel)
		// Loops that count in rcx are not emulated.
		return costEmulated, direct && (f != branch || x86Condition(i.Op))
	}
	return 0, false
}

// x86Condition reports whether an operation is a conditional jump by flags.
func x86Condition(op x86asm.Op) bool {
	switch op {
	case x86asm.JA, x86asm.JAE, x86asm.JB, x86asm.JBE, x86asm.JE, x86asm.JG, x86asm.JGE, x86asm.JL, x86asm.JLE,
		x86asm.JNE, x86asm.JNO, x86asm.JNP, x86asm.JNS, x86asm.JO, x86asm.JP, x86asm.JS:
		return true
	}
	return false
}

func (x86) keeps(code []byte, n need) (moved int, ok bool) {
	i, ok := x86Decode(code)
	if f, _ := x86Flow(&i, 0); !ok || f != goOn || x86Implicit(i.Op) {
		return 0, false
	}
	if i.Op == x86asm.PUSH {
		return pointerBytes, !n.ret
	}
	reg, isReg := i.Args[0].(x86asm.Reg)
	if !isReg || i.Op == x86asm.CMP || i.Op == x86asm.TEST || i.Op == x86asm.NOP {
		return 0, true
	}
	number, general := x86Number(reg)
	if !general {
		return 0, true // a vector register
	}
	if number == x86SP {
		size, constant := i.Args[1].(x86asm.Imm)
		if n.ret || i.Op != x86asm.SUB || !constant || size < 0 || size > math.MaxInt16 {
			return 0, !n.ret && !n.stack
		}
		return int(size), true
	}
	for _, argument := range x86Arguments[:min(n.arguments, len(x86Arguments))] {
		if number == argument {
			return 0, false
		}
	}
	return 0, true
}

// x86Implicit reports whether an operation writes registers other than its first operand.
func x86Implicit(op x86asm.Op) bool {
	switch op {
	case x86asm.MOV, x86asm.MOVZX, x86asm.MOVSX, x86asm.MOVSXD, x86asm.LEA, x86asm.ADD, x86asm.SUB, x86asm.AND, x86asm.OR,
		x86asm.XOR, x86asm.CMP, x86asm.TEST, x86asm.SHL, x86asm.SHR, x86asm.SAR, x86asm.INC, x86asm.DEC, x86asm.NEG,
		x86asm.NOT, x86asm.NOP, x86asm.PUSH, x86asm.MOVQ, x86asm.MOVD, x86asm.MOVAPS, x86asm.MOVUPS, x86asm.MOVDQA,
		x86asm.MOVDQU, x86asm.MOVSS, x86asm.MOVSD_XMM, x86asm.PXOR, x86asm.XORPS, x86asm.XORPD,
		x86asm.CMOVE, x86asm.CMOVNE, x86asm.SETE, x86asm.SETNE, x86asm.SETA, x86asm.SETB:
		return false
	}
	return !x86Vector(op)
}

// x86Vector reports whether an operation is one of AVX, whose only result is its first operand.
func x86Vector(op x86asm.Op) bool {
	name := op.String()
	return len(name) > 1 && name[0] == 'V' && op != x86asm.VERR && op != x86asm.VERW
}

func (x86) text(code []byte) string {
	if bytes.HasPrefix(code, endbr64) {
		return "endbr64"
	}
	i, _ := x86Decode(code)
	return x86asm.GNUSyntax(i, 0, nil)
}

// stub returns the slot of the global offset table that a stub of the procedure linkage table
// jumps through.
func (x86) stub(address uint64, code []byte) (slot uint64, ok bool) {
	for range 2 {
		i, ok := x86Decode(code)
		if !ok {
			return 0, false
		}
		address += uint64(i.Len) //nolint:gosec // positive
		if i.Op == x86asm.JMP {
			mem, ok := i.Args[0].(x86asm.Mem)
			return address + uint64(mem.Disp), ok && mem.Base == x86asm.RIP //nolint:gosec // wraps as addresses do
		}
		if i.Op != x86asm.NOP {
			return 0, false
		}
		code = code[i.Len:]
	}
	return 0, false
}
