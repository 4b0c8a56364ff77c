package machinepeak

import (
	"unsafe"

	"github.com/rooftop-dev/rooftop/engine/optrace"
)

// kernels are the measuring loops for one CPU.
type kernels struct {
	// read reads n bytes at p, a multiple of 1024.
	read  func(p unsafe.Pointer, n uintptr)
	from  string // value of Peak.From
	flops kernel
	int8  kernel
	// Values of Peak.FlopsOf and Peak.Int8Of.
	flopsOf, int8Of string
}

// kernel is a loop of multiply-adds; run is nil if this CPU has none.
type kernel struct {
	run  func(loops uintptr)
	each float64 // operations of one loop; a multiply and an add count as two
}

// plain returns kernels for any CPU. Reading 8-byte words comes close to the memory's
// rate. Scalar arithmetic is far below what vector kernels reach, so there are no
// kernels for operations.
func plain() kernels {
	return kernels{read: readWords, from: optrace.PeakPlain}
}

// sink receives the sum of readWords, so that the compiler cannot remove the loop.
var sink [64]uint64

func readWords(p unsafe.Pointer, n uintptr) {
	words := unsafe.Slice((*[8]uint64)(p), n/64)
	var sum uint64
	for i := range words {
		w := &words[i]
		sum += w[0] + w[1] + w[2] + w[3] + w[4] + w[5] + w[6] + w[7]
	}
	if sum == 1 { // never true, because the pages are 0, but the compiler does not know that
		sink[0] = sum
	}
}
