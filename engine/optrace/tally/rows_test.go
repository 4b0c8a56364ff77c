package tally

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/engine/optrace/advice"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// mixture returns the operators of a layer with 8 experts, 2 of them used.
func (m *model) mixture(l int, tokens int64) []uint32 {
	w := func(name string) optrace.Tensor {
		return tensor(fmt.Sprintf("blk.%d.%s.weight", l, name), "q8_0", 256, 512, 8)
	}
	x, ids := tensor(fmt.Sprintf("ffn_norm-%d", l), "f32", 256, 1, tokens), tensor(fmt.Sprintf("ffn_moe_topk-%d", l), "i32", 2, tokens)
	out := tensor(fmt.Sprintf("ffn_moe_up-%d", l), "f32", 512, 2, tokens)
	return []uint32{m.op("MUL_MAT_ID", "", out, w("ffn_up_exps"), x, ids), m.op("MUL_MAT_ID", "", out, w("ffn_gate_exps"), x, ids)}
}

// TestExperts has two experts, of which the second takes twice as long.
func TestExperts(t *testing.T) {
	m := newModel()
	refs := append(m.mixture(3, 1), m.mixture(5, 1)...)
	tally := New(m.tables)
	for i := range 8 {
		pair := []int32{1, int32(2 + i%4)}
		m.tables.Experts = append(m.tables.Experts, optrace.ExpertChoice{Layer: 3, Used: 2, IDs: pair, Tokens: 1})
		ref := uint32(len(m.tables.Experts))
		g := run(refs, 2, 0, each(time.Millisecond))
		for l := range g.Threads {
			g.Threads[l].Spans[0].Experts = ref // the ids are read once a layer
		}
		tally.Graph(g)
	}
	e := tally.Summary(Settings{}).Experts
	if e == nil || e.Count != 8 || e.Used != 2 || e.Tokens != 8 || len(e.Layers) != 1 || e.Layers[0].Layer != 3 {
		t.Fatalf("got %+v", e)
	}
	l := e.Layers[0]
	if fmt.Sprint(l.Chosen) != "[0 8 2 2 2 2 0 0]" {
		t.Errorf("chosen %v", l.Chosen)
	}
	near(t, "top", l.Top, 1)
	// Counts of mean 2: squares 3x4 + 36 + 4x0 over 8 are 6.
	near(t, "variation", l.CV, math.Sqrt(6)/2)
	near(t, "variation of all layers", e.CV, math.Sqrt(6)/2)
	near(t, "time of expert 1", l.Time[1], 0.002)
	if l.Time[0].OK {
		t.Error("an expert that was never chosen has a time")
	}
	if e.TimeCV.OK { // only expert 1 was timed five times
		t.Errorf("the time of one expert varies by %v", e.TimeCV.V)
	}
}

// TestExpertTimesWithoutInterference has two experts that take 2 and 3 ms, and a process that
// preempts thread 0 for 50 ms in one of the first's batches, which must not count.
func TestExpertTimesWithoutInterference(t *testing.T) {
	for _, sleeps := range []bool{false, true} {
		m := newModel()
		refs := m.mixture(3, 1)
		m.tables.Experts = []optrace.ExpertChoice{{Layer: 3, Used: 1, IDs: []int32{0}, Tokens: 1}, {Layer: 3, Used: 1, IDs: []int32{4}, Tokens: 1}, {Layer: 3, Used: 1, IDs: []int32{6}, Tokens: 1}}
		tally := New(m.tables)
		batch := func(expert uint32, took, off time.Duration) {
			g := run(refs, 2, 0, each(took+off))
			for l := range g.Threads {
				g.Threads[l].Spans[0].Experts = expert
			}
			g.Threads[0].Spans[1].Off = off
			tally.Graph(g)
		}
		for range fewestTimes {
			batch(1, time.Millisecond, 0)
			batch(2, 3*time.Millisecond/2, 0)
		}
		batch(3, 9*time.Millisecond, 0) // once: it says nothing about the expert
		if sleeps {
			batch(1, time.Millisecond, 50*time.Millisecond)
		}
		e := tally.Summary(Settings{}).Experts
		near(t, "expert 0", e.Layers[0].Time[0], 0.002)
		near(t, "expert 4", e.Layers[0].Time[4], 0.003)
		near(t, "expert 6", e.Layers[0].Time[6], 0.018)
		// 2 and 3 are a fifth of their mean away from it.
		near(t, "variation of times", e.TimeCV, 0.2)
	}
}

