package optrace

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

// repackShare is the share of the time of a phase that weights which could be
// rearranged must have.
const repackShare = 0.3

// repackable are types that GGML rearranges at load for wide registers, by
// architecture: ggml_repack_get_optimal_repack_type of ggml-cpu/repack.cpp, as far as
// versions since 2025 agree.
var repackable = map[string][]string{
	"amd64": {"q4_0", "q4_K", "q2_K", "iq4_nl"},
	"arm64": {"q4_0", "iq4_nl"},
}

// findRepacking is weights that stay as they lie in the file although the CPU has
// faster kernels for a rearranged form. The operators look the same in a trace; the
// command that switches rearranging off is the evidence, and without it nothing is
// claimed.
func findRepacking(v *view) (cause, bool) {
	_, off := argument(v.Target.Command, "--no-repack", "-nr")
	if !off {
		return cause{}, false
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
	decode, prefill := share[PhaseDecode.String()], share[PhasePrefill.String()]
	if max(decode, prefill) < repackShare {
		return cause{}, false
	}
	r := &remedy{
		kind: remedyFlag, do: "Let the runtime rearrange the weights for this CPU: leave --no-repack out.",
		why:   "Rearranged, a product takes several rows at once. How much faster that is depends on the CPU; prefill gains most, and a decode at the roof of memory nothing." + v.names.aside(),
		price: "a longer start, and the rearranged weights are a copy in memory: they are no longer shared with the file",
	}
	r.flag, r.value = v.names.spell(optRepack, "")
	return cause{
		Finding: Finding{ID: "repacking-unused", Severity: severityWarn, Title: "Weights are not rearranged for this CPU", Cost: stat.None, Evidence: []string{
			"The command switches rearranging off (--no-repack).",
			fmt.Sprintf("Weights of %s could be rearranged; they take %s of the time of decode and %s of prefill.", strings.Join(types, ", "), spellPercent(decode), spellPercent(prefill)),
		}},
		remedy: r,
	}, true
}
