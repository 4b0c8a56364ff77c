package tally

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// model makes the tables of a decoder as llama.cpp builds it: 17 operators per layer and five
// around them, with its names.
type model struct {
	tables *optrace.Tables
	named  map[string]uint32
}

func newModel() *model { return &model{tables: &optrace.Tables{}, named: map[string]uint32{}} }

// add adds a tensor, once by name and shape.
func (m *model) add(t optrace.Tensor) uint32 {
	key := fmt.Sprint(t.Name, t.Type, t.NE)
	if ref, ok := m.named[key]; ok {
		return ref
	}
	m.tables.Tensors = append(m.tables.Tensors, t)
	m.named[key] = uint32(len(m.tables.Tensors))
	return m.named[key]
}

// op adds an operator.
func (m *model) op(op, sub string, out optrace.Tensor, in ...optrace.Tensor) uint32 {
	o := optrace.Operator{Op: op, Sub: sub, Out: m.add(out)}
	for _, t := range in {
		o.In = append(o.In, m.add(t))
	}
	m.tables.Operators = append(m.tables.Operators, o)
	return uint32(len(m.tables.Operators))
}

// decoder returns the operators of a graph with some tokens and a KV cache of some length, for
// a model of width 256 with 4 heads of 64 and 512 in the feed-forward part.
func (m *model) decoder(layers int, tokens, length int64) (refs []uint32) {
	x := func(name string, l int, width int64) optrace.Tensor {
		return tensor(fmt.Sprintf("%s-%d", name, l), "f32", width, tokens)
	}
	w := func(name string, l int, in, out int64) optrace.Tensor {
		return tensor(fmt.Sprintf("blk.%d.%s.weight", l, name), "q4_0", in, out)
	}
	refs = append(refs, m.op("GET_ROWS", "", tensor("inp_embd", "f32", 256, tokens), tensor("token_embd.weight", "q4_0", 256, 1000), tensor("inp_tokens", "i32", tokens)))
	for l := range layers {
		norm, q, k := x("attn_norm", l, 256), x("Qcur", l, 256), x("Kcur", l, 256)
		cache := tensor(fmt.Sprintf("cache_k_l%d (view)", l), "f16", 64, length, 4)
		refs = append(refs,
			m.op("RMS_NORM", "", x("norm", l, 256), x("l_out", l-1, 256)),
			m.op("MUL", "", norm, x("norm", l, 256), tensor(fmt.Sprintf("blk.%d.attn_norm.weight", l), "f32", 256)),
			m.op("MUL_MAT", "", q, w("attn_q", l, 256, 256), norm),
			m.op("MUL_MAT", "", k, w("attn_k", l, 256, 256), norm),
			m.op("MUL_MAT", "", x("Vcur", l, 256), w("attn_v", l, 256, 256), norm),
			m.op("ROPE", "", q, q), m.op("ROPE", "", k, k),
			m.op("SET_ROWS", "", tensor(fmt.Sprintf("cache_k_l%d (view)", l), "f16", 256, 4096), k),
			m.op("FLASH_ATTN_EXT", "", tensor(fmt.Sprintf("__fattn__-%d", l), "f32", 64, 4, tokens), tensor("q", "f32", 64, tokens, 4), cache, cache),
			m.op("MUL_MAT", "", tensor("node_27", "f32", 256, tokens), w("attn_output", l, 256, 256), x("kqv_out", l, 256)),
			m.op("ADD", "", x("ffn_inp", l, 256), x("l_out", l-1, 256), norm),
			m.op("MUL_MAT", "", x("ffn_gate", l, 512), w("ffn_gate", l, 256, 512), norm),
			m.op("MUL_MAT", "", x("ffn_up", l, 512), w("ffn_up", l, 256, 512), norm),
			m.op("GLU", "SWIGLU", x("ffn_swiglu", l, 512), x("ffn_gate", l, 512), x("ffn_up", l, 512)),
			m.op("MUL_MAT", "", x("ffn_out", l, 256), w("ffn_down", l, 512, 256), x("ffn_swiglu", l, 512)),
			m.op("ADD", "", x("l_out", l, 256), x("ffn_out", l, 256), x("ffn_inp", l, 256)),
		)
	}
	return append(refs, m.op("MUL_MAT", "", tensor("result_output", "f32", 1000, tokens), tensor("output.weight", "q6_K", 256, 1000), x("result_norm", 0, 256)))
}

