package optrace

import (
	"time"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Values of [OperatorRow.BoundFrom]: the evidence that a bound is judged by.
const (
	FromCounters = "counters"
	FromRoofline = "roofline (est)"
	FromThreads  = "waits of its threads"
)

// NearRidge is the ratio of memory time to compute time within which an operator counts as
// mixed. Each rate of a measured peak is known to about a tenth (runs of the same probe differ
// by that much), so their ratio is known to about a quarter.
const NearRidge = 1.25

// FarBelow is the share of the nearer peak below which neither memory nor computing bounds an
// operator: something else takes most of its time, such as starting, latency of single memory
// accesses, or code without vector instructions. Memory-bound kernels that unpack four-bit
// weights reached 0.54 of what one thread could stream (Zen 5, measured).
const FarBelow = 1.0 / 3

// UnpackingRate is the share of the f32 rate that a kernel that only unpacks and multiplies
// quantised weights is assumed to reach: 0.31 with q8_0 (node-llama-cpp 3.22.1 on Zen 5,
// measured), and less with types that need tables to unpack.
const UnpackingRate = 0.25

// Work is the bytes and operations of an operator on weights of one type, and the time they
// took.
type Work struct {
	Bytes, Flops float64
	Weights      string
	Took         time.Duration
}

// Rates returns bytes and operations per second, 0 if no time passed.
func (w Work) Rates() (bytes, flops float64) {
	return stat.PerSecond(w.Bytes, w.Took).V, stat.PerSecond(w.Flops, w.Took).V
}

// BoundOf classifies work by the roofline (Williams, Waterman & Patterson, CACM 52(4), 2009):
// memory bounds it below the ridge, computing above it. It returns [BoundMixed] near the ridge,
// and [BoundUnknown] if a rate of the peak is unknown.
func (r Peak) BoundOf(w Work) Bound {
	moving, computing := r.TimesOf(w)
	switch {
	case !moving.OK || !computing.OK || moving.V+computing.V <= 0:
		return BoundUnknown
	case moving.V > NearRidge*computing.V:
		return BoundMemory
	case computing.V > NearRidge*moving.V:
		return BoundCompute
	}
	return BoundMixed
}

// TimesOf returns the shortest times in seconds that the peak allows for moving the bytes and
// for computing the operations of w; absent if the rate is unknown.
func (r Peak) TimesOf(w Work) (moving, computing stat.Opt) {
	if r.BytesPerSecond > 0 {
		moving = stat.Finite(w.Bytes / r.BytesPerSecond)
	}
	_, reached := w.Rates()
	if rate, _ := r.ComputeRate(w.Weights, reached); rate > 0 {
		computing = stat.Finite(w.Flops / rate)
	}
	return moving, computing
}

// SharesOf returns the shares of the memory and compute peaks that w reached; absent if the
// rate is unknown.
func (r Peak) SharesOf(w Work) (memory, compute stat.Opt) {
	bytes, flops := w.Rates()
	if r.BytesPerSecond > 0 {
		memory = stat.Finite(bytes / r.BytesPerSecond)
	}
	if rate, _ := r.ComputeRate(w.Weights, flops); rate > 0 {
		compute = stat.Finite(flops / rate)
	}
	return memory, compute
}

// NearestShare returns the larger of the shares of both peaks that w reached. Unless memory
// bounds it, computing with quantised weights is compared with [UnpackingRate] of the peak.
func (r Peak) NearestShare(w Work, b Bound) float64 {
	memory, compute := r.SharesOf(w)
	if b != BoundMemory && Quantised(w.Weights) && r.From != PeakSeen {
		compute.V /= UnpackingRate
	}
	return memory.Max(compute).V
}

// ShareOf returns the share that w reached of the peak that bounds it. It is absent above 1 if
// the work is estimated or the peak is [PeakSeen].
func (r Peak) ShareOf(w Work, b Bound, estimated bool) stat.Opt {
	memory, compute := r.SharesOf(w)
	var share stat.Opt
	switch b {
	case BoundMemory:
		share = memory
	case BoundCompute:
		share = compute
	case BoundMixed, BoundNeither:
		share = memory.Max(compute)
	}
	// Estimated work is an upper bound, since GGML skips what a mask excludes, and [PeakSeen]
	// is only the best product of the trace: neither supports a share above 1.
	if !share.OK || share.V > 1 && (estimated || r.From == PeakSeen) {
		return stat.None
	}
	return share
}
