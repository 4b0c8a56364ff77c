// Package perf computes the time of a step on simulated hardware, the size of the KV cache, and the readings of
// the GPUs. The step time is a sum over kernel classes. The model shares no code and no constant with the
// model that rooftop diagnoses with; scores on it nevertheless count as self-tests.
package perf

import (
	"cmp"
	"fmt"

	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/settings"
)

// Machine is a model on a number of simulated GPUs. It is immutable and safe for
// concurrent use.
type Machine struct {
	s   *settings.Settings
	c   constants
	cpu bool

	peak       float64 // FLOP/s of the units that multiply activations
	lowPeak    float64 // FLOP/s of the units of the linear layers
	bandwidth  float64 // bytes per second
	processors float64 // multiprocessors
	powerW     float64 // the GPU's own power limit
	limitW     float64 // the limit in force
	tp         float64

	layers []kernel // of all layers together
	head   kernel   // output layer, sampled rows only
	moe    experts

	kvBytes float64 // of one token, on one GPU

	decodeMemory  float64 // seconds for one token of context
	decodeCompute float64 // seconds for one token of context
	decodeFLOPs   float64 // of one token of context
	decodeRamp    float64 // seconds of a step
	prefill       float64 // seconds of one new token on one token of context
	prefillFLOPs  float64 // of the same

	reduce     float64 // seconds for one row of a step's all-reduces
	reduceBase float64 // seconds of a step's all-reduces
	reduceRow  float64 // bytes over the link for one row
	sampler    float64 // seconds for one sampled row
}

// New returns the step-time model of one data-parallel rank. The error is a problem in the device file, or a peak
// that is unknown.
func New(s *settings.Settings) (*Machine, error) {
	m := &Machine{s: s, tp: float64(s.TensorParallel), cpu: s.GPU.Vendor == "cpu"}
	m.c = defaults(m.cpu)
	if err := m.c.override(s.PerfFile, s.Device.Constants); err != nil {
		return nil, err
	}
	m.peak = peak(s.GPU, s.ComputeDType)
	m.lowPeak = peak(s.GPU, s.LinearDType)
	m.bandwidth = s.GPU.MemBandwidthGBs * 1e9
	if m.peak <= 0 || m.lowPeak <= 0 || m.bandwidth <= 0 {
		return nil, fmt.Errorf("the peak of %s in %s or %s is not known", s.GPU.Name, s.ComputeDType, s.LinearDType)
	}
	m.processors = chipOf(s.GPU).processors
	m.powerW = cmp.Or(s.GPU.TDPW, 300)
	m.limitW = cmp.Or(m.c.powerLimit, m.powerW)
	m.linearLayers()
	m.attention()
	m.link()
	return m, nil
}

// peak returns a GPU's dense peak for a type, in FLOP/s; 0 if it is unknown.
func peak(g catalog.GPU, d catalog.DType) float64 {
	t := g.BF16TFLOPS
	switch d {
	case catalog.FP32:
		t = g.FP32TFLOPS
	case catalog.FP8:
		t = g.FP8TFLOPS
	case catalog.INT8:
		t = g.INT8TOPS
	case catalog.NVFP4, catalog.MXFP4:
		t = g.FP4TFLOPS
	}
	return t * 1e12
}
