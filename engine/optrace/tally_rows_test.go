package optrace

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

// mixture are the operators of a layer with 8 experts of which 2 are used.
func (m *model) mixture(l int, tokens int64) []uint32 {
	w := func(name string) Tensor {
		return tensor(fmt.Sprintf("blk.%d.%s.weight", l, name), "q8_0", 256, 512, 8)
	}
	x, ids := tensor(fmt.Sprintf("ffn_norm-%d", l), "f32", 256, 1, tokens), tensor(fmt.Sprintf("ffn_moe_topk-%d", l), "i32", 2, tokens)
	out := tensor(fmt.Sprintf("ffn_moe_up-%d", l), "f32", 512, 2, tokens)
	return []uint32{m.op("MUL_MAT_ID", "", out, w("ffn_up_exps"), x, ids), m.op("MUL_MAT_ID", "", out, w("ffn_gate_exps"), x, ids)}
}

// TestExperts chooses experts of which the second takes twice as long.
func TestExperts(t *testing.T) {
	m := newModel()
	refs := append(m.mixture(3, 1), m.mixture(5, 1)...)
	tally := NewTally(m.tables)
	for i := range 8 {
		pair := []int32{1, int32(2 + i%4)}
		m.tables.Experts = append(m.tables.Experts, ExpertChoice{Layer: 3, Used: 2, IDs: pair, Tokens: 1})
		ref := uint32(len(m.tables.Experts))
		g := run(refs, 2, 0, each(time.Millisecond))
		for l := range g.Lanes {
			g.Lanes[l].Spans[0].Experts = ref // the ids are read once a layer
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

// TestExpertTimesWithoutInterference has two experts of which the second takes 3 ms where
// the first takes 2, and a process that puts lane 0 off for 50 ms in one of the first's
// batches: by chance, and no matter of the expert's.
func TestExpertTimesWithoutInterference(t *testing.T) {
	for _, sleeps := range []bool{false, true} {
		m := newModel()
		refs := m.mixture(3, 1)
		m.tables.Experts = []ExpertChoice{{Layer: 3, Used: 1, IDs: []int32{0}, Tokens: 1}, {Layer: 3, Used: 1, IDs: []int32{4}, Tokens: 1}, {Layer: 3, Used: 1, IDs: []int32{6}, Tokens: 1}}
		tally := NewTally(m.tables)
		batch := func(expert uint32, took, off time.Duration) {
			g := run(refs, 2, 0, each(took+off))
			for l := range g.Lanes {
				g.Lanes[l].Spans[0].Experts = expert
			}
			g.Lanes[0].Spans[1].Off = off
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

// TestExpertTimesOfADisturbedTrace holds that where some tokens take many times as long as
// others, and nothing tells why, no expert is said to be slow; with scheduling they are
// told.
func TestExpertTimesOfADisturbedTrace(t *testing.T) {
	for detail, told := range map[Detail]bool{LevelTensor: false, LevelSched: true} {
		m := newModel()
		refs := m.mixture(3, 1)
		m.tables.Experts = []ExpertChoice{{Layer: 3, Used: 1, IDs: []int32{0}, Tokens: 1}, {Layer: 3, Used: 1, IDs: []int32{4}, Tokens: 1}}
		tally := NewTally(m.tables)
		for i := range 2 * fewestGraphs {
			took, expert := time.Millisecond, uint32(1)
			if i%4 == 0 {
				took, expert = 40*time.Millisecond, 2
			}
			g := run(refs, 1, 0, each(took))
			g.Phase, g.Tokens, g.Detail = PhaseDecode, 1, detail
			g.Lanes[0].Spans[0].Experts = expert
			tally.Graph(g)
		}
		s := tally.Summary(Settings{Detail: detail})
		gap := s.gap(GapExpertTimes)
		if e := s.Experts; e.TimeCV.OK != told || e.Layers[0].Time[4].OK != told || (gap == nil) != told || len(e.Layers[0].Chosen) != 8 {
			t.Errorf("at %s: CV %v, times %v, gap %v", detail, e.TimeCV, e.Layers[0].Time, gap)
		}
	}
}

// TestExpertsOutOfRange has ids that cannot be, and tokens that were not all read.
func TestExpertsOutOfRange(t *testing.T) {
	m := newModel()
	refs := m.mixture(0, 3)
	m.tables.Experts = []ExpertChoice{{Layer: 0, Used: 2, IDs: []int32{-1, 7, 8, 1 << 30, 3}, Tokens: 3}}
	g := run(refs, 1, 0, each(time.Millisecond))
	g.Lanes[0].Spans[0].Experts = 1
	tally := NewTally(m.tables)
	tally.Graph(g)
	e := tally.Summary(Settings{}).Experts
	if e.Count != 8 || e.Tokens != 2 || fmt.Sprint(e.Layers[0].Chosen) != "[0 0 0 0 0 0 0 1]" || e.TimeCV.OK {
		t.Errorf("got %+v", e)
	}
}

// TestContext has attention that grows with the cache, at more lengths than rows.
func TestContext(t *testing.T) {
	m := newModel()
	tally := NewTally(m.tables)
	graphs := 0
	for i := range int64(600) {
		length := (i + 1) * 32
		g := run(m.decoder(1, 1, length), 1, 0, func(k, _ int) time.Duration {
			if k == 9 { // FLASH_ATTN_EXT
				return time.Duration(length)
			}
			return 100
		})
		g.Phase = PhaseDecode
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
	g.Phase = PhaseDecode
	tally := NewTally(m.tables)
	tally.Graph(g)
	rows := tally.Summary(Settings{}).Context
	if len(rows) != 1 || rows[0].Length != 512 || rows[0].Attention != 3*time.Microsecond {
		t.Errorf("got %+v", rows)
	}
}

// TestFirstToken has a prompt in two batches, and a second one that no decode follows.
func TestFirstToken(t *testing.T) {
	tally := NewTally(&Tables{})
	ms := time.Millisecond
	call := func(phase Phase, tokens int, begin, end time.Duration) {
		tally.Call(&Call{Index: tally.calls, Phase: phase, Tokens: tokens, Begin: begin, End: end})
	}
	call(PhasePrefill, 512, 1*ms, 101*ms)
	call(PhasePrefill, 100, 102*ms, 122*ms)
	call(PhaseDecode, 1, 125*ms, 135*ms)
	call(PhaseDecode, 1, 137*ms, 147*ms)
	call(PhasePrefill, 10, 5000*ms, 5010*ms) // another request, after a long wait
	call(PhasePrefill, 10, 9000*ms, 9010*ms) // and another: the one before wanted no token
	call(PhaseDecode, 1, 9011*ms, 9021*ms)
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

// TestPaceOfAnswers has 10 ms of decode and 2 ms between, waits for requests whose prompt is
// one token, and a decode after which a prompt comes, which is in no answer's pace.
func TestPaceOfAnswers(t *testing.T) {
	ms := time.Millisecond
	paced := func(calls, waits int, pause time.Duration) stat.Opt {
		tally, at := NewTally(&Tables{}), ms
		for i := range calls {
			tally.Call(&Call{Index: i, Phase: PhaseDecode, Tokens: 1, Begin: at, End: at + 10*ms})
			if at += 10*ms + pause; i < waits {
				at += 150 * ms
			}
		}
		tally.Call(&Call{Index: calls, Phase: PhasePrefill, Tokens: 9, Begin: at + time.Second, End: at + 2*time.Second})
		return tally.Summary(Settings{}).Phases[len(tally.Summary(Settings{}).Phases)-1].Paced
	}
	near(t, "answers", paced(40, 0, 2*ms), 1000.0/12)
	near(t, "with waits", paced(40, 10, 2*ms), 1000.0/12)
	for name, got := range map[string]stat.Opt{"one call": paced(1, 0, 0), "waits above all": paced(40, 30, 2*ms), "calls at once": paced(40, 0, -ms)} {
		if got.OK {
			t.Errorf("%s: %v", name, got)
		}
	}
	p := PhaseRow{Rate: stat.Some(100), Paced: stat.Some(94)}
	if !p.Apart() {
		t.Error("6 % make no difference")
	}
	if p.Paced = stat.Some(96); p.Apart() {
		t.Error("4 % make a difference")
	}
	if p.Paced = stat.None; p.Apart() {
		t.Error("what is not known makes a difference")
	}
}

// TestInferredEnd is a call whose end was not seen: it goes on until its last graph.
func TestInferredEnd(t *testing.T) {
	tally := NewTally(&Tables{})
	tally.Graph(&Graph{Call: 0, Phase: PhaseDecode, Tokens: 1, Begin: 10, End: 110})
	tally.Call(&Call{Phase: PhaseDecode, Tokens: 1, Begin: 5})
	row := tally.Summary(Settings{}).Phases[0]
	if row.Call.Max != 105 {
		t.Errorf("got %+v", row.Call)
	}
	tally.Call(&Call{Index: 1, Phase: PhaseDecode, Tokens: 1, Begin: 200})
	if row := tally.Summary(Settings{}).Phases[0]; row.Calls != 2 || row.Call.Count != 1 {
		t.Errorf("a call without any end has a time: %+v", row)
	}
}

// TestTheReaderIsNoOther has rooftop itself and processes that are not known take a CPU:
// the one is a cost of the trace, the others come last.
func TestTheReaderIsNoOther(t *testing.T) {
	tally := NewTally(&Tables{})
	tally.Graph(&Graph{Begin: 0, End: 100 * time.Millisecond, Lanes: []Lane{
		{TID: 1, Off: 60 * time.Millisecond, Thieves: map[int32]time.Duration{7: 5 * time.Millisecond, 9: 15 * time.Millisecond, untoldThief: 40 * time.Millisecond}},
	}})
	s := tally.Summary(Settings{Detail: LevelSched, Processes: map[int32]string{7: "stress", 9: OwnName}})
	if len(s.Others) != 2 || s.Others[0].PID != 7 || s.Others[1].PID != 0 || s.Others[1].Name != UntoldName || s.Others[1].Time != 40*time.Millisecond {
		t.Errorf("others are %+v", s.Others)
	}
	if o := s.Observer; o.ReaderTime != 15*time.Millisecond || o.Reader != stat.Some(0.15) {
		t.Errorf("the reader took %v, %v of the graphs", o.ReaderTime, o.Reader)
	}
	none := NewTally(&Tables{})
	none.Graph(&Graph{Begin: 0, End: 100 * time.Millisecond, Lanes: []Lane{{TID: 1}}})
	for _, known := range []Settings{{Detail: LevelSched, Reader: 9}, {Detail: LevelSched, Processes: map[int32]string{9: OwnName}}} {
		if o := none.Summary(known).Observer; o.Reader != stat.Some(0) {
			t.Errorf("a reader that took nothing took %v", o.Reader)
		}
	}
	if o := tally.Summary(Settings{Detail: LevelSched, Reader: 9}); o.Observer.Reader != stat.Some(0.15) || len(o.Others) != 2 {
		t.Errorf("a reader without its name took %v; others are %+v", o.Observer.Reader, o.Others)
	}
	if o := tally.Summary(Settings{Detail: LevelSched}); o.Observer.Reader.OK || len(o.Others) != 3 {
		t.Errorf("a reader that is not known took %v; others are %+v", o.Observer.Reader, o.Others)
	}
	if o := none.Summary(Settings{Detail: LevelTensor}).Observer; o.Reader.OK {
		t.Errorf("without scheduling the reader took %v", o.Reader)
	}
}

// TestOthers has a process that takes both lanes of a graph away at once.
func TestOthers(t *testing.T) {
	tally := NewTally(&Tables{})
	ms := time.Millisecond
	for range 2 {
		tally.Graph(&Graph{Call: -1, Detail: LevelSched, End: 100 * ms, Lanes: []Lane{
			{TID: 1, Off: 30 * ms, Preempted: 30 * ms, Thieves: map[int32]time.Duration{7: 30 * ms}},
			{TID: 2, Off: 20 * ms, Preempted: 20 * ms, Thieves: map[int32]time.Duration{7: 15 * ms, 9: 5 * ms}},
		}})
	}
	rows := tally.Summary(Settings{Processes: map[int32]string{7: "stress"}}).Others
	if len(rows) != 2 || rows[0].PID != 7 || rows[0].Name != "stress" || rows[0].Time != 90*ms || rows[1].Name != "" {
		t.Fatalf("got %+v", rows)
	}
	near(t, "share", rows[0].Share, 0.3)
	near(t, "of lanes", rows[0].OfLanes, 90.0/400) // one denominator for all rows
	near(t, "of lanes", rows[1].OfLanes, 10.0/400)
}

func TestBackendsAndCopies(t *testing.T) {
	tables := &Tables{Names: []string{"CUDA0", "CPU"}}
	tally := NewTally(tables)
	for range 3 {
		tally.Split(&Split{Backend: 1, Nodes: 400})
		tally.Split(&Split{Backend: 2, Nodes: 10})
		tally.Graph(&Graph{Call: -1, Backend: 2, End: 50, Lanes: []Lane{{TID: 1, Spans: []Span{{End: 40}}}}})
		tally.Copy(&Copy{Kind: CopySet, Bytes: 1000})
		tally.Copy(&Copy{Kind: CopyGet, Bytes: 10})
	}
	s := tally.Summary(Settings{})
	if len(s.Backends) != 2 || s.Backends[0] != (BackendRow{Name: "CUDA0", Splits: 3, Nodes: 1200, Pair: "nsys profile"}) ||
		s.Backends[1] != (BackendRow{Name: "CPU", Splits: 3, Nodes: 30, Time: 150, Seen: true}) {
		t.Errorf("backends: %+v", s.Backends)
	}
	graphs := NewTally(tables) // without their operators
	graphs.Graph(&Graph{Call: -1, Backend: 2, End: 50, Lanes: []Lane{{TID: 1}}})
	if b := graphs.Summary(Settings{}).Backends; len(b) != 1 || b[0].Seen || b[0].Time != 50 {
		t.Errorf("operators that nobody watched are seen: %+v", b)
	}
	if len(s.Copies) != 2 || s.Copies[0] != (CopyRow{"in", 3, 3000}) || s.Copies[1] != (CopyRow{"out", 3, 30}) {
		t.Errorf("copies: %+v", s.Copies)
	}
}

// TestThreads holds that what was not recorded is absent and not zero.
func TestThreads(t *testing.T) {
	m := newModel()
	g := run([]uint32{m.op("ADD", "", tensor("a", "f32", 4), tensor("b", "f32", 4))}, 2, 0, func(_, l int) time.Duration { return time.Duration(l+1) * time.Millisecond })
	g.Lanes[1].Off, g.Lanes[1].WakeUps, g.Lanes[1].Switches = time.Millisecond, []time.Duration{5, 7}, 2
	tally := NewTally(m.tables)
	tally.Graph(g)
	g.Lanes[0].TID = 99
	tally.Graph(g)
	rows := tally.Summary(Settings{Detail: LevelTensor}).Threads
	if len(rows) != 2 || rows[0].Threads != 2 || rows[1].Threads != 1 {
		t.Fatalf("got %+v", rows)
	}
	graph := (2*time.Millisecond + time.Microsecond).Seconds()
	near(t, "busy", rows[0].Busy, 0.001/graph)
	near(t, "waiting", rows[0].Sync, 0.001/graph)
	near(t, "off", rows[1].Off, 0.001/graph)
	if rows[0].Off.OK || rows[0].Switches.OK || rows[0].MinorFaults.OK || rows[1].WakeUp.Count != 4 {
		t.Errorf("got %+v", rows)
	}
	if rows := tally.Summary(Settings{Detail: LevelSched}).Threads; !rows[0].Off.OK || rows[0].Off.V != 0 {
		t.Errorf("a lane that was never off its CPU: %+v", rows[0])
	}
}

// TestTokens keeps the last calls.
func TestTokens(t *testing.T) {
	tally := NewTally(&Tables{})
	for i := range maxTokens + 10 {
		tally.Call(&Call{Index: i, Phase: PhaseDecode, Tokens: 1, Begin: time.Duration(i), End: time.Duration(i) + 1})
	}
	rows := tally.Summary(Settings{}).Tokens
	if len(rows) != maxTokens || rows[0].Begin != 10 || rows[maxTokens-1].Begin != maxTokens+9 {
		t.Errorf("%d rows from %v", len(rows), rows[0].Begin)
	}
}

func TestShapes(t *testing.T) {
	tables := &Tables{DAGs: []DAG{
		{Nodes: []Node{{Addr: 1, Sources: []uint64{9}}, {Addr: 2, Sources: []uint64{1}, View: 1}}, Leaves: []Node{{Addr: 9}}},
		{Nodes: []Node{{Addr: 1}}},
	}}
	tally := NewTally(tables)
	for _, ref := range []uint32{1, 2, 2, 77} {
		tally.Graph(&Graph{Call: -1, DAG: ref})
	}
	rows := tally.Summary(Settings{}).Graphs
	if len(rows) != 2 || rows[0] != (GraphShape{DAG: 2, Nodes: 1, Graphs: 2}) || rows[1].Views != 1 || rows[1].Leaves != 1 || rows[1].Edges == 0 {
		t.Errorf("got %+v", rows)
	}
}

// TestLive draws the newest decode graph, and rates by the second.
func TestLive(t *testing.T) {
	m := newModel()
	tally := NewTally(m.tables)
	if g := tally.Live(); g.Lanes != nil {
		t.Errorf("before the first: %+v", g)
	}
	for _, v := range tally.Rates(time.Second, 5) {
		if !math.IsNaN(v) {
			t.Errorf("before the first: %v", v)
		}
	}
	decodes(tally, m.decoder(2, 1, 256), 3, 2, time.Second, time.Microsecond)
	g := tally.Live()
	if g.Index != 2 || g.Phase != "decode" || len(g.Lanes) != 2 || g.Lanes[0].Spans[9].Op != "FLASH_ATTN_EXT" || g.Lanes[0].Spans[0].Begin != time.Microsecond {
		t.Errorf("got %+v", g)
	}
	tally = NewTally(m.tables)
	// Two tokens a second for two seconds, a pause of one, and four at once.
	for i := range 4 {
		begin := 10*time.Second + time.Duration(i)*500*time.Millisecond
		tally.Call(&Call{Index: i, Phase: PhaseDecode, Tokens: 1, Begin: begin, End: begin + 500*time.Millisecond})
	}
	tally.Call(&Call{Index: 4, Phase: PhaseDecode, Tokens: 4, Begin: 13 * time.Second, End: 15 * time.Second})
	if got := fmt.Sprint(tally.Rates(15*time.Second+time.Millisecond, 6)); got != "[NaN 2 2 NaN 2 2]" {
		t.Errorf("rates %s", got)
	}
	if got := tally.Rates(500*time.Second, 3); !math.IsNaN(got[2]) {
		t.Errorf("long after: %v", got)
	}
}

// TestBoundedMemory computes graphs that never look the same.
func TestBoundedMemory(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 3))
	tables := &Tables{}
	tally := NewTally(tables)
	for i := range 400 {
		var refs []uint32
		for k := range 100 {
			tables.Tensors = append(tables.Tensors, tensor(fmt.Sprintf("t%d-%d", i, k*i), "f32", int64(i+1)))
			tables.Operators = append(tables.Operators, Operator{Op: fmt.Sprintf("OP%d", rnd.IntN(1000)), Out: uint32(len(tables.Tensors)), In: []uint32{1}})
			refs = append(refs, uint32(len(tables.Operators)))
		}
		g := run(refs, 1, 0, each(time.Duration(rnd.IntN(1e9))))
		g.Call, g.Phase, g.DAG, g.Backend = i*1000, Phase(rnd.IntN(4)), uint32(i), uint32(i)
		g.Lanes[0].TID = int32(i)
		g.Lanes[0].Thieves = map[int32]time.Duration{int32(i * 7): 5}
		tally.Graph(g)
	}
	if len(tally.facts) > maxFacts+1 || len(tally.kinds.of) > maxKinds+numPhases || len(tally.steps.of) > maxSteps+numPhases ||
		len(tally.layers.of) > maxLayers+numPhases || len(tally.open) > maxOpen || len(tally.shapes) > maxShapes || len(tally.backends.of) > maxBackends {
		t.Errorf("facts %d, kinds %d, steps %d, layers %d, open %d", len(tally.facts), len(tally.kinds.of), len(tally.steps.of), len(tally.layers.of), len(tally.open))
	}
}

// TestCoverage counts waits between operators where they are traced, and no others.
func TestCoverage(t *testing.T) {
	g := &Graph{Call: -1, End: 100, Lanes: []Lane{{TID: 1, Spans: []Span{
		{Addr: 1, Begin: 10, End: 30, Sync: 15},  // five of it within, ten after
		{Addr: 2, Begin: 40, End: 60, Sync: 100}, // more than there is
		{Addr: 3, Begin: 65, End: 80},            // nothing traced after it
		{Addr: 4, Begin: 85, End: 90, Sync: 5},
	}}}}
	tally := NewTally(&Tables{})
	tally.Graph(g)
	near(t, "covered", tally.Summary(Settings{}).Coverage.OpShare, (20+10+20+5+15+5+5)/100.0)
}

// TestUncalled is a runtime whose calls cannot be probed: its graphs stand for them.
func TestUncalled(t *testing.T) {
	m := newModel()
	tally := NewTally(m.tables)
	begin := time.Second
	for range 4 {
		g := run(m.decoder(1, 1, 256), 1, begin, each(time.Millisecond))
		g.Phase, g.Tokens = PhaseDecode, 1
		tally.Graph(g)
		part := run(m.mixture(0, 1), 1, g.End, each(time.Millisecond)) // computed for another backend
		part.Phase, part.Tokens = PhaseDecode, 1
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

// A layer in which a thread lost its CPU takes longer, and is not slow.
func TestPreemptedLayerIsNotSlow(t *testing.T) {
	const ms = time.Millisecond
	m := newModel()
	at, lane := time.Duration(0), Lane{TID: 1}
	for l := range 7 {
		w := tensor(fmt.Sprintf("blk.%d.ffn_up.weight", l), "q4_0", 256, 256)
		x := tensor(fmt.Sprintf("ffn_up-%d", l), "f32", 256, 1)
		s := Span{Operator: m.op("MUL_MAT", "", x, w, x), Addr: uint64(l + 1), Begin: at, End: at + ms}
		switch l {
		case 3: // preempted
			s.End, s.Off, s.Preempted = at+5*ms, 4*ms, 4*ms
		case 5: // waits for its weights
			s.End, s.Off = at+5*ms, 4*ms
		}
		lane.Spans, at = append(lane.Spans, s), s.End
	}
	tally := NewTally(m.tables)
	tally.Graph(&Graph{Phase: PhaseDecode, Tokens: 1, Call: -1, End: at, Lanes: []Lane{lane}})
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

// TestMakeOfLayers tells layers apart that are made of other operators or types, or that
// are in fewer graphs: those of a second model.
func TestMakeOfLayers(t *testing.T) {
	m := newModel()
	product := func(layer int, format string) uint32 {
		w := tensor(fmt.Sprintf("blk.%d.ffn_up.weight", layer), format, 256, 256)
		return m.op("MUL_MAT", "", tensor(fmt.Sprintf("ffn_up-%d", layer), "f32", 256), w, tensor("x", "f32", 256))
	}
	sum := func(layer int) uint32 {
		return m.op("ADD", "", tensor(fmt.Sprintf("l_out-%d", layer), "f32", 256), tensor("a", "f32", 256), tensor("b", "f32", 256))
	}
	tally := NewTally(m.tables)
	all := []uint32{product(0, "q4_0"), product(1, "q4_0"), product(2, "q8_0"), product(3, "q4_0"), sum(3), product(4, "q4_0")}
	for _, refs := range [][]uint32{all, all[:5]} { // the second graph has no layer 4
		g := run(refs, 1, 0, each(time.Microsecond))
		g.Phase, g.Tokens = PhaseDecode, 1
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