// TestExpertTimesOfADisturbedTrace checks that no expert is called slow if some tokens take
// many times as long as others for an unknown reason; with scheduling the times are kept.
func TestExpertTimesOfADisturbedTrace(t *testing.T) {
	for detail, told := range map[optrace.Detail]bool{optrace.LevelTensor: false, optrace.LevelSched: true} {
		m := newModel()
		refs := m.mixture(3, 1)
		m.tables.Experts = []optrace.ExpertChoice{{Layer: 3, Used: 1, IDs: []int32{0}, Tokens: 1}, {Layer: 3, Used: 1, IDs: []int32{4}, Tokens: 1}}
		tally := New(m.tables)
		for i := range 2 * optrace.FewestGraphs {
			took, expert := time.Millisecond, uint32(1)
			if i%4 == 0 {
				took, expert = 40*time.Millisecond, 2
			}
			g := run(refs, 1, 0, each(took))
			g.Threads[0].Spans[0].Experts = expert
			g.Phase, g.Tokens = optrace.PhaseDecode, 1
			tally.Graph(g)
		}
		s := tally.Summary(Settings{Detail: detail})
		gap := s.FindGap(advice.GapExpertTimes)
		if e := s.Experts; e.TimeCV.OK != told || e.Layers[0].Time[4].OK != told || (gap == nil) != told || len(e.Layers[0].Chosen) != 8 {
			t.Errorf("at %s: CV %v, times %v, gap %v", detail, e.TimeCV, e.Layers[0].Time, gap)
		}
	}
}

// TestExpertsOutOfRange has impossible ids, and tokens that were not all read.
func TestExpertsOutOfRange(t *testing.T) {
	m := newModel()
	refs := m.mixture(0, 3)
	m.tables.Experts = []optrace.ExpertChoice{{Layer: 0, Used: 2, IDs: []int32{-1, 7, 8, 1 << 30, 3}, Tokens: 3}}
	g := run(refs, 1, 0, each(time.Millisecond))
	g.Threads[0].Spans[0].Experts = 1
	tally := New(m.tables)
	tally.Graph(g)
	e := tally.Summary(Settings{}).Experts
	if e.Count != 8 || e.Tokens != 2 || fmt.Sprint(e.Layers[0].Chosen) != "[0 0 0 0 0 0 0 1]" || e.TimeCV.OK {
		t.Errorf("got %+v", e)
	}
}

// TestContext has attention that grows with the cache, at more lengths than rows.
func TestContext(t *testing.T) {
	m := newModel()
	tally := New(m.tables)
	graphs := 0
	for i := range int64(600) {
		length := (i + 1) * 32
		g := run(m.decoder(1, 1, length), 1, 0, func(k, _ int) time.Duration {
			if k == 9 { // FLASH_ATTN_EXT
				return time.Duration(length)
			}
			return 100
		})
		g.Phase = optrace.PhaseDecode
		tally.Graph(g)
	}
	rows := tally.Summary(Settings{}).Context
	if len(rows) > maxLengths || len(rows) < maxLengths/2 {
		t.Fatalf("%d rows", len(rows))
	}
	for i, row := range rows {
		graphs += row.Graphs
		if row.Attention > time.Duration(row.Length) || int64(row.Attention) < row.Length-128 {
			t.Errorf("at %d: %v", row.Length, row.Attention)
		}
		if i > 0 && row.Length <= rows[i-1].Length {
			t.Errorf("%d after %d", row.Length, rows[i-1].Length)
		}
	}
	if graphs != 600 {
		t.Errorf("%d graphs", graphs)
	}
}

// TestAttentionWithoutFlash takes the length from the scores.
func TestAttentionWithoutFlash(t *testing.T) {
	m := newModel()
	scores := tensor("kq-0", "f32", 512, 1, 4)
	refs := []uint32{
		m.op("MUL_MAT", "", scores, tensor("cache_k_l0 (view)", "f16", 64, 512, 4), tensor("q", "f32", 64, 1, 4)),
		m.op("SOFT_MAX", "", tensor("kq_soft_max-0", "f32", 512, 1, 4), scores),
		m.op("MUL_MAT", "", tensor("kqv-0", "f32", 64, 1, 4), tensor("cache_v_l0 (view)", "f16", 512, 64, 4), scores),
		m.op("MUL_MAT", "", tensor("attn_out-0", "f32", 256), tensor("blk.0.attn_output.weight", "q4_0", 256, 256), tensor("kqv_out-0", "f32", 256)),
	}
	g := run(refs, 1, 0, each(time.Microsecond))
	g.Phase = optrace.PhaseDecode
	tally := New(m.tables)
	tally.Graph(g)
	rows := tally.Summary(Settings{}).Context
	if len(rows) != 1 || rows[0].Length != 512 || rows[0].Attention != 3*time.Microsecond {
		t.Errorf("got %+v", rows)
	}
}

