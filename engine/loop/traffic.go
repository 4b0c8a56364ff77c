package loop

import (
	"fmt"
	"math"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/effect"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/loop/search"
	"github.com/rooftop-dev/rooftop/engine/stat"
	"github.com/rooftop-dev/rooftop/engine/verdict"
)

const (
	// trafficShift is the relative difference of a mean from which traffic counts as different.
	trafficShift = 0.20
	// hitShift is the difference of a hit rate from which traffic counts as different.
	hitShift = 0.10
)

// traffic returns the differences in the load of two measurements, in words. If there are any,
// the delta is not due to the change alone. It compares requests in the server, lengths and hit
// rate. It compares the arrival rate only without a queue on either side, because a closed loop
// of clients sends more to a faster server.
func traffic(before, after *engine.Diagnosis) []string {
	var out []string
	differs := func(what, name, unit string) {
		b, a := before.Quantity(name).Value, after.Quantity(name).Value
		if change := effect.Relative(b, a); change.OK && math.Abs(change.V) >= trafficShift {
			out = append(out, difference(what, b, a, unit, change.V))
		}
	}
	differs("prompts", "prompt_tokens_mean", "tok")
	differs("outputs", "output_tokens_mean", "tok")
	if b, a := before.Quantity("prefix_hit_rate").Value, after.Quantity("prefix_hit_rate").Value; b.OK && a.OK && math.Abs(a.V-b.V) >= hitShift {
		text := fmt.Sprintf("prefix hits %s → %s", figure.Show(b, "ratio"), figure.Show(a, "ratio"))
		if a.V < b.V {
			text += "; the cache is cold after a restart"
		}
		out = append(out, text)
	}
	was, is := saturated(before), saturated(after)
	if was && is {
		return out
	}
	if b, a := search.Demand(before), search.Demand(after); b.OK && a.OK {
		change := effect.Relative(b, a)
		if change.OK && math.Abs(change.V) >= trafficShift {
			text := difference("requests in", b, a, "", change.V)
			if was {
				text += "; the queue is now empty, so a gain is a lower bound"
			}
			out = append(out, text)
		}
	}
	if !was && !is {
		differs("requests finished", "requests_per_s", "1/s")
	}
	return out
}

func difference(what string, before, after stat.Opt, unit string, change float64) string {
	return fmt.Sprintf("%s %s → %s (%s %%)", what, figure.Show(before, unit), figure.Show(after, unit), figure.Change(change))
}

// saturated reports whether requests waited for capacity.
func saturated(d *engine.Diagnosis) bool {
	return verdict.Queued(d.Quantity("waiting_mean").Value.Or(0), search.Demand(d).Or(0))
}
