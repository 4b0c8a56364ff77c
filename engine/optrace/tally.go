package optrace

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Limits of a Tally: beyond them rows are added up in one that is called "others", so
// that its memory does not grow with the run. A model of 100 layers has about 20 kinds
// and 40 steps in each phase.
const (
	maxKinds     = 256  // by phase, operator and type of weights
	maxSteps     = 1024 // by phase and name without the layer
	maxLayers    = 2048 // by phase and layer
	maxLaneRows  = 1024 // compute threads of a graph
	maxThreadIDs = 1024 // thread ids of a lane that are told apart
	maxOthers    = 1024 // processes that took the CPU away
	maxTokens    = 512  // calls on the line of time
	maxLengths   = 256  // of the KV cache
	maxTypes     = 128  // by phase and type of weights
	maxWeights   = 1 << 16
	maxOpen      = 1024 // calls whose graphs were seen and that have not ended
	// maxFacts is the number of operators whose names and costs are kept; those of
	// later refs are worked out each time.
	maxFacts = 1 << 15
	// maxCounts is how many different numbers of operators of a graph are told apart.
	maxCounts = 64
)

// others is the name of a row that holds what is beyond a limit.
const others = "others"

// numPhases is the number of phases.
const numPhases = int(PhaseEncode) + 1

// phaseOrder is the order in which phases are shown.
var phaseOrder = [numPhases]Phase{PhasePrefill, PhaseDecode, PhaseEncode, PhaseUnknown}

// Tally adds up graphs and calls within bounded memory. It is a [BackendReceiver]. The
// zero Tally cannot be used; neither is it safe for use by several goroutines at once.
type Tally struct {
	t     *Tables
	facts []*facts
	began time.Duration // the first begin that was seen
	any   bool

	graphs, calls  int
	mute           muteSums
	lane0, inLane0 time.Duration // time of graphs with a lane 0, and what its spans cover
	recorded       Detail        // with any graph, as far as events said so
	// lane0By divides lane0 by what was recorded; scheduled is the time of all graphs
	// whose scheduling was.
	lane0By     [numWatched]time.Duration
	lane0Graphs [numWatched]int // and how many they are
	scheduled   time.Duration
	opsOf       map[int]int // decode graphs by the number of operators of lane 0
	mostLanes   int
	overflow    bool // rows beyond a limit were added up

	phases   [numPhases]phaseSums
	kinds    groups
	steps    groups
	layers   layerSums
	lanes    []*laneSums
	open     map[int]*callSums
	tokens   tokenRing
	experts  expertSums
	lengths  lengthSums
	types    typeSums
	critical criticalSums
	thieves  thiefSums
	backends backendSums
	shapes   map[uint32]int // graphs by DAG
	before   following
	live     liveSums
	levels   levelSums
}

// NewTally is an empty Tally of what refers to the tables. These may grow while it is
// used, but not by another goroutine.
func NewTally(t *Tables) *Tally {
	return &Tally{
		t: t, opsOf: map[int]int{}, open: map[int]*callSums{}, shapes: map[uint32]int{},
		kinds: groups{limit: maxKinds}, steps: groups{limit: maxSteps},
		layers: layerSums{of: map[layerKey]*layerSum{}}, types: typeSums{of: map[typeKey]*typeSum{}},
		critical: criticalSums{of: map[string]*criticalSum{}}, thieves: thiefSums{of: map[int32]*thiefSum{}},
		backends: backendSums{of: map[uint32]*backendSum{}},
		levels:   levelSums{of: map[Detail]*levelSum{}, nodes: map[uint32]nodeCount{}},
		experts:  expertSums{of: map[int]*expertSum{}}, lengths: lengthSums{of: map[int64]*lengthSum{}, width: 1},
	}
}

// Graph takes a whole graph. It keeps nothing of it.
func (t *Tally) Graph(g *Graph) {
	t.begin(g.Begin)
	t.graphs++
	took := span(g.Begin, g.End)
	p := phaseIndex(g.Phase)
	t.mostLanes = max(t.mostLanes, len(g.Lanes))
	if g.DAG != 0 && (t.shapes[g.DAG] > 0 || len(t.shapes) < maxShapes) {
		t.shapes[g.DAG]++
	}
	t.recorded |= g.Detail
	t.levels.addGraph(t.t, g, took)
	if g.watched(DetailSched) {
		t.scheduled = plus(t.scheduled, took)
		for range g.Lanes {
			t.thieves.lanes = plus(t.thieves.lanes, took)
		}
	}
	t.phases[p].addGraph(took)
	t.backends.addGraph(g, took)
	t.addLanes(g, took)
	one := graphSums{p: p, g: g}
	t.addSteps(&one)
	t.phases[p].addCosted(&one, took)
	t.experts.addGraph(t, &one)
	t.lengths.addGraph(&one, took)
	t.addOpen(&one, took)
	t.uncalled(&one, took)
	if p == PhaseDecode {
		t.critical.addGraph(t, g)
		t.live.addGraph(t, g)
	}
}

