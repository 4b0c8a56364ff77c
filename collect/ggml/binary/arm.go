package binary

import "encoding/binary"

// arm follows A64 code of the AAPCS64. Instructions are decoded from their bits (Arm
// Architecture Reference Manual for A-profile, C4), because the disassembler does not expose
// the offsets of memory operands.
type arm struct{}

// Registers with a role. 31 is the stack pointer or zero, depending on the instruction.
const (
	armResult = 0
	armLink   = 30
	armSP     = 31
	armZero   = 31
	// armFirstSaved to armLastSaved are the registers that a call preserves.
	armFirstSaved, armLastSaved = 19, 29
	armBytes                    = 4 // of an instruction
)

func (arm) begin(m *machine) {
	m.reg[0] = firstArgument()
	m.reg[armSP] = value{kind: stack}
}

func (arm) enter(*machine) {}

func (arm) result(m *machine) value { return m.reg[armResult] }

func (arm) setResult(m *machine, v value) { m.reg[armResult] = v }

func (arm) forget(m *machine) {
	for r := range armLink + 1 {
		if r < armFirstSaved || r > armLastSaved {
			m.reg[r] = value{}
		}
	}
}

// armWord returns the first instruction of code.
func armWord(code []byte) (uint32, bool) {
	if len(code) < armBytes {
		return 0, false
	}
	return binary.LittleEndian.Uint32(code), true
}

// field returns some bits of an instruction.
func field(w uint32, low, count int) int64 { return int64(w >> low & (1<<count - 1)) }

// signedField returns some bits of an instruction as a signed number.
func signedField(w uint32, low, count int) int64 {
	return field(w, low, count) << (64 - count) >> (64 - count)
}

func (c arm) step(m *machine, address uint64, code []byte) step {
	w, ok := armWord(code)
	if !ok {
		return step{flow: stop}
	}
	if f, target := armFlow(w, address); f != goOn {
		if f == jump && target == 0 {
			f = stop
		}
		return step{flow: f, target: target, length: armBytes}
	}
	c.execute(m, w, address)
	return step{length: armBytes}
}

// armFlow returns where execution continues after an instruction, with the target of a direct
// jump or call.
func armFlow(w uint32, address uint64) (flow, uint64) {
	to := func(low, count int) uint64 { return address + uint64(signedField(w, low, count)*armBytes) } //nolint:gosec // wraps as addresses do
	switch {
	case w&0xfc000000 == 0x14000000:
		return jump, to(0, 26)
	case w&0xfc000000 == 0x94000000:
		return call, to(0, 26)
	case w&0xff000010 == 0x54000000, w&0x7e000000 == 0x34000000: // b.cond, cbz, cbnz
		return branch, to(5, 19)
	case w&0x7e000000 == 0x36000000: // tbz, tbnz
		return branch, to(5, 14)
	case w&0xfe000000 == 0xd6000000: // to a register, authenticated or not
		return [...]flow{jump, call, leave, stop, stop, stop, stop, stop}[field(w, 21, 3)], 0
	case w&0xffff0000 == 0, w&0xffe0001f == 0xd4200000: // udf, brk
		return stop, 0
	}
	return goOn, 0
}

// execute applies an instruction to registers and slots. An unknown one makes the register that
// it most likely writes unknown.
func (c arm) execute(m *machine, w uint32, address uint64) {
	rd := int(field(w, 0, 5))
	switch {
	case w&0xfffff01f == 0xd503201f: // hints: nop, bti, paciasp
	case w&0x1f000000 == 0x10000000: // adr, adrp
		c.set(m, rd, armAddress(w, address), true)
	case w&0x1f800000 == 0x11000000: // add, sub with a constant
		n := field(w, 10, 12) << (12 * field(w, 22, 1))
		c.add(m, w, constant(n), true)
	case w&0x1f200000 == 0x0b000000 && field(w, 22, 2) == 0: // add, sub with a register, shifted left
		c.add(m, w, m.read(int(field(w, 16, 5))).times(1<<field(w, 10, 6)), false)
	case w&0x1fe00000 == 0x0b200000: // add, sub with a register, extended
		c.add(m, w, m.read(int(field(w, 16, 5))).times(1<<field(w, 10, 3)), true)
	case w&0x7fe0ffe0 == 0x2a0003e0: // mov of a register
		c.set(m, rd, m.read(int(field(w, 16, 5))), false)
	case w&0x1f800000 == 0x12800000: // movn, movz, movk
		c.set(m, rd, armMove(m, w, rd), false)
	case w&0x1f800000 == 0x13000000: // bit fields: lsl, sxtw, ubfiz
		c.set(m, rd, armBits(m, w), false)
	case w&0x1f000000 == 0x1b000000: // madd and its like
		c.multiply(m, w, rd)
	case w&0x3a000000 == 0x28000000: // ldp, stp
		c.pair(m, w)
	case w&0x3a000000 == 0x38000000: // ldr, str
		c.single(m, w)
	default:
		c.set(m, rd, value{}, false)
	}
}

// read returns a register's value; 31 is zero.
func (m *machine) read(r int) value {
	if r == armZero {
		return constant(0)
	}
	return m.reg[r]
}

// set writes a register. 31 is the stack pointer if sp is set, and is ignored otherwise.
func (arm) set(m *machine, r int, v value, sp bool) {
	if r == armZero && !sp {
		return
	}
	m.reg[r] = v
}

// armAddress returns the address that adr or adrp computes.
func armAddress(w uint32, address uint64) value {
	n := signedField(w, 5, 19)<<2 | field(w, 29, 2)
	if w>>31 == 1 {
		const page = 1 << 12
		return constant(int64(address&^(page-1)) + n*page) //nolint:gosec // addresses of user space
	}
	return constant(int64(address) + n) //nolint:gosec // addresses of user space
}

