package optrace

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Expectation is what is known of a target before its operators are traced: what its
// graphs look like, and where the probes would sit.
type Expectation struct {
	Detail Detail
	// Nodes are the operators that one lane computes in a decode graph: ExecutedNodes
	// of its DAG, or a count. 0 where the level needs none.
	Nodes int
	// Lanes is the number of threads, 0 not known: one is reckoned with. They are probed side by side, so
	// that more of them add hits and no delay.
	Lanes int
	// GraphTime is the time of one decode graph without probes.
	GraphTime time.Duration
	// GraphsPerToken and CallsPerToken are 1 where they are 0.
	GraphsPerToken, CallsPerToken float64
	// NewGraphs is the share of graphs whose DAG has to be read; 0 where the runtime
	// keeps its graph.
	NewGraphs float64
	// Sites are the places of the probes. A point without one counts as dear.
	Sites []Site
	// Mute says that calls do not tell their tokens: what tells any is their graphs.
	Mute bool
	// Times corrects what more than calls cost by what was measured: so many times what
	// is reckoned; 0 is once.
	Times float64
	// Graphs and From are said in what is expected, as [Observer] has them.
	Graphs int
	From   string
}

// What an expectation is reckoned from.
const (
	ExpectedTrace  = "trace"            // decode graphs of the trace itself
	ExpectedBefore = "before the trace" // decode graphs before it
	ExpectedOther  = "other work"       // graphs before it, of which none was decoded
	ExpectedUntold = "untold"           // graphs before it, of which is not known what they are for
)

// Costs of a probe in the target's life, fitted to the toggled-window runs of three
// models (3 M, 152 M and 0.98 B parameters: 0.33, 10 and 35 ms a token; x86-64 under
// KVM, Linux 6.18). A probe whose instruction the kernel emulates costs 0.5 µs where
// the caches are hot, and up to 0.6 µs more where weights stream through them between two
// hits (152 M parameters at 8 ms a token, EPYC, three runs: 0.65 to 0.95 µs each, 0.16 of
// them the program's; a billion parameters on a Xeon: 1.4); one that is single-stepped traps twice. Bare metal differs.
const (
	hitCheap    = 500 * time.Nanosecond
	hitStepped  = 4700 * time.Nanosecond
	hitCold     = 600 * time.Nanosecond
	tensorCold  = 300 * time.Nanosecond // more, of the tensor that is copied out of cold memory
	steppedCold = 300 * time.Nanosecond // more, of the second trap
	// coldAfter is the time between two hits from which on the caches hold nothing of
	// the first.
	coldAfter = 50 * time.Microsecond
	// barriersEach are barriers for each operator: one after it, and two more within
	// each product, which four of ten operators are (29 of 73, 85 of 209, 155 of 379).
	barriersEach = 1 + 2*0.41
	// barrierHit is a hit at the begin or the end of a barrier: they follow each other
	// so closely that the caches are hot.
	barrierHit = 400 * time.Nanosecond
	// countersHit is more for each operator where counters are read. Assumption.
	countersHit = 500 * time.Nanosecond
	// readNode is the time in which a graph's first probe copies one node: 130 nodes
	// took 14 to 16 µs.
	readNode = 115 * time.Nanosecond
	// lookNode is the time in which a graph's probe looks whether the graph is the one it
	// was, for each operator, cold: by the kernel's own count of the program's time 9 µs
	// for 209 operators (152 M parameters, 8 ms a token, 904 graphs), of which 2 µs are
	// the probe's own.
	lookNode = 35 * time.Nanosecond
)

