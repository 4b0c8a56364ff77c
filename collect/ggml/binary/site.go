package binary

import "time"

// Costs of one hit of a probe with an empty program, measured on one virtual machine (x86-64,
// kernel 6.18, uprobe_multi, best of five times 300,000 calls; ARCHITECTURE.md). Bare metal
// differs. In a target that streams a model through its caches, a cheap probe costs two to five
// times as much.
const (
	costEmulated      = 350 * time.Nanosecond  // push, jumps and calls, which the kernel emulates
	costNop           = 333 * time.Nanosecond  // a nop of one byte
	costStepped       = 3490 * time.Nanosecond // everything else: single-stepped out of line
	costReturn        = 190 * time.Nanosecond  // the return, if the entry is probed at the same emulated site
	costReturnStepped = 405 * time.Nanosecond  // the same at a stepped site
)

// need is what a probe reads at its site.
type need struct {
	arguments int  // number of argument registers that must be unchanged
	stack     bool // arguments on the stack: the change of the stack pointer must be known
	ret       bool // a return probe: the return address must be where it was at the entry
}

// spot is an instruction that a probe can sit on.
type spot struct {
	offset      uint64
	instruction string
	cheap       bool
	cost        time.Duration
	pushed      int
}

// maxSiteInstructions is the number of instructions at a function's begin that are considered.
const maxSiteInstructions = 12

// instruction is a decoded instruction, as far as it matters for the choice of a site.
type instruction struct {
	length int
	flow   flow
	target uint64 // of a direct jump or call, 0 if unknown
	cheap  bool   // the kernel emulates it
	cost   time.Duration
	entry  bool // a push, which jumps within a function never lead to
	barred bool // the kernel refuses a probe on it
}

// sites chooses instructions of a file for probes.
type sites struct {
	object *object
	cpu    processor
}

// sitesOf returns the chooser for a file, false if its architecture is unknown.
func sitesOf(o *object) (sites, bool) {
	cpu := processorOf(o.arch)
	return sites{o, cpu}, cpu != nil
}

// at returns the site at an offset of a function's code.
func (c sites) at(code []byte, offset int, i *instruction) spot {
	return spot{offset: uint64(offset), instruction: c.cpu.text(code[offset:]), cheap: i.cheap, cost: i.cost} //nolint:gosec // not negative
}

// spot returns the first instruction near a function's entry that the kernel emulates and where
// everything that is needed is unchanged since the entry, or else the entry itself.
func (c sites) spot(s symbol, n need) spot {
	code := c.object.code(s)
	if _, ok := c.cpu.decode(s.address, code); !ok {
		return spot{instruction: "unknown", cost: costStepped}
	}
	fallback := spot{instruction: c.cpu.text(code), cost: costStepped}
	at, pushed := 0, 0
	for range maxSiteInstructions {
		i, ok := c.cpu.decode(s.address+uint64(at), code[at:]) //nolint:gosec // not negative
		if !ok {
			return fallback
		}
		if i.cheap {
			if at > 0 && !i.entry && c.jumpsInto(s, 1, at) {
				return fallback
			}
			chosen := c.at(code, at, &i)
			chosen.pushed = pushed
			return chosen
		}
		moved, ok := c.cpu.keeps(code[at:], n)
		if !ok {
			return fallback
		}
		pushed += moved
		at += i.length
	}
	return fallback
}

// sweep calls do with all instructions of a function in file order, and reports whether all
// bytes were valid instructions.
func (c sites) sweep(s symbol, do func(at int, i *instruction, code []byte)) bool {
	code := c.object.code(s)
	whole := uint64(len(code)) == s.size && s.size > 0
	for at := 0; at < len(code); {
		i, ok := c.cpu.decode(s.address+uint64(at), code[at:]) //nolint:gosec // not negative
		if !ok {
			whole = false
			at++
			continue
		}
		do(at, &i, code)
		at += i.length
	}
	return whole
}

// jumpsInto reports whether a jump of a function leads to an offset from low to high: a probe
// there would be hit more often than the function is called.
func (c sites) jumpsInto(s symbol, low, high int) bool {
	found := false
	c.sweep(s, func(_ int, i *instruction, _ []byte) {
		if i.flow == branch || i.flow == jump && i.target != 0 {
			offset := i.target - s.address
			found = found || offset >= uint64(low) && offset <= uint64(high) //nolint:gosec // not negative
		}
	})
	return found
}

// maxWrapper is the largest size of a function that wraps one call: the real ones have 36 to 70
// bytes, 90 without optimisation.
const maxWrapper = 256

// after finds the first call of a wrapper, which must precede any jump, and returns the
// cheapest instruction after it before the next jump.
func (c sites) after(s symbol) (spot, bool) {
	if s.size > maxWrapper {
		return spot{}, false
	}
	code := c.object.code(s)
	for at := 0; at < len(code); {
		i, ok := c.cpu.decode(s.address+uint64(at), code[at:]) //nolint:gosec // not negative
		at += i.length
		if ok && i.flow == call && at < len(code) {
			return c.soonAfter(s, code, at)
		}
		if !ok || i.flow != goOn {
			break
		}
	}
	return spot{}, false
}

// soonAfter returns the cheapest instruction from an offset on that is always reached.
func (c sites) soonAfter(s symbol, code []byte, from int) (spot, bool) {
	_, ok := c.cpu.decode(s.address+uint64(from), code[from:]) //nolint:gosec // not negative
	if !ok {
		return spot{}, false
	}
	plain := c.at(code, from, &instruction{cost: costStepped})
	for at := from; at < len(code); {
		i, ok := c.cpu.decode(s.address+uint64(at), code[at:]) //nolint:gosec // not negative
		if !ok || i.flow == call || i.flow == leave && !i.cheap {
			break
		}
		if i.cheap && !c.jumpsInto(s, from+1, at) {
			return c.at(code, at, &i), true
		}
		if i.cheap || i.flow != goOn {
			break
		}
		at += i.length
	}
	return plain, true
}

// returns returns the instructions that a function ends with, and the functions that it ends by
// jumping to. It fails if part of the code could not be read, or if a small function jumps to a
// computed address: in a large one that is a switch, in a small one it may be the call of
// another function.
func (c sites) returns(s symbol) (at []spot, tails []uint64, ok bool) {
	barred, unknown := false, false
	ok = c.sweep(s, func(offset int, i *instruction, code []byte) {
		switch {
		case i.flow == leave:
			barred = barred || i.barred
			at = append(at, c.at(code, offset, i))
		case i.flow == jump && i.target == 0:
			unknown = true
		case i.flow == jump && i.target-s.address >= s.size:
			tails = append(tails, i.target)
		}
	})
	return at, tails, ok && !barred && (!unknown || s.size > maxWrapper)
}