// add executes an addition, a subtraction or a comparison. Register 31 is the stack pointer if
// sp is set.
func (c arm) add(m *machine, w uint32, n value, sp bool) {
	rd, rn := int(field(w, 0, 5)), int(field(w, 5, 5))
	v := m.reg[rn]
	if !sp {
		v = m.read(rn)
	}
	flags := w>>29&1 == 1
	if w>>30&1 == 1 {
		if flags && n.kind == number && n.a == 0 {
			m.compare(v, n.c)
		}
		n = n.times(-1)
	}
	c.set(m, rd, v.plus(n), sp && !flags)
}

func armMove(m *machine, w uint32, rd int) value {
	shift := 16 * field(w, 21, 2)
	n := field(w, 5, 16) << shift
	switch field(w, 29, 2) {
	case 0:
		return constant(^n)
	case 2:
		return constant(n)
	case 3:
		if old := m.read(rd); old.kind == number && old.a == 0 {
			return constant(old.c&^(0xffff<<shift) | n)
		}
	}
	return value{}
}

// armBits returns the result of a left shift or an extension.
func armBits(m *machine, w uint32) value {
	size := 32 << field(w, 31, 1)
	rotate, last := int(field(w, 16, 6)), int(field(w, 10, 6))
	v := m.read(int(field(w, 5, 5)))
	switch {
	case rotate >= size || last >= size: // no instruction: a path into data
	case rotate == 0 && last >= 31:
		return v // sxtw, uxtw
	case last < rotate && last+1+size-rotate >= 31 || last+1 == rotate:
		return v.times(1 << (size - rotate)) // lsl, ubfiz, sbfiz
	}
	return value{}
}

// multiply executes a multiplication with an addition.
func (c arm) multiply(m *machine, w uint32, rd int) {
	v := product(m.read(int(field(w, 5, 5))), m.read(int(field(w, 16, 5))))
	if w>>15&1 == 1 || field(w, 21, 3)&3 != 0 && field(w, 21, 3)&3 != 1 {
		c.set(m, rd, value{}, false) // subtracting, or the high half
		return
	}
	c.set(m, rd, v.plus(m.read(int(field(w, 10, 5)))), false)
}

// armMemory returns the address of a load or a store with a constant offset, with or without
// write-back.
func armMemory(m *machine, rn int, offset int64, writeBack, after bool) value {
	base := m.reg[rn]
	at := base.plus(constant(offset))
	if writeBack {
		m.reg[rn] = at
	}
	if after {
		return base
	}
	return at
}

// pair loads or stores two registers.
func (c arm) pair(m *machine, w uint32) {
	size := 4 << field(w, 31, 1)
	vector := w>>26&1 == 1
	if vector {
		size = 4 << field(w, 30, 2)
	}
	mode := field(w, 23, 2) // 1 post-index, 2 offset, 3 pre-index
	at := armMemory(m, int(field(w, 5, 5)), signedField(w, 15, 7)*int64(size), mode&1 == 1, mode == 1)
	for i, r := range [2]int{int(field(w, 0, 5)), int(field(w, 10, 5))} {
		c.transfer(m, at.plus(constant(int64(i*size))), r, size, w>>22&1 == 1, vector)
	}
}

// single loads or stores one register.
func (c arm) single(m *machine, w uint32) {
	size := 1 << field(w, 30, 2)
	rt, rn := int(field(w, 0, 5)), int(field(w, 5, 5))
	vector, load := w>>26&1 == 1, field(w, 22, 2) != 0
	if vector {
		load = field(w, 22, 1) == 1
	}
	var at value
	switch {
	case w>>24&1 == 1:
		at = armMemory(m, rn, field(w, 10, 12)*int64(size), false, false)
	case w>>21&1 == 1 && field(w, 10, 2) == 2:
		index := m.read(int(field(w, 16, 5)))
		if w>>12&1 == 1 {
			index = index.times(int64(size))
		}
		at = m.reg[rn].plus(index)
	case w>>21&1 == 1: // an atomic operation
		c.set(m, rt, value{}, false)
		return
	default:
		mode := field(w, 10, 2) // 0 unscaled, 1 post-index, 2 unprivileged, 3 pre-index
		at = armMemory(m, rn, signedField(w, 12, 9), mode&1 == 1, mode == 1)
	}
	c.transfer(m, at, rt, size, load, vector)
}

func (c arm) transfer(m *machine, at value, r, size int, load, vector bool) {
	switch {
	case load && vector:
		m.load(at, size)
	case load:
		c.set(m, r, m.load(at, size), false)
	case vector:
		m.store(at, value{}, size)
	default:
		m.store(at, m.read(r), size)
	}
}

// stub returns the slot of the global offset table that a stub of the procedure linkage table
// jumps through: adrp x16; ldr x17, [x16, #n]; add x16, x16, #n; br x17.
func (c arm) stub(address uint64, code []byte) (slot uint64, ok bool) {
	m := &machine{slots: map[int64]value{}, out: &followed{}}
	for ; len(code) >= armBytes; address, code = address+armBytes, code[armBytes:] {
		w, _ := armWord(code)
		const br17 = 0xd61f0220
		if w == br17 {
			v := m.reg[17]
			return uint64(v.c), v.kind == loaded && v.a == 0 //nolint:gosec // an address
		}
		if f, _ := armFlow(w, address); f != goOn {
			return 0, false
		}
		c.execute(m, w, address)
	}
	return 0, false
}
