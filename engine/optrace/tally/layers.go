package tally

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// layerKey identifies a layer in a phase; layer is -1 for what belongs to none.
type layerKey struct {
	phase optrace.Phase
	layer int
}

// layerSum sums up a layer.
type layerSum struct {
	time   time.Duration
	lost   time.Duration // the part of time while a thread was preempted
	parts  [numParts]time.Duration
	graphs int                 // number of graphs with the layer
	last   int                 // number of the last of these
	made   map[string]struct{} // its operators with the types of their weights
}

// add adds an operator of graph n, during which a thread was preempted for some time.
func (l *layerSum) add(n, part int, took, preempted time.Duration) {
	if l.last != n {
		l.last = n
		l.graphs++
	}
	l.time, l.parts[part] = stat.AddSaturating(l.time, took), stat.AddSaturating(l.parts[part], took)
	l.lost = stat.AddSaturating(l.lost, preempted)
}

// addOperator records an operator of the layer.
func (l *layerSum) addOperator(op, sub, weights string) {
	if l.made == nil {
		l.made = map[string]struct{}{}
	}
	l.made[op+" "+sub+" "+weights] = struct{}{}
}

// makeKey returns a key that is equal for layers with the same operators and types in the same
// number of graphs. Layers of a second model, such as a draft's, are in another number of
// graphs.
func (l *layerSum) makeKey() string {
	operators := slices.AppendSeq(make([]string, 0, len(l.made)), maps.Keys(l.made))
	slices.Sort(operators)
	return strconv.Itoa(l.graphs) + " " + strings.Join(operators, ",")
}

// mean returns its time per graph, in nanoseconds, without the time in which a thread was
// preempted: chance decides which layer that hits.
func (l *layerSum) mean() float64 {
	return float64(max(l.time-l.lost, 0)) / float64(max(l.graphs, 1))
}

// layerRows returns the layers by phase, in the order of the model.
func (t *Tally) layerRows() []optrace.LayerRow {
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
	var medians [numPhases]stat.Opt
	for phase, list := range means {
		medians[phase] = stat.Median(list)
	}
	rows := make([]optrace.LayerRow, 0, len(keys))
	for _, key := range keys {
		l := t.layers.of[key]
		row := optrace.LayerRow{Phase: key.phase.String(), Layer: key.layer, Time: l.time, Share: stat.Ratio(l.time, t.phases[key.phase].operators), Parts: map[string]time.Duration{}, Make: l.makeKey(), Graphs: l.graphs}
		for part, took := range l.parts {
			if took > 0 {
				row.Parts[partNames[part]] = took
			}
		}
		if key.layer >= 0 {
			row.Slow = stat.Some(l.mean()).Div(medians[key.phase])
		}
		rows = append(rows, row)
	}
	return rows
}
