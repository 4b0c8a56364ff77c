package facts

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/engine"
)

func (r *resolver) scheduler() {
	f := &r.f
	fact := r.doubled(lookup(r, "max_num_seqs", "", asInt))
	if p := r.in.Page; p != nil && len(p.Ranks) > 0 {
		if g := p.Ranks[0].Gauges[engine.GaugeMaxNumSeqs]; g.OK && g.V >= 1 {
			told := fact.Known && fact.Source != engine.FromDefault && fact.Value > 0 // llama.cpp's -1 is automatic
			if told && fact.Value != int(g.V) {
				r.conflict("max_num_seqs: the page's gauge says %d, the %s %d; the gauge is used", int(g.V), fact.Source, fact.Value)
			}
			if !told || fact.Value != int(g.V) || r.eng.ID == catalog.VLLM {
				fact = engine.Know(int(g.V), engine.FromMetrics, r.eng.Families[0]+"max_num_seqs gauge")
			}
		}
	}
	f.MaxNumSeqs = override(r, "max_num_seqs", fact, r.in.Flags.MaxNumSeqs, r.in.Env.MaxNumSeqs)
	if f.MaxNumSeqs.Known && f.MaxNumSeqs.Source == engine.FromDefault && r.in.Launch == nil && len(r.in.Server.Args) == 0 {
		// The launch is unknown, so a default is only the most likely value, and rules that compare
		// with the slots must not rely on it.
		f.MaxNumSeqs = engine.Fact[int]{Note: fmt.Sprintf("not on the metrics page, and the launch command is not readable; %s's default would be %d: give -m", r.eng.Name, f.MaxNumSeqs.Value)}
	} else if !f.MaxNumSeqs.Known {
		f.MaxNumSeqs.Note = strings.TrimPrefix(f.MaxNumSeqs.Note+"; give -m", "; ")
	}
	if f.DividedBy > 1 && f.MaxNumSeqs.Known {
		f.DividedSlots = f.MaxNumSeqs.Value
	}
	f.MaxNumSeqs = r.perRank(f.MaxNumSeqs)
	f.MaxNumBatchedTokens = r.perRank(r.doubled(lookup(r, "max_num_batched_tokens", "", asInt)))
	f.LongPrefillThreshold = lookup(r, "long_prefill_token_threshold", "", asInt)
	f.PrefixCaching = lookup(r, "enable_prefix_caching", r.cache.EnablePrefixCaching, asBool)
	f.ChunkedPrefill = lookup(r, "enable_chunked_prefill", r.cache.ChunkedPrefill, asBool)
	f.EnforceEager = lookup(r, "enforce_eager", "", asBool)
	f.AsyncScheduling = lookup(r, "async_scheduling", "", asBool)
	f.GPUMemoryUtilization = lookup(r, "gpu_memory_utilization", r.cache.GPUMemoryUtilization, asFloat)
	if text, from, ok := r.discovered("speculative_config"); ok {
		f.Speculative = engine.Know(text != "", from, "")
	} else if r.in.Page != nil && r.in.Page.Counters[engine.CounterSpecDraftTokens].OK {
		f.Speculative = engine.Know(true, engine.FromMetrics, "")
	} else if r.in.Launch != nil {
		f.Speculative = engine.Know(false, engine.FromCmdline, "")
	}
	r.lora()
	if !r.launched() {
		// Without the launch these defaults are assumptions and are marked as such.
		for _, fact := range []*engine.Fact[bool]{&f.EnforceEager, &f.AsyncScheduling, &f.ExpertParallel} {
			if fact.Source == engine.FromDefault {
				fact.Note = "assumed: the launch command is not readable"
			}
		}
		if f.MaxNumBatchedTokens.Source == engine.FromDefault {
			f.MaxNumBatchedTokens.Note = strings.TrimSuffix("assumed: the launch command is not readable; "+f.MaxNumBatchedTokens.Note, "; ")
		}
	}
}

// lora resolves the LoRA settings. A page with adapters shows that LoRA is on, and its limit.
func (r *resolver) lora() {
	f := &r.f
	label := ""
	if p := r.in.Page; p != nil && p.Gauges[engine.GaugeMaxLoRAs].OK {
		label = strconv.Itoa(int(p.Gauges[engine.GaugeMaxLoRAs].V))
	}
	f.EnableLoRA = lookup(r, "enable_lora", "", asBool)
	if label != "" && !f.EnableLoRA.Value {
		f.EnableLoRA = engine.Know(true, engine.FromMetrics, "the page shows adapters")
	}
	if !f.EnableLoRA.Value {
		return
	}
	f.MaxLoRAs = lookup(r, "max_loras", label, asInt)
	f.MaxLoRARank = lookup(r, "max_lora_rank", "", asInt)
	if !r.launched() && f.MaxLoRARank.Source == engine.FromDefault {
		f.MaxLoRARank = engine.Fact[int]{Note: "the launch command is not readable"}
	}
}

// doubled applies --performance-mode throughput to a default: it doubles slots and token budget unless
// they are set (vLLM 0.17 and newer).
func (r *resolver) doubled(fact engine.Fact[int]) engine.Fact[int] {
	if mode, _, ok := r.discovered("performance_mode"); ok && mode == "throughput" && fact.Source == engine.FromDefault {
		return engine.Know(2*fact.Value, engine.FromDefault, "doubled by --performance-mode throughput")
	}
	return fact
}

// made returns the value that this run set an argument to if the launch is unreadable; "" means that
// it was removed.
func (r *resolver) made(name string) (value string, ok bool) {
	if r.in.Launch != nil {
		return "", false
	}
	i := slices.IndexFunc(r.in.Made, func(c engine.Change) bool { return engine.ArgumentName(c.Canonical().Flag) == name })
	if i < 0 {
		return "", false
	}
	return r.in.Made[i].Canonical().To, true
}

// madeInt returns made as an integer.
func (r *resolver) madeInt(name string) (int, bool) {
	text, _ := r.made(name)
	return asInt(text)
}

// madeNote is the note of facts that follow from changes by this run.
const madeNote = "set by this run; the launch command is not readable"
