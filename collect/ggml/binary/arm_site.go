package binary

import (
	"fmt"
	"slices"

	"golang.org/x/arch/arm64/arm64asm"
)

// decode decodes an instruction; it is cheap if the kernel simulates it
// (arch/arm64/kernel/probes/decode-insn.c: jumps, calls, adr, and literals).
func (arm) decode(address uint64, code []byte) (instruction, bool) {
	w, ok := armWord(code)
	i := instruction{length: armBytes, cost: costStepped}
	i.flow, i.target = armFlow(w, address)
	if i.cheap = armSimulated(w); i.cheap {
		i.cost = costEmulated
	}
	i.barred = i.flow == leave && !i.cheap // an authenticated return
	return i, ok
}

// armBatch is the number of arguments of a call with a llama_batch: its context and the batch.
const armBatch = 2

// armSimulated reports whether the kernel simulates an instruction.
func armSimulated(w uint32) bool {
	if w&0xfe000000 == 0xd6000000 { // br, blr and ret, not their authenticated forms
		return field(w, 21, 4) <= 2 && field(w, 10, 6) == 0
	}
	f, _ := armFlow(w, 0)
	return f != goOn && f != stop || w&0x1f000000 == 0x10000000 || w&0xbf000000 == 0x18000000
}

func (arm) keeps(code []byte, n need) (moved int, ok bool) {
	w, _ := armWord(code)
	if n.stack {
		n.arguments = max(n.arguments, armBatch) // large structures are passed by address
	}
	if f, _ := armFlow(w, 0); f != goOn {
		return 0, false
	}
	written, stored, ok := armRegisters(w)
	if !ok {
		return 0, false
	}
	for _, r := range written {
		if r < n.arguments || n.ret && r == armLink {
			return 0, false
		}
	}
	// Once the link register is saved on the stack, or signed, a return probe can no longer
	// replace it.
	const paciasp, pacibsp = 0xd503233f, 0xd503237f
	return 0, !n.ret || !slices.Contains(stored, armLink) && w != paciasp && w != pacibsp
}

// armRegisters returns the general registers that an instruction writes, and those that it
// stores. It returns false for instructions that are unusual at the begin of a function.
func armRegisters(w uint32) (written, stored []int, ok bool) {
	rd, rn, rt2 := int(field(w, 0, 5)), int(field(w, 5, 5)), int(field(w, 10, 5))
	vector, load := w>>26&1 == 1, w>>22&1 == 1
	switch {
	case w&0xfffff01f == 0xd503201f: // hints
		return nil, nil, true
	case w&0x1f000000 == 0x10000000, w&0x1f800000 == 0x11000000, w&0x1e000000 == 0x0a000000, w&0x1f000000 == 0x12000000,
		w&0x1f000000 == 0x13000000, w&0x1f000000 == 0x1b000000, w&0x1fe00000 == 0x1a800000: // arithmetic, logic, conditional selection
		return []int{rd}, nil, true
	case w&0x3a000000 == 0x28000000: // pairs
		if w>>23&1 == 1 && rn != armSP {
			written = append(written, rn)
		}
		return armTransfer(written, []int{rd, rt2}, load, vector), armStored([]int{rd, rt2}, load, vector), true
	case w&0x3a000000 == 0x38000000 && (w>>24&1 == 1 || w>>21&1 == 0 || field(w, 10, 2) == 2): // single ones, not atomic
		if !vector {
			load = field(w, 22, 2) != 0
		}
		if w>>24&1 == 0 && w>>21&1 == 0 && field(w, 10, 1) == 1 && rn != armSP {
			written = append(written, rn)
		}
		return armTransfer(written, []int{rd}, load, vector), armStored([]int{rd}, load, vector), true
	}
	return nil, nil, false
}

func armTransfer(written, registers []int, load, vector bool) []int {
	if load && !vector {
		return append(written, registers...)
	}
	return written
}

func armStored(registers []int, load, vector bool) []int {
	if load || vector {
		return nil
	}
	return registers
}

func (arm) text(code []byte) (text string) {
	w, _ := armWord(code)
	defer func() {
		if recover() != nil {
			text = fmt.Sprintf(".inst %#08x", w)
		}
	}()
	i, err := arm64asm.Decode(code[:armBytes])
	if err != nil {
		return fmt.Sprintf(".inst %#08x", w)
	}
	return arm64asm.GNUSyntax(i)
}