// run makes a graph of consecutive operators; took returns how long each takes on each thread.
// All threads begin an operator when the last one has finished the previous one.
func run(refs []uint32, lanes int, begin time.Duration, took func(step, lane int) time.Duration) *optrace.Graph {
	g := &optrace.Graph{Call: -1, Begin: begin, Threads: make([]optrace.Thread, lanes)}
	at := begin + time.Microsecond // the start
	for k, ref := range refs {
		last := at
		for l := range g.Threads {
			end := at + took(k, l)
			g.Threads[l].TID = int32(100 + l)
			g.Threads[l].Spans = append(g.Threads[l].Spans, optrace.Span{Operator: ref, Addr: uint64(k + 1), Begin: at, End: end})
			g.Threads[l].Busy += end - at
			last = max(last, end)
		}
		for l := range g.Threads {
			s := &g.Threads[l].Spans[k]
			s.Sync = last - s.End
			g.Threads[l].Sync += s.Sync
		}
		at = last
	}
	g.End = at
	g.Critical = optrace.CriticalPath(g)
	return g
}

// each gives every operator the same time.
func each(d time.Duration) func(int, int) time.Duration {
	return func(int, int) time.Duration { return d }
}

// decodes adds calls of one token each, and returns when the last one ended.
func decodes(t *Tally, refs []uint32, n, lanes int, begin, took time.Duration) time.Duration {
	for i := range n {
		g := run(refs, lanes, begin, each(took))
		g.Phase, g.Tokens, g.Call, g.Index = optrace.PhaseDecode, 1, t.calls, t.graphs
		t.Graph(g)
		t.Call(&optrace.Call{Index: g.Call, Phase: optrace.PhaseDecode, Tokens: 1, Begin: begin, End: g.End + time.Microsecond, Graphs: []int{i}})
		begin = g.End + 100*time.Microsecond
	}
	return begin
}

