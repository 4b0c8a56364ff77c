package rules

import (
	"fmt"
	"math"
	"strconv"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/lever"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// A low hit rate has two causes that no counter separates: prompts without a shared prefix, and
// prefixes that are evicted before they are needed again. Two measurements narrow them down: how
// long a block stays cached, and whether whole prompts hit or the same part of each.

const (
	// reuseStay is how long a block must stay cached after its request, in seconds, for eviction to be no
	// cause of hits that differ: the next turn of a conversation comes within about a minute.
	reuseStay = 60.0
	// reuseUneven is the minimum spread of the cached tokens of a request over windows, relative
	// to whole hits and whole misses, that a prefix shared by all prompts cannot have. Such a
	// prefix shows at most 0.01, whole hits and misses 0.3 to 1.
	reuseUneven = 0.10
	// reuseSpread is the minimum number of windows to compute the spread.
	reuseSpread = 5
)

// cachedSeconds returns how long a block stays cached after its request ended: vLLM overwrites
// the blocks that no running request holds, least recently used first, and every computed token
// takes a new place. It is absent without the size of the pool or the rate of tokens.
func cachedSeconds(r *engine.Run) stat.Opt {
	a := &r.Agg
	pool := r.Facts.KVCapacityTokens
	if !pool.Known || !a.KV.OK {
		return stat.None
	}
	free := max(0, 1-a.KV.V) * pool.Value * float64(a.Ranks)
	return stat.Some(free).Div(a.PrefillPerS.Plus(a.Rate[engine.CounterGenerationTokens]))
}

// unevenHits returns the variance between windows of the cached tokens of a request, relative
// to prompts that hit as a whole or not at all (binomial over a window's requests): about one
// for those, almost zero if every prompt hits the same prefix. It is absent without hits or
// with too few windows.
func unevenHits(r *engine.Run) stat.Opt {
	type hits struct{ cached, requests float64 }
	var list []hits
	var cached, prompt, requests float64
	for w := range windows(r, evaluable) {
		if hit, _ := hitRate(w); !hit.OK {
			continue
		}
		// Cached tokens are counted at the first token of a request, like its time to first
		// token; hits at its admission, like lookups.
		c, t, n := w.Delta[engine.CounterPromptTokensCached], w.Delta[engine.CounterPromptTokens], stat.Some(w.Hist[engine.HistTTFT].Count)
		if !c.OK || n.V <= 0 {
			c, t = w.Delta[engine.CounterPrefixHits], w.Delta[engine.CounterPrefixQueries]
			n = t.Div(r.Agg.PromptLen)
		}
		if !c.OK || !t.OK || n.Or(0) <= 0 {
			continue
		}
		list = append(list, hits{c.V, n.V})
		cached, prompt, requests = cached+c.V, prompt+t.V, requests+n.V
	}
	if len(list) < reuseSpread || cached <= 0 || cached >= prompt {
		return stat.None
	}
	each, sum := cached/requests, 0.0
	for _, h := range list {
		deviation := h.cached - each*h.requests
		sum += deviation * deviation / h.requests
	}
	return stat.Some(sum / float64(len(list)) / (each * (prompt/requests - each)))
}

// eviction holds the two measurements that indicate evicted prefixes in a run.
type eviction struct {
	stay   stat.Opt // cachedSeconds
	uneven stat.Opt // unevenHits
}

func evictionOf(r *engine.Run) eviction { return eviction{cachedSeconds(r), unevenHits(r)} }

// possible reports whether blocks are overwritten before a prefix is likely to be needed again.
func (e eviction) possible() bool { return e.stay.OK && e.stay.V < reuseStay }

// excluded reports whether every prompt hits the same part: a shared prefix that is never
// evicted.
func (e eviction) excluded() bool { return e.uneven.OK && e.uneven.V < reuseUneven }

// likely reports whether prefixes are needed again and often evicted by then.
func (e eviction) likely() bool { return e.possible() && e.uneven.OK && !e.excluded() }

func (e eviction) evidence(r *engine.Run) []engine.Evidence {
	var out []engine.Evidence
	if e.stay.OK {
		stay := measured("cached_block_stay_s", e.stay, "s", fmt.Sprintf(
			"a block stays cached for about %s after its request: running requests leave %s of the pool free, and %s tokens per second are written into it",
			formatSeconds(e.stay.V), figure.PercentSign(max(0, 1-r.Agg.KV.Or(0))), figure.Count(r.Agg.PrefillPerS.Plus(r.Agg.Rate[engine.CounterGenerationTokens]).Or(0))))
		if stay.Source = engine.FromDerived; e.uneven.OK && !e.excluded() { // else it decides nothing
			stay = compared(stay.Name, e.stay, stay.Unit, "<", reuseStay, stay.Source, stay.Text)
		}
		out = append(out, stay)
	}
	if e.uneven.OK {
		side, text := ">=", "some prompts hit and others miss: the cached tokens of a request vary between windows"
		if e.excluded() {
			side, text = "<", "every prompt hits about the same part: a prefix that all share and that stays cached"
		}
		out = append(out, compared("hit_rate_spread", e.uneven, "ratio", side, reuseUneven, engine.FromDerived, text))
	}
	return out
}

// keepPrefixes proposes the full size for a pool that a flag makes small; no other change is
// justified by a gain that is unknown. It returns nil if no flag keeps the pool small.
func keepPrefixes(r *engine.Run, e eviction) *engine.Fix {
	f := r.Facts
	why := fmt.Sprintf("Some prompts hit almost entirely and others not at all, and cached blocks are overwritten about %s after their request: prefixes that are needed again are probably evicted by then.", formatSeconds(e.stay.V))
	n := kvNeed{run: r, pool: &pool{}, why: why, factor: stat.Some(0)}
	fix := lowUtil(&n).fix
	if fix == nil {
		if fix = wholePool(r, why); fix == nil {
			return nil
		}
	}
	fix.Predicted = reuseBound(r)
	fix.Why += unknownGain(r, fix, "") + " If the hit rate does not rise, the prompts share no more than they hit; change the prompts then."
	reject(fix, "restructuring the prompts first", "no gain if shared prefixes are evicted; the next step if a larger pool does not raise the hit rate")
	if offloads(f) {
		reject(fix, "--kv-offloading-size", "keeps evicted prefixes in host memory, which is slower than unused GPU memory")
	}
	return fix
}

// wholePool raises --num-gpu-blocks-override to the lower estimate of the blocks that fit beside
// the weights. It returns nil if the pool is not overridden, memory is unknown, or the pool would
// grow by less than minGrowth.
func wholePool(r *engine.Run, why string) *engine.Fix {
	f := r.Facts
	over := f.NumGPUBlocksOverride
	config, missing := engine.ReplicaConfig(f)
	if !over.Known || !f.BlockSize.Known || !f.GPUMemoryUtilization.Known || len(missing) > 0 || f.OnCPU() {
		return nil
	}
	_, least, _ := config.Capacity(f.GPUMemoryUtilization.Value)
	to := int(math.Floor(least/float64(f.BlockSize.Value))) / lever.BlockStep * lever.BlockStep
	if float64(to) < minGrowth*float64(over.Value) {
		return nil
	}
	fix := flagFix(f, lever.Blocks, strconv.Itoa(to),
		fmt.Sprintf("%s --num-gpu-blocks-override makes the pool small; the GPU has room for at least %d blocks.", why, to), costPoolMemory)
	fix.Rejected, fix.Risk = []engine.Rejected{removeOverride}, 2
	return fix
}
