// Package machinepeak measures the peak rates of this machine's cores and memory in a few
// seconds: reading memory, and multiply-adds on f32 and on eight-bit integers, with one
// thread and with more.
//
// It uses the vector instructions that GGML's kernels use (AVX2, AVX-512, VNNI; NEON and
// its dot product on arm64), written in Go's assembler. A loop in Go computes one number
// at a time and would give a peak that real kernels exceed. Instructions that this CPU
// lacks, or that the package has no kernel for (AMX, SVE), are not measured; the result
// says so.
//
// A measurement occupies the CPUs. While a server computes, the measurement is too low
// and slows the server, so measure while the server is idle.
package machinepeak