// TestFirstToken has a prompt in two batches, and a second one without a decode after it.
func TestFirstToken(t *testing.T) {
	tally := New(&optrace.Tables{})
	ms := time.Millisecond
	call := func(phase optrace.Phase, tokens int, begin, end time.Duration) {
		tally.Call(&optrace.Call{Index: tally.calls, Phase: phase, Tokens: tokens, Begin: begin, End: end})
	}
	call(optrace.PhasePrefill, 512, 1*ms, 101*ms)
	call(optrace.PhasePrefill, 100, 102*ms, 122*ms)
	call(optrace.PhaseDecode, 1, 125*ms, 135*ms)
	call(optrace.PhaseDecode, 1, 137*ms, 147*ms)
	call(optrace.PhasePrefill, 10, 5000*ms, 5010*ms) // another request, after a long wait
	call(optrace.PhasePrefill, 10, 9000*ms, 9010*ms) // and another: the previous one wanted no token
	call(optrace.PhaseDecode, 1, 9011*ms, 9021*ms)
	rows := tally.Summary(Settings{}).Phases
	if len(rows) != 2 || rows[0].Phase != "prefill" || rows[1].Phase != "decode" {
		t.Fatalf("got %+v", rows)
	}
	if f := rows[0].FirstToken; f.Count != 2 || f.Max != 124*ms || f.Mean != (124+11)*ms/2 {
		t.Errorf("first tokens: %+v", f)
	}
	near(t, "prefill", rows[0].Rate, 632/0.140)
	near(t, "decode", rows[1].Rate, 100)
	if b := rows[1].Between; b.Count != 1 || b.Max != 2*ms {
		t.Errorf("between decodes: %+v", b)
	}
}

// TestPaceOfAnswers has decodes of 10 ms with 2 ms in between, waits for requests with
// one-token prompts, and a decode before a prompt, which counts for no answer.
func TestPaceOfAnswers(t *testing.T) {
	ms := time.Millisecond
	paced := func(calls, waits int, pause time.Duration) stat.Opt {
		tally, at := New(&optrace.Tables{}), ms
		for i := range calls {
			tally.Call(&optrace.Call{Index: i, Phase: optrace.PhaseDecode, Tokens: 1, Begin: at, End: at + 10*ms})
			if at += 10*ms + pause; i < waits {
				at += 150 * ms
			}
		}
		tally.Call(&optrace.Call{Index: calls, Phase: optrace.PhasePrefill, Tokens: 9, Begin: at + time.Second, End: at + 2*time.Second})
		return tally.Summary(Settings{}).Phases[len(tally.Summary(Settings{}).Phases)-1].Paced
	}
	near(t, "answers", paced(40, 0, 2*ms), 1000.0/12)
	near(t, "with waits", paced(40, 10, 2*ms), 1000.0/12)
	for name, got := range map[string]stat.Opt{"one call": paced(1, 0, 0), "waits above all": paced(40, 30, 2*ms), "calls at once": paced(40, 0, -ms)} {
		if got.OK {
			t.Errorf("%s: %v", name, got)
		}
	}
	p := optrace.PhaseRow{Rate: stat.Some(100), Paced: stat.Some(94)}
	if !p.PaceDiffers() {
		t.Error("6 % make no difference")
	}
	if p.Paced = stat.Some(96); p.PaceDiffers() {
		t.Error("4 % make a difference")
	}
	if p.Paced = stat.None; p.PaceDiffers() {
		t.Error("what is not known makes a difference")
	}
}

