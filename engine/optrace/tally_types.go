package optrace

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// typeKey names the weights of a type in a phase.
type typeKey struct {
	phase Phase
	name  string
}

// typeSums adds operators up by the type of their weights.
type typeSums struct {
	of map[typeKey]*typeSum
}

// typeSum adds the operators with weights of one type up.
type typeSum struct {
	time    time.Duration
	cost    costSum
	read    map[uint32]struct{} // weights that were read as a whole
	weights float64             // their bytes
}

// get is the sum of a type, nil where there are too many.
func (s *typeSums) get(key typeKey) (sum *typeSum, over bool) {
	if sum = s.of[key]; sum != nil {
		return sum, false
	}
	if len(s.of) >= maxTypes {
		return nil, true
	}
	sum = &typeSum{read: map[uint32]struct{}{}}
	s.of[key] = sum
	return sum, false
}

// weigh counts weights, each once.
func (s *typeSum) weigh(t *Tables, ref uint32) {
	if _, ok := s.read[ref]; ok || len(s.read) >= maxWeights {
		return
	}
	s.read[ref] = struct{}{}
	bytes, _ := t.Tensor(ref).Bytes()
	s.weights += bytes
}

// add adds an operator.
func (s *typeSum) add(took time.Duration, c *Cost) {
	s.time = plus(s.time, took)
	s.cost.add(took, c)
}

// typeRows are the types by phase, those with the most time first.
func (t *Tally) typeRows() []TypeRow {
	rows := make([]TypeRow, 0, len(t.types.of))
	for key, s := range t.types.of {
		row := TypeRow{Type: key.name, Phase: key.phase.String(), Time: s.time, Share: ratio(s.time, t.phases[key.phase].operators)}
		row.Bytes, _ = s.cost.amounts()
		if s.cost.known {
			row.BytesRate, row.FlopsRate = rate(s.cost.bytes, s.cost.time), rate(s.cost.flops, s.cost.time)
		}
		if s.weights > 0 {
			row.Weights = finite(s.weights)
		}
		rows = append(rows, row)
	}
	slices.SortFunc(rows, func(a, b TypeRow) int {
		return cmp.Or(cmp.Compare(phaseRank(a.Phase), phaseRank(b.Phase)), cmp.Compare(b.Time, a.Time), strings.Compare(a.Type, b.Type))
	})
	return rows
}
