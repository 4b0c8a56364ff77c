package binary

import "time"

// Costs of one hit of a probe with an empty program, measured on one virtual machine
// (x86-64, kernel 6.18, uprobe_multi, best of five times 300,000 calls; ARCHITECTURE.md).
// Bare metal differs. In a target that streams a model through its caches a cheap probe
// costs two to five times as much.
const (
	costEmulated      = 350 * time.Nanosecond  // push, jumps and calls, which the kernel emulates
	costNop           = 333 * time.Nanosecond  // a nop of one byte
	costStepped       = 3490 * time.Nanosecond // everything else: single-stepped out of line
	costReturn        = 190 * time.Nanosecond  // the return, where the entry is probed at the same emulated site
	costReturnStepped = 405 * time.Nanosecond  // the same at a stepped site
)

// need says what a probe reads at its site.
type need struct {
	arguments int  // registers of arguments that must still hold them
	stack     bool // arguments on the stack: how far the stack pointer moved has to be known
	ret       bool // a return probe: the return address must still be where it was at the entry
}

// spot is an instruction that a probe can sit on.
type spot struct {
	offset      uint64
	instruction string
	cheap       bool
	cost        time.Duration
	pushed      int
}

// maxSiteInstructions is how many instructions of a function's begin are looked at.
const maxSiteInstructions = 12

// chooser chooses instructions for one architecture.
type chooser interface {
	// spot is the cheapest instruction near a function's entry at which everything that
	// is needed is still as it was there; the entry itself where there is none.
	spot(o *object, s symbol, n need) spot
	// after is the cheapest instruction that follows an inner call, and whether the
	// function is a wrapper whose one call does the work.
	after(o *object, s symbol) (spot, bool)
	// returns are the instructions that a function ends with, and the functions that it
	// ends by jumping to. It fails where not all of the code could be read, or where a
	// small function jumps to an address that it computes: in a large one that is a switch,
	// there it may be the call of another function.
	returns(o *object, s symbol) (at []spot, tails []uint64, ok bool)
}

func chooserOf(arch string) chooser {
	switch arch {
	case "amd64":
		return x86{}
	case "arm64":
		return arm{}
	}
	return nil
}
