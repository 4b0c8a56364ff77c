package tally

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// typeKey identifies the weights of a type in a phase.
type typeKey struct {
	phase optrace.Phase
	name  string
}

// typeSum sums up the operators with weights of one type.
type typeSum struct {
	time    time.Duration
	cost    costSum
	read    map[uint32]struct{} // weights that were read as a whole
	weights float64             // their bytes
}

// addWeights adds the bytes of weights, each once.
func (s *typeSum) addWeights(t *optrace.Tables, ref uint32) {
	if _, ok := s.read[ref]; ok || len(s.read) >= maxWeights {
		return
	}
	if s.read == nil {
		s.read = map[uint32]struct{}{}
	}
	s.read[ref] = struct{}{}
	bytes, _ := t.Tensor(ref).Bytes()
	s.weights += bytes
}

// add adds an operator.
func (s *typeSum) add(took time.Duration, c *optrace.Cost) {
	s.time = stat.AddSaturating(s.time, took)
	s.cost.add(took, c)
}

// typeRows returns the types by phase, those with the most time first.
func (t *Tally) typeRows() []optrace.TypeRow {
	rows := make([]optrace.TypeRow, 0, len(t.types.of))
	for key, s := range t.types.of {
		row := optrace.TypeRow{Type: key.name, Phase: key.phase.String(), Time: s.time, Share: stat.Ratio(s.time, t.phases[key.phase].operators)}
		row.Bytes, _ = s.cost.amounts()
		if s.cost.known {
			row.BytesRate, row.FlopsRate = stat.PerSecond(s.cost.bytes, s.cost.time), stat.PerSecond(s.cost.flops, s.cost.time)
		}
		if s.weights > 0 {
			row.Weights = stat.Finite(s.weights)
		}
		rows = append(rows, row)
	}
	slices.SortFunc(rows, func(a, b optrace.TypeRow) int {
		return cmp.Or(cmp.Compare(phaseRank(a.Phase), phaseRank(b.Phase)), cmp.Compare(b.Time, a.Time), strings.Compare(a.Type, b.Type))
	})
	return rows
}
