package advice

import (
	"fmt"
	"slices"

	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// repackShare is the least share of weights that could be rearranged in the time of a phase.
const repackShare = 0.3

// repackable are types that GGML rearranges at load for wide registers, by
// architecture: ggml_repack_get_optimal_repack_type of ggml-cpu/repack.cpp, as far as
// versions since 2025 agree.
var repackable = map[string][]string{
	"amd64": {"q4_0", "q4_K", "q2_K", "iq4_nl"},
	"arm64": {"q4_0", "iq4_nl"},
}

// findRepacking finds weights that stay as they are in the file although the CPU has
// faster kernels for a rearranged form. The operators look the same in a trace, so only
// the command that disables rearranging counts as evidence.
func findRepacking(v *subject) *cause {
	_, off := argument(v.Target.Command, "--no-repack", "-nr")
	if !off {
		return nil
	}
	var types []string
	share := map[string]float64{}
	for i := range v.Types {
		t := &v.Types[i]
		if !slices.Contains(repackable[v.Target.Arch], t.Type) {
			continue
		}
		share[t.Phase] += t.Share.Or(0)
		if !slices.Contains(types, t.Type) {
			types = append(types, t.Type)
		}
	}
	decode, prefill := share[optrace.PhaseDecode.String()], share[optrace.PhasePrefill.String()]
	if max(decode, prefill) < repackShare {
		return nil
	}
	c := newCause(severityWarn, "Weights are not rearranged for this CPU", stat.None,
		"The command disables rearranging (--no-repack).",
		fmt.Sprintf("Weights of %s can be rearranged; they take %s of the time of decode and %s of prefill.", figure.List(types...), figure.PercentSign(decode), figure.PercentSign(prefill)))
	c.remedy = v.setting(optRepack, "", remedy{
		do:    "Let the runtime rearrange the weights for this CPU: remove --no-repack.",
		why:   "With rearranged weights a product takes several rows at once. The speedup depends on the CPU; prefill gains most, a decode at the memory peak nothing.",
		price: "a longer start; the rearranged weights are a copy in memory that is not shared with the file",
	})
	return c
}
