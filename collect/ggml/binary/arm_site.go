package binary

import (
	"fmt"
	"slices"

	"golang.org/x/arch/arm64/arm64asm"
)

// spot walks from the entry to the first instruction that the kernel simulates
// (arch/arm64/kernel/probes/decode-insn.c: jumps, calls, adr, and literals).
func (c arm) spot(o *object, s symbol, n need) spot {
	if n.stack {
		n.arguments = max(n.arguments, armBatch) // large structures are passed by their address
	}
	code := o.code(s)
	entry, ok := armWord(code)
	if !ok {
		return spot{instruction: "unknown", cost: costStepped}
	}
	fallback := spot{instruction: armText(entry), cost: costStepped}
	for at := 0; at < maxSiteInstructions*armBytes; at += armBytes {
		w, ok := armWord(code[min(at, len(code)):])
		if !ok {
			return fallback
		}
		if armSimulated(w) {
			if at > 0 && c.jumpsInto(o, s, 1, at) {
				return fallback
			}
			return spot{offset: uint64(at), instruction: armText(w), cheap: true, cost: costEmulated} //nolint:gosec // not negative
		}
		if !armHarmless(w, n) {
			return fallback
		}
	}
	return fallback
}

// armBatch is how many arguments a call with a llama_batch has: its context, the batch.
const armBatch = 2

// armSimulated says whether the kernel simulates an instruction.
func armSimulated(w uint32) bool {
	if w&0xfe000000 == 0xd6000000 { // br, blr and ret, not their authenticated forms
		return field(w, 21, 4) <= 2 && field(w, 10, 6) == 0
	}
	f, _ := armFlow(w, 0)
	return f != goOn && f != stop || w&0x1f000000 == 0x10000000 || w&0xbf000000 == 0x18000000
}

// armHarmless says whether what a probe needs is still there after an instruction.
func armHarmless(w uint32, n need) bool {
	if f, _ := armFlow(w, 0); f != goOn {
		return false
	}
	written, stored, ok := armRegisters(w)
	if !ok {
		return false
	}
	for _, r := range written {
		if r < n.arguments || n.ret && r == armLink {
			return false
		}
	}
	// Once the link register is kept on the stack, or signed, a return probe cannot
	// replace it any more.
	const paciasp, pacibsp = 0xd503233f, 0xd503237f
	return !n.ret || !slices.Contains(stored, armLink) && w != paciasp && w != pacibsp
}

// armRegisters are the general registers that an instruction writes, and those that it
// stores, as far as it is of a kind that function begins consist of.
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

// armText is an instruction as it is shown.
func armText(w uint32) (text string) {
	defer func() {
		if recover() != nil {
			text = fmt.Sprintf(".inst %#08x", w)
		}
	}()
	i, err := arm64asm.Decode([]byte{byte(w), byte(w >> 8), byte(w >> 16), byte(w >> 24)})
	if err != nil {
		return fmt.Sprintf(".inst %#08x", w)
	}
	return arm64asm.GNUSyntax(i)
}

// words goes through all instructions of a function.
func (arm) words(o *object, s symbol, do func(at int, w uint32)) bool {
	code := o.code(s)
	for at := 0; at+armBytes <= len(code); at += armBytes {
		w, _ := armWord(code[at:])
		do(at, w)
	}
	return uint64(len(code)) == s.size && s.size > 0 && s.size%armBytes == 0
}

func (c arm) jumpsInto(o *object, s symbol, low, high int) bool {
	found := false
	c.words(o, s, func(at int, w uint32) {
		f, target := armFlow(w, s.address+uint64(at)) //nolint:gosec // not negative
		if offset := target - s.address; f == branch || f == jump && target != 0 {
			found = found || offset >= uint64(low) && offset <= uint64(high) //nolint:gosec // not negative
		}
	})
	return found
}

func (c arm) after(o *object, s symbol) (spot, bool) {
	if s.size > maxWrapper {
		return spot{}, false
	}
	code := o.code(s)
	for at := 0; at+armBytes < len(code); at += armBytes {
		w, _ := armWord(code[at:])
		switch f, _ := armFlow(w, 0); f {
		case goOn:
		case call:
			return c.soonAfter(o, s, code, at+armBytes), true
		default:
			return spot{}, false
		}
	}
	return spot{}, false
}

// soonAfter is the cheapest instruction from an offset on that is always come to.
func (c arm) soonAfter(o *object, s symbol, code []byte, from int) spot {
	w, _ := armWord(code[from:])
	plain := spot{offset: uint64(from), instruction: armText(w), cost: costStepped} //nolint:gosec // not negative
	for at := from; at+armBytes <= len(code); at += armBytes {
		w, _ = armWord(code[at:])
		f, _ := armFlow(w, 0)
		if f == call || f == stop {
			break
		}
		if armSimulated(w) {
			if c.jumpsInto(o, s, from+1, at) {
				break
			}
			return spot{offset: uint64(at), instruction: armText(w), cheap: true, cost: costEmulated} //nolint:gosec // not negative
		}
	}
	return plain
}

func (c arm) returns(o *object, s symbol) (at []spot, tails []uint64, ok bool) {
	refused, unknown := false, false
	ok = c.words(o, s, func(offset int, w uint32) {
		switch f, target := armFlow(w, s.address+uint64(offset)); { //nolint:gosec // not negative
		case f == leave:
			refused = refused || !armSimulated(w)                                                                   // the kernel lets no probe sit on an authenticated return
			at = append(at, spot{offset: uint64(offset), instruction: armText(w), cheap: true, cost: costEmulated}) //nolint:gosec // not negative
		case f == jump && target == 0:
			unknown = true
		case f == jump && target-s.address >= s.size:
			tails = append(tails, target)
		}
	})
	return at, tails, ok && !refused && (!unknown || s.size > maxWrapper)
}
