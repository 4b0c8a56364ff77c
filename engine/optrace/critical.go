package optrace

import (
	"cmp"
	"slices"
	"time"
)

// CriticalPath are the spans that decided how long a graph took. GGML computes node by
// node with a barrier between nodes, so that a step takes as long as the lane that is
// through with it last: of each operator, in the order in which they were begun, that
// lane's span. Lanes may lack operators. Of equal ones it is the lowest lane. Where
// barriers are not traced a span goes on until the lane's next one begins, and the
// waiting counts as if it were work.
func CriticalPath(g *Graph) []SpanRef {
	if path, ok := stepByStep(g); ok {
		return path
	}
	return byOperator(g)
}

// stepByStep is the path where all lanes that computed anything have the same
// operators in the same order.
func stepByStep(g *Graph) ([]SpanRef, bool) {
	model := -1
	for l := range g.Lanes {
		switch n := len(g.Lanes[l].Spans); {
		case n == 0:
		case model < 0:
			model = l
		case n != len(g.Lanes[model].Spans):
			return nil, false
		}
	}
	if model < 0 {
		return nil, true
	}
	path := make([]SpanRef, len(g.Lanes[model].Spans))
	for i := range path {
		path[i] = SpanRef{model, i}
	}
	for l := model + 1; l < len(g.Lanes); l++ {
		for i := range g.Lanes[l].Spans {
			s, best := &g.Lanes[l].Spans[i], path[i]
			if s.Addr != g.Lanes[model].Spans[i].Addr {
				return nil, false
			}
			if s.End > g.Lanes[best.Lane].Spans[best.Span].End {
				path[i] = SpanRef{l, i}
			}
		}
	}
	return path, true
}

// byOperator is the path where lanes differ: steps are the same operator, as often as
// a lane has computed it.
func byOperator(g *Graph) []SpanRef {
	type step struct {
		addr uint64
		turn int
	}
	type found struct {
		ref   SpanRef
		begin time.Duration // of the first lane
	}
	at := map[step]int{}
	var steps []found
	for l := range g.Lanes {
		turns := map[uint64]int{}
		for i := range g.Lanes[l].Spans {
			s := &g.Lanes[l].Spans[i]
			key := step{s.Addr, turns[s.Addr]}
			turns[s.Addr]++
			n, ok := at[key]
			if !ok {
				at[key] = len(steps)
				steps = append(steps, found{SpanRef{l, i}, s.Begin})
				continue
			}
			steps[n].begin = min(steps[n].begin, s.Begin)
			if best := steps[n].ref; s.End > g.Lanes[best.Lane].Spans[best.Span].End {
				steps[n].ref = SpanRef{l, i}
			}
		}
	}
	slices.SortStableFunc(steps, func(a, b found) int { return cmp.Compare(a.begin, b.begin) })
	path := make([]SpanRef, len(steps))
	for i := range steps {
		path[i] = steps[i].ref
	}
	return path
}