// Expect reckons what tracing would cost the target: probe hits for each token, what
// one costs, and the share of the target's speed that those of one lane take ([SpeedLost]). It is an
// estimate, right within about half of itself; scheduling, system calls, I/O and
// faults are not in it, whose events come with what the target does and not with its
// operators. Nothing is expected without a time of a graph.
func Expect(in Expectation) Observer {
	lanes, graphs, calls := float64(max(in.Lanes, 1)), orOne(in.GraphsPerToken), orOne(in.CallsPerToken)
	var hits float64        // of all lanes, for each token
	var delay time.Duration // of one lane, for each token
	times := 1.0
	add := func(each float64, everyLane bool, cost time.Duration) {
		delay += time.Duration(each * float64(cost) * times)
		if everyLane {
			each *= lanes
		}
		hits += each
	}
	if in.Detail&DetailToken != 0 {
		add(2*calls, false, in.siteCost(coldAfter, "llama_decode", "llama_process", "llama_encode"))
	}
	times = orOne(in.Times)
	if in.Detail&DetailGraph != 0 {
		add(2*graphs, false, in.graphHit())
		delay += time.Duration(graphs * in.NewGraphs * float64(in.Nodes) * float64(readNode) * times)
		delay += time.Duration(graphs * float64(in.Nodes) * float64(in.look()) * times)
	}
	if in.Detail&DetailBackend != 0 {
		add(graphs, false, in.siteCost(coldAfter, "ggml_backend_graph_compute_async"))
	}
	if in.Detail&(DetailOperator|DetailTensor) != 0 && in.Nodes > 0 {
		add(graphs*float64(in.Nodes), true, in.operatorHit())
	}
	if in.Detail&DetailBarrier != 0 && in.Nodes > 0 {
		cost := barrierHit
		if !in.cheap("ggml_barrier") {
			cost = hitStepped
		}
		add(2*graphs*barriersEach*float64(in.Nodes), true, cost)
	}
	out := Observer{HitsPerToken: hits, Threads: in.Lanes, GraphTime: in.GraphTime, Graphs: in.Graphs, From: in.From, Times: in.Times}
	if token := time.Duration(graphs * float64(in.GraphTime)); token > 0 {
		out.Expected = SpeedLost(float64(delay) / float64(token))
	}
	if perLane := hits / lanes; perLane > 0 {
		out.CostPerHit = time.Duration(float64(delay) / perLane)
	}
	return out
}

func orOne(v float64) float64 {
	if v <= 0 {
		return 1
	}
	return v
}

// graphHit is the mean of what a hit at the begin and one at the end of a graph cost: the
// end is a return, which is stepped where the begin is cheap.
func (in *Expectation) graphHit() time.Duration {
	var sum time.Duration
	sites := 0
	for i := range in.Sites {
		if in.Sites[i].Symbol == "ggml_graph_compute" {
			one := Expectation{Sites: in.Sites[i : i+1]}
			sum += one.siteCost(coldAfter, "ggml_graph_compute")
			sites++
		}
	}
	if sites == 0 {
		return in.siteCost(coldAfter, "ggml_graph_compute")
	}
	return sum / time.Duration(sites)
}

// operatorHit is what one hit at an operator costs.
func (in *Expectation) operatorHit() time.Duration {
	apart := in.GraphTime / time.Duration(in.Nodes)
	cost := in.siteCost(apart, "compute_forward")
	if in.Detail&DetailTensor != 0 {
		cost += tensorCold * min(apart, coldAfter) / coldAfter
	}
	if in.Detail&DetailCounters != 0 {
		cost += countersHit
	}
	return cost
}

// look is what it costs to look at one operator's node.
func (in *Expectation) look() time.Duration {
	if in.Nodes <= 0 {
		return 0
	}
	return lookNode * min(in.GraphTime/time.Duration(in.Nodes), coldAfter) / coldAfter
}

// siteCost is what one hit at a point costs whose hits are so far apart.
func (in *Expectation) siteCost(apart time.Duration, symbols ...string) time.Duration {
	away := min(apart, coldAfter)
	if in.cheap(symbols...) {
		return hitCheap + hitCold*away/coldAfter
	}
	return hitStepped + (hitCold+steppedCold)*away/coldAfter
}

