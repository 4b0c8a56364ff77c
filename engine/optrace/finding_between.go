package optrace

import (
	"fmt"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

const (
	// betweenShare is the share of a token's time that passes between the calls of the
	// runtime, by medians: waits for the next request are in the tail and do not count.
	// Sampling of a vocabulary of 150,000 takes some 5 % of a small model's token.
	betweenShare = 0.15
	betweenBad   = 0.40
)

// findBetween is time between the calls of a decode: sampling, grammars, detokenising,
// the application.
func findBetween(v *view) (cause, bool) {
	if v.decode == nil || v.decode.Between.Count < fewestGraphs || v.decode.Call.Count < fewestGraphs {
		return cause{}, false
	}
	between, call := v.decode.Between.P50, v.decode.Call.P50
	if call <= 0 {
		return cause{}, false
	}
	share := between.Seconds() / (between + call).Seconds()
	if share < betweenShare {
		return cause{}, false
	}
	severity := severityWarn
	if share >= betweenBad {
		severity = severityBad
	}
	return cause{
		Finding: Finding{ID: "time-between-calls", Severity: severity, Title: "Time passes between the calls of the runtime", Cost: stat.Some(share), Evidence: []string{
			fmt.Sprintf("The median decode takes %s, and %s pass until the next one: %s of a token's time.", spellTime(call), spellTime(between), spellPercent(share)),
			"Sampling, grammars and the application's own work lie there; no operator does.",
		}},
		remedy: &remedy{
			kind: remedyBeyond, do: "No setting of operators fixes this: make what happens between two tokens shorter (fewer samplers, no grammar, less work of the application for each token).",
			why:   fmt.Sprintf("%s of a token's time is outside the runtime's graphs.", spellPercent(share)),
			price: "other samplers choose other tokens",
			gain:  gainOf(0, freed(share)/2, freed(share)),
		},
	}, true
}
