package binary

import (
	"bytes"

	"golang.org/x/arch/x86/x86asm"
)

// x86 follows x86-64 code of the System V ABI.
type x86 struct{}

// Registers by their numbers in x86 machine code.
const (
	x86AX = 0
	x86CX = 1
	x86DX = 2
	x86BX = 3
	x86SP = 4
	x86BP = 5
	x86SI = 6
	x86DI = 7
)

// x86Arguments are the registers of integer arguments, in order.
var x86Arguments = [6]int{x86DI, x86SI, x86DX, x86CX, 8, 9}

// x86Saved are the registers that a call preserves.
var x86Saved = [...]int{x86BX, x86SP, x86BP, 12, 13, 14, 15}

// endbr64 is the landing pad instruction of CET, which the disassembler does not know.
var endbr64 = []byte{0xf3, 0x0f, 0x1e, 0xfa}

func (x86) begin(m *machine) {
	m.reg[x86DI] = firstArgument()
	m.reg[x86SP] = value{kind: stack}
}

func (x86) enter(m *machine) { m.reg[x86SP] = m.reg[x86SP].plus(constant(-8)) }

func (x86) result(m *machine) value { return m.reg[x86AX] }

func (x86) setResult(m *machine, v value) { m.reg[x86AX] = v }

func (x86) forget(m *machine) {
	old := m.reg
	m.reg = [32]value{}
	for _, r := range x86Saved {
		m.reg[r] = old[r]
	}
}

// x86Decode decodes an instruction; endbr64 is returned as a four-byte nop.
func x86Decode(code []byte) (x86asm.Inst, bool) {
	if bytes.HasPrefix(code, endbr64) {
		return x86asm.Inst{Op: x86asm.NOP, Len: len(endbr64), Mode: 64}, true
	}
	i, err := decodeSafely(code)
	return i, err && i.Len > 0
}

// decodeSafely decodes untrusted bytes. A panic of the disassembler counts as an unknown
// instruction.
func decodeSafely(code []byte) (i x86asm.Inst, ok bool) {
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	i, err := x86asm.Decode(code, 64)
	return i, err == nil
}

func (c x86) step(m *machine, address uint64, code []byte) step {
	i, ok := x86Decode(code)
	if !ok {
		return step{flow: stop}
	}
	next := address + uint64(i.Len) //nolint:gosec // positive
	if f, target := x86Flow(&i, next); f != goOn {
		if f == jump && target == 0 {
			f = stop
		}
		return step{flow: f, target: target, length: i.Len}
	}
	c.execute(m, &i, next)
	return step{length: i.Len}
}

// x86Flow returns where execution continues after an instruction, with the target of a direct
// jump or call.
func x86Flow(i *x86asm.Inst, next uint64) (flow, uint64) {
	target := uint64(0)
	rel, direct := i.Args[0].(x86asm.Rel)
	if direct {
		target = next + uint64(int64(rel)) //nolint:gosec // wraps as addresses do
	}
	switch i.Op {
	case x86asm.RET:
		return leave, 0
	case x86asm.JMP:
		return jump, target
	case x86asm.CALL:
		return call, target
	case x86asm.UD2, x86asm.HLT, x86asm.INT:
		return stop, 0
	}
	if direct {
		return branch, target
	}
	return goOn, 0
}

// execute applies an instruction to registers and slots. An unknown one makes what it writes
// unknown.
func (c x86) execute(m *machine, i *x86asm.Inst, next uint64) {
	size := max(i.DataSize/8, 1)
	switch i.Op {
	case x86asm.NOP:
	case x86asm.MOV, x86asm.MOVZX, x86asm.MOVSX, x86asm.MOVSXD:
		c.write(m, i.Args[0], c.read(m, i.Args[1], i, next), i, next)
	case x86asm.LEA:
		c.write(m, i.Args[0], c.address(m, i.Args[1], next), i, next)
	case x86asm.PUSH:
		v := c.read(m, i.Args[0], i, next)
		m.reg[x86SP] = m.reg[x86SP].plus(constant(-8))
		m.store(m.reg[x86SP], v, 8)
	case x86asm.POP:
		v := m.load(m.reg[x86SP], 8)
		m.reg[x86SP] = m.reg[x86SP].plus(constant(8))
		c.write(m, i.Args[0], v, i, next)
	case x86asm.LEAVE:
		m.reg[x86SP] = m.reg[x86BP].plus(constant(8))
		m.reg[x86BP] = m.load(m.reg[x86BP], 8)
	case x86asm.CMP, x86asm.TEST:
		v := c.read(m, i.Args[0], i, next)
		w := c.read(m, i.Args[1], i, next)
		if i.Op == x86asm.CMP && w.kind == number && w.a == 0 {
			m.compare(v, w.c)
		}
	default:
		c.compute(m, i, next, size)
	}
}

