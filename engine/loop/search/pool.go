package search

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/roofline"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// poolGrowth is a change that enlarges the KV pool.
type poolGrowth struct {
	engine.Change
	growth float64 // size of the new pool as a multiple of the present one
}

// poolGrowths returns the flags that keep the pool small, with new values: those of a rule, enough
// blocks for a pool wanted times as large, or as large as memory allows.
func poolGrowths(d *engine.Diagnosis, wanted float64) []poolGrowth {
	var out []poolGrowth
	for i := range d.Findings {
		f := &d.Findings[i]
		if f.State != engine.Fired || f.Fix == nil || f.Fix.Kind != engine.KindFlag {
			continue
		}
		c := engine.Change{Flag: f.Fix.Flag, From: f.Fix.From, To: f.Fix.To}
		if growth := growth(d, c); growth.V > 1 && !slices.ContainsFunc(out, func(e poolGrowth) bool { return e.Change == c }) {
			out = append(out, poolGrowth{c, growth.V})
		}
	}
	out = append(out, enoughBlocks(d, wanted, out)...)
	u := d.Facts.GPUMemoryUtilization
	if !u.Known || d.Facts.NumGPUBlocksOverride.Known || !d.Facts.GPUKnown || d.Facts.Device.Value == "cpu" {
		return out
	}
	for _, to := range [...]float64{defaultPool, mostPool} {
		c := d.Facts.Change("--gpu-memory-utilization", strconv.FormatFloat(u.Value, 'g', -1, 64), strconv.FormatFloat(to, 'f', 2, 64))
		growth := growth(d, c)
		if to <= u.Value+0.005 || growth.V < leastEnlarged || vramTaken(d, to-u.Value) || slices.ContainsFunc(out, func(e poolGrowth) bool { return e.Flag == c.Flag && engine.SameValue(e.To, c.To) }) {
			continue
		}
		out = append(out, poolGrowth{c, growth.V})
	}
	return out
}

// enoughBlocks returns the number of blocks for a pool wanted times as large, if a number is given, memory
// is not known to be too small for it, and no other change is as large.
func enoughBlocks(d *engine.Diagnosis, wanted float64, others []poolGrowth) []poolGrowth {
	over := d.Facts.NumGPUBlocksOverride
	if !over.Known || wanted < leastEnlarged {
		return nil
	}
	to := int(math.Ceil(float64(over.Value)*wanted/blockStep)) * blockStep
	c := d.Facts.Change("--num-gpu-blocks-override", strconv.Itoa(over.Value), strconv.Itoa(to))
	larger := stat.Some(float64(to) / float64(over.Value))
	if all := growth(d, engine.Change{Flag: c.Flag, From: c.From}); all.OK && all.V <= larger.V {
		c.To, larger = "", all
	}
	if larger.V < leastEnlarged || slices.ContainsFunc(others, func(e poolGrowth) bool { return e.growth >= larger.V/leastEnlarged }) {
		return nil
	}
	return []poolGrowth{{c, larger.V}}
}

const (
	// defaultPool is vLLM's share of the memory in the newest releases. mostPool is the largest
	// share that is tried: above it starts fail for lack of memory.
	defaultPool, mostPool = 0.92, 0.95
	// blockStep is what numbers of blocks are multiples of.
	blockStep = 8
	// leastEnlarged is the smallest growth of a pool worth a change.
	leastEnlarged = 1.05
	// vramSpare is the share of a GPU's memory that must stay free.
	vramSpare = 0.02
)

// vramTaken reports whether the memory that a larger share would claim is in use.
func vramTaken(d *engine.Diagnosis, more float64) bool {
	for i := range d.GPUs {
		g := &d.GPUs[i]
		if used := g.Peak[engine.GPUVRAMUsed].Div(g.Last[engine.GPUVRAMTotal]); used.OK && used.V+more > 1-vramSpare {
			return true
		}
	}
	return false
}

// growth returns the size of the pool after a change as a multiple of the present one. It is absent
// if the change does not affect the pool, or its effect is unknown.
func growth(d *engine.Diagnosis, c engine.Change) stat.Opt {
	from, okFrom := parseNumber(c.From)
	to, okTo := parseNumber(c.To)
	switch c.Canonical().Flag {
	case "--num-gpu-blocks-override":
		if okFrom && okTo && from > 0 {
			return stat.Some(to / from)
		}
		if okFrom && from > 0 && c.To == "" && d.Facts.BlockSize.Known && d.Facts.BlockSize.Value > 0 {
			if tokens := memoryPool(d, d.Facts.GPUMemoryUtilization.Value); tokens > 0 {
				return stat.Some(tokens / float64(d.Facts.BlockSize.Value) / from)
			}
		}
	case "--gpu-memory-utilization":
		if !okFrom || !okTo {
			return stat.None
		}
		was, is := memoryPool(d, from), memoryPool(d, to)
		if was > 0 {
			return stat.Some(is / was)
		}
	}
	return stat.None
}

// memoryPool estimates the tokens of a pool that takes a share of the memory; 0 if unknown.
func memoryPool(d *engine.Diagnosis, util float64) float64 {
	config, missing := engine.ReplicaConfig(&d.Facts)
	if len(missing) > 0 || util <= 0 {
		return 0
	}
	tokens, _, _ := config.Capacity(util)
	return tokens
}

