package perf

import (
	"math"

	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/core"
)

// Breakdown is the time of a step by cause, in seconds, with the resources that it uses.
type Breakdown struct {
	Linear        float64 // GEMMs of attention projections, MLP or experts, and the head
	DecodeAttn    float64 // reading KV
	PrefillAttn   float64
	Communication float64 // all-reduces of tensor parallelism
	Fixed         float64 // launch, scheduling, sampling: the remainder of Total
	Total         float64 // elapsed time, without overlapped time
	Busy          float64 // part of Total in which a kernel ran
	Bytes         float64 // moved from and to memory on one GPU
	FLOPs         float64 // computed on one GPU
	LinkBytes     float64 // sent by one GPU to the others
	Clock         float64 // of the GPU relative to its highest, 0..1: below 1 at the power limit
}

// load is the work of a step.
type load struct {
	rows, samples, sequences int
	prompt                   int     // rows of prompts
	decodes                  int     // sequences with one new token
	context                  int     // tokens of context that the decodes read
	chunk                    float64 // new tokens times the context that they attend to
	chunkTime                float64 // seconds of their attention
	chunkBytes               float64
}

// Step returns the time of one step without noise. It allocates nothing and
// takes time in proportion to the requests of the batch.
func (m *Machine) Step(b *core.Batch) Breakdown {
	var l load
	for i := range b.Work {
		w := &b.Work[i]
		l.sequences++
		l.rows += w.New
		if w.Samples {
			l.samples++
		}
		if w.New == 1 {
			l.decodes++
			l.context += w.Context + 1
			continue
		}
		m.chunk(&l, w)
	}
	if l.rows == 0 {
		return Breakdown{Clock: 1}
	}
	return m.time(&l)
}

// chunk adds a request with several new tokens: the larger of the times for causal attention over a square and
// a triangle, and for reading its context.
func (m *Machine) chunk(l *load, w *core.Work) {
	new, context := float64(w.New), float64(w.Context)
	area := new * (context + new/2)
	// The fraction of the peak grows with the tokens as new/(new+half).
	compute := m.prefill * area * (new + m.c.attnHalfTokens) / new
	read := (context + new) * m.decodeMemory
	l.chunk += area
	l.chunkTime += max(compute, read)
	l.chunkBytes += (context + new) * m.kvBytes
	l.prompt += w.New
}

// time returns the sum of the kernels of a step and of the host's work.
func (m *Machine) time(l *load) Breakdown {
	rows, samples := float64(l.rows), float64(l.samples)
	var d Breakdown
	bound := 0.0 // compute-bound seconds
	for i := range m.layers {
		k := &m.layers[i]
		seconds, compute := k.time(rows)
		d.add(k, seconds, rows)
		if compute {
			bound += seconds
		}
	}
	if m.moe.layers > 0 {
		bound += m.routed(&d, l.rows)
	}
	seconds, compute := m.head.time(samples)
	if compute {
		bound += seconds
	}
	if samples > 0 {
		d.add(&m.head, seconds, samples)
	}

	if l.decodes > 0 {
		context := float64(l.context)
		d.DecodeAttn = max(context*m.decodeMemory, context*m.decodeCompute) + m.decodeRamp
		d.Bytes += context * m.kvBytes
		d.FLOPs += context * m.decodeFLOPs
	}
	d.PrefillAttn = l.chunkTime
	d.Bytes += l.chunkBytes
	d.FLOPs += l.chunk * m.prefillFLOPs
	bound += l.chunkTime
	if m.reduceBase > 0 || m.reduce > 0 {
		d.Communication = m.reduceBase + rows*m.reduce
		d.LinkBytes = rows * m.reduceRow
	}
	m.finish(&d, l, bound)
	return d
}

func (d *Breakdown) add(k *kernel, seconds, rows float64) {
	d.Linear += seconds
	d.Bytes += k.bytes + rows*k.rowBytes
	d.FLOPs += rows * k.flops
}

// routed adds the experts that the rows reach. It returns the compute-bound seconds.
func (m *Machine) routed(d *Breakdown, rows int) float64 {
	e := &m.moe
	touched := e.touched(rows)
	each := float64(rows) * e.perToken / touched
	seconds, compute := e.one.time(each + m.c.expertPad)
	seconds *= touched
	d.Linear += seconds + 2*e.layers*m.c.kernelRamp
	d.Bytes += touched * (e.one.bytes + each*e.one.rowBytes)
	d.FLOPs += touched * each * e.one.flops
	if compute {
		return seconds
	}
	return 0
}

// finish adds the costs outside kernels. A GPU executes a captured graph by itself; without one the host
// launches every kernel, and the slower of the two decides. With asynchronous scheduling the host prepares a
// step while the GPU runs the previous one.
func (m *Machine) finish(d *Breakdown, l *load, bound float64) {
	small := float64(m.s.Model.Layers)*m.c.layer + float64(l.samples)*m.sampler + float64(l.prompt)*m.c.prefillToken
	gpu := d.Linear + d.DecodeAttn + d.PrefillAttn + d.Communication + small
	launch := 0.0
	if l.rows > m.s.MaxCaptureSize {
		launch = float64(m.s.Model.Layers) * m.c.eagerLayer
	}
	host := m.c.hostStep + float64(l.sequences)*m.c.hostSequence
	rest := m.c.step + float64(l.sequences)*m.c.sequence
	d.Clock = 1
	total := m.overlap(gpu, launch, host) + rest
	if clock := m.clock(d, gpu, total); clock < 1 {
		// A lower clock lengthens only the compute-bound part; memory has a separate clock.
		gpu += bound * (1/clock - 1)
		d.Linear += bound * (1/clock - 1)
		d.Clock = clock
		total = m.overlap(gpu, launch, host) + rest
	}
	d.Busy = min(gpu, total)
	d.Total = total
	d.Fixed = max(0, total-d.Linear-d.DecodeAttn-d.PrefillAttn-d.Communication)
}

func (m *Machine) overlap(gpu, launch, host float64) float64 {
	if m.s.AsyncScheduling {
		return max(gpu, launch+host)
	}
	return max(gpu, launch) + host
}

// clock returns the clock of a GPU in a step, relative to its highest: at the power limit, dynamic power falls
// with clock and voltage, together about with the square of the clock.
func (m *Machine) clock(d *Breakdown, gpu, total float64) float64 {
	idle := m.c.idlePower * m.powerW
	wants := m.power(min(gpu, total)/total, d.Bytes/(m.bandwidth*total), d.FLOPs/(m.lowPeak*total))
	if wants <= m.limitW || wants <= idle {
		return 1
	}
	return math.Sqrt(max((m.limitW-idle)/(wants-idle), 0.09))
}

// power returns the power that a GPU would draw at its highest clock, in watts.
func (m *Machine) power(busy, memory, tensor float64) float64 {
	idle := m.c.idlePower * m.powerW
	share := m.c.busyPower*busy + m.c.memoryPower*memory + m.c.tensorPower*tensor
	return idle + (m.powerW-idle)*share
}
