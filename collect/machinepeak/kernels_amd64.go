package machinepeak

import (
	"unsafe"

	"golang.org/x/sys/cpu"

	"github.com/rooftop-dev/rooftop/engine/optrace"
)

// In kernels_amd64.s. n is a multiple of 1024 bytes.
//
//go:noescape
func readAVX2(p unsafe.Pointer, n uintptr)

//go:noescape
func readAVX512(p unsafe.Pointer, n uintptr)

func fmaAVX2(loops uintptr)
func fmaAVX512(loops uintptr)
func dotAVX2(loops uintptr)
func dotVNNI(loops uintptr)

// Operations of one loop: instructions, lanes, a multiply and an add.
const (
	fmaAVX2Each   = 12 * 8 * 2
	fmaAVX512Each = 24 * 16 * 2
	dotAVX2Each   = 8 * 32 * 2
	dotVNNIEach   = 24 * 64 * 2
)

// kernelsHere returns the kernels with the widest instructions that the CPU and the
// operating system support.
func kernelsHere() kernels {
	k := plain()
	x := &cpu.X86
	if x.HasAVX2 && x.HasFMA {
		k.read, k.from = readAVX2, optrace.PeakMeasured
		k.flops, k.flopsOf = kernel{fmaAVX2, fmaAVX2Each}, "f32, AVX2 FMA"
		k.int8, k.int8Of = kernel{dotAVX2, dotAVX2Each}, "int8, AVX2"
	}
	if x.HasAVX512F && x.HasAVX512BW && x.HasAVX512VL {
		k.read = readAVX512
		k.flops, k.flopsOf = kernel{fmaAVX512, fmaAVX512Each}, "f32, AVX-512 FMA"
		if x.HasAVX512VNNI {
			k.int8, k.int8Of = kernel{dotVNNI, dotVNNIEach}, "int8, AVX-512 VNNI"
		}
	}
	if x.HasAMXInt8 {
		k.int8Of += "; AMX is faster and was not measured"
	}
	return k
}
