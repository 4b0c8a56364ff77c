package binary

// kind is what is known about a value while a function is followed.
type kind uint8

const (
	unknown kind = iota
	number       // c + a × the function's first argument; a constant where a is 0
	stack        // c bytes from the stack pointer at the entry
	loaded       // the value at the address c + a × the first argument
)

// value is the known content of a register or a stack slot. The zero value is unknown.
type value struct {
	kind kind
	c, a int64
	size int // bytes, of loaded
}

func constant(c int64) value { return value{kind: number, c: c} }

// firstArgument returns the function's first argument.
func firstArgument() value { return value{kind: number, a: 1} }

// plus returns the sum of two values, unknown unless it is a number or on the stack.
func (v value) plus(w value) value {
	switch {
	case v.kind == number && w.kind == number:
		return value{kind: number, c: v.c + w.c, a: v.a + w.a}
	case v.kind == stack && w.kind == number && w.a == 0:
		return value{kind: stack, c: v.c + w.c}
	case w.kind == stack && v.kind == number && v.a == 0:
		return value{kind: stack, c: v.c + w.c}
	}
	return value{}
}

// times returns a value multiplied by a constant.
func (v value) times(n int64) value {
	if v.kind == number {
		return value{kind: number, c: v.c * n, a: v.a * n}
	}
	if n == 1 {
		return v
	}
	return value{}
}

// access is one read or write of memory through the first argument.
type access struct {
	offset int64
	size   int
	write  bool
	// immediate is the constant that the value is compared with, if compared is set.
	immediate int64
	compared  bool
}

// followed is the observed effect of a function.
type followed struct {
	accesses []access // through its first argument as a pointer, in order
	returns  []value  // returned values, by path
	visited  int
}

// reads returns the offsets of the reads of a size, in order.
func (f *followed) reads(size int) []int64 {
	var found []int64
	for _, a := range f.accesses {
		if !a.write && a.size == size {
			found = append(found, a.offset)
		}
	}
	return found
}

// writes returns the offsets that are written, in order.
func (f *followed) writes() []int64 {
	var found []int64
	for _, a := range f.accesses {
		if a.write {
			found = append(found, a.offset)
		}
	}
	return found
}
