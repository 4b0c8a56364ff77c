package engine

import (
	"fmt"
	"strings"
)

func (r *resolver) scheduler() {
	f := &r.f
	fact := r.doubled(lookup(r, "max_num_seqs", "", asInt))
	if p := r.in.Page; p != nil && len(p.Ranks) > 0 {
		if g := p.Ranks[0].Gauges[GaugeMaxNumSeqs]; g.OK && g.V >= 1 {
			if fact.Known && fact.Source != FromDefault && fact.Value != int(g.V) {
				r.conflict("max_num_seqs: the page's gauge says %d, the %s %d; the gauge is used", int(g.V), fact.Source, fact.Value)
			}
			fact = Know(int(g.V), FromMetrics, "vllm:max_num_seqs gauge")
		}
	}
	f.MaxNumSeqs = override(r, "max_num_seqs", fact, r.in.Flags.MaxNumSeqs, r.in.Env.MaxNumSeqs)
	if f.MaxNumSeqs.Known && f.MaxNumSeqs.Source == FromDefault && r.in.Launch == nil && len(r.in.Server.Args) == 0 {
		// The launch is unknown: a default is no more than the most likely value,
		// and rules that compare with the seats must not rest on it.
		f.MaxNumSeqs = Fact[int]{Note: fmt.Sprintf("the page does not tell it and the launch command is not readable; vLLM's default would be %d: give -m", f.MaxNumSeqs.Value)}
	} else if !f.MaxNumSeqs.Known {
		f.MaxNumSeqs.Note = strings.TrimPrefix(f.MaxNumSeqs.Note+"; give -m", "; ")
	}
	f.MaxNumBatchedTokens = r.doubled(lookup(r, "max_num_batched_tokens", "", asInt))
	f.PrefixCaching = lookup(r, "enable_prefix_caching", r.cache.EnablePrefixCaching, asBool)
	f.ChunkedPrefill = lookup(r, "enable_chunked_prefill", r.cache.ChunkedPrefill, asBool)
	f.EnforceEager = lookup(r, "enforce_eager", "", asBool)
	f.AsyncScheduling = lookup(r, "async_scheduling", "", asBool)
	f.GPUMemoryUtilization = lookup(r, "gpu_memory_utilization", r.cache.GPUMemoryUtilization, asFloat)
	if text, from, ok := r.discovered("speculative_config"); ok {
		f.Speculative = Know(text != "", from, "")
	} else if r.in.Page != nil && r.in.Page.Counters[CounterSpecDraftTokens].OK {
		f.Speculative = Know(true, FromMetrics, "")
	} else if r.in.Launch != nil {
		f.Speculative = Know(false, FromCmdline, "")
	}
	if !r.launched() {
		// Without the launch these defaults are assumptions, and say so.
		for _, fact := range []*Fact[bool]{&f.EnforceEager, &f.AsyncScheduling, &f.ExpertParallel} {
			if fact.Source == FromDefault {
				fact.Note = "assumed: the launch command is not readable"
			}
		}
		if f.MaxNumBatchedTokens.Source == FromDefault {
			f.MaxNumBatchedTokens.Note = strings.TrimSuffix("assumed: the launch command is not readable; "+f.MaxNumBatchedTokens.Note, "; ")
		}
	}
}

// doubled applies --performance-mode throughput to a default: it doubles seats
// and token budget where they are unset (vLLM 0.17 and newer).
func (r *resolver) doubled(fact Fact[int]) Fact[int] {
	if mode, _, ok := r.discovered("performance_mode"); ok && mode == "throughput" && fact.Source == FromDefault {
		return Know(2*fact.Value, FromDefault, "doubled by --performance-mode throughput")
	}
	return fact
}
