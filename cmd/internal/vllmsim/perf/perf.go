// Package perf says how long a step takes on simulated hardware, how much KV
// cache fits, and what the GPUs show meanwhile. It is a model of its own: step
// time is summed per kernel class (simulator.md section 5.5), shares no code and
// no constant with the model that rooftop diagnoses with, and scores on it count
// as self-tests.
package perf

import (
	"fmt"

	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/cmd/internal/vllmsim/perf/device"
	"github.com/rooftop-dev/rooftop/cmd/internal/vllmsim/settings"
)

// Machine is a model on a number of simulated GPUs. It is immutable and safe for
// concurrent use.
type Machine struct {
	s     *settings.Settings
	c     constants
	given []device.Constant
	table device.Table
	cpu   bool

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

// New prepares the step-time model of one data-parallel rank. device is the
// content of --sim-perf-file; nil takes the one of the settings. The error names
// what in it is wrong.
func New(s *settings.Settings, file []byte) (*Machine, error) {
	if file == nil {
		file = s.Device
	}
	m := &Machine{s: s, tp: float64(s.TensorParallel), cpu: s.GPU.Vendor == "cpu"}
	m.c = defaults(m.cpu)
	if file != nil {
		name := s.PerfFile
		if name == "" {
			name = "device file"
		}
		d, err := device.Parse(file, name)
		if err != nil {
			return nil, err
		}
		if err := m.c.override(name, d.Constants); err != nil {
			return nil, err
		}
		m.given, m.table = d.Constants, d.Table
	}
	m.peak = peak(s.GPU, s.ComputeDType)
	m.lowPeak = peak(s.GPU, s.LinearDType)
	m.bandwidth = s.GPU.MemBandwidthGBs * 1e9
	if m.peak <= 0 || m.lowPeak <= 0 || m.bandwidth <= 0 {
		return nil, fmt.Errorf("the peak of %s in %s or %s is not known", s.GPU.Name, s.ComputeDType, s.LinearDType)
	}
	m.processors = chipOf(s.GPU).processors
	m.powerW = s.GPU.TDPW
	if m.powerW == 0 {
		m.powerW = 300
	}
	m.limitW = m.powerW
	if m.c.powerLimit > 0 {
		m.limitW = m.c.powerLimit
	}
	m.linearLayers()
	m.attention()
	m.link()
	return m, nil
}

// peak is a GPU's dense peak in a type, in FLOP/s.
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
