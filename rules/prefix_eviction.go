package rules

import (
	"fmt"
	"math"
	"strconv"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// A low hit rate has two causes that no counter of the page tells apart: prompts
// that differ from their beginning on, and beginnings that were evicted before
// they came again. How long a block stays cached, and whether hits come as whole
// prompts or as the same part of each, bound what can be the case.

const (
	// reuseStay is how long a block must stay cached after its request for
	// eviction to be ruled out, in seconds: the next turn of a conversation, or
	// the next request of one tenant of many, comes within about a minute.
	reuseStay = 60.0
	// reuseUneven is the least spread of the cached tokens of a request over
	// windows, as a part of what whole hits and whole misses would show, that is
	// not the same beginning of every prompt. That shows 0.01 and less, whole hits
	// and misses 0.3 to 1.
	reuseUneven = 0.10
	// reuseSpread is how many windows the spread needs.
	reuseSpread = 5
)

// stay returns how long a block stays cached once its request has ended, in
// seconds: vLLM overwrites the blocks that no running request holds in the order
// of their last use (v1/core/block_pool.py), and every computed token takes a new
// place. Absent without the pool's size or the rate of computed tokens.
func stay(r *engine.Run) stat.Opt {
	a := &r.Agg
	pool := r.Facts.KVCapacityTokens
	if !pool.Known || !a.KV.OK {
		return stat.None
	}
	free := max(0, 1-a.KV.V) * pool.Value * float64(a.Ranks)
	return stat.Some(free).Div(a.PrefillPerS.Plus(a.Rate[engine.CounterGenerationTokens]))
}

// unevenHits returns the variance between windows of the cached tokens of a
// request, as a part of what it would be if each prompt hit as a whole or not at
// all (binomial over a window's requests): about one for those, next to none
// where every prompt hits the same beginning, however much prompts differ in
// length. Absent without hits or with too few windows.
func unevenHits(r *engine.Run) stat.Opt {
	type window struct{ cached, requests float64 }
	var windows []window
	var cached, prompt, requests float64
	for i := range r.Windows {
		w := &r.Windows[i]
		if hit, _ := hitRate(w); !w.Evaluable || !hit.OK {
			continue
		}
		// Cached tokens count at a request's first token, as its time to it does;
		// hits count at its admission, as lookups do.
		c, t, n := w.Delta[engine.CounterPromptTokensCached], w.Delta[engine.CounterPromptTokens], stat.Some(w.Hist[engine.HistTTFT].Count)
		if !c.OK || n.V <= 0 {
			c, t = w.Delta[engine.CounterPrefixHits], w.Delta[engine.CounterPrefixQueries]
			n = t.Div(r.Agg.PromptLen)
		}
		if !c.OK || !t.OK || n.Or(0) <= 0 {
			continue
		}
		windows = append(windows, window{c.V, n.V})
		cached, prompt, requests = cached+c.V, prompt+t.V, requests+n.V
	}
	if len(windows) < reuseSpread || cached <= 0 || cached >= prompt {
		return stat.None
	}
	each, sum := cached/requests, 0.0
	for _, w := range windows {
		off := w.cached - each*w.requests
		sum += off * off / w.requests
	}
	return stat.Some(sum / float64(len(windows)) / (each * (prompt/requests - each)))
}

// eviction is what a run says of evicted beginnings.
type eviction struct {
	stay   stat.Opt // seconds
	uneven stat.Opt
}

func evictionOf(r *engine.Run) eviction { return eviction{stay(r), unevenHits(r)} }

// possible says that blocks go before a beginning can be expected again, so that
// sharing prompts may miss.
func (e eviction) possible() bool { return e.stay.OK && e.stay.V < reuseStay }

// excluded says that the shared beginning is there and never evicted: every
// prompt hits the same part.
func (e eviction) excluded() bool { return e.uneven.OK && e.uneven.V < reuseUneven }

// likely says that beginnings come again and are often gone by then.
func (e eviction) likely() bool { return e.possible() && e.uneven.OK && !e.excluded() }

func (e eviction) evidence(r *engine.Run) []engine.Evidence {
	var out []engine.Evidence
	if e.stay.OK {
		side := "<"
		if !e.possible() {
			side = ">="
		}
		out = append(out, evidence("cached_block_stay_s", e.stay, "s", side, stat.Some(reuseStay), engine.FromDerived, fmt.Sprintf(
			"a block stays cached for about %s after its request: %s of the pool is free of running requests, and %s tokens a second are written into it",
			seconds(e.stay.V), percent(max(0, 1-r.Agg.KV.Or(0))), number(r.Agg.PrefillPerS.Plus(r.Agg.Rate[engine.CounterGenerationTokens]).Or(0)))))
	}
	if e.uneven.OK {
		side, text := ">=", "some prompts hit and others miss: the cached tokens of a request vary between windows accordingly"
		if e.excluded() {
			side, text = "<", "every prompt hits about the same part: a beginning that all share and that stays cached"
		}
		out = append(out, evidence("hit_rate_spread", e.uneven, "ratio", side, stat.Some(reuseUneven), engine.FromDerived, text))
	}
	return out
}

// keepPrefixes proposes the pool that was made small by choice at the size that
// vLLM would give it: only that is worth a try for a gain that nobody knows. Nil
// where no flag keeps the pool small.
func keepPrefixes(r *engine.Run, e eviction, share stat.Opt) *engine.Fix {
	f := r.Facts
	why := fmt.Sprintf("Some prompts hit nearly whole and others not at all, and what is cached is overwritten about %s after its request: beginnings that do come again are probably gone by then.", seconds(e.stay.V))
	n := kvNeed{run: r, pool: &pool{}, why: why, factor: stat.Some(0)}
	fix := lowUtil(&n).fix
	if fix == nil {
		if fix = wholePool(r, why); fix == nil {
			return nil
		}
	}
	fix.Predicted = reuseBound(share)
	if high := fix.Predicted[0].High; high.OK {
		fix.Why += fmt.Sprintf(" The gain is unknown until tried, at most %s.", change(high.V))
	} else {
		fix.Why += " The gain is unknown until tried."
	}
	fix.Why += " If the hit rate does not rise, the prompts share no more than they hit, and the prompts are what to change."
	fix.Rejected = append(fix.Rejected, engine.Rejected{What: "restructuring the prompts first", Why: "no gain where what they share is evicted; the next step if a larger pool does not raise the hit rate"})
	if offloads(f) {
		fix.Rejected = append(fix.Rejected, engine.Rejected{What: "--kv-offloading-size", Why: "keeps evicted prefixes in host memory: another way, dearer than GPU memory that lies free"})
	}
	return fix
}

// wholePool undoes --num-gpu-blocks-override with as many blocks as the weights
// surely leave room for. Nil where the pool is not overridden, memory is not
// known, or that is no larger.
func wholePool(r *engine.Run, why string) *engine.Fix {
	f := r.Facts
	over := f.NumGPUBlocksOverride
	config, missing := engine.ReplicaConfig(f)
	if !over.Known || !f.BlockSize.Known || !f.GPUMemoryUtilization.Known || len(missing) > 0 || onCPU(f) {
		return nil
	}
	_, least, _ := config.Capacity(f.GPUMemoryUtilization.Value)
	to := int(math.Floor(least/float64(f.BlockSize.Value))) / poolStep * poolStep
	if float64(to) < leastGrowth*float64(over.Value) {
		return nil
	}
	from, text := strconv.Itoa(over.Value), strconv.Itoa(to)
	return &engine.Fix{
		Kind: engine.KindFlag, Flag: "--num-gpu-blocks-override", From: from, To: text,
		Command: setFlag(f, "--num-gpu-blocks-override", from, text, over.Source),
		Why:     fmt.Sprintf("%s The pool was made small by --num-gpu-blocks-override; the GPU has room for %s blocks at least.", why, text),
		Price:   []string{priceRestart, "more memory for the pool: the start fails if it is not there"},
		Rejected: []engine.Rejected{{
			What: "removing --num-gpu-blocks-override", Why: "lets vLLM size the pool by GPU memory, usually larger still; its size is not known from here",
		}},
		Risk: 2,
	}
}
