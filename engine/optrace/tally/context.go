package tally

import (
	"maps"
	"slices"
	"time"

	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// lengthSums sums up the graphs with one token per sequence by the length of the KV cache,
// rounded up to a multiple of width. The width doubles if there are more lengths than rows.
type lengthSums struct {
	of    bounded[int64, lengthSum]
	width int64
}

// lengthSum sums up the graphs of one length.
type lengthSum struct {
	graphs           int
	attention, graph time.Duration
}

// addGraph adds a decode graph, or one of unknown phase in which one token attends.
func (s *lengthSums) addGraph(one *graphSums, took time.Duration) {
	if one.length <= 0 || one.p != optrace.PhaseDecode && (one.p != optrace.PhaseUnknown || one.queries != 1) {
		return
	}
	l := s.of.get(roundUp(one.length, s.width))
	for l == nil {
		s.widen()
		l = s.of.get(roundUp(one.length, s.width))
	}
	l.add(lengthSum{1, one.attention, took})
}

// add adds the sums of other graphs.
func (l *lengthSum) add(o lengthSum) {
	l.graphs += o.graphs
	l.attention, l.graph = stat.AddSaturating(l.attention, o.attention), stat.AddSaturating(l.graph, o.graph)
}

// roundUp returns the smallest multiple of width, a power of two, that is at least length; it
// returns length if that overflows.
func roundUp(length, width int64) int64 {
	if up := (length + width - 1) &^ (width - 1); up > 0 {
		return up
	}
	return length
}

// widen doubles the width. The largest width covers all lengths.
func (s *lengthSums) widen() {
	s.width = min(s.width*2, 1<<62)
	wider := newBounded[int64, lengthSum](maxLengths)
	for length, l := range s.of.of {
		wider.get(roundUp(length, s.width)).add(*l)
	}
	s.of = wider
}

// rows returns the lengths in ascending order.
func (s *lengthSums) rows() []optrace.ContextRow {
	rows := make([]optrace.ContextRow, 0, len(s.of.of))
	for _, length := range slices.Sorted(maps.Keys(s.of.of)) {
		l := s.of.of[length]
		n := time.Duration(l.graphs)
		rows = append(rows, optrace.ContextRow{Length: length, Graphs: l.graphs, Attention: l.attention / n, Graph: l.graph / n, Share: stat.Ratio(l.attention, l.graph)})
	}
	return rows
}
