package optrace

import "time"

// lengthSums adds the graphs of one token for each sequence up by the length of the KV
// cache, rounded up to a multiple of width. The width doubles where there are more
// lengths than rows.
type lengthSums struct {
	of    map[int64]*lengthSum
	width int64
}

// lengthSum adds the graphs of one length up.
type lengthSum struct {
	graphs           int
	attention, graph time.Duration
}

// addGraph adds a decode graph, or one of a phase that is not known where one token
// attends.
func (s *lengthSums) addGraph(one *graphSums, took time.Duration) {
	if one.length <= 0 || one.p != PhaseDecode && (one.p != PhaseUnknown || one.queries != 1) {
		return
	}
	for {
		key := roundUp(one.length, s.width)
		l := s.of[key]
		if l == nil {
			if len(s.of) >= maxLengths {
				s.widen()
				continue
			}
			l = &lengthSum{}
			s.of[key] = l
		}
		l.add(lengthSum{1, one.attention, took})
		return
	}
}

// add adds graphs.
func (l *lengthSum) add(o lengthSum) {
	l.graphs += o.graphs
	l.attention, l.graph = plus(l.attention, o.attention), plus(l.graph, o.graph)
}

// roundUp is the smallest multiple of a width, a power of two, that a length fits in;
// lengths at the end of the range stay what they are.
func roundUp(length, width int64) int64 {
	if up := (length + width - 1) &^ (width - 1); up > 0 {
		return up
	}
	return length
}

// widen doubles the width. The largest width holds all lengths.
func (s *lengthSums) widen() {
	s.width = min(s.width*2, 1<<62)
	of := make(map[int64]*lengthSum, maxLengths)
	for _, length := range sorted(s.of) {
		key := roundUp(length, s.width)
		if of[key] == nil {
			of[key] = &lengthSum{}
		}
		of[key].add(*s.of[length])
	}
	s.of = of
}

// rows are the lengths, ascending.
func (s *lengthSums) rows() []ContextRow {
	rows := make([]ContextRow, 0, len(s.of))
	for _, length := range sorted(s.of) {
		l := s.of[length]
		n := time.Duration(l.graphs)
		rows = append(rows, ContextRow{Length: length, Graphs: l.graphs, Attention: l.attention / n, Graph: l.graph / n, Share: ratio(l.attention, l.graph)})
	}
	return rows
}
