package optrace

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

// layerKey names a layer in a phase, -1 what belongs to none.
type layerKey struct {
	phase Phase
	layer int
}

// layerSums adds layers up.
type layerSums struct {
	of map[layerKey]*layerSum
}

// layerSum adds a layer up.
type layerSum struct {
	time   time.Duration
	lost   time.Duration // of it, to who preempted a lane
	parts  [numParts]time.Duration
	graphs int                 // in which it was
	last   int                 // the last of them
	made   map[string]struct{} // its operators with the types of their weights
}

// get is the sum of a layer; those beyond the limit are added to what belongs to none.
func (s *layerSums) get(key layerKey) (l *layerSum, over bool) {
	if l = s.of[key]; l != nil {
		return l, false
	}
	if len(s.of) >= maxLayers {
		key.layer, over = -1, true
		if l = s.of[key]; l != nil {
			return l, true
		}
	}
	l = &layerSum{}
	s.of[key] = l
	return l, over
}

// add adds an operator of the n-th graph, in which a lane was preempted for so long.
func (l *layerSum) add(n, part int, took, preempted time.Duration) {
	if l.last != n {
		l.last = n
		l.graphs++
	}
	l.time, l.parts[part] = plus(l.time, took), plus(l.parts[part], took)
	l.lost = plus(l.lost, preempted)
}

// has notes an operator that the layer is made of.
func (l *layerSum) has(op, sub, weights string) {
	if l.made == nil {
		l.made = map[string]struct{}{}
	}
	l.made[op+" "+sub+" "+weights] = struct{}{}
}

// make is the same for layers that are made of the same operators and types and were in
// as many graphs: those of a second model, such as a draft's, are in others.
func (l *layerSum) make() string {
	return strconv.Itoa(l.graphs) + " " + strings.Join(sorted(l.made), ",")
}

// mean is its time in a graph, without that in which a lane was preempted: whom it hits is
// chance, and makes no layer slow.
func (l *layerSum) mean() float64 {
	return float64(max(l.time-l.lost, 0)) / float64(max(l.graphs, 1))
}

// layerRows are the layers by phase, in the order of the model.
func (t *Tally) layerRows() []LayerRow {
	keys := make([]layerKey, 0, len(t.layers.of))
	means := [numPhases][]float64{}
	for key, l := range t.layers.of {
		keys = append(keys, key)
		if key.layer >= 0 {
			means[key.phase] = append(means[key.phase], l.mean())
		}
	}
	slices.SortFunc(keys, func(a, b layerKey) int {
		return cmp.Or(cmp.Compare(phaseRank(a.phase.String()), phaseRank(b.phase.String())), cmp.Compare(a.layer, b.layer))
	})
	rows := make([]LayerRow, 0, len(keys))
	for _, key := range keys {
		l := t.layers.of[key]
		row := LayerRow{Phase: key.phase.String(), Layer: key.layer, Time: l.time, Share: ratio(l.time, t.phases[key.phase].operators), Parts: map[string]time.Duration{}, Make: l.make(), Graphs: l.graphs}
		for part, took := range l.parts {
			if took > 0 {
				row.Parts[partNames[part]] = took
			}
		}
		if key.layer >= 0 {
			row.Slow = stat.Some(l.mean()).Div(stat.Some(median(means[key.phase])))
		}
		rows = append(rows, row)
	}
	return rows
}

// variation is the coefficient of variation of some numbers: their standard deviation,
// of all there are and not a sample, over their mean.
func variation(of []float64) stat.Opt {
	mean, squares := 0.0, 0.0
	for i, v := range of { // Welford, Technometrics 4(3), 1962
		d := v - mean
		mean += d / float64(i+1)
		squares += d * (v - mean)
	}
	if mean <= 0 {
		return stat.None
	}
	return finite(math.Sqrt(squares/float64(len(of))) / mean)
}
