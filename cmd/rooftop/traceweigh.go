package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/engine/optrace"
)

const (
	// weighGraphs are enough graphs of one phase to reckon with: the middle one of so
	// many is not that of a cold cache or of a moment in which other programs ran.
	weighGraphs = 60
	// weighTime is how long they are waited for once the target decodes.
	weighTime = 2 * time.Second
	// weighPrompt is how long decoding is waited for while the target computes other
	// than tokens that it decodes: prompts.
	weighPrompt = 5 * time.Second
	// countGraphs are enough graphs to count operators in, where a graph does not say how
	// many it has.
	countGraphs = 3
)

// weighed is what is watched to reckon with: calls and graphs.
const weighed = optrace.LevelGraph &^ optrace.DetailBackend

// weighedOperators is what is watched for a moment where a graph does not say how many operators
// it has: the layout of graphs is not known.
const weighedOperators = weighed | optrace.DetailOperator

// weighing looks at graphs alone, until there are enough to reckon with.
type weighing struct {
	assembler *optrace.Assembler
	graphs    map[optrace.Phase][]*optrace.Graph
	first     time.Duration // graph that began; 0 none
	decoded   time.Duration // end of the first one that was decoded; 0 none
	last      time.Duration
	told      bool          // a call told its tokens
	counts    bool          // operators, as weighedOperators has it
	since     time.Duration // when it began to
	operators []int         // of one lane, in each of the graphs that were watched for that
}

func newWeighing(t *optrace.Tables) *weighing {
	w := &weighing{graphs: map[optrace.Phase][]*optrace.Graph{}}
	w.assembler = optrace.NewAssembler(t, w)
	return w
}

// Graph implements optrace.Receiver.
func (w *weighing) Graph(graph *optrace.Graph) {
	if w.counts {
		most := 0
		for i := range graph.Lanes {
			most = max(most, len(graph.Lanes[i].Spans))
		}
		if most > 0 {
			w.operators = append(w.operators, most)
		}
		return
	}
	if w.decoded == 0 && graph.Phase == optrace.PhaseDecode {
		w.decoded = graph.End
	}
	if list := w.graphs[graph.Phase]; len(list) < weighGraphs {
		w.graphs[graph.Phase] = append(list, graph)
	}
}

// Call implements optrace.Receiver.
func (w *weighing) Call(*optrace.Call) {}

func (w *weighing) take(events []optrace.Event) {
	for _, e := range events {
		w.assembler.Push(e)
		if w.first == 0 && e.Kind == optrace.GraphBegin {
			w.first = e.At
		}
		if e.Kind == optrace.CallBegin && e.N > 0 {
			w.told = true
		}
		w.last = e.At
	}
}

// enough says that there are graphs to reckon with.
func (w *weighing) enough() bool {
	switch {
	case w.counts:
		return len(w.operators) >= countGraphs || w.last-w.since > weighTime
	case w.decoded > 0:
		return len(w.graphs[optrace.PhaseDecode]) >= weighGraphs || w.last-w.decoded > weighTime
	case w.untold():
		n := len(w.graphs[optrace.PhaseUnknown])
		return n >= weighGraphs || !optrace.FewExpected(n) && w.last-w.first > weighTime || w.last-w.first > weighPrompt
	case w.first > 0:
		return w.last-w.first > weighPrompt && w.typical() != nil
	}
	return false
}

// untold says that there are graphs of which nothing says what they are for, and no others:
// where they are many, which of them decode will not be known either.
func (w *weighing) untold() bool {
	return len(w.graphs) == 1 && len(w.graphs[optrace.PhaseUnknown]) > 0
}

// count begins to count operators.
func (w *weighing) count() { w.counts, w.since = true, w.last }

// phase is the one to reckon with: that of tokens that are decoded where there were
// some, else the one that had most graphs.
func (w *weighing) phase() optrace.Phase {
	best := optrace.PhaseDecode
	if len(w.graphs[best]) > 0 {
		return best
	}
	for phase, list := range w.graphs {
		if more := len(list) - len(w.graphs[best]); more > 0 || more == 0 && phase < best {
			best = phase
		}
	}
	return best
}

// typical is the graph of middle length of a phase, the shortest of few
// ([optrace.FewExpected]); nil where none was seen.
func (w *weighing) typical() *optrace.Graph {
	list := w.graphs[w.phase()]
	if len(list) == 0 {
		return nil
	}
	slices.SortFunc(list, func(a, b *optrace.Graph) int { return cmp.Compare(a.End-a.Begin, b.End-b.Begin) })
	if optrace.FewExpected(len(list)) {
		return list[0]
	}
	return list[len(list)/2]
}

// from says what graphs those are.
func (w *weighing) from() string {
	switch w.phase() {
	case optrace.PhaseDecode:
		return optrace.ExpectedBefore
	case optrace.PhaseUnknown:
		return optrace.ExpectedUntold
	}
	return optrace.ExpectedOther
}