// HitCost is what a hit of a probe there is reckoned to cost the target: hot, where the caches
// hold what it needs, and cold, where weights stream through them between two hits. [Site.Cost]
// is of a program that does nothing, and less. Hits of barriers follow each other so closely that they are always hot.
func (s *Site) HitCost() (hot, cold time.Duration) {
	one := Expectation{Sites: []Site{*s}}
	if s.Cheap && strings.Contains(s.Symbol, "ggml_barrier") {
		return barrierHit, barrierHit
	}
	return one.siteCost(0, s.Symbol), one.siteCost(coldAfter, s.Symbol)
}

// cheap says that all sites of a point are emulated by the kernel, and that there are
// any.
func (in *Expectation) cheap(symbols ...string) bool {
	found := false
	for i := range in.Sites {
		for _, s := range symbols {
			if !strings.Contains(in.Sites[i].Symbol, s) {
				continue
			}
			if !in.Sites[i].Cheap {
				return false
			}
			found = true
		}
	}
	return found
}

// SpeedLost is the share of its speed that a target loses whose tokens take longer by a
// share of their time without tracing: with 1, which is twice the time, it is 0.5. It is below 0
// where they take less time, and the base of every figure of what tracing costs.
func SpeedLost(longer float64) float64 {
	if math.IsInf(longer, 1) {
		return 1
	}
	return longer / (1 + longer)
}

// Longer is what [SpeedLost] is of: by what share of its time a token takes longer.
func Longer(lost float64) float64 { return lost / (1 - lost) }

// Delay is what probes take of a token, on one of the threads that are hit side by side.
func (o *Observer) Delay() time.Duration {
	return time.Duration(o.HitsOfThread() * float64(o.CostPerHit))
}

// farMean is how many times the middle token the mean one is, where a share of either says
// nothing of the other: other programs had the CPUs for much of the time.
const farMean = 2

// OfMean is the share of the mean token that tracing takes, where that one is far longer
// than the middle one, which Expected is by: [Observer.Cost] of the time that passed. None
// where the two are alike, where the cost was measured, or the trace's own graphs are too few.
func (o *Observer) OfMean() stat.Opt {
	if o.Windows > 0 || o.GraphTime <= 0 || o.MeanGraph < farMean*(o.GraphTime+o.Delay()) {
		return stat.None
	}
	return stat.Some(min(float64(o.Delay())/float64(o.MeanGraph)+o.tookCPU(), 1))
}

// HitsOfThread is the number of probe hits for a token on one thread.
func (o *Observer) HitsOfThread() float64 { return o.HitsPerToken / float64(max(o.Threads, 1)) }

// Over says that tracing costs more than was to be lost.
func (o *Observer) Over() bool {
	return o.Limit > 0 && (!o.Allowed(o.Limit) || o.Windows == 0 && o.Cost() > o.Limit)
}

// Reckoned says that there was something to reckon the expected cost from.
func (o *Observer) Reckoned() bool { return o.HitsPerToken > 0 && finiteNumber(o.HitsPerToken) }

// Cost is the share of its speed that the target loses by the trace: what was measured, which
// holds both, else [Observer.ExpectedCost].
func (o *Observer) Cost() float64 {
	if o.Windows > 0 {
		return o.Measured
	}
	return o.ExpectedCost()
}

// ExpectedCost is what is expected of the probes and what rooftop itself had of the target's
// CPUs, which was seen.
func (o *Observer) ExpectedCost() float64 { return min(o.Expected+o.tookCPU(), 1) }

// TookCPU says that rooftop itself had a CPU of the target for so long that it is told apart
// from the probes.
func (o *Observer) TookCPU() bool { return o.tookCPU() >= seenShare }

// tookCPU is the share of the time for which it had one, 0 not known.
func (o *Observer) tookCPU() float64 {
	if !finiteNumber(o.Reader.Or(0)) {
		return 0
	}
	return max(o.Reader.Or(0), 0)
}

