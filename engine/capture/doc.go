// Package capture has the records of probes and observations, on one clock, and the figures derived
// from them: latencies, use of processes and GPUs, energy and cost per token, warnings, and the
// comparison of two captures.
//
// All times are offsets from one origin of the monotonic clock, whose wall time was read at the
// same moment. The package is pure: a capture read back from a file gives the same figures.
package capture