// TestInferredEnd has a call whose end was not seen: it ends with its last graph.
func TestInferredEnd(t *testing.T) {
	tally := New(&optrace.Tables{})
	tally.Graph(&optrace.Graph{Call: 0, Phase: optrace.PhaseDecode, Tokens: 1, Begin: 10, End: 110})
	tally.Call(&optrace.Call{Phase: optrace.PhaseDecode, Tokens: 1, Begin: 5})
	row := tally.Summary(Settings{}).Phases[0]
	if row.Call.Max != 105 {
		t.Errorf("got %+v", row.Call)
	}
	tally.Call(&optrace.Call{Index: 1, Phase: optrace.PhaseDecode, Tokens: 1, Begin: 200})
	if row := tally.Summary(Settings{}).Phases[0]; row.Calls != 2 || row.Call.Count != 1 {
		t.Errorf("a call without any end has a time: %+v", row)
	}
}

// TestTheReader checks that rooftop's own CPU time is a cost of the trace: the share is by the
// thread that lost most to it.
func TestTheReader(t *testing.T) {
	tally := New(&optrace.Tables{})
	const ms = time.Millisecond
	tally.Graph(&optrace.Graph{End: 100 * ms, Threads: []optrace.Thread{{TID: 1, Tracer: 15 * ms}, {TID: 2, Tracer: 5 * ms}}})
	for _, c := range []struct {
		set  Settings
		want stat.Opt
		took time.Duration
	}{
		{Settings{Detail: optrace.LevelSched, Reader: 9}, stat.Some(0.15), 20 * ms},
		{Settings{Detail: optrace.LevelSched}, stat.None, 0},
		{Settings{Detail: optrace.LevelTensor, Reader: 9}, stat.None, 0},
	} {
		if o := tally.Summary(c.set).Observer; o.Reader != c.want || o.ReaderTime != c.took {
			t.Errorf("%+v: the reader took %v, %v", c.set, o.ReaderTime, o.Reader)
		}
	}
}

func TestBackendsAndCopies(t *testing.T) {
	tables := &optrace.Tables{Names: []string{"CUDA0", "CPU"}}
	tally := New(tables)
	for range 3 {
		tally.Split(&optrace.Split{Backend: 1, Nodes: 400})
		tally.Split(&optrace.Split{Backend: 2, Nodes: 10})
		tally.Graph(&optrace.Graph{Call: -1, Backend: 2, End: 50, Threads: []optrace.Thread{{TID: 1, Spans: []optrace.Span{{End: 40}}}}})
		tally.Copy(&optrace.Copy{Kind: optrace.CopySet, Bytes: 1000})
		tally.Copy(&optrace.Copy{Kind: optrace.CopyGet, Bytes: 10})
	}
	s := tally.Summary(Settings{})
	if len(s.Backends) != 2 || s.Backends[0] != (optrace.BackendRow{Name: "CUDA0", Splits: 3, Nodes: 1200, Pair: "nsys profile"}) ||
		s.Backends[1] != (optrace.BackendRow{Name: "CPU", Splits: 3, Nodes: 30, Time: 150, Seen: true}) {
		t.Errorf("backends: %+v", s.Backends)
	}
	graphs := New(tables) // without their operators
	graphs.Graph(&optrace.Graph{Call: -1, Backend: 2, End: 50, Threads: []optrace.Thread{{TID: 1}}})
	if b := graphs.Summary(Settings{}).Backends; len(b) != 1 || b[0].Seen || b[0].Time != 50 {
		t.Errorf("operators that were not watched are seen: %+v", b)
	}
	if len(s.Copies) != 2 || s.Copies[0] != (optrace.CopyRow{Direction: "in", Count: 3, Bytes: 3000}) || s.Copies[1] != (optrace.CopyRow{Direction: "out", Count: 3, Bytes: 30}) {
		t.Errorf("copies: %+v", s.Copies)
	}
}

// TestThreads checks that what was not recorded is absent, not zero.
func TestThreads(t *testing.T) {
	m := newModel()
	g := run([]uint32{m.op("ADD", "", tensor("a", "f32", 4), tensor("b", "f32", 4))}, 2, 0, func(_, l int) time.Duration { return time.Duration(l+1) * time.Millisecond })
	g.Threads[1].Off, g.Threads[1].WakeUps, g.Threads[1].Switches = time.Millisecond, []time.Duration{5, 7}, 2
	tally := New(m.tables)
	tally.Graph(g)
	g.Threads[0].TID = 99
	tally.Graph(g)
	rows := tally.Summary(Settings{Detail: optrace.LevelBarriers | optrace.LevelSched}).Threads
	if len(rows) != 2 || rows[0].ThreadIDs != 2 || rows[1].ThreadIDs != 1 {
		t.Fatalf("got %+v", rows)
	}
	graph := (2*time.Millisecond + time.Microsecond).Seconds()
	near(t, "busy", rows[0].Busy, 0.001/graph)
	near(t, "waiting", rows[0].Sync, 0.001/graph)
	near(t, "off", rows[1].Off, 0.001/graph)
	if rows[0].MinorFaults.OK || rows[1].WakeUp.Count != 4 {
		t.Errorf("got %+v", rows)
	}
	if rows[0].Off != stat.Some(0) {
		t.Errorf("a lane that was never off its CPU: %+v", rows[0])
	}
	if rows := tally.Summary(Settings{Detail: optrace.LevelTensor}).Threads; rows[0].Off.OK || rows[0].Switches.OK {
		t.Errorf("not recorded: %+v", rows[0])
	}
}

