package advice

import (
	"fmt"

	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

const (
	// betweenShare is the share of a token's time between the calls of the runtime, by medians:
	// waits for the next request are in the tail and do not count. Sampling from a vocabulary
	// of 150,000 takes some 5 % of a small model's token.
	betweenShare = 0.15
	betweenBad   = 0.40
)

// findBetween finds time between the calls of a decode: sampling, grammars,
// detokenization, the application.
func findBetween(v *subject) *cause {
	if v.Decode == nil || v.Decode.Between.Count < optrace.FewestGraphs || v.Decode.Call.Count < optrace.FewestGraphs {
		return nil
	}
	between, call := v.Decode.Between.P50, v.Decode.Call.P50
	if call <= 0 {
		return nil
	}
	share := between.Seconds() / (between + call).Seconds()
	if share < betweenShare {
		return nil
	}
	c := newCause(severityFrom(share, betweenBad), "Time passes between the calls of the runtime", stat.Some(share),
		fmt.Sprintf("The median decode takes %s, and the next one starts %s later: %s of a token's time.", figure.Duration(call), figure.Duration(between), figure.PercentSign(share)),
		"Sampling, grammars and the application's own work run there; no operator does.")
	c.remedy = &remedy{
		kind: remedyBeyond, do: "No setting of operators fixes this. Do less between two tokens: fewer samplers, no grammar, less application work per token.",
		why:   fmt.Sprintf("%s of a token's time is outside the runtime's graphs.", figure.PercentSign(share)),
		price: "other samplers choose other tokens",
		gain:  gainOf(0, freed(share)/2, freed(share)),
	}
	return c
}