// fullShare is the planned fill of a pool when sequences have reached their final context.
const fullShare = 0.8

// largerPools returns combined changes of pool and slots: slots with the pool that they need or, if
// even the larger pool is too small, as many slots as it fits. Each limit hides behind the other, so
// that neither change alone shows what both gain.
func (s *Search) largerPools(a *anchor) []candidate {
	slots := a.d.Facts.MaxNumSeqs
	c, need, ok := demandOf(a.d)
	if !ok || !slots.Known {
		return nil
	}
	if need <= fullShare*c.held(1) && !Preempts(a.d) {
		return nil // the pool fits the present demand
	}
	var out []candidate
	for _, e := range poolGrowths(a.d, need/fullShare/c.held(1)) {
		room := c.held(e.growth)
		to := engine.SlotsFor(min(need, fullShare*room))
		limit := fullShare * room
		if need <= limit*(1+1e-9) {
			limit = room // slots beyond the need stay empty
		}
		if float64(to) > limit {
			to = engine.SlotsWithin(fullShare * room)
		}
		if budget := a.d.Facts.MaxNumBatchedTokens; budget.Known {
			to = min(to, budget.Value)
		}
		slot := a.d.Facts.Change("--max-num-seqs", strconv.Itoa(slots.Value), strconv.Itoa(to))
		why := fmt.Sprintf("The KV pool then holds about %s sequences at the context length that they reach", whole(math.Floor(room)))
		alone := c.gain(e.growth, slots.Value)
		out = append(out, s.propose(a, alone, why+".", e.Change))
		g := c.gain(e.growth, to)
		switch {
		case to > slots.Value && c.waiting() > 0:
			why += fmt.Sprintf(", and %d slots use it: one restart for both%s.", to, hidden(alone, c.gain(1, to)))
		case to > 0 && to < slots.Value && need > room && g.Throughput.Mid.OK:
			why += fmt.Sprintf("; %d slots keep it from overflowing.", to)
		default:
			continue
		}
		out = append(out, s.propose(a, g, why, e.Change, slot))
	}
	return out
}

// hidden returns the part of a sentence that says that neither of two changes alone gains anything, "" if one does.
func hidden(a, b roofline.Gain) string {
	pays := func(g roofline.Gain) bool { return !g.Throughput.Mid.OK || g.Throughput.Mid.V >= MinGain }
	if pays(a) || pays(b) {
		return ""
	}
	return ", because neither alone gains anything"
}

// demand predicts how many requests of one rank run with other slots and another pool, and the gain of both:
// by the physical model or, without one, by how servers generally scale with the batch.
type demand struct {
	model *roofline.Performance // nil if the hardware is unknown
	blind roofline.Blind        // used without model
}

// demandOf returns the demand of a diagnosis and the requests of one rank that want to run. ok is false if
// the number of sequences that fit into the pool is unknown.
func demandOf(d *engine.Diagnosis) (c demand, need float64, ok bool) {
	in := neededSlots(d)
	if p := d.Performance; p != nil {
		return demand{model: p}, in.V, in.OK && p.Measured.KVCapacity.OK
	}
	ranks := float64(max(1, d.Ranks))
	value := func(name string) stat.Opt { return d.Quantity(name).Value }
	running := value("running_mean").Times(1 / ranks)
	holds := engine.FactOpt(d.Facts.KVCapacityTokens).Div(value("prompt_tokens_mean").Plus(value("output_tokens_mean")))
	// Sequences that share a prefix hold less than their length.
	holds = holds.Max(running.Div(value("kv_usage_mean")))
	if !in.OK || !running.OK || !holds.OK || holds.V <= 0 {
		return demand{}, 0, false
	}
	share := value("queue_mean_s").Div(value("ttft_mean_s"))
	if share.OK {
		share.V = min(1, share.V)
	}
	return demand{blind: roofline.Blind{
		Running: running.V, Waiting: max(0, in.V-running.V), Holds: holds, QueueShare: share, Why: "no physical model of this server",
	}}, in.V, true
}

// held returns the sequences that fit until their end into a pool growth times as large.
func (c *demand) held(growth float64) float64 {
	if c.model == nil {
		return c.blind.Holds.V * growth
	}
	return sequencesInPool(c.model, c.model.Measured.KVCapacity.V*growth)
}

func (c *demand) waiting() float64 {
	if c.model == nil {
		return c.blind.Waiting
	}
	return c.model.Measured.Waiting.Or(0)
}

// gain predicts slots with a pool growth times as large. It is unknown without a model if that is fewer
// slots.
func (c *demand) gain(growth float64, slots int) roofline.Gain {
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

// Preempts reports whether the pool preempts running requests more than occasionally.
func Preempts(d *engine.Diagnosis) bool {
	rate, done := d.Quantity("preemptions_per_s").Value, d.Quantity("requests_per_s").Value
	return rate.Or(0) > 0 && rate.V > preemptShare*done.Or(0)
}

// preemptShare is the number of preemptions per finished request above which they cost throughput.
const preemptShare = 0.05
