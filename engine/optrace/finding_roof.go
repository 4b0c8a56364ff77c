package optrace

import (
	"fmt"
	"strings"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

const (
	// nearRoof is the share of the memory's roof from which on fewer bytes make decode
	// faster: below, something else than memory holds it up as well.
	nearRoof = 0.6
	// wideShare is the share of the decode time on weights of a wide type.
	wideShare = 0.5
	// smallerGain is the predicted gain of a smaller type that is worth a model file.
	smallerGain = 0.15
)

// wide are types with a smaller one beside them: bits a weight of both, and what it
// costs. Bits follow from the blocks of ggml-common.h; Q4_K_M is a mix, 4.85 bits in
// the mean (llama.cpp, tools/quantize/README.md, with its table of perplexities).
var wide = map[string]struct {
	bits, smaller float64
	name, price   string
}{
	"f32":  {32, 8.5, "Q8_0", "another model file; perplexity as good as the same"},
	"f16":  {16, 8.5, "Q8_0", "another model file; perplexity as good as the same"},
	"bf16": {16, 8.5, "Q8_0", "another model file; perplexity as good as the same"},
	"q8_0": {8.5, 4.85, "Q4_K_M", "another model file; quality falls a little (perplexity of an 8B model by 1 to 3 %)"},
}

// findQuantisation is a decode that memory bounds on weights of a wide type.
func findQuantisation(v *view) (cause, bool) {
	achieved, roof, ok := v.ofRoof()
	if !ok || achieved < nearRoof*roof || achieved > aboveRoof*roof || v.memoryShare().Or(0) < boundShare {
		return cause{}, false
	}
	var best *TypeRow
	for i := range v.Types {
		t := &v.Types[i]
		if _, is := wide[t.Type]; is && t.Phase == PhaseDecode.String() && t.Share.Or(0) >= wideShare {
			best = t
		}
	}
	if best == nil {
		return cause{}, false
	}
	w := wide[best.Type]
	g := freed(best.Share.V * (1 - w.smaller/w.bits))
	if g < smallerGain {
		return cause{}, false
	}
	return cause{
		Finding: Finding{ID: "quantisation", Severity: severityInfo, Title: "A smaller type of weights would be faster", Cost: stat.Some(best.Share.V * (1 - w.smaller/w.bits)), Evidence: []string{
			fmt.Sprintf("Weights of type %s (%s bits each) take %s of the decode time; %s has %s bits.", best.Type, spellThree(w.bits), spellPercent(best.Share.V), w.name, spellThree(w.smaller)),
			fmt.Sprintf("Decode reads %s, %s of what memory gives (%s): fewer bytes are less time.", spellScaled(achieved, "B/s"), spellPercent(achieved/roof), v.Roof.Origin()),
		}},
		remedy: &remedy{
			kind: remedyModel, do: fmt.Sprintf("No flag of the runtime fixes this. Serve the model in %s instead of %s.", w.name, strings.ToUpper(best.Type)),
			why:   fmt.Sprintf("Decode is bound by memory, and each token reads all weights: %s of their bytes go away.", spellPercent(1-w.smaller/w.bits)),
			price: w.price,
			// Unpacking and what memory does not bound stay: a third of it at least.
			gain: gainOf(g/3, g*2/3, g),
		},
	}, true
}

// findAtRoof is a decode that reads memory as fast as it is, and nothing to gain.
func findAtRoof(v *view) (cause, bool) {
	achieved, roof, ok := v.memoryBoundAtRoof()
	if !ok || achieved < atRoof*v.highestRoof() {
		return cause{}, false
	}
	return cause{
		Finding: Finding{ID: "decode-at-roof", Severity: severityGood, Title: "Decode reads memory as fast as it is", Cost: stat.None, Evidence: []string{
			fmt.Sprintf("Decode reads %s, %s of the %s that %s of this machine can read (%s).", spellScaled(achieved, "B/s"), spellPercent(achieved/roof), spellScaled(roof, "B/s"), spellThreads(v.lanes), v.Roof.Origin()),
			fmt.Sprintf("Operators that memory bounds take %s of the decode time.", spellPercent(v.memoryShare().V)),
		}},
		remedy: &remedy{
			kind: remedyBeyond, do: "No flag fixes this: decode is as fast as this machine's memory.",
			why:   "Each token reads all weights. What would help: a smaller quantisation, memory with more bandwidth, several sequences in one batch (they share the reading), speculative decoding with a small draft model.",
			price: "each of these changes the model, the machine or the load",
		},
	}, true
}

// highestRoof is what memory gives with any number of threads that has a CPU each.
func (v *view) highestRoof() float64 {
	top := 0.0
	for _, p := range v.Roof.ByThreads {
		if p.Threads <= max(v.Target.CPUs, v.lanes) {
			top = max(top, p.BytesPerSecond)
		}
	}
	return top
}
