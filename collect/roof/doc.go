// Package roof measures what this machine's cores and memory can do at most, in a few
// seconds: the rate of reading memory, and the rates of multiply-adds on f32 and on
// eight-bit integers, with one thread and with more.
//
// The rates are those of the vector instructions that GGML's kernels are made of (AVX2,
// AVX-512, VNNI; NEON and its dot product on arm64), written in Go's assembler: a loop
// in Go computes one number at a time, and would make a roof that real kernels break
// through. What this CPU lacks, or what there is no kernel for (AMX, SVE), is not
// measured, and said.
//
// Measuring takes the CPUs for as long as it lasts. What is measured beside a server
// that computes is too low, and slows the server: do it while the server rests.
package roof
