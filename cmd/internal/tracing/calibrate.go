package tracing

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/cli"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/optrace"
)

const (
	// calibrationGraphs is enough graphs of one phase for an estimate: the median of so many is not
	// distorted by a cold cache or by other programs.
	calibrationGraphs = 60
	// calibrationTime is how long to wait for them after the target starts decoding.
	calibrationTime = 2 * time.Second
	// promptPatience is how long to wait for decoding while the target processes prompts.
	promptPatience = 5 * time.Second
	// countGraphs is enough graphs to count operators in, if graphs do not report their number.
	countGraphs = 3
)

// calibrationDetail is the detail that is recorded to estimate costs: calls and graphs.
const calibrationDetail = optrace.LevelGraph &^ optrace.DetailBackend

// countingDetail is recorded for a short time if graphs do not report their number of operators,
// because their layout is unknown.
const countingDetail = calibrationDetail | optrace.DetailOperator

// calibration collects graphs until there are enough for an estimate.
type calibration struct {
	assembler *optrace.Assembler
	graphs    map[optrace.Phase][]*optrace.Graph
	first     time.Duration // start of the first graph; 0 if none
	decoded   time.Duration // end of the first decoded graph; 0 if none
	last      time.Duration
	hasTokens bool          // a call reported its tokens
	counting  bool          // operators are being counted, with countingDetail
	since     time.Duration // when the counting started
	operators []int         // operators of one thread in each counted graph
}

func newCalibration(t *optrace.Tables) *calibration {
	w := &calibration{graphs: map[optrace.Phase][]*optrace.Graph{}}
	w.assembler = optrace.New(t, optrace.Graphs(w.add))
	return w
}

// add adds a graph.
func (w *calibration) add(graph *optrace.Graph) {
	if w.counting {
		most := 0
		for i := range graph.Threads {
			most = max(most, len(graph.Threads[i].Spans))
		}
		if most > 0 {
			w.operators = append(w.operators, most)
		}
		return
	}
	if w.decoded == 0 && graph.Phase == optrace.PhaseDecode {
		w.decoded = graph.End
	}
	if list := w.graphs[graph.Phase]; len(list) < calibrationGraphs {
		w.graphs[graph.Phase] = append(list, graph)
	}
}

func (w *calibration) addEvents(events []optrace.Event) {
	for _, e := range events {
		w.assembler.Push(e)
		if w.first == 0 && e.Kind == optrace.GraphBegin {
			w.first = e.At
		}
		if e.Kind == optrace.CallBegin && e.N > 0 {
			w.hasTokens = true
		}
		w.last = e.At
	}
}

// enough reports whether there are enough graphs for an estimate.
func (w *calibration) enough() bool {
	switch {
	case w.counting:
		return len(w.operators) >= countGraphs || w.last-w.since > calibrationTime
	case w.decoded > 0:
		return len(w.graphs[optrace.PhaseDecode]) >= calibrationGraphs || w.last-w.decoded > calibrationTime
	case w.onlyUnknown():
		n := len(w.graphs[optrace.PhaseUnknown])
		return n >= calibrationGraphs || !optrace.FewExpected(n) && w.last-w.first > calibrationTime || w.last-w.first > promptPatience
	case w.first > 0:
		return w.last-w.first > promptPatience && w.typical() != nil
	}
	return false
}

// onlyUnknown reports whether all graphs have an unknown phase. If there are many, it will remain
// unknown which of them decode.
func (w *calibration) onlyUnknown() bool {
	return len(w.graphs) == 1 && len(w.graphs[optrace.PhaseUnknown]) > 0
}