func near(t *testing.T, what string, got stat.Opt, want float64) {
	t.Helper()
	if !got.OK || math.Abs(got.V-want) > 1e-9*math.Max(1, math.Abs(want)) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// TestSummaryOfDecodes checks the figures of a run that is known completely.
func TestSummaryOfDecodes(t *testing.T) {
	m := newModel()
	refs := m.decoder(3, 1, 256)
	tally := New(m.tables)
	begin := time.Second
	decodes(tally, refs, 10, 2, begin, 10*time.Microsecond)
	s := tally.Summary(Settings{Begin: begin, Span: time.Second, Detail: optrace.LevelAll})

	operators := 3*16 + 2
	graph := time.Microsecond + time.Duration(operators)*10*time.Microsecond
	p := s.Phases[0]
	if len(s.Phases) != 1 || p.Phase != "decode" || p.Calls != 10 || p.Tokens != 10 || p.Graph.Mean != graph || p.Call.Max != graph+time.Microsecond {
		t.Errorf("phases: %+v", s.Phases)
	}
	near(t, "tokens a second", p.Rate, 1/(graph+time.Microsecond).Seconds())
	if p.Between.Count != 9 || p.Between.Mean != 99*time.Microsecond {
		t.Errorf("between calls: %+v", p.Between)
	}
	// Weights of a layer: 4 of 256 x 256 and 3 of 256 x 512 in q4_0 (0.5625 bytes); the
	// output 256 x 1000 in q6_K.
	layerBytes := (4*65536 + 3*131072) * 0.5625
	for _, row := range s.Types {
		switch row.Type {
		case "q4_0":
			near(t, "weights of q4_0", row.Weights, 3*layerBytes)
		case "q6_K":
			near(t, "weights of q6_K", row.Weights, 210000)
		}
	}
	near(t, "coverage", s.Coverage.OpShare, float64(operators)*10/(float64(operators)*10+1))
	near(t, "operators", s.Coverage.OpsPerToken, float64(operators))
	near(t, "graphs of calls", s.Coverage.GraphOf, graph.Seconds()/(graph+time.Microsecond).Seconds())

	byKind := map[string]optrace.OperatorRow{}
	for _, k := range s.Kinds {
		byKind[k.Op+" "+k.Type] = k
	}
	if k := byKind["MUL_MAT q4_0"]; k.Count != 210 || k.Time != 2100*time.Microsecond || k.Each.P99 != 10*time.Microsecond {
		t.Errorf("matmuls: %+v", k)
	}
	near(t, "share of matmuls", byKind["MUL_MAT q4_0"].Share, 21/float64(operators))
	names := map[string]optrace.OperatorRow{}
	for _, row := range s.Steps {
		names[row.Name+" "+row.Op] = row
	}
	for _, want := range []string{"ffn_up MUL_MAT", "Qcur MUL_MAT", "Qcur ROPE", "attn_output MUL_MAT", "fattn FLASH_ATTN_EXT", "cache_k SET_ROWS", "result_output MUL_MAT", "inp_embd GET_ROWS"} {
		if names[want].Count == 0 {
			t.Errorf("no step %q among %d", want, len(names))
		}
	}
	if row := names["attn_output MUL_MAT"]; row.Count != 30 {
		t.Errorf("a node without a name goes by its weights: %+v", row)
	}
	if len(s.Layers) != 4 || s.Layers[0].Layer != -1 || s.Layers[1].Time != 10*160*time.Microsecond {
		t.Errorf("layers: %+v", s.Layers)
	}
	// Of layer 1: norm and its product; q, k, v, two ropes, the cache, attention and
	// the output; three products and the function between; both additions.
	want := map[string]time.Duration{"norm": 200, "attention": 800, "feed-forward": 400, "other": 200}
	for part, n := range want {
		if got := s.Layers[2].Parts[part]; got != n*time.Microsecond {
			t.Errorf("layer 1, %s: %v, want %v", part, got, n*time.Microsecond)
		}
	}
	near(t, "layer 1 over the median", s.Layers[2].Slow, 1)
	if len(s.Threads) != 2 || s.Threads[1].ThreadIDs != 1 {
		t.Errorf("threads: %+v", s.Threads)
	}
	near(t, "busy", s.Threads[1].Busy, float64(operators)*10/(float64(operators)*10+1))
	if len(s.Tokens) != 10 || s.Tokens[0].Begin != 0 || s.Tokens[0].Context != 256 || s.Tokens[3].Graph != graph {
		t.Errorf("tokens: %+v", s.Tokens)
	}
	if len(s.Context) != 1 || s.Context[0].Length != 256 || s.Context[0].Graphs != 10 || s.Context[0].Attention != 30*time.Microsecond {
		t.Errorf("context: %+v", s.Context)
	}
	if s.Experts != nil {
		t.Errorf("experts: %+v", s.Experts)
	}
}

// TestTimeOfAnOperator checks that the time is from the first begin to the last end, without
// what a thread that lost its CPU adds after the barrier.
func TestTimeOfAnOperator(t *testing.T) {
	m := newModel()
	a, b := m.op("ADD", "", tensor("a-0", "f32", 4), tensor("x", "f32", 4)), m.op("MUL", "", tensor("b-0", "f32", 4), tensor("x", "f32", 4))
	us := time.Microsecond
	// Lane 1 begins the second operator 500 us late: without barriers its first span
	// lasts until then.
	g := &optrace.Graph{Phase: optrace.PhaseDecode, Call: -1, End: 1000 * us, Threads: []optrace.Thread{
		{TID: 1, Spans: []optrace.Span{{Operator: a, Addr: 1, Begin: 2 * us, End: 100 * us}, {Operator: b, Addr: 2, Begin: 100 * us, End: 1000 * us}}},
		{TID: 2, Spans: []optrace.Span{{Operator: a, Addr: 1, Begin: 0, End: 600 * us, Off: 500 * us}, {Operator: b, Addr: 2, Begin: 600 * us, End: 990 * us}}},
	}}
	tally := New(m.tables)
	tally.Graph(g)
	s := tally.Summary(Settings{Detail: optrace.LevelSched})
	if len(s.Kinds) != 2 || s.Kinds[0].Op != "MUL" || s.Kinds[0].Time != 900*us || s.Kinds[1].Time != 100*us || s.Kinds[1].Off != optrace.SomeTime(250*us) {
		t.Errorf("got %+v", s.Kinds)
	}
}

// TestSharesAddUp checks that the shares of random graphs add up.
func TestSharesAddUp(t *testing.T) {
	for seed := range uint64(20) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		m := newModel()
		decode, prefill := m.decoder(1+rnd.IntN(4), 1, 256), m.decoder(2, 24, 256)
		tally := New(m.tables)
		begin, graphs, critical := time.Second, time.Duration(0), time.Duration(0)
		for range 1 + rnd.IntN(20) {
			refs, phase := decode, optrace.PhaseDecode
			if rnd.IntN(3) == 0 {
				refs, phase = prefill, optrace.PhasePrefill
			}
			g := run(refs, 1+rnd.IntN(4), begin, func(int, int) time.Duration { return time.Duration(rnd.IntN(100_000)) })
			g.Phase, begin = phase, g.End
			graphs += g.End - g.Begin
			if phase == optrace.PhaseDecode {
				critical += g.End - g.Begin
			}
			tally.Graph(g)
		}
		s := tally.Summary(Settings{})
		operators := time.Duration(0)
		for _, k := range s.Kinds {
			operators += k.Time
		}
		if starts := time.Duration(s.Coverage.Graphs) * time.Microsecond; operators+starts != graphs {
			t.Errorf("seed %d: operators took %v and starts %v of %v", seed, operators, starts, graphs)
		}
		path := time.Duration(0)
		for _, row := range s.Critical {
			path += row.Time
		}
		if path != critical {
			t.Errorf("seed %d: critical paths take %v of %v", seed, path, critical)
		}
		adds := map[string]float64{}
		for _, k := range s.Kinds {
			adds["kinds "+k.Phase] += k.Share.V
		}
		for _, k := range s.Steps {
			adds["steps "+k.Phase] += k.Share.V
		}
		for _, l := range s.Layers {
			adds["layers "+l.Phase] += l.Share.V
			parts := time.Duration(0)
			for _, d := range l.Parts {
				parts += d
			}
			if parts != l.Time {
				t.Errorf("seed %d: the parts of layer %d take %v of %v", seed, l.Layer, parts, l.Time)
			}
		}
		for _, c := range s.Critical {
			adds["critical"] += c.Share.V
		}
		for what, sum := range adds {
			if math.Abs(sum-1) > 1e-9 {
				t.Errorf("seed %d: shares of %s add up to %v", seed, what, sum)
			}
		}
	}
}