func graphsWord(n int) string {
	if n == 1 {
		return "1 graph"
	}
	return fmt.Sprintf("%d graphs", n)
}

// weighSilent is how long is weighed before it is said what is waited for.
const weighSilent = time.Second

// waits says what is waited for, and how long at most.
func (w *weighing) waits(most time.Duration) string {
	switch {
	case w.decoded > 0:
		return fmt.Sprintf("looks at graphs alone first, %v at most, to reckon what watching will cost", min(weighTime, most))
	case w.first > 0:
		return fmt.Sprintf("waits for a token to be decoded, %v at most, to reckon what watching will cost", min(weighPrompt, most))
	}
	return fmt.Sprintf("waits for the target to compute, %v at most, to reckon what watching will cost", most)
}

// weigh looks at graphs alone, and reckons what it will cost to watch more.
func (t *tracing) weigh(ctx context.Context, stderr io.Writer) error {
	if err := t.source.SetDetail(weighed); err != nil {
		return fail(exitUnreachable, fmt.Errorf("trace: %w", err))
	}
	w := newWeighing(t.source.Tables())
	ctx, cancel := context.WithTimeout(ctx, t.o.duration)
	defer cancel()
	short, stop := context.WithTimeout(ctx, weighSilent)
	defer stop()
	if err := t.drain(short, w.take, w.enough); err != nil {
		return err
	}
	if ctx.Err() == nil && !t.ended() && !w.enough() {
		t.show.say("")
		fmt.Fprintf(stderr, "rooftop: %s\n", w.waits(t.o.duration))
		if err := t.drain(ctx, w.take, w.enough); err != nil {
			return err
		}
	}
	graph := w.typical()
	if graph == nil {
		return nil
	}
	if ctx.Err() == nil && !t.ended() && t.uncounted(w) && !w.counts {
		w.count()
		if err := t.source.SetDetail(weighedOperators); err != nil {
			return fail(exitUnreachable, fmt.Errorf("trace: %w", err))
		}
		if err := t.drain(ctx, w.take, w.enough); err != nil {
			return err
		}
	}
	if ctx.Err() != nil && t.uncounted(w) {
		t.why = "a graph does not say how many operators it has, and there was no time to count them"
		return nil
	}
	t.expectation = t.expectationOf(w, graph)
	t.expectation.Detail = t.o.detail
	t.observer = optrace.Expect(t.expectation)
	t.notes = append(t.notes, w.notes()...)
	return nil
}

// notes say of what graphs the cost is where that is not of those that decode.
func (w *weighing) notes() []optrace.Gap {
	gap := optrace.Gap{What: "what tracing costs while tokens are decoded"}
	graphs := graphsWord(len(w.graphs[w.phase()]))
	switch w.phase() {
	case optrace.PhaseDecode:
		return nil
	case optrace.PhaseUnknown:
		gap.Why = "of no graph is known what it is for, neither of the trace nor before it: it is that of " + graphs + " before it"
		gap.Next = "--measure-overhead measures it"
	default:
		gap.Why = "none was decoded while it was reckoned, before the trace: it is that of " + graphs + " of other work"
		gap.Next = "trace while the target decodes, or with --measure-overhead"
	}
	return []optrace.Gap{gap}
}

// uncounted says that it is not known how many operators the graphs have that are to be
// reckoned with, and that they can be counted.
func (t *tracing) uncounted(w *weighing) bool {
	graph := w.typical()
	return graph != nil && t.operators(w, graph) == 0 && t.source.Target().Hook != ""
}

// expectationOf is what a graph tells of the cost of watching others like it, at a level
// that is left open.
func (t *tracing) expectationOf(w *weighing, graph *optrace.Graph) optrace.Expectation {
	return optrace.Expectation{
		Nodes: t.operators(w, graph), Lanes: len(graph.Lanes), GraphTime: max(graph.End-graph.Begin, 1), Sites: t.source.Target().Sites,
		Graphs: len(w.graphs[w.phase()]), From: w.from(), Mute: !w.told,
	}
}

// operators are how many a graph computes: those that were counted, else those of its DAG,
// where one was read, else every node.
func (t *tracing) operators(w *weighing, graph *optrace.Graph) int {
	tables := t.source.Tables()
	if len(w.operators) > 0 {
		return slices.Max(w.operators)
	}
	if graph.DAG == 0 || int(graph.DAG) > len(tables.DAGs) {
		return graph.Nodes
	}
	dag := &tables.DAGs[graph.DAG-1]
	n := optrace.ExecutedNodes(tables, dag)
	if slices.ContainsFunc(t.source.Target().Sites, func(s optrace.Site) bool { return strings.HasSuffix(s.Symbol, "_rms_norm_mul_fused") }) {
		n -= optrace.FusedNodes(tables, dag)
	}
	return n
}