// phase returns the phase to estimate from: decoding if it occurred, otherwise the phase with the
// most graphs.
func (w *calibration) phase() optrace.Phase {
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

// typical returns the graph of median duration of a phase, the shortest if there are few
// ([optrace.FewExpected]), nil if there are none.
func (w *calibration) typical() *optrace.Graph {
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

// from describes the graphs of the estimate.
func (w *calibration) from() string {
	switch w.phase() {
	case optrace.PhaseDecode:
		return optrace.ExpectedBefore
	case optrace.PhaseUnknown:
		return optrace.ExpectedUnknown
	}
	return optrace.ExpectedOther
}

// quietCalibration is how long a calibration takes before a notice says what it waits for.
const quietCalibration = time.Second

// waits describes what the calibration waits for, and the longest wait.
func (w *calibration) waits(most time.Duration) string {
	switch {
	case w.decoded > 0:
		return fmt.Sprintf("tracing only graphs first, for %v at most, to estimate the cost of tracing", min(calibrationTime, most))
	case w.first > 0:
		return fmt.Sprintf("waiting for a token to be decoded, for %v at most, to estimate the cost of tracing", min(promptPatience, most))
	}
	return fmt.Sprintf("waiting for the target to compute, for %v at most, to estimate the cost of tracing", most)
}

// calibrate records graphs, and estimates the cost of more detail.
func (t *tracing) calibrate(ctx context.Context) error {
	w := newCalibration(t.source.Tables())
	if err := t.source.SetDetail(calibrationDetail); err != nil {
		return cli.Fail(cli.ExitUnreachable, fmt.Errorf("trace: %w", err))
	}
	ctx, cancel := context.WithTimeout(ctx, t.o.duration)
	defer cancel()
	short, stop := context.WithTimeout(ctx, quietCalibration)
	defer stop()
	if err := t.drain(short, w.addEvents, w.enough); err != nil {
		return err
	}
	if ctx.Err() == nil && !t.ended() && !w.enough() {
		t.show.Show("")
		t.w.Notef("%s", w.waits(t.o.duration))
		if err := t.drain(ctx, w.addEvents, w.enough); err != nil {
			return err
		}
	}
	graph := w.typical()
	if graph == nil {
		return nil
	}
	if ctx.Err() == nil && !t.ended() && t.uncounted(w) {
		w.counting, w.since = true, w.last
		if err := t.source.SetDetail(countingDetail); err != nil {
			return cli.Fail(cli.ExitUnreachable, fmt.Errorf("trace: %w", err))
		}
		if err := t.drain(ctx, w.addEvents, w.enough); err != nil {
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

// notes returns a gap that names the graphs of the estimate, if they are not decode graphs.
func (w *calibration) notes() []optrace.Gap {
	gap := optrace.Gap{What: "what tracing costs while tokens are decoded"}
	graphs := figure.Counted(len(w.graphs[w.phase()]), "graph")
	switch w.phase() {
	case optrace.PhaseDecode:
		return nil
	case optrace.PhaseUnknown:
		gap.Why = "the phase of all graphs is unknown, in the trace and before it: this is the cost of " + graphs + " before it"
		gap.Next = "--measure-overhead measures it"
	default:
		gap.Why = "none was decoded before the trace, while the cost was estimated: this is the cost of " + graphs + " of other work"
		gap.Next = "trace while the target decodes, or with --measure-overhead"
	}
	return []optrace.Gap{gap}
}

// uncounted reports whether the number of operators in the graphs is unknown but can be counted.
func (t *tracing) uncounted(w *calibration) bool {
	graph := w.typical()
	return graph != nil && t.operators(w, graph) == 0 && t.source.Target().Hook != ""
}

// expectationOf returns the expected cost of tracing graphs like this one, for any level.
func (t *tracing) expectationOf(w *calibration, graph *optrace.Graph) optrace.Expectation {
	return optrace.Expectation{
		Nodes: t.operators(w, graph), Threads: len(graph.Threads), GraphTime: max(graph.End-graph.Begin, 1), Sites: t.source.Target().Sites,
		Graphs: len(w.graphs[w.phase()]), From: w.from(), Mute: !w.hasTokens,
	}
}

// operators returns the number of operators of a graph: as counted, or else that of its DAG if one
// was read, or else the number of its nodes.
func (t *tracing) operators(w *calibration, graph *optrace.Graph) int {
	tables := t.source.Tables()
	if len(w.operators) > 0 {
		return slices.Max(w.operators)
	}
	dag := tables.DAG(graph.DAG)
	if dag == nil {
		return graph.Nodes
	}
	n := optrace.ExecutedNodes(tables, dag)
	if slices.ContainsFunc(t.source.Target().Sites, func(s optrace.Site) bool { return strings.HasSuffix(s.Symbol, optrace.FusedSuffix) }) {
		n -= optrace.FusedNodes(tables, dag)
	}
	return n
}
