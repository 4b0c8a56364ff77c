package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/engine/optrace"
)

// operatorSource hands over what a runtime does: an attached session, or a test's.
type operatorSource interface {
	SetDetail(optrace.Detail) error
	Next(context.Context) ([]optrace.Event, error)
	Tables() *optrace.Tables
	Target() optrace.Target
	Dropped() int64
	Gaps() []optrace.Gap
	Close() error
}

const (
	// weighGraphs are enough graphs of one phase to reckon with.
	weighGraphs = 20
	// weighTime is how long they are waited for once the target computes.
	weighTime = 2 * time.Second
	// maxKept bounds the events that are kept for files: 192 MB of memory. Figures are
	// of all events.
	maxKept = 4 << 20
)

// weighed is what is watched to reckon with: calls and graphs.
const weighed = optrace.LevelGraph &^ optrace.DetailBackend

// watch attaches to a runtime, says what watching will cost, and records.
func (o *traceOptions) watch(ctx context.Context, w *world) (*traced, error) {
	source, err := o.attach()
	if err != nil {
		return nil, err
	}
	defer source.Close()
	t := &tracing{o: o, source: source, show: newProgress(w, &o.output)}
	defer t.show.done()
	if o.detail&optrace.DetailOperator != 0 {
		t.show.say("attached; waits for the target to compute")
		if err := t.weigh(ctx); err != nil {
			return nil, err
		}
		if err := t.afford(w); err != nil {
			return nil, err
		}
		if o.measure {
			if err := t.measure(ctx, w.stderr); err != nil {
				return nil, err
			}
		}
	}
	return t.record(ctx)
}

// tracing is a trace that goes on.
type tracing struct {
	o      *traceOptions
	source operatorSource
	show   *progress
	// expectation is what the expected cost is reckoned from.
	expectation optrace.Expectation
	observer    optrace.Observer
	ended       bool // the target did, or became another program, at whatever step
}

// drain hands events over until the context ends, the target does, or enough says so.
func (t *tracing) drain(ctx context.Context, take func([]optrace.Event), enough func() bool) error {
	var err error
	for err == nil && !t.ended && !enough() {
		var events []optrace.Event
		events, err = t.source.Next(ctx)
		take(events)
		t.ended = t.ended || slices.ContainsFunc(events, func(e optrace.Event) bool {
			return e.Kind == optrace.TargetExit || e.Kind == optrace.TargetExec
		})
	}
	if err == nil || ctx.Err() != nil || errors.Is(err, io.EOF) {
		return nil //nolint:nilerr // that is how it ends
	}
	return fail(exitError, fmt.Errorf("trace: %w", err))
}

// weigher takes in graphs alone.
type weigher struct {
	graphs map[optrace.Phase][]*optrace.Graph
}

func (g *weigher) Graph(graph *optrace.Graph) {
	if list := g.graphs[graph.Phase]; len(list) < weighGraphs {
		g.graphs[graph.Phase] = append(list, graph)
	}
}

func (g *weigher) Call(*optrace.Call) {}

// typical is the graph of middle length of those that decode where there were some,
// else of the phase that had most; nil where none was seen.
func (g *weigher) typical() *optrace.Graph {
	list := g.graphs[optrace.PhaseDecode]
	for _, other := range g.graphs {
		if len(g.graphs[optrace.PhaseDecode]) == 0 && len(other) > len(list) {
			list = other
		}
	}
	if len(list) == 0 {
		return nil
	}
	slices.SortFunc(list, func(a, b *optrace.Graph) int { return cmp.Compare(a.End-a.Begin, b.End-b.Begin) })
	return list[len(list)/2]
}

// weigh looks at graphs alone, and reckons what it will cost to watch more.
func (t *tracing) weigh(ctx context.Context) error {
	if err := t.source.SetDetail(weighed); err != nil {
		return fail(exitUnreachable, fmt.Errorf("trace: %w", err))
	}
	g := &weigher{graphs: map[optrace.Phase][]*optrace.Graph{}}
	a := optrace.NewAssembler(t.source.Tables(), g)
	ctx, cancel := context.WithTimeout(ctx, t.o.duration)
	defer cancel()
	var first, last time.Duration
	err := t.drain(ctx, func(events []optrace.Event) {
		for _, e := range events {
			a.Push(e)
			if first == 0 && e.Kind == optrace.GraphBegin {
				first = e.At
			}
			last = e.At
		}
	}, func() bool {
		return len(g.graphs[optrace.PhaseDecode]) >= weighGraphs || first > 0 && last-first > weighTime
	})
	if err != nil {
		return err
	}
	if graph := g.typical(); graph != nil {
		t.expectation = optrace.Expectation{
			Detail: t.o.detail, Nodes: t.operators(graph), Lanes: max(len(graph.Lanes), 1), GraphTime: graph.End - graph.Begin,
			Sites: t.source.Target().Sites,
		}
		t.observer = optrace.Expect(t.expectation)
	}
	return nil
}

// operators are how many a graph computes: those of its DAG, where one was read, else
// every node.
func (t *tracing) operators(graph *optrace.Graph) int {
	tables := t.source.Tables()
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

// afford says what watching is expected to cost, and refuses what is above the limit.
func (t *tracing) afford(w *world) error {
	o, limit := t.observer, t.o.maxOverhead/100
	if o.HitsPerToken == 0 {
		if t.o.force {
			fmt.Fprintln(w.stderr, "rooftop: what watching will cost is not known: nothing was computed yet")
			return nil
		}
		fmt.Fprintln(w.stderr, "rooftop: what watching will cost is not known: nothing was computed yet; graphs alone are watched, --force watches more")
		t.o.detail = weighed
		return nil
	}
	t.show.say("")
	fmt.Fprintf(w.stderr, "rooftop: watching at this level is expected to cost %.1f %% of the target's speed (est): %.0f probe hits for a token of %v\n",
		100*o.Expected, o.HitsPerToken, t.expectation.GraphTime.Round(time.Microsecond))
	if t.o.force || o.Allowed(limit) {
		return nil
	}
	next := "--force traces all the same"
	if detail, less, ok := optrace.Lighten(t.expectation, limit); ok {
		next = fmt.Sprintf("--level %v would cost %.1f %%, --force traces all the same", detail, 100*less.Expected)
	}
	return fail(exitNothing, fmt.Errorf("trace: that is more than --max-overhead %v: %s", t.o.maxOverhead, next))
}