// TestTokens checks that the last calls are kept.
func TestTokens(t *testing.T) {
	tally := New(&optrace.Tables{})
	for i := range maxTokens + 10 {
		tally.Call(&optrace.Call{Index: i, Phase: optrace.PhaseDecode, Tokens: 1, Begin: time.Duration(i), End: time.Duration(i) + 1})
	}
	rows := tally.Summary(Settings{}).Tokens
	if len(rows) != maxTokens || rows[0].Begin != 10 || rows[maxTokens-1].Begin != maxTokens+9 {
		t.Errorf("%d rows from %v", len(rows), rows[0].Begin)
	}
}

func TestShapes(t *testing.T) {
	tables := &optrace.Tables{DAGs: []optrace.DAG{
		{Nodes: []optrace.Node{{Addr: 1, Sources: []uint64{9}}, {Addr: 2, Sources: []uint64{1}, View: 1}}, Leaves: []optrace.Node{{Addr: 9}}},
		{Nodes: []optrace.Node{{Addr: 1}}},
	}}
	tally := New(tables)
	for _, ref := range []uint32{1, 2, 2, 77} {
		tally.Graph(&optrace.Graph{Call: -1, DAG: ref})
	}
	rows := tally.Summary(Settings{}).Graphs
	if len(rows) != 2 || rows[0] != (optrace.GraphShape{DAG: 2, Nodes: 1, Graphs: 2}) || rows[1].Views != 1 || rows[1].Leaves != 1 || rows[1].Edges == 0 {
		t.Errorf("got %+v", rows)
	}
}

// TestCoverage checks that waits between operators count if they are traced.
func TestCoverage(t *testing.T) {
	g := &optrace.Graph{Call: -1, End: 100, Threads: []optrace.Thread{{TID: 1, Spans: []optrace.Span{
		{Addr: 1, Begin: 10, End: 30, Sync: 15},  // five of it within, ten after
		{Addr: 2, Begin: 40, End: 60, Sync: 100}, // more than there is
		{Addr: 3, Begin: 65, End: 80},            // nothing traced after it
		{Addr: 4, Begin: 85, End: 90, Sync: 5},
	}}}}
	tally := New(&optrace.Tables{})
	tally.Graph(g)
	near(t, "covered", tally.Summary(Settings{}).Coverage.OpShare, (20+10+20+5+15+5+5)/100.0)
}

// TestUncalled has a runtime whose calls cannot be probed: its graphs count as calls.
func TestUncalled(t *testing.T) {
	m := newModel()
	tally := New(m.tables)
	begin := time.Second
	for range 4 {
		g := run(m.decoder(1, 1, 256), 1, begin, each(time.Millisecond))
		g.Phase, g.Tokens = optrace.PhaseDecode, 1
		tally.Graph(g)
		part := run(m.mixture(0, 1), 1, g.End, each(time.Millisecond)) // computed for another backend
		part.Phase, part.Tokens = optrace.PhaseDecode, 1
		tally.Graph(part)
		begin = part.End + time.Millisecond
	}
	s := tally.Summary(Settings{})
	p := s.Phases[0]
	if p.Calls != 0 || p.Tokens != 4 || len(s.Tokens) != 4 || s.Tokens[0].Context != 256 || p.Call.Count != 0 {
		t.Errorf("got %+v, tokens %+v", p, s.Tokens)
	}
	near(t, "rate", p.Rate, 1/(18*time.Millisecond+time.Microsecond).Seconds())
	if len(s.Gaps) != 1 {
		t.Errorf("gaps: %+v", s.Gaps)
	}
}

