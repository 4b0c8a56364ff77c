package search

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/lever"
	"github.com/rooftop-dev/rooftop/engine/roofline"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// poolGrowth is a change that enlarges the KV pool.
type poolGrowth struct {
	engine.Change
	growth float64 // size of the new pool as a multiple of the present one
}

// leastEnlarged is the smallest growth of a pool worth a change.
const leastEnlarged = 1.05

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
		if growth := lever.PoolGrowth(&d.Facts, c); growth.V > 1 && !slices.ContainsFunc(out, func(e poolGrowth) bool { return e.Change == c }) {
			out = append(out, poolGrowth{c, growth.V})
		}
	}
	out = append(out, enoughBlocks(d, wanted, out)...)
	u := d.Facts.GPUMemoryUtilization
	if !u.Known || d.Facts.NumGPUBlocksOverride.Known || !d.Facts.GPUKnown || d.Facts.OnCPU() {
		return out
	}
	for _, to := range [...]float64{lever.DefaultUtilization, lever.MostUtilization} {
		c := lever.Utilization.Change(&d.Facts, strconv.FormatFloat(to, 'f', 2, 64))
		growth := lever.PoolGrowth(&d.Facts, c)
		if to <= u.Value+0.005 || growth.V < leastEnlarged || lever.MemoryTaken(d.GPUs, to-u.Value) || slices.ContainsFunc(out, func(e poolGrowth) bool { return e.Flag == c.Flag && engine.SameValue(e.To, c.To) }) {
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
	to := int(math.Ceil(float64(over.Value)*wanted/lever.BlockStep)) * lever.BlockStep
	c := lever.Blocks.Change(&d.Facts, strconv.Itoa(to))
	larger := stat.Some(float64(to) / float64(over.Value))
	if all := lever.PoolGrowth(&d.Facts, engine.Change{Flag: c.Flag, From: c.From}); all.OK && all.V <= larger.V {
		c.To, larger = "", all
	}
	if larger.V < leastEnlarged || slices.ContainsFunc(others, func(e poolGrowth) bool { return e.growth >= larger.V/leastEnlarged }) {
		return nil
	}
	return []poolGrowth{{c, larger.V}}
}

// fullShare is the planned fill of a pool when sequences have reached their final context.
const fullShare = 0.8

// largerPools returns combined changes of pool and slots: slots with the pool that they need or, if
// even the larger pool is too small, as many slots as it fits. Each limit hides behind the other, so
// that neither change alone shows what both gain.
func (s *Search) largerPools(a *anchor) []candidate {
	slots := a.d.Facts.MaxNumSeqs
	c, need, ok := lever.PoolOf(a.d)
	if !ok || !slots.Known {
		return nil
	}
	if need <= fullShare*c.Held(1) && !Preempts(a.d) {
		return nil // the pool fits the present demand
	}
	var out []candidate
	for _, e := range poolGrowths(a.d, need/fullShare/c.Held(1)) {
		room := c.Held(e.growth)
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
		slot := lever.Slots.Change(&a.d.Facts, strconv.Itoa(to))
		why := fmt.Sprintf("The KV pool then holds about %s sequences at the context length that they reach", whole(math.Floor(room)))
		alone := c.Gain(e.growth, slots.Value)
		out = append(out, s.propose(a, alone, why+".", e.Change))
		g := c.Gain(e.growth, to)
		switch {
		case to > slots.Value && c.Waiting() > 0:
			why += fmt.Sprintf(", and %d slots use it: one restart for both%s.", to, hidden(alone, c.Gain(1, to)))
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

// Preempts reports whether the pool preempts running requests more than occasionally.
func Preempts(d *engine.Diagnosis) bool {
	rate, done := d.Quantity("preemptions_per_s").Value, d.Quantity("requests_per_s").Value
	return rate.Or(0) > 0 && rate.V > preemptShare*done.Or(0)
}

// preemptShare is the number of preemptions per finished request above which they cost throughput.
const preemptShare = 0.05
