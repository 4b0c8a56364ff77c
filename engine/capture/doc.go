// Package capture holds what a probe or an observation recorded, on one clock,
// and the figures that follow from it: latencies, what processes and GPUs used,
// energy and money for each token, warnings, and the comparison of two captures.
//
// Every moment is an offset from one origin of the monotonic clock, whose wall
// time was read once, at the same instant. The package is pure: a capture that
// was written to a file gives the same figures again.
package capture
