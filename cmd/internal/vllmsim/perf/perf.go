// Package perf says how long a step takes on simulated hardware, how much KV
// cache fits, and what the GPUs show meanwhile. It is a model of its own: step
// time is summed per kernel class (simulator.md section 5.5), shares no code and
// no constant with the model that rooftop diagnoses with, and scores on it count
// as self-tests.
package perf

import (
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/vllmsim/core"
	"github.com/rooftop-dev/rooftop/cmd/internal/vllmsim/settings"
)

// Machine is a model on a number of simulated GPUs.
type Machine struct{}

// New prepares the step-time model of one data-parallel rank. device is the
// content of --sim-perf-file, nil without one; the error names what in it is
// wrong.
func New(s *settings.Settings, device []byte) (*Machine, error) { return nil, nil }

// Breakdown is where a step's time goes, in seconds.
type Breakdown struct {
	Linear        float64 // GEMMs of attention projections, MLP or experts, and the head
	DecodeAttn    float64 // reading KV
	PrefillAttn   float64
	Communication float64 // all-reduces of tensor parallelism
	Fixed         float64 // launch, scheduling, sampling
	Total         float64 // what passes: overlap and hidden time are taken off
	Bytes         float64 // moved from and to memory on one GPU
	FLOPs         float64 // computed on one GPU
}

// Step returns the time of one step without noise.
func (m *Machine) Step(b *core.Batch) Breakdown { return Breakdown{} }

// Sizing is the KV pool of one rank.
type Sizing struct {
	WeightBytes     float64 // on one GPU
	ActivationBytes float64 // peak of the profile run, on one GPU
	OtherBytes      float64 // not PyTorch's, on one GPU
	GraphBytes      float64 // estimate for CUDA graphs, on one GPU
	KVBytes         float64 // pool, on one GPU
	BytesPerToken   float64 // of KV, on one GPU
	NumBlocks       int     // the null block included
	MaxConcurrency  float64 // pool tokens / max_model_len
}

// Size sizes the pool. The error is vLLM's refusal to start: weights that do not
// fit, or a pool too small for one request of max_model_len, naming the largest
// length that would fit.
func (m *Machine) Size() (Sizing, error) { return Sizing{}, nil }

// Startup returns how long the server takes from its start to health.
func (m *Machine) Startup() time.Duration { return 0 }

// Reading is one simulated GPU at an instant, with the meanings NVML gives.
type Reading struct {
	Index            int
	Name, UUID       string
	Util, MemUtil    float64 // 0..1
	DRAMActive       float64 // 0..1
	TensorActive     float64 // 0..1
	SMActive         float64 // 0..1
	PowerW, LimitW   float64
	VRAMTotal, VRAM  float64 // bytes
	TemperatureC     float64
	SMClockMHz       float64
	MemClockMHz      float64
	EnergyJ          float64 // since the start of the machine
	Throttle         uint64  // NVML's mask of clock-event reasons
	NVLinkTx, PCIeTx float64 // bytes per second
}

// Meter accumulates steps into readings of one rank's GPUs.
type Meter struct{}

// NewMeter returns the meter of the GPUs of one rank; first is the index of its
// first GPU.
func (m *Machine) NewMeter(first int, sizing Sizing) *Meter { return nil }

// Step tells that a step ran; slow is the factor by which a fault lengthened it
// (1 without one).
func (t *Meter) Step(began, ended time.Duration, b Breakdown, slow float64) {}

// Read returns the GPUs as NVML would show them at now; utilisation is over the
// driver's own period before it (1/6 s to 1 s).
func (t *Meter) Read(now time.Duration) []Reading { return nil }
