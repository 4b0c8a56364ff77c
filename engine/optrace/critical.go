package optrace

import (
	"cmp"
	"slices"
	"time"
)

// CriticalPath returns the spans that decided how long a graph took. GGML computes node by node
// with a barrier in between, so a step takes as long as the compute thread that finishes last:
// for each operator, in the order in which they began, it is that thread's span, or the lowest
// thread's if several finish together. Compute threads may lack operators. If barriers are not
// traced, a span ends when the thread's next one begins, and waiting counts as work.
func CriticalPath(g *Graph) []SpanRef {
	if path, ok := stepByStep(g); ok {
		return path
	}
	return byOperator(g)
}

// stepByStep returns the path if all compute threads with spans have the same operators in the
// same order.
func stepByStep(g *Graph) ([]SpanRef, bool) {
	model := -1
	for l := range g.Threads {
		switch n := len(g.Threads[l].Spans); {
		case n == 0:
		case model < 0:
			model = l
		case n != len(g.Threads[model].Spans):
			return nil, false
		}
	}
	if model < 0 {
		return nil, true
	}
	path := make([]SpanRef, len(g.Threads[model].Spans))
	for i := range path {
		path[i] = SpanRef{Thread: model, Span: i}
	}
	for l := model + 1; l < len(g.Threads); l++ {
		for i := range g.Threads[l].Spans {
			s, best := &g.Threads[l].Spans[i], path[i]
			if s.Addr != g.Threads[model].Spans[i].Addr {
				return nil, false
			}
			if s.End > g.Threads[best.Thread].Spans[best.Span].End {
				path[i] = SpanRef{Thread: l, Span: i}
			}
		}
	}
	return path, true
}

// byOperator returns the path if compute threads differ: a step is the n-th time that a compute
// thread computes the same operator.
func byOperator(g *Graph) []SpanRef {
	type step struct {
		addr uint64
		turn int
	}
	type found struct {
		ref   SpanRef
		begin time.Duration // earliest of all compute threads
	}
	at := map[step]int{}
	var steps []found
	for l := range g.Threads {
		turns := map[uint64]int{}
		for i := range g.Threads[l].Spans {
			s := &g.Threads[l].Spans[i]
			key := step{s.Addr, turns[s.Addr]}
			turns[s.Addr]++
			n, ok := at[key]
			if !ok {
				at[key] = len(steps)
				steps = append(steps, found{SpanRef{Thread: l, Span: i}, s.Begin})
				continue
			}
			steps[n].begin = min(steps[n].begin, s.Begin)
			if best := steps[n].ref; s.End > g.Threads[best.Thread].Spans[best.Span].End {
				steps[n].ref = SpanRef{Thread: l, Span: i}
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