// begin remembers the first moment of all.
func (t *Tally) begin(at time.Duration) {
	if !t.any || at < t.began {
		t.began, t.any = at, true
	}
}

// graphSums is what is found out about one graph on the way through its operators.
type graphSums struct {
	p         Phase
	g         *Graph
	attention time.Duration // of operators that grow with the KV cache
	length    int64         // of the KV cache
	queries   int64         // tokens that attend to it
	logits    bool          // it computes them
	costed    bool          // the cost of an operator is known
	mixed     []mixed
}

// step is one operator of a graph on all its lanes.
type step struct {
	operator   uint32
	begin, end time.Duration
	sync, off  time.Duration // added up over lanes
	idle       time.Duration // of lanes, at least: the longer of both of each, which may overlap
	preempted  time.Duration // of the lane that lost most
	lanes      int
	experts    uint32
	count      counts
	// barriers and sched say whether these were recorded, lostCPU that a lane was put off
	// its CPU in it or in the one before, after which it may begin late.
	barriers, sched, lostCPU bool
}

// alignAhead is how many spans of a lane are looked through for an operator that its
// next span is not.
const alignAhead = 16

// addSteps goes through the operators of a graph, in the order of the lane that has
// most of them: every lane of GGML passes every node. An operator is from its first
// begin on any lane to its last end, but not beyond the first begin of the next: all
// lanes have met at a barrier by then, and one that lost its CPU after that has only
// not begun the next.
func (t *Tally) addSteps(one *graphSums) {
	g := one.g
	lead := -1
	for i := range g.Lanes {
		if n := len(g.Lanes[i].Spans); n > 0 && (lead < 0 || n > len(g.Lanes[lead].Spans)) {
			lead = i
		}
	}
	if lead < 0 {
		return
	}
	next := make([]int, len(g.Lanes))
	var before step
	lostBefore := false
	for k := range g.Lanes[lead].Spans {
		s := g.stepAt(lead, k, next)
		lost := float64(s.preempted) > lostCPU*float64(span(s.begin, s.end))
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

// stepAt gathers the parts of the k-th operator of the leading lane. next is, by lane,
// the span to look at first.
func (g *Graph) stepAt(lead, k int, next []int) step {
	first := &g.Lanes[lead].Spans[k]
	s := step{operator: first.Operator, begin: first.Begin, end: first.End, barriers: g.watched(DetailBarrier), sched: g.watched(DetailSched)}
	s.add(first)
	for l := range g.Lanes {
		if l == lead {
			continue
		}
		spans := g.Lanes[l].Spans
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

// add adds one lane's part.
func (s *step) add(p *Span) {
	s.lanes++
	s.begin, s.end = min(s.begin, p.Begin), max(s.end, p.End)
	s.sync, s.off = plus(s.sync, p.Sync), plus(s.off, p.Off)
	s.idle = plus(s.idle, max(p.Sync, p.Off))
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
	took := span(s.begin, s.end)
	cost := f.cost
	var choice *ExpertChoice
	if s.experts != 0 && int(s.experts) <= len(t.t.Experts) {
		choice = &t.t.Experts[s.experts-1]
	}
	if f.mixture {
		if choice != nil && f.mixTokens != 1 {
			cost = CostOf(t.t, t.t.Operator(s.operator), *choice)
		}
		one.mixed = append(one.mixed, mixed{layer: f.layer, experts: f.experts, time: took, off: s.off, choice: choice})
	}
	one.logits = one.logits || f.name == logits
	one.costed = one.costed || cost.Known
	t.phases[p].addStep(took, &cost)
	f.rows(t, p)
	f.kind[p].add(s, took, &cost)
	f.step[p].add(s, took, &cost)
	f.sums[p].add(t.graphs, f.part, took, min(s.preempted, took))
	if f.typed[p] != nil {
		f.typed[p].add(took, &cost)
	}
	if f.attention {
		one.attention = plus(one.attention, took)
		if f.length > one.length {
			one.length, one.queries = f.length, f.queries
		}
	}
}

// Settings is what a [Tally] cannot know of the run that it adds up.
type Settings struct {
	Target   Target
	Roof     Roof
	Observer Observer
	Gaps     []Gap
	// Begin is the begin of the trace on the clock of the events, 0 that of the first
	// graph or call; Span how long it was recorded.
	Begin, Span time.Duration
	// Detail is what was recorded last; Observer what was reckoned before the trace, of the
	// level that the [Tally.Level] is.
	Detail Detail
	// Events were recorded, Dropped lost on the way, LeftOut not kept; Partial graphs
	// were left out of every figure.
	Events, Dropped, LeftOut int64
	// KeptFrom and KeptTo are, on the clock of the events, the first and the last event that
	// was kept where some were left out; KeptTo is 0 where that is not known.
	KeptFrom, KeptTo time.Duration
	Partial          int
	Cut              int              // calls that were left out, as [Assembler.Cut]
	Processes        map[int32]string // names by PID
	Reader           int              // as [Recording.Reader]
	HostLoad         *HostLoad        // nil not known
}

// isReader says that a process is the one that traced.
func (s *Settings) isReader(pid int32) bool {
	return s.Reader > 0 && int(pid) == s.Reader || s.Processes[pid] == OwnName
}

// knowsReader says that the process that traced would have been told from others.
func (s *Settings) knowsReader() bool {
	if s.Reader > 0 {
		return true
	}
	for _, name := range s.Processes {
		if name == OwnName {
			return true
		}
	}
	return false
}

// Summary is every figure so far, what they point to and the advice that follows. It can
// be called again and again.
func (t *Tally) Summary(s Settings) *Summary {
	// What was recorded once is not unknown since it is not any more.
	recorded := s.Detail | t.recorded
	r := s.Roof
	if r.BytesPerSecond <= 0 && r.FlopsPerSecond <= 0 {
		r = t.roofSeen()
	}
	sum := &Summary{
		Target: s.Target, Observer: t.observer(&s), Roof: r, Coverage: t.coverage(&s),
		Phases: t.phaseRows(r), Kinds: t.kinds.rows(t, r, recorded), Steps: t.steps.rows(t, r, recorded),
		Layers: t.layerRows(), Threads: t.threadRows(recorded), Tokens: t.tokenRows(&s),
		Experts: t.experts.summary(), Context: t.lengths.rows(), Types: t.typeRows(),
		Critical: t.critical.rows(),
		Backends: t.backends.rows(t.t), Copies: t.backends.copyRows(), Graphs: t.shapeRows(),
		Findings: []Finding{}, Gaps: t.gaps(&s),
	}
	var reader OtherRow
	if sum.Others, reader = t.thieves.rows(t.scheduled, &s); reader.PID != 0 {
		sum.Observer.Reader, sum.Observer.ReaderTime = reader.Share, reader.Time
	} else if recorded&DetailSched != 0 && t.scheduled > 0 && s.knowsReader() {
		sum.Observer.Reader = stat.Some(0)
	}
	sum.HostLoad, sum.PutOff = s.HostLoad, t.thieves.putOff(recorded)
	sum.Findings, sum.Advice = Diagnose(sum)
	sum.doubtExpertTimes()
	return sum
}

// coverage says how much of the work is in the figures.
func (t *Tally) coverage(s *Settings) Coverage {
	c := Coverage{
		Seconds: s.Span.Seconds(), Detail: t.Level(s.Detail).String(), Levels: t.levels.rows(s.Detail), Events: s.Events, Dropped: s.Dropped, LeftOut: s.LeftOut,
		Graphs: t.graphs, Partial: s.Partial, Calls: t.calls, OpShare: ratio(t.inLane0, t.lane0),
	}
	if s.LeftOut > 0 && s.KeptTo > 0 {
		c.KeptFrom, c.KeptTo = stat.Some(span(s.Begin, s.KeptFrom).Seconds()), stat.Some(span(s.Begin, s.KeptTo).Seconds())
	}
	var graphs, calls time.Duration
	for i := range t.phases {
		graphs, calls = plus(graphs, t.phases[i].graphsOfCalls), plus(calls, t.phases[i].callsOfGraphs)
	}
	c.GraphOf = ratio(graphs, calls)
	most := 0
	for operators, n := range t.opsOf {
		if n > most || n == most && float64(operators) > c.OpsPerToken.V {
			c.OpsPerToken, most = stat.Some(float64(operators)), n
		}
	}
	return c
}

// phaseIndex is the phase of a graph or call, unknown where it is none of ours.
func phaseIndex(p Phase) Phase {
	if int(p) >= numPhases {
		return PhaseUnknown
	}
	return p
}

// ratio is one time over another, absent where the other is none.
func ratio(part, whole time.Duration) stat.Opt {
	if whole <= 0 {
		return stat.None
	}
	return finite(float64(part) / float64(whole))
}

// rate is an amount over a time in seconds, absent where there is none.
func rate(amount float64, over time.Duration) stat.Opt {
	if over <= 0 {
		return stat.None
	}
	return finite(amount / over.Seconds())
}

// finite is a number as far as it is one.
func finite(v float64) stat.Opt {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return stat.None
	}
	return stat.Some(v)
}

// sorted are the keys of a map in their order.
func sorted[K cmp.Ordered, V any](m map[K]V) []K {
	keys := make([]K, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
