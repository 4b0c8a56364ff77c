package advice

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

const (
	// fewestLayers is the number of layers that a median needs.
	fewestLayers = 6
	// slowLayer is the least excess over the median. Mixed files (Q4_K_M) keep some layers in a
	// larger type, which makes these up to some 20 % slower.
	slowLayer = 0.30
	// layerNoise is the ratio of the excess to the layers' own scatter, the median absolute
	// deviation, from which a layer is slow: six standard deviations of normal noise, which are
	// 1.4826 times it.
	layerNoise = 6 * 1.4826
	// fewSlow is the share of the layers above which slow ones are the model's design
	// (alternating attention, dense layers between mixtures), not a fault.
	fewSlow = 0.15
	// slowCosts is the share of the time of a phase that the excess must take.
	slowCosts = 0.02
)

// findSlowLayer finds a decode layer that takes longer than layers with the same operators and
// types, by more than these vary. Layers of another make (a few with attention among many with
// a state, dense ones before mixtures) are slower by design.
func findSlowLayer(v *subject) *cause {
	if v.Decode == nil {
		return nil
	}
	byMake := map[string][]*optrace.LayerRow{}
	for i := range v.Layers {
		if l := &v.Layers[i]; l.Phase == optrace.PhaseDecode.String() && l.Layer >= 0 && l.Slow.OK {
			byMake[l.Make] = append(byMake[l.Make], l)
		}
	}
	var best *cause
	for _, made := range slices.Sorted(maps.Keys(byMake)) {
		if c := slowAmong(byMake[made]); c != nil && (best == nil || c.Cost.V > best.Cost.V) {
			best = c
		}
	}
	return best
}

// slowAmong returns the finding of slow layers among layers of the same make, nil if there is
// none.
func slowAmong(rows []*optrace.LayerRow) *cause {
	if len(rows) < fewestLayers {
		return nil
	}
	slow := make([]float64, len(rows))
	for i, l := range rows {
		slow[i] = l.Slow.V
	}
	middle := stat.Median(slow).V
	if middle <= 0 {
		return nil
	}
	for i := range slow {
		slow[i] /= middle
	}
	limit := max(slowLayer, layerNoise*deviation(slow))
	var slowLayers []*optrace.LayerRow
	cost, most := 0.0, 0.0
	for i, l := range rows {
		if slow[i]-1 > limit {
			slowLayers = append(slowLayers, l)
			cost += l.Share.Or(0) * (1 - 1/slow[i])
			most = max(most, slow[i])
		}
	}
	if len(slowLayers) == 0 || float64(len(slowLayers)) > max(1, fewSlow*float64(len(rows))) || cost < slowCosts {
		return nil
	}
	worst := slices.MaxFunc(slowLayers, func(a, b *optrace.LayerRow) int { return int(math.Copysign(1, a.Slow.V-b.Slow.V)) })
	c := newCause(severityWarn, fmt.Sprintf("Layer %d is slow", worst.Layer), stat.Some(cost),
		fmt.Sprintf("It takes %s times the median of %d layers with the same operators and types, most of it in %s; the others vary by %s.", figure.Significant(most), len(rows), largestPart(worst.Parts), figure.PercentSign(1.4826*deviation(slow))),
		fmt.Sprintf("%d of these %d layers are that slow; their time beyond the median is %s of the decode time.", len(slowLayers), len(rows), figure.PercentSign(cost)))
	c.instead = "settings do not apply to one layer: check its types and experts, and whether its weights were in memory"
	return c
}

// deviation returns the median absolute deviation from 1, which is the layers' median.
func deviation(ratios []float64) float64 {
	away := make([]float64, len(ratios))
	for i, r := range ratios {
		away[i] = math.Abs(r - 1)
	}
	slices.Sort(away)
	return away[len(away)/2]
}

// largestPart returns the name of the part that takes longest.
func largestPart(parts map[string]time.Duration) string {
	best, most := "operators", time.Duration(0)
	for name, d := range parts {
		if d > most || d == most && most > 0 && name < best {
			best, most = name, d
		}
	}
	return best
}
