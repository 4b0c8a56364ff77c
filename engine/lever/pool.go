package lever

import (
	"math"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/roofline"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

const (
	blocksFlag      = "--num-gpu-blocks-override"
	utilizationFlag = "--gpu-memory-utilization"
)

// Blocks is the size of the KV pool as a number of blocks, instead of one by the GPU's memory.
var Blocks = &Lever{
	Flag: blocksFlag, Tied: true, Values: count, Predict: gainOfPool,
	Now: fact(func(f *engine.Facts) engine.Fact[int] { return f.NumGPUBlocksOverride }),
}

// BlockStep is what numbers of blocks are rounded to.
const BlockStep = 8

// Utilization is the share of the GPU's memory that the server takes.
var Utilization = &Lever{
	Flag: utilizationFlag, Tied: true, Values: &Values{Least: 0.05, Most: 0.99}, Predict: gainOfPool,
	Costs: []string{"less spare GPU memory: the start fails if another process holds it"},
	Now:   fact(func(f *engine.Facts) engine.Fact[float64] { return f.GPUMemoryUtilization }),
}

const (
	// DefaultUtilization is vLLM's default in the newest releases; above it, memory may be missing that vLLM does not
	// account for.
	DefaultUtilization = 0.92
	// MostUtilization is the largest to propose: above it, starts fail for lack of memory.
	MostUtilization = 0.95
	// spareMemory is the share of a GPU's memory to leave free.
	spareMemory = 0.02
)

// MemoryInUse returns the peak share of memory in use on the fullest GPU, 0..1.
func MemoryInUse(gpus []engine.GPUSummary) stat.Opt {
	share := stat.None
	for i := range gpus {
		share = share.Max(gpus[i].Peak[engine.GPUVRAMUsed].Div(gpus[i].Last[engine.GPUVRAMTotal]))
	}
	return share
}

// MemoryTaken reports whether the memory that a larger share would claim is in use on a GPU.
func MemoryTaken(gpus []engine.GPUSummary, more float64) bool {
	used := MemoryInUse(gpus)
	return used.OK && used.V+more > 1-spareMemory
}

// PoolTokens estimates the tokens of a pool that takes a share of the memory; 0 if unknown.
func PoolTokens(f *engine.Facts, utilization float64) float64 {
	config, missing := engine.ReplicaConfig(f)
	if len(missing) > 0 || utilization <= 0 {
		return 0
	}
	tokens, _, _ := config.Capacity(utilization)
	return tokens
}

// PoolGrowth returns the size of the KV pool after a change as a multiple of the present one. It is absent if the
// change does not affect the pool, or its effect is unknown.
func PoolGrowth(f *engine.Facts, c engine.Change) stat.Opt {
	from, okFrom := ParseNumber(c.From)
	to, okTo := ParseNumber(c.To)
	switch c.Canonical().Flag {
	case blocksFlag:
		if okFrom && okTo && from > 0 {
			return stat.Some(to / from)
		}
		if okFrom && from > 0 && c.To == "" && f.BlockSize.Known && f.BlockSize.Value > 0 {
			if tokens := PoolTokens(f, f.GPUMemoryUtilization.Value); tokens > 0 {
				return stat.Some(tokens / float64(f.BlockSize.Value) / from)
			}
		}
	case utilizationFlag:
		if was := PoolTokens(f, from); okFrom && okTo && was > 0 {
			return stat.Some(PoolTokens(f, to) / was)
		}
	}
	return stat.None
}

// gainOfPool predicts a KV pool of another size.
func gainOfPool(d *engine.Diagnosis, c engine.Change) (g roofline.Gain, why string) {
	grows, slots := PoolGrowth(&d.Facts, c), d.Facts.MaxNumSeqs
	p, _, ok := PoolOf(d)
	switch {
	case !grows.OK:
		return g, "the size of the KV pool with " + c.String() + " is not known: the model, the GPU or the present value is not"
	case !ok || !slots.Known:
		return g, "the sequences that the KV pool holds, or the slots, are not known"
	}
	g = p.Gain(grows.V, slots.Value)
	size := "the pool is then " + figure.Significant(grows.V) + " times as large"
	if g.Note != "" {
		size = g.Note + "; " + size
	}
	g.Note = size
	return g, ""
}

// Pool predicts how many requests of one rank run with other slots and another pool, and the gain of both: by the
// physical model or, without one, by how servers generally scale with the batch.
type Pool struct {
	model *roofline.Performance // nil if the hardware is unknown
	blind roofline.Blind        // used without model
}

// NeededSlots returns how many requests of one rank are in the server, and thus could run.
func NeededSlots(d *engine.Diagnosis) stat.Opt {
	if p := d.Performance; p != nil {
		return stat.Some(p.Measured.Batch + p.Measured.Waiting.Or(0))
	}
	in := d.Quantity("running_mean").Value.Plus(d.Quantity("waiting_mean").Value)
	return in.Times(1 / float64(max(1, d.Ranks)))
}

// PoolOf returns the pool of a measured server, and the requests of one rank that want to run. ok is false if the
// number of sequences that fit into the pool is unknown.
func PoolOf(d *engine.Diagnosis) (c Pool, need float64, ok bool) {
	in := NeededSlots(d)
	if p := d.Performance; p != nil {
		return Pool{model: p}, in.V, in.OK && p.Measured.KVCapacity.OK
	}
	value := func(name string) stat.Opt { return d.Quantity(name).Value }
	running := value("running_mean").Times(1 / float64(max(1, d.Ranks)))
	holds := engine.FactOpt(d.Facts.KVCapacityTokens).Div(value("prompt_tokens_mean").Plus(value("output_tokens_mean")))
	// Sequences that share a prefix hold less than their length.
	holds = holds.Max(running.Div(value("kv_usage_mean")))
	if !in.OK || !running.OK || !holds.OK || holds.V <= 0 {
		return Pool{}, 0, false
	}
	share := value("queue_mean_s").Div(value("ttft_mean_s"))
	if share.OK {
		share.V = min(1, share.V)
	}
	return Pool{blind: roofline.Blind{
		Running: running.V, Waiting: max(0, in.V-running.V), Holds: holds, QueueShare: share, Why: "no physical model of this server",
	}}, in.V, true
}

// Held returns the sequences that fit until their end into a pool growth times as large.
func (c *Pool) Held(growth float64) float64 {
	if c.model == nil {
		return c.blind.Holds.V * growth
	}
	m := &c.model.Measured
	each := m.Resident.Or(m.Context)
	if m.WorkloadKnown {
		each += m.Workload.Output / 2
	}
	if each <= 0 {
		return math.Inf(1)
	}
	return m.KVCapacity.V * growth / each
}

// Waiting returns the mean number of requests of one rank that wait.
func (c *Pool) Waiting() float64 {
	if c.model == nil {
		return c.blind.Waiting
	}
	return c.model.Measured.Waiting.Or(0)
}

// Gain predicts slots with a pool growth times as large. It is unknown without a model if that is fewer slots.
func (c *Pool) Gain(growth float64, slots int) roofline.Gain {
	if c.model == nil {
		b := c.blind
		if b.Slots = stat.Some(float64(slots)); b.Slots.V < b.Running {
			return roofline.Gain{}
		}
		return b.MoreKV(growth)
	}
	open := *c.model
	tokens := open.Measured.KVCapacity.V * growth
	if now := open.Measured.MaxNumSeqs; now.OK && float64(slots) < now.V {
		open.Measured.KVCapacity = stat.Some(tokens)
		return open.LowerSlots(slots)
	}
	open.Measured.MaxNumSeqs = stat.Some(float64(slots))
	return open.MoreKV(tokens)
}