// TestLimits exceeds the limits of rows.
func TestLimits(t *testing.T) {
	m := newModel()
	var refs []uint32
	for i := range maxSteps + 100 {
		refs = append(refs, m.op(fmt.Sprintf("OP_%d", i%(maxKinds+50)), "", tensor(fmt.Sprintf("step %d-%d", i, i), "f32", 4)))
	}
	tally := New(m.tables)
	g := run(refs, 1, 0, each(time.Microsecond))
	tally.Graph(g)
	tally.Graph(g)
	s := tally.Summary(Settings{})
	if len(s.Kinds) != maxKinds+1 || len(s.Steps) != maxSteps+1 {
		t.Fatalf("%d kinds, %d steps", len(s.Kinds), len(s.Steps))
	}
	sum := 0.0
	for _, k := range s.Kinds {
		sum += k.Share.V
	}
	if math.Abs(sum-1) > 1e-9 || s.Kinds[0].Op != others || len(s.Gaps) == 0 {
		t.Errorf("shares %v, first %q, gaps %v", sum, s.Kinds[0].Op, s.Gaps)
	}
}

// TestBoundedMemory has more operators, open calls and shapes of graphs than are kept.
func TestBoundedMemory(t *testing.T) {
	tables := &optrace.Tables{Operators: make([]optrace.Operator, maxFacts+100), DAGs: make([]optrace.DAG, maxOpen+100)}
	tally := New(tables)
	var refs []uint32
	for i := range tables.Operators {
		refs = append(refs, uint32(i+1))
	}
	tally.Graph(run(refs, 1, 0, each(time.Microsecond)))
	for i := range tables.DAGs { // their calls never end
		tally.Graph(&optrace.Graph{Call: i, DAG: uint32(i + 1), Phase: optrace.PhaseDecode})
	}
	if len(tally.facts) != maxFacts || len(tally.shapes) != maxShapes || len(tally.decoded.nodes) != maxShapes || len(tally.open) > maxOpen {
		t.Errorf("%d facts, %d shapes, %d with counts of nodes, %d open calls", len(tally.facts), len(tally.shapes), len(tally.decoded.nodes), len(tally.open))
	}
}

// TestWithheld has a runtime whose names are unknown: times by thread remain.
func TestWithheld(t *testing.T) {
	tables := &optrace.Tables{Operators: []optrace.Operator{{}, {}}}
	tally := New(tables)
	g := run([]uint32{1, 2, 0}, 2, 0, each(time.Microsecond))
	g.Phase = optrace.PhaseDecode
	tally.Graph(g)
	s := tally.Summary(Settings{Peak: optrace.Peak{BytesPerSecond: 1e9, FlopsPerSecond: 1e9, From: "measured"}})
	if len(s.Kinds) != 1 || s.Kinds[0].Count != 3 || s.Kinds[0].Bytes.OK || s.Kinds[0].Bound != optrace.BoundUnknown || s.Kinds[0].BoundFrom != "" {
		t.Errorf("kinds: %+v", s.Kinds)
	}
	if s.Phases[0].Bytes.OK || s.Phases[0].Ceiling.OK {
		t.Errorf("phases: %+v", s.Phases)
	}
}
