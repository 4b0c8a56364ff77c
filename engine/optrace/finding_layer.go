package optrace

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

const (
	// fewestLayers are the layers that a median needs.
	fewestLayers = 6
	// slowLayer is the least excess over the median. Mixed files (Q4_K_M) keep some
	// layers in a larger type, which makes these up to some 20 % slower.
	slowLayer = 0.30
	// layerNoise is how many times the layers' own scatter the excess must be. The
	// scatter is the median of the absolute deviations; 1.4826 of it is a standard
	// deviation of normal noise.
	layerNoise = 6 * 1.4826
	// fewSlow is the share of the layers above which slow ones are the model's design
	// (attention that alternates, dense layers between mixtures), and not a fault.
	fewSlow = 0.15
	// slowCosts is the share of the time of a phase that the excess must take.
	slowCosts = 0.02
)

// findSlowLayer is a layer of a decode that takes longer than those that are made alike,
// by more than they differ among themselves. Layers of other operators or types (few with
// attention among many with a state, dense ones before mixtures) are slower by design.
func findSlowLayer(v *view) (cause, bool) {
	if v.decode == nil {
		return cause{}, false
	}
	alike := map[string][]*LayerRow{}
	for i := range v.Layers {
		if l := &v.Layers[i]; l.Phase == PhaseDecode.String() && l.Layer >= 0 && l.Slow.OK {
			alike[l.Make] = append(alike[l.Make], l)
		}
	}
	var best cause
	have := false
	for _, made := range sorted(alike) {
		if c, ok := slowAmong(alike[made]); ok && (!have || c.Cost.V > best.Cost.V) {
			best, have = c, true
		}
	}
	return best, have
}

// slowAmong is a slow layer among some that are made alike.
func slowAmong(rows []*LayerRow) (cause, bool) {
	if len(rows) < fewestLayers {
		return cause{}, false
	}
	slow := make([]float64, len(rows))
	for i, l := range rows {
		slow[i] = l.Slow.V
	}
	middle := median(slices.Clone(slow))
	if middle <= 0 {
		return cause{}, false
	}
	for i := range slow {
		slow[i] /= middle
	}
	limit := max(slowLayer, layerNoise*deviation(slow))
	var found []*LayerRow
	cost, most := 0.0, 0.0
	for i, l := range rows {
		if slow[i]-1 > limit {
			found = append(found, l)
			cost += l.Share.Or(0) * (1 - 1/slow[i])
			most = max(most, slow[i])
		}
	}
	if len(found) == 0 || float64(len(found)) > max(1, fewSlow*float64(len(rows))) || cost < slowCosts {
		return cause{}, false
	}
	worst := slices.MaxFunc(found, func(a, b *LayerRow) int { return int(math.Copysign(1, a.Slow.V-b.Slow.V)) })
	return cause{
		Finding: Finding{ID: "slow-layer", Severity: severityWarn, Title: fmt.Sprintf("Layer %d is slow", worst.Layer), Cost: stat.Some(cost), Evidence: []string{
			fmt.Sprintf("It takes %s times the median of %d layers that are made alike, most of it in its %s; the others differ from the median by %s.", spellThree(most), len(rows), largestPart(worst.Parts), spellPercent(1.4826*deviation(slow))),
			fmt.Sprintf("%d of these %d layers are that slow; what they take beyond the median is %s of the decode time.", len(found), len(rows), spellPercent(cost)),
		}},
		instead: "no setting is of one layer: look at its types and experts, and whether its weights were in memory",
	}, true
}

// deviation is the median absolute deviation from 1, which is the layers' median.
func deviation(ratios []float64) float64 {
	away := make([]float64, len(ratios))
	for i, r := range ratios {
		away[i] = math.Abs(r - 1)
	}
	slices.Sort(away)
	return away[len(away)/2]
}

// largestPart is the name of the part that takes longest.
func largestPart(parts map[string]time.Duration) string {
	best, most := "operators", time.Duration(0)
	for name, d := range parts {
		if d > most || d == most && most > 0 && name < best {
			best, most = name, d
		}
	}
	return best
}
