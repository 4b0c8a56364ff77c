package binary

import (
	"math"
	"time"

	"golang.org/x/arch/x86/x86asm"
)

// spot walks from the entry to the first instruction that the kernel emulates
// (arch/x86/kernel/uprobes.c: push of a register, jumps and calls of known distance, nop).
// A nop of several bytes is never chosen: kernels since 6.18 replace one of five bytes
// by a call, which overwrites what a leaf function keeps below its stack pointer.
func (c x86) spot(o *object, s symbol, n need) spot {
	code := o.code(s)
	entry, ok := x86Decode(code)
	if !ok {
		return spot{instruction: "unknown", cost: costStepped}
	}
	fallback := spot{instruction: x86Text(&entry, code), cost: costStepped}
	at, pushed := 0, 0
	for range maxSiteInstructions {
		i, ok := x86Decode(code[at:])
		if !ok {
			return fallback
		}
		if cost, cheap := x86Emulated(&i, code[at:]); cheap {
			chosen := spot{offset: uint64(at), instruction: x86Text(&i, code[at:]), cheap: true, cost: cost, pushed: pushed} //nolint:gosec // not negative
			if at > 0 && i.Op != x86asm.PUSH && c.jumpsInto(o, s, 1, at) {
				return fallback
			}
			return chosen
		}
		moved, ok := x86Harmless(&i, n)
		if !ok {
			return fallback
		}
		pushed += moved
		at += i.Len
	}
	return fallback
}

// x86Emulated says whether the kernel emulates an instruction, and what a probe there
// costs.
func x86Emulated(i *x86asm.Inst, code []byte) (time.Duration, bool) {
	for _, p := range i.Prefix {
		// The kernel steps instructions with an operand-size prefix.
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

// x86Condition says whether an operation is a conditional jump by flags.
func x86Condition(op x86asm.Op) bool {
	switch op {
	case x86asm.JA, x86asm.JAE, x86asm.JB, x86asm.JBE, x86asm.JE, x86asm.JG, x86asm.JGE, x86asm.JL, x86asm.JLE,
		x86asm.JNE, x86asm.JNO, x86asm.JNP, x86asm.JNS, x86asm.JO, x86asm.JP, x86asm.JS:
		return true
	}
	return false
}

// x86Harmless says whether what a probe needs is still there after an instruction, and
// by how many bytes it lowers the stack pointer.
func x86Harmless(i *x86asm.Inst, n need) (moved int, ok bool) {
	if f, _ := x86Flow(i, 0); f != goOn || x86Implicit(i.Op) {
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

// x86Implicit says whether an operation writes registers that are not its first operand.
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

// x86Vector says whether an operation is one of AVX, whose only result is its first
// operand.
func x86Vector(op x86asm.Op) bool {
	name := op.String()
	return len(name) > 1 && name[0] == 'V' && op != x86asm.VERR && op != x86asm.VERW
}

// x86Text is an instruction as it is shown.
func x86Text(i *x86asm.Inst, code []byte) string {
	if x86IsEndbr(code) {
		return "endbr64"
	}
	return x86asm.GNUSyntax(*i, 0, nil)
}

func x86IsEndbr(code []byte) bool {
	return len(code) >= len(endbr64) && string(code[:len(endbr64)]) == string(endbr64)
}

// sweep goes through all instructions of a function in their order in the file. It says
// whether all bytes were instructions.
func (x86) sweep(o *object, s symbol, do func(at int, i *x86asm.Inst, code []byte)) bool {
	code := o.code(s)
	whole := uint64(len(code)) == s.size && s.size > 0
	for at := 0; at < len(code); {
		i, ok := x86Decode(code[at:])
		if !ok {
			whole = false
			at++
			continue
		}
		do(at, &i, code[at:])
		at += i.Len
	}
	return whole
}

// jumpsInto says whether a jump of a function leads to an offset from low to high: a
// probe there would be hit more often than the function is called.
func (c x86) jumpsInto(o *object, s symbol, low, high int) bool {
	found := false
	c.sweep(o, s, func(at int, i *x86asm.Inst, _ []byte) {
		if f, _ := x86Flow(i, 0); f != jump && f != branch {
			return
		}
		if rel, ok := i.Args[0].(x86asm.Rel); ok {
			target := at + i.Len + int(rel)
			found = found || target >= low && target <= high
		}
	})
	return found
}

// maxWrapper is the size of a function that can be a wrapper around one call: the real
// ones have 36 to 70 bytes, 90 without optimisation.
const maxWrapper = 256

// after finds the first call of a wrapper, which has to come before any jump, and the
// cheapest instruction after it before the next jump.
func (c x86) after(o *object, s symbol) (spot, bool) {
	if s.size > maxWrapper {
		return spot{}, false
	}
	code := o.code(s)
	called := -1
	for at := 0; at < len(code); {
		i, ok := x86Decode(code[at:])
		if !ok {
			return spot{}, false
		}
		f, _ := x86Flow(&i, 0)
		at += i.Len
		if f == call {
			called = at
			break
		}
		if f != goOn {
			return spot{}, false
		}
	}
	if called < 0 || called >= len(code) {
		return spot{}, false
	}
	return c.soonAfter(o, s, code, called)
}

// soonAfter is the cheapest instruction from an offset on that is always come to.
func (c x86) soonAfter(o *object, s symbol, code []byte, from int) (spot, bool) {
	i, ok := x86Decode(code[from:])
	if !ok {
		return spot{}, false
	}
	plain := spot{offset: uint64(from), instruction: x86Text(&i, code[from:]), cost: costStepped} //nolint:gosec // not negative
	for at := from; at < len(code); at += i.Len {
		if i, ok = x86Decode(code[at:]); !ok {
			break
		}
		if f, _ := x86Flow(&i, 0); f == call || f == leave {
			break
		}
		if cost, cheap := x86Emulated(&i, code[at:]); cheap {
			if c.jumpsInto(o, s, from+1, at) {
				break
			}
			return spot{offset: uint64(at), instruction: x86Text(&i, code[at:]), cheap: true, cost: cost}, true //nolint:gosec // not negative
		}
		if f, _ := x86Flow(&i, 0); f != goOn {
			break
		}
	}
	return plain, true
}

func (c x86) returns(o *object, s symbol) (at []spot, tails []uint64, ok bool) {
	unknown := false
	ok = c.sweep(o, s, func(offset int, i *x86asm.Inst, code []byte) {
		next := s.address + uint64(offset+i.Len) //nolint:gosec // not negative
		switch f, target := x86Flow(i, next); {
		case f == jump && target == 0:
			unknown = true
		case f == leave:
			at = append(at, spot{offset: uint64(offset), instruction: x86Text(i, code), cost: costStepped}) //nolint:gosec // not negative
		case f == jump && target-s.address >= s.size:
			tails = append(tails, target)
		}
	})
	return at, tails, ok && (!unknown || s.size > maxWrapper)
}

// stub is the slot of the global offset table that a stub of the procedure linkage
// table jumps through.
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
