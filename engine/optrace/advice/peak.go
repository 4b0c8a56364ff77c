package advice

import (
	"fmt"
	"strings"

	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

const (
	// nearPeak is the share of the memory's peak from which fewer bytes make decode faster:
	// below it, something other than memory limits decode too.
	nearPeak = 0.6
	// wideShare is the least share of the decode time on weights of a wide type.
	wideShare = 0.5
	// smallerGain is the least predicted gain for which another model file is advised.
	smallerGain = 0.15
)

// wideTypes are the types for which a smaller one is advised: bits per weight of both, and what it
// costs. Bits follow from the blocks of ggml-common.h; Q4_K_M is a mix with 4.85 bits on
// average (llama.cpp, tools/quantize/README.md, with its table of perplexities).
var wideTypes = map[string]struct {
	bits, smaller float64
	name, price   string
}{
	"f32":  {32, 8.5, "Q8_0", "another model file; perplexity as good as the same"},
	"f16":  {16, 8.5, "Q8_0", "another model file; perplexity as good as the same"},
	"bf16": {16, 8.5, "Q8_0", "another model file; perplexity as good as the same"},
	"q8_0": {8.5, 4.85, "Q4_K_M", "another model file; quality falls a little (perplexity of an 8B model by 1 to 3 %)"},
}

// findQuantisation finds a memory-bound decode on weights of a wide type.
func findQuantisation(v *subject) *cause {
	achieved, peak, ok := v.OfPeak()
	if !ok || achieved < nearPeak*peak || achieved > abovePeak*peak || v.MemoryShare().Or(0) < boundShare {
		return nil
	}
	var best *optrace.TypeRow
	for i := range v.Types {
		t := &v.Types[i]
		if _, is := wideTypes[t.Type]; is && t.Phase == optrace.PhaseDecode.String() && t.Share.Or(0) >= wideShare {
			best = t
		}
	}
	if best == nil {
		return nil
	}
	w := wideTypes[best.Type]
	g := freed(best.Share.V * (1 - w.smaller/w.bits))
	if g < smallerGain {
		return nil
	}
	c := newCause(severityInfo, "A smaller type of weights would be faster", stat.Some(best.Share.V*(1-w.smaller/w.bits)),
		fmt.Sprintf("Weights of type %s (%s bits each) take %s of the decode time; %s has %s bits.", best.Type, figure.Significant(w.bits), figure.PercentSign(best.Share.V), w.name, figure.Significant(w.smaller)),
		fmt.Sprintf("Decode reads %s, %s of the memory bandwidth (%s): fewer bytes take less time.", figure.Value(achieved, "B/s"), figure.PercentSign(achieved/peak), v.Peak.From))
	c.remedy = &remedy{
		kind: remedyModel, do: fmt.Sprintf("No flag of the runtime fixes this. Serve the model in %s instead of %s.", w.name, strings.ToUpper(best.Type)),
		why:   fmt.Sprintf("Memory bounds decode, and each token reads all weights: %s of their bytes are saved.", figure.PercentSign(1-w.smaller/w.bits)),
		price: w.price,
		// At least a third of the gain remains after unpacking and what memory does not bound.
		gain: gainOf(g/3, g*2/3, g),
	}
	return c
}

// findAtPeak finds a decode that reads memory at its full rate and cannot get faster.
func findAtPeak(v *subject) *cause {
	achieved, peak, ok := v.memoryBoundAtPeak()
	if !ok {
		return nil
	}
	c := newCause(severityGood, "Decode reads memory at its full rate", stat.None, v.readsAtPeak(achieved, peak), v.memoryBoundShare())
	c.remedy = &remedy{
		kind: remedyBeyond, do: "No flag fixes this: decode is as fast as this machine's memory.",
		why:   "Each token reads all weights. A smaller quantisation, memory with more bandwidth, several sequences per batch (they share the reading) or speculative decoding with a small draft model would help.",
		price: "each of these changes the model, the machine or the load",
	}
	return c
}

// readsAtPeak compares the rate of decode with that of the memory.
func (v *subject) readsAtPeak(achieved, peak float64) string {
	return fmt.Sprintf("Decode reads %s, %s of the %s that this machine reads with %s (%s).", figure.Value(achieved, "B/s"), figure.PercentSign(achieved/peak), figure.Value(peak, "B/s"), figure.Counted(v.ThreadCount, "thread"), v.Peak.From)
}

func (v *subject) memoryBoundShare() string {
	return fmt.Sprintf("Memory-bound operators take %s of the decode time.", figure.PercentSign(v.MemoryShare().V))
}
