package binary

import "maps"

// Limits of following a function: accessors have fewer than 20 instructions, more without
// optimisation.
const (
	maxSteps = 256 // instructions of all paths
	maxForks = 12  // conditional jumps of which both sides are followed
	maxDepth = 2   // calls within calls
)

// machine is the state while a function is followed: the values of registers and stack slots.
type machine struct {
	reg   [32]value
	slots map[int64]value // by offset from the stack pointer at the entry
	out   *followed
}

func (m *machine) fork() *machine {
	n := *m
	n.slots = maps.Clone(m.slots)
	return &n
}

// load returns the value at an address, and records the access if it is relative to the first
// argument.
func (m *machine) load(at value, size int) value {
	switch at.kind {
	case stack:
		return m.slots[at.c]
	case number:
		if at.a == 1 {
			m.out.accesses = append(m.out.accesses, access{offset: at.c, size: size})
		}
		return value{kind: loaded, c: at.c, a: at.a, size: size}
	}
	return value{}
}

func (m *machine) store(at, v value, size int) {
	switch at.kind {
	case stack:
		m.slots[at.c] = v
	case number:
		if at.a == 1 {
			m.out.accesses = append(m.out.accesses, access{offset: at.c, size: size, write: true})
		}
	}
}

// compare records the constant that a value read through the first argument is compared with.
func (m *machine) compare(v value, immediate int64) {
	if v.kind != loaded || v.a != 1 {
		return
	}
	for i := len(m.out.accesses) - 1; i >= 0; i-- {
		if a := &m.out.accesses[i]; a.offset == v.c && !a.write {
			a.immediate, a.compared = immediate, true
			return
		}
	}
}

// flow is where execution continues after an instruction.
type flow uint8

const (
	goOn   flow = iota // at the next instruction
	jump               // to target
	branch             // to target or the next instruction
	call               // of target, then at the next instruction
	leave              // returns
	stop               // cannot be followed
)

// step is the outcome of one instruction.
type step struct {
	flow   flow
	target uint64 // 0 unknown
	length int
}

// processor follows and decodes the instructions of one architecture.
type processor interface {
	// step executes the first instruction of code, at an address.
	step(m *machine, address uint64, code []byte) step
	// begin sets a machine to the state at a function's entry.
	begin(m *machine)
	// enter applies the effect of a call before the callee's first instruction.
	enter(m *machine)
	// result returns the value that a function returns.
	result(m *machine) value
	setResult(m *machine, v value)
	// stub returns the slot that a stub of the procedure linkage table jumps through.
	stub(address uint64, code []byte) (slot uint64, ok bool)
	// forget clears the registers that a call does not preserve.
	forget(m *machine)
	// decode decodes the first instruction of code, at an address, and reports whether it is
	// valid.
	decode(address uint64, code []byte) (instruction, bool)
	// keeps reports whether what a probe needs is preserved by the first instruction of code,
	// and by how many bytes that lowers the stack pointer.
	keeps(code []byte, n need) (moved int, ok bool)
	// text formats the first instruction of code.
	text(code []byte) string
}

// follower follows one function and its calls.
type follower struct {
	object *object
	cpu    processor
	out    followed
	forks  int
}

// follow executes a function symbolically as far as possible. The result is empty for an
// unknown architecture.
func (o *object) follow(name string) *followed {
	f := follower{object: o, cpu: processorOf(o.arch)}
	s, ok := o.function(name)
	if !ok || f.cpu == nil {
		return &f.out
	}
	m := &machine{slots: map[int64]value{}, out: &f.out}
	f.cpu.begin(m)
	f.path(m, s.address, window{s.address, o.code(s)}, 0)
	return &f.out
}

func processorOf(arch string) processor {
	switch arch {
	case "amd64":
		return x86{}
	case "arm64":
		return arm{}
	}
	return nil
}

// window is code at an address.
type window struct {
	begin uint64
	code  []byte
}

// calleeBytes is the number of bytes that are followed of a function without a symbol.
const calleeBytes = 512

// path follows one path until the function returns, and reports whether it did.
func (f *follower) path(m *machine, at uint64, w window, depth int) bool {
	for f.out.visited < maxSteps {
		if at < w.begin || at-w.begin >= uint64(len(w.code)) {
			return false
		}
		st := f.cpu.step(m, at, w.code[at-w.begin:])
		f.out.visited++
		next := at + uint64(max(st.length, 0)) //nolint:gosec // not negative
		switch st.flow {
		case goOn:
			at = next
		case jump:
			if st.target-w.begin >= uint64(len(w.code)) {
				return f.tailCall(m, st.target, depth)
			}
			at = st.target
		case branch:
			if f.forks < maxForks {
				f.forks++
				f.path(m.fork(), next, w, depth)
			}
			at = st.target
		case call:
			f.call(m, st.target, depth)
			at = next
		case leave:
			if depth == 0 {
				f.out.returns = append(f.out.returns, f.cpu.result(m))
			}
			return true
		default:
			return false
		}
	}
	return false
}

// call follows a call within the file; afterwards the registers that it may destroy are
// unknown.
func (f *follower) call(m *machine, target uint64, depth int) {
	var result value
	if code := f.object.read(target, calleeBytes); depth < maxDepth && target != 0 && len(code) > 0 {
		callee := m.fork()
		f.cpu.enter(callee)
		if f.path(callee, target, window{target, code}, depth+1) {
			result = f.cpu.result(callee)
		}
	}
	f.cpu.forget(m)
	f.cpu.setResult(m, result)
}

// tailCall continues in another function of the file.
func (f *follower) tailCall(m *machine, target uint64, depth int) bool {
	code := f.object.read(target, calleeBytes)
	if len(code) == 0 || f.forks >= maxForks {
		return false
	}
	f.forks++
	return f.path(m, target, window{target, code}, depth)
}