// compute executes arithmetic.
func (c x86) compute(m *machine, i *x86asm.Inst, next uint64, size int) {
	var v value
	if i.Args[1] != nil {
		a, b := c.read(m, i.Args[0], i, next), c.read(m, i.Args[1], i, next)
		v = x86Arithmetic(i, a, b)
		if three := i.Args[2]; three != nil && i.Op == x86asm.IMUL {
			v = product(b, c.read(m, three, i, next))
		}
	}
	if _, memory := i.Args[0].(x86asm.Mem); memory || size >= 4 {
		c.write(m, i.Args[0], v, i, next)
		return
	}
	c.write(m, i.Args[0], value{}, i, next)
}

func x86Arithmetic(i *x86asm.Inst, a, b value) value {
	isConstant := b.kind == number && b.a == 0
	switch i.Op {
	case x86asm.ADD:
		return a.plus(b)
	case x86asm.SUB:
		if b.kind == number {
			return a.plus(b.times(-1))
		}
	case x86asm.SHL:
		if isConstant && b.c >= 0 && b.c < 32 {
			return a.times(1 << b.c)
		}
	case x86asm.IMUL:
		return product(a, b)
	case x86asm.XOR:
		if i.Args[0] == i.Args[1] {
			return constant(0)
		}
	}
	return value{}
}

// product returns the product of two values, unknown unless one is a constant.
func product(a, b value) value {
	switch {
	case b.kind == number && b.a == 0:
		return a.times(b.c)
	case a.kind == number && a.a == 0:
		return b.times(a.c)
	}
	return value{}
}

// read returns the value of an operand.
func (c x86) read(m *machine, a x86asm.Arg, i *x86asm.Inst, next uint64) value {
	switch a := a.(type) {
	case x86asm.Reg:
		if n, ok := x86Number(a); ok {
			return m.reg[n]
		}
	case x86asm.Imm:
		return constant(int64(a))
	case x86asm.Mem:
		return m.load(c.address(m, a, next), max(i.MemBytes, 1))
	}
	return value{}
}

func (c x86) write(m *machine, a x86asm.Arg, v value, i *x86asm.Inst, next uint64) {
	switch a := a.(type) {
	case x86asm.Reg:
		if n, ok := x86Number(a); ok {
			m.reg[n] = v
		}
	case x86asm.Mem:
		m.store(c.address(m, a, next), v, max(i.MemBytes, 1))
	}
}

// address returns the address of a memory operand.
func (x86) address(m *machine, a x86asm.Arg, next uint64) value {
	mem, ok := a.(x86asm.Mem)
	if !ok || mem.Segment == x86asm.FS || mem.Segment == x86asm.GS {
		return value{}
	}
	v := constant(mem.Disp)
	switch {
	case mem.Base == x86asm.RIP:
		return constant(mem.Disp + int64(next)) //nolint:gosec // wraps as addresses do
	case mem.Base != 0:
		n, ok := x86Number(mem.Base)
		if !ok {
			return value{}
		}
		v = v.plus(m.reg[n])
	}
	if mem.Index != 0 {
		n, ok := x86Number(mem.Index)
		if !ok {
			return value{}
		}
		v = v.plus(m.reg[n].times(int64(mem.Scale)))
	}
	return v
}

// x86Number returns the number of a general register of any width.
func x86Number(r x86asm.Reg) (int, bool) {
	switch {
	case r >= x86asm.RAX && r <= x86asm.R15:
		return int(r - x86asm.RAX), true
	case r >= x86asm.EAX && r <= x86asm.R15L:
		return int(r - x86asm.EAX), true
	case r >= x86asm.AX && r <= x86asm.R15W:
		return int(r - x86asm.AX), true
	case r >= x86asm.AL && r <= x86asm.BL:
		return int(r - x86asm.AL), true
	case r >= x86asm.AH && r <= x86asm.BH:
		return int(r - x86asm.AH), true
	case r >= x86asm.SPB && r <= x86asm.R15B:
		return int(r-x86asm.SPB) + x86SP, true
	}
	return 0, false
}
