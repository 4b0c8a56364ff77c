package machinepeak

import (
	"unsafe"

	"golang.org/x/sys/cpu"

	"github.com/rooftop-dev/rooftop/engine/optrace"
)

// In kernels_arm64.s. n is a multiple of 1024 bytes.
//
//go:noescape
func readNEON(p unsafe.Pointer, n uintptr)

func fmaNEON(loops uintptr)
func dotNEON(loops uintptr)

// Operations of one loop: instructions, lanes, a multiply and an add.
const (
	fmaNEONEach = 24 * 4 * 2
	dotNEONEach = 24 * 16 * 2
)

// kernelsHere returns the kernels of NEON, which every arm64 has, and of its dot product.
// SVE and the matrix product of bytes (i8mm) may be faster and are not measured.
func kernelsHere() kernels {
	k := kernels{read: readNEON, from: optrace.PeakMeasured, flops: kernel{fmaNEON, fmaNEONEach}, flopsOf: "f32, NEON FMA"}
	if cpu.ARM64.HasASIMDDP {
		k.int8, k.int8Of = kernel{dotNEON, dotNEONEach}, "int8, NEON dot product"
	}
	return k
}
