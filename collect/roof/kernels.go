package roof

import (
	"unsafe"

	"github.com/rooftop-dev/rooftop/engine/optrace"
)

// kernels are the loops for this CPU.
type kernels struct {
	// read reads n bytes at p, a multiple of 1024.
	read  func(p unsafe.Pointer, n uintptr)
	from  string // how memory is read, as Roof.From
	flops kernel
	int8  kernel
	// What the rates are of, as Roof.FlopsOf and Roof.Int8Of.
	flopsOf, int8Of string
}

// kernel is a loop of multiply-adds; run is nil where this CPU has none.
type kernel struct {
	run  func(loops uintptr)
	each float64 // operations of one loop; a multiply and an add are two
}

// plain is what any CPU can do. Reading words of eight bytes comes near what memory
// gives; computing one number at a time comes nowhere near what vector kernels do, so
// that no rate of operations is given.
func plain() kernels {
	return kernels{read: readWords, from: optrace.RoofPlain}
}

// sink keeps what readWords adds up, so that the compiler cannot leave it out.
var sink [64]uint64

func readWords(p unsafe.Pointer, n uintptr) {
	words := unsafe.Slice((*[8]uint64)(p), n/64)
	var sum uint64
	for i := range words {
		w := &words[i]
		sum += w[0] + w[1] + w[2] + w[3] + w[4] + w[5] + w[6] + w[7]
	}
	if sum == 1 { // pages are 0: never, and the compiler does not know
		sink[0] = sum
	}
}