// OverLimit says in words that tracing is [Observer.Over] what it was to cost; "" it is not.
func (o *Observer) OverLimit() string {
	if !o.Over() {
		return ""
	}
	return "more than --max-overhead " + strconv.FormatFloat(100*o.Limit, 'g', 4, 64)
}

// FewExpected says that what is expected is reckoned from so few graphs that it is from the
// fastest of them. A middle one does not hold then: where other programs ran meanwhile it
// is many times as long as a token alone, and the cost is a small part of it. What the probes
// take is the same, so that the fastest has the largest share, and lets no level through
// that the others would not.
func FewExpected(graphs int) bool { return graphs < fewestGraphs }

// Basis says in words what is expected by; "" it is not said.
func (o *Observer) Basis() string {
	which := "the middle one of " + strconv.Itoa(o.Graphs)
	if FewExpected(o.Graphs) {
		which = "the fastest of only " + strconv.Itoa(o.Graphs)
	}
	switch {
	case o.From == "" || o.Graphs <= 0:
		return ""
	case o.Graphs == 1 && o.From == ExpectedBefore:
		return "the only decode graph before the trace"
	case o.From == ExpectedTrace:
		return which + " decode graphs of the trace"
	case o.From == ExpectedUntold:
		return which + " graphs before the trace, whatever they are for"
	case o.From == ExpectedOther && o.Graphs == 1:
		return "the only graph before the trace, of other work, as no token was decoded yet"
	case o.From == ExpectedOther:
		return which + " graphs of other work before the trace, as no token was decoded yet"
	}
	return which + " decode graphs before the trace"
}

// Allowed says that tracing costs no more than a share of the target's speed: the lower end of
// what was measured, where it was, so that noise refuses nothing; else what is expected.
func (o Observer) Allowed(limit float64) bool {
	if o.Windows > 0 {
		return o.MeasuredLow <= limit
	}
	return o.Expected <= limit
}

// Lighten takes away detail, the dearest first, until no more than limit is expected.
// It returns what is left and what that is expected to cost; false where even calls
// alone cost more, or graphs where calls alone would tell nothing.
func Lighten(in Expectation, limit float64) (Detail, Observer, bool) {
	o := Expect(in)
	for _, less := range [...]Detail{DetailBarrier, DetailCounters, DetailTensor | DetailExperts, DetailOperator, DetailGraph | DetailBackend} {
		if o.Allowed(limit) || in.Mute && less&DetailGraph != 0 {
			break
		}
		in.Detail &^= less
		o = Expect(in)
	}
	return in.Detail, o, o.Allowed(limit)
}

// unexecuted are nodes of a graph that compute nothing: other views of a tensor.
var unexecuted = map[string]bool{"": true, "NONE": true, "VIEW": true, "RESHAPE": true, "PERMUTE": true, "TRANSPOSE": true}

// FusedNodes counts the nodes of a graph that are computed together with the one before
// them, where the runtime fuses a norm with the product by its weight that follows it
// (ggml-cpu.c, RMS_NORM and MUL): a hit less each.
func FusedNodes(t *Tables, d *DAG) int {
	n := 0
	for i := 1; i < len(d.Nodes); i++ {
		norm, by := &d.Nodes[i-1], &d.Nodes[i]
		if t.Operator(norm.Operator).Op == "RMS_NORM" && t.Operator(by.Operator).Op == "MUL" && slices.Contains(by.Sources, norm.Addr) {
			n++
		}
	}
	return n
}

// ExecutedNodes counts the nodes of a graph that are computed. Two that are computed in
// one count as two; [FusedNodes] are those of them that can be.
func ExecutedNodes(t *Tables, d *DAG) int {
	n := 0
	for i := range d.Nodes {
		if !unexecuted[t.Operator(d.Nodes[i].Operator).Op] {
			n++
		}
	}
	return n
}
