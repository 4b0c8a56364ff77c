package tally

import (
	"time"

	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/engine/optrace/advice"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Limits of a Tally, so that its memory does not grow with the run. Rows beyond them are summed
// up in one called "others". A model of 100 layers has about 20 kinds and 40 steps in each
// phase.
const (
	maxKinds      = 256  // by phase, operator and type of weights
	maxSteps      = 1024 // by phase and name without the layer
	maxLayers     = 2048 // by phase and layer
	maxThreadRows = 1024 // compute threads of a graph
	maxThreadIDs  = 1024 // thread ids of a compute thread
	maxTokens     = 512  // calls on the timeline
	maxLengths    = 256  // of the KV cache
	maxTypes      = 128  // by phase and type of weights
	maxWeights    = 1 << 16
	maxOpen       = 1024 // calls with graphs that have not ended
	// maxFacts is the number of operators whose names and costs are cached; those of later refs
	// are derived each time.
	maxFacts = 1 << 15
	// maxCounts is the number of different operator counts of a graph that are distinguished.
	maxCounts = 64
)

// others is the name of a row for what is beyond a limit.
const others = "others"

// numPhases is the number of phases.
const numPhases = int(optrace.PhaseEncode) + 1

// phaseOrder is the order in which phases are shown.
var phaseOrder = [numPhases]optrace.Phase{optrace.PhasePrefill, optrace.PhaseDecode, optrace.PhaseEncode, optrace.PhaseUnknown}

// Tally sums up graphs and calls within bounded memory. It is an [optrace.BackendReceiver]. The
// zero Tally is not usable, and a Tally is not safe for concurrent use.
type Tally struct {
	t     *optrace.Tables
	facts []*facts
	began time.Duration // the earliest begin
	any   bool

	graphs, calls      int
	mute               muteSums
	thread0, inThread0 time.Duration // time of graphs with a thread 0, and the part that its spans cover
	inGraphs           time.Duration // time of all graphs
	opsOf              map[int]int   // decode graphs by the number of operators of thread 0
	mostThreads        int
	overflow           bool // a limit of rows was exceeded

	phases   [numPhases]phaseSums
	kinds    groups
	steps    groups
	layers   bounded[layerKey, layerSum] // beyond the limit they count as no layer
	threads  []*threadSums
	open     map[int]*callSums
	tokens   tokenRing
	experts  expertSums
	lengths  lengthSums
	types    bounded[typeKey, typeSum]
	critical criticalSums
	lost     lostSums
	backends backendSums
	shapes   map[uint32]int // graphs by DAG
	previous previousCalls
	decoded  decodeSums
}

// New returns an empty Tally for graphs and calls that refer to t. The tables may grow
// meanwhile, but not concurrently.
func New(t *optrace.Tables) *Tally {
	return &Tally{
		t: t, opsOf: map[int]int{}, open: map[int]*callSums{}, shapes: map[uint32]int{},
		kinds: groups{newBounded[groupKey, group](maxKinds)}, steps: groups{newBounded[groupKey, group](maxSteps)},
		layers: newBounded[layerKey, layerSum](maxLayers), types: newBounded[typeKey, typeSum](maxTypes),
		critical: criticalSums{of: newBounded[string, criticalSum](maxCritical)},
		backends: backendSums{of: newBounded[uint32, backendSum](maxBackends)},
		decoded:  decodeSums{nodes: map[uint32]nodeCount{}},
		experts:  expertSums{of: newBounded[int, expertSum](maxMixtures)}, lengths: lengthSums{of: newBounded[int64, lengthSum](maxLengths), width: 1},
	}
}

// Graph adds a complete graph.
func (t *Tally) Graph(g *optrace.Graph) {
	t.begin(g.Begin)
	t.graphs++
	took := stat.Elapsed(g.Begin, g.End)
	p := phaseIndex(g.Phase)
	t.mostThreads = max(t.mostThreads, len(g.Threads))
	if g.DAG != 0 && (t.shapes[g.DAG] > 0 || len(t.shapes) < maxShapes) {
		t.shapes[g.DAG]++
	}
	t.inGraphs = stat.AddSaturating(t.inGraphs, took)
	t.phases[p].graph.Add(took)
	t.backends.addGraph(g, took)
	t.addThreads(g, took)
	one := graphSums{p: p, g: g}
	t.addSteps(&one)
	t.phases[p].addCosted(&one, took)
	t.experts.addGraph(t, &one)
	t.lengths.addGraph(&one, took)
	t.addOpen(&one, took)
	t.addWithoutCall(&one, took)
	if p == optrace.PhaseDecode {
		t.decoded.addGraph(t.t, g)
		t.critical.addGraph(t, g)
	}
}

// begin keeps the earliest moment.
func (t *Tally) begin(at time.Duration) {
	if !t.any || at < t.began {
		t.began, t.any = at, true
	}
}

// graphSums collects figures of one graph while its operators are summed up.
type graphSums struct {
	p         optrace.Phase
	g         *optrace.Graph
	attention time.Duration // of operators whose time grows with the KV cache
	length    int64         // of the KV cache
	queries   int64         // tokens that attend to it
	logits    bool          // it computes them
	hasCost   bool          // the cost of at least one operator is known
	mixed     []mixed
}

// step is one operator of a graph on all its threads.
type step struct {
	operator   uint32
	begin, end time.Duration
	sync, off  time.Duration // summed over threads
	idle       time.Duration // lower bound, summed over threads: the longer of sync and off, which may overlap
	preempted  time.Duration // of the thread that lost most
	threads    int
	experts    uint32
	count      counts
	// lostCPU reports whether a thread was preempted in this operator or in the previous one, after
	// which it may begin late.
	lostCPU bool
}

// alignAhead is the number of spans of a thread that are searched for the present operator.
const alignAhead = 16

// addSteps sums up the operators of a graph, in the order of the thread that has most of them:
// every thread of GGML passes every node. An operator lasts from its first begin on any thread
// to its last end, but at most to the first begin of the next: all threads have met at a
// barrier by then, and one that lost its CPU afterwards has only not begun the next.
func (t *Tally) addSteps(one *graphSums) {
	g := one.g
	leader := -1
	for i := range g.Threads {
		if n := len(g.Threads[i].Spans); n > 0 && (leader < 0 || n > len(g.Threads[leader].Spans)) {
			leader = i
		}
	}
	if leader < 0 {
		return
	}
	next := make([]int, len(g.Threads))
	var before step
	lostBefore := false
	for k := range g.Threads[leader].Spans {
		s := stepAt(g, leader, k, next)
		lost := float64(s.preempted) > lostCPU*float64(stat.Elapsed(s.begin, s.end))
		s.lostCPU, lostBefore = lost || lostBefore, lost
		if k > 0 {
			before.end = min(before.end, s.begin)
			t.addStep(one, &before)
		}
		before = s
	}
	before.end = min(before.end, max(g.End, before.begin))
	t.addStep(one, &before)
}

// stepAt gathers the parts of operator k of the leading thread. next is, by thread, the first
// span to search.
func stepAt(g *optrace.Graph, leader, k int, next []int) step {
	first := &g.Threads[leader].Spans[k]
	s := step{operator: first.Operator, begin: first.Begin, end: first.End}
	s.add(first)
	for l := range g.Threads {
		if l == leader {
			continue
		}
		spans := g.Threads[l].Spans
		for at := next[l]; at < min(next[l]+alignAhead, len(spans)); at++ {
			if spans[at].Addr == first.Addr && spans[at].Operator == first.Operator {
				s.add(&spans[at])
				next[l] = at + 1
				break
			}
		}
	}
	return s
}

// add adds one thread's part.
func (s *step) add(p *optrace.Span) {
	s.threads++
	s.begin, s.end = min(s.begin, p.Begin), max(s.end, p.End)
	s.sync, s.off = stat.AddSaturating(s.sync, p.Sync), stat.AddSaturating(s.off, p.Off)
	s.idle = stat.AddSaturating(s.idle, max(p.Sync, p.Off))
	s.preempted = max(s.preempted, p.Preempted)
	if s.experts == 0 {
		s.experts = p.Experts
	}
	if p.Counters != nil {
		s.count.add(p.Counters)
	}
}

// addStep adds an operator to every table.
func (t *Tally) addStep(one *graphSums, s *step) {
	f := t.factsOf(s.operator)
	p := one.p
	took := stat.Elapsed(s.begin, s.end)
	cost := f.cost
	if f.mixture {
		choice := t.t.Choice(s.experts)
		if choice != nil && f.mixTokens != 1 {
			cost = optrace.CostOf(t.t, t.t.Operator(s.operator), *choice)
		}
		one.mixed = append(one.mixed, mixed{layer: f.layer, experts: f.experts, time: took, off: s.off, choice: choice})
	}
	one.logits = one.logits || f.name == optrace.LogitsName
	one.hasCost = one.hasCost || cost.Known
	t.phases[p].addStep(took, &cost)
	f.rows(t, p)
	f.kindRow[p].add(s, took, &cost)
	f.stepRow[p].add(s, took, &cost)
	f.layerRow[p].add(t.graphs, f.part, took, min(s.preempted, took))
	if f.typeRow[p] != nil {
		f.typeRow[p].add(took, &cost)
	}
	if f.attention {
		one.attention = stat.AddSaturating(one.attention, took)
		if f.length > one.length {
			one.length, one.queries = f.length, f.queries
		}
	}
}

// Settings is what a [Tally] cannot derive from graphs and calls.
type Settings struct {
	Target   optrace.Target
	Peak     optrace.Peak
	Observer optrace.Observer // the estimate before the trace
	Gaps     []optrace.Gap
	// Begin is the begin of the trace on the clock of the events, 0 for that of the first graph
	// or call. Span is the recorded time.
	Begin, Span time.Duration
	Detail      optrace.Detail // what was recorded
	// Events is the number of recorded events, Dropped that of lost events, LeftOut that of
	// events which were not kept. Partial is the number of graphs that are excluded from every
	// figure.
	Events, Dropped, LeftOut int64
	// KeptFrom and KeptTo are the times of the first and the last event that were kept if some
	// were left out; KeptTo is 0 if that is unknown.
	KeptFrom, KeptTo time.Duration
	Partial          int
	Cut              int               // calls that were left out, see [optrace.Assembler.Cut]
	Reader           int               // see [optrace.Recording.Reader]
	HostLoad         *optrace.HostLoad // nil if unknown
}

// Summary returns every figure so far, with the findings and the advice. It may be called
// repeatedly.
func (t *Tally) Summary(s Settings) *optrace.Summary {
	recorded := s.Detail
	r := s.Peak
	if r.BytesPerSecond <= 0 && r.FlopsPerSecond <= 0 {
		r = t.seenPeak()
	}
	sum := &optrace.Summary{
		Target: s.Target, Observer: t.observer(&s), Peak: r, Coverage: t.coverage(&s),
		Phases: t.phaseRows(r), Kinds: t.kinds.rows(t, r, recorded), Steps: t.steps.rows(t, r, recorded),
		Layers: t.layerRows(), Threads: t.threadRows(recorded), Tokens: t.tokenRows(&s),
		Experts: t.experts.summary(), Context: t.lengths.rows(), Types: t.typeRows(),
		Critical: t.critical.rows(),
		Backends: t.backends.rows(t.t), Copies: t.backends.copyRows(), Graphs: t.shapeRows(),
		Findings: []optrace.Finding{}, Gaps: t.gaps(&s),
	}
	if recorded&optrace.DetailSched != 0 && s.Reader > 0 && t.graphs > 0 {
		sum.Observer.Reader, sum.Observer.ReaderTime = stat.Ratio(t.lost.worst, t.inGraphs), t.lost.tracer
	}
	sum.HostLoad, sum.Preempted = s.HostLoad, optrace.Preempted{Time: optrace.RecordedTime(recorded&optrace.DetailSched != 0, t.lost.preempted)}
	sum.Findings, sum.Advice = advice.Diagnose(sum)
	advice.DoubtExpertTimes(sum)
	return sum
}

// coverage returns how much of the work is in the figures.
func (t *Tally) coverage(s *Settings) optrace.Coverage {
	c := optrace.Coverage{
		Seconds: s.Span.Seconds(), Detail: s.Detail.String(), Events: s.Events, Dropped: s.Dropped, LeftOut: s.LeftOut,
		Graphs: t.graphs, Partial: s.Partial, Calls: t.calls, OpShare: stat.Ratio(t.inThread0, t.thread0),
	}
	if s.LeftOut > 0 && s.KeptTo > 0 {
		c.KeptFrom, c.KeptTo = stat.Some(stat.Elapsed(s.Begin, s.KeptFrom).Seconds()), stat.Some(stat.Elapsed(s.Begin, s.KeptTo).Seconds())
	}
	var graphs, calls time.Duration
	for i := range t.phases {
		graphs, calls = stat.AddSaturating(graphs, t.phases[i].graphsOfCalls), stat.AddSaturating(calls, t.phases[i].callsOfGraphs)
	}
	c.GraphOf = stat.Ratio(graphs, calls)
	most := 0
	for operators, n := range t.opsOf {
		if n > most || n == most && float64(operators) > c.OpsPerToken.V {
			c.OpsPerToken, most = stat.Some(float64(operators)), n
		}
	}
	return c
}

// phaseIndex returns a valid phase: unknown for a value out of range.
func phaseIndex(p optrace.Phase) optrace.Phase {
	if int(p) >= numPhases {
		return optrace.PhaseUnknown
	}
	return p
}