// A layer in which a thread lost its CPU takes longer, but is not slow.
func TestPreemptedLayerIsNotSlow(t *testing.T) {
	const ms = time.Millisecond
	m := newModel()
	at, lane := time.Duration(0), optrace.Thread{TID: 1}
	for l := range 7 {
		w := tensor(fmt.Sprintf("blk.%d.ffn_up.weight", l), "q4_0", 256, 256)
		x := tensor(fmt.Sprintf("ffn_up-%d", l), "f32", 256, 1)
		s := optrace.Span{Operator: m.op("MUL_MAT", "", x, w, x), Addr: uint64(l + 1), Begin: at, End: at + ms}
		switch l {
		case 3: // preempted
			s.End, s.Off, s.Preempted = at+5*ms, 4*ms, 4*ms
		case 5: // waits for its weights
			s.End, s.Off = at+5*ms, 4*ms
		}
		lane.Spans, at = append(lane.Spans, s), s.End
	}
	tally := New(m.tables)
	tally.Graph(&optrace.Graph{Phase: optrace.PhaseDecode, Tokens: 1, Call: -1, End: at, Threads: []optrace.Thread{lane}})
	for _, l := range tally.Summary(Settings{}).Layers {
		want, took := 1.0, ms
		switch l.Layer {
		case 3:
			took = 5 * ms
		case 5:
			want, took = 5, 5*ms
		}
		if l.Time != took {
			t.Errorf("layer %d takes %v, want %v", l.Layer, l.Time, took)
		}
		near(t, fmt.Sprintf("layer %d over the median", l.Layer), l.Slow, want)
	}
}

// TestMakeOfLayers distinguishes layers with other operators or types, or in fewer graphs, such
// as those of a second model.
func TestMakeOfLayers(t *testing.T) {
	m := newModel()
	product := func(layer int, format string) uint32 {
		w := tensor(fmt.Sprintf("blk.%d.ffn_up.weight", layer), format, 256, 256)
		return m.op("MUL_MAT", "", tensor(fmt.Sprintf("ffn_up-%d", layer), "f32", 256), w, tensor("x", "f32", 256))
	}
	sum := func(layer int) uint32 {
		return m.op("ADD", "", tensor(fmt.Sprintf("l_out-%d", layer), "f32", 256), tensor("a", "f32", 256), tensor("b", "f32", 256))
	}
	tally := New(m.tables)
	all := []uint32{product(0, "q4_0"), product(1, "q4_0"), product(2, "q8_0"), product(3, "q4_0"), sum(3), product(4, "q4_0")}
	for _, refs := range [][]uint32{all, all[:5]} { // the second graph has no layer 4
		g := run(refs, 1, 0, each(time.Microsecond))
		g.Phase, g.Tokens = optrace.PhaseDecode, 1
		tally.Graph(g)
	}
	rows := tally.Summary(Settings{}).Layers
	makes := map[string][]int{}
	for _, r := range rows {
		makes[r.Make] = append(makes[r.Make], r.Layer)
	}
	if len(rows) != 5 || len(makes) != 4 || rows[0].Make != rows[1].Make {
		t.Errorf("layers by make: %v", makes)
	}
}

// TestRowsSayNothingOfWhatNoDetailRecords checks that waits and time off the CPU are absent at
// levels that do not record them, and 0 at those that do.
func TestRowsSayNothingOfWhatNoDetailRecords(t *testing.T) {
	tables := &optrace.Tables{Operators: []optrace.Operator{{Op: "ADD"}}}
	tally := New(tables)
	tally.Graph(&optrace.Graph{Call: -1, Phase: optrace.PhaseDecode, Tokens: 1, End: time.Millisecond, Threads: []optrace.Thread{{TID: 1, Spans: []optrace.Span{{Operator: 1, End: time.Millisecond}}}}})
	for _, c := range []struct {
		d         optrace.Detail
		sync, off optrace.OptTime
	}{{optrace.LevelOperator, optrace.OptTime{}, optrace.OptTime{}}, {optrace.LevelOperator | optrace.DetailSched, optrace.OptTime{}, optrace.SomeTime(0)}, {optrace.LevelOperator | optrace.DetailBarrier, optrace.SomeTime(0), optrace.OptTime{}}} {
		row := tally.Summary(Settings{Detail: c.d}).Kinds[0]
		if row.Sync != c.sync || row.Off != c.off {
			t.Errorf("%s: waits %+v, off the CPU %+v, want %+v and %+v", c.d, row.Sync, row.Off, c.sync, c.off)
		}
	}
}
