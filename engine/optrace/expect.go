package optrace

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Expectation is what is known about a target before its operators are traced: the shape of its
// graphs, and where the probes would sit.
type Expectation struct {
	Detail Detail
	// Nodes is the number of operators that one thread computes in a decode graph:
	// [ExecutedNodes] of its DAG, or a count. 0 if the level needs none.
	Nodes int
	// Threads is the number of compute threads, 0 if unknown: one is assumed. They are probed
	// concurrently, so more threads add hits but no delay.
	Threads int
	// GraphTime is the time of one decode graph without probes, 0 if unknown.
	GraphTime time.Duration
	// Sites are the locations of the probes. A probe point without a site counts as expensive.
	Sites []Site
	// Mute reports whether calls do not report their tokens, so that only graphs reveal them.
	Mute bool
	// Times is a factor on the estimated cost of everything but calls, from a measurement; 0 is
	// no correction.
	Times float64
	// Graphs and From are copied into the [Observer].
	Graphs int
	From   string
}

// Values of [Observer.From]: the graphs that an expectation is estimated from.
const (
	ExpectedTrace   = "trace"            // decode graphs of the trace itself
	ExpectedBefore  = "before the trace" // decode graphs before it
	ExpectedOther   = "other work"       // graphs before the trace, none of them a decode
	ExpectedUnknown = "untold"           // graphs before the trace whose phase is unknown
)

// Costs of a probe hit in a real target, fitted to the toggled-window runs of three
// models (3 M, 152 M and 0.98 B parameters: 0.33, 10 and 35 ms a token; x86-64 under
// KVM, Linux 6.18). A probe on an instruction that the kernel emulates costs 0.5 µs when
// the caches are hot, and up to 0.6 µs more when weights stream through them between two
// hits (152 M parameters at 8 ms a token, EPYC, three runs: 0.65 to 0.95 µs each, 0.16 of
// them in the BPF program; a billion parameters on a Xeon: 1.4); a single-stepped probe traps twice. Bare metal differs.
const (
	HitCheap    = 500 * time.Nanosecond
	HitStepped  = 4700 * time.Nanosecond
	HitCold     = 600 * time.Nanosecond
	TensorCold  = 300 * time.Nanosecond // extra, to copy the tensor from cold memory
	SteppedCold = 300 * time.Nanosecond // extra, for the second trap
	// coldAfter is the time between two hits after which the caches hold nothing of the first.
	coldAfter = 50 * time.Microsecond
	// barriersEach is the number of barriers per operator: one after it, and two more within
	// each product, which four of ten operators are (29 of 73, 85 of 209, 155 of 379).
	barriersEach = 1 + 2*0.41
	// BarrierHit is the cost of a hit at the start or end of a barrier: they follow each other
	// so closely that the caches are hot.
	BarrierHit = 400 * time.Nanosecond
	// countersHit is the extra cost per operator if counters are read: an assumption.
	countersHit = 500 * time.Nanosecond
	// graphCheckNode is the time per operator, cold, in which the graph's probe checks whether the
	// graph is unchanged: by the kernel's own count of the program's time 9 µs for 209
	// operators (152 M parameters, 8 ms a token, 904 graphs), of which 2 µs are the probe's
	// own.
	graphCheckNode = 35 * time.Nanosecond
)

// Expect estimates what tracing would cost the target: probe hits per token, the cost of one,
// and the share of the target's speed that the hits of one thread take ([SpeedLost]). The
// estimate is right within about half of itself. It excludes scheduling, system calls, I/O and
// faults, whose events depend on what the target does rather than on its operators. Without a
// graph time, Expected is 0.
func Expect(in Expectation) Observer {
	threads, nodes := float64(max(in.Threads, 1)), float64(in.Nodes)
	var hits float64        // of all threads, per token
	var delay time.Duration // of one thread, per token
	times := 1.0
	add := func(each float64, everyThread bool, cost time.Duration) {
		delay += time.Duration(each * float64(cost) * times)
		if everyThread {
			each *= threads
		}
		hits += each
	}
	if in.Detail&DetailToken != 0 {
		add(2, false, in.siteCost(coldAfter, "llama_decode", "llama_process", "llama_encode"))
	}
	if in.Times > 0 {
		times = in.Times
	}
	if in.Detail&DetailGraph != 0 {
		add(2, false, in.graphHit())
		delay += time.Duration(nodes * float64(in.graphCheck()) * times)
	}
	if in.Detail&DetailBackend != 0 {
		add(1, false, in.siteCost(coldAfter, "ggml_backend_graph_compute_async"))
	}
	if in.Detail&(DetailOperator|DetailTensor) != 0 && in.Nodes > 0 {
		add(nodes, true, in.operatorHit())
	}
	if in.Detail&DetailBarrier != 0 && in.Nodes > 0 {
		cost := BarrierHit
		if !in.cheap("ggml_barrier") {
			cost = HitStepped
		}
		add(2*barriersEach*nodes, true, cost)
	}
	out := Observer{HitsPerToken: hits, Threads: in.Threads, GraphTime: in.GraphTime, Graphs: in.Graphs, From: in.From, Times: in.Times}
	if in.GraphTime > 0 {
		out.Expected = SpeedLost(float64(delay) / float64(in.GraphTime))
	}
	if perThread := hits / threads; perThread > 0 {
		out.CostPerHit = time.Duration(float64(delay) / perThread)
	}
	return out
}

// graphHit returns the mean cost of a hit at the start and one at the end of a graph: the end
// is a return instruction, which is single-stepped even if the start is cheap.
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

// operatorHit returns the cost of one hit at an operator.
func (in *Expectation) operatorHit() time.Duration {
	apart := in.GraphTime / time.Duration(in.Nodes)
	cost := in.siteCost(apart, "compute_forward")
	if in.Detail&DetailTensor != 0 {
		cost += TensorCold * min(apart, coldAfter) / coldAfter
	}
	if in.Detail&DetailCounters != 0 {
		cost += countersHit
	}
	return cost
}

// graphCheck returns the cost per operator of checking whether a graph is unchanged.
func (in *Expectation) graphCheck() time.Duration {
	if in.Nodes <= 0 {
		return 0
	}
	return graphCheckNode * min(in.GraphTime/time.Duration(in.Nodes), coldAfter) / coldAfter
}

// siteCost returns the cost of one hit at a probe point whose hits are apart from each other.
func (in *Expectation) siteCost(apart time.Duration, symbols ...string) time.Duration {
	away := min(apart, coldAfter)
	if in.cheap(symbols...) {
		return HitCheap + HitCold*away/coldAfter
	}
	return HitStepped + (HitCold+SteppedCold)*away/coldAfter
}

// HitCost returns the estimated cost of one probe hit in the target: hot, if the caches hold
// what it needs, and cold, if weights stream through them between two hits. Hits of barriers
// follow each other so closely that they are always hot. [Site.Cost] is lower: it is of a
// program that does nothing.
func (s *Site) HitCost() (hot, cold time.Duration) {
	one := Expectation{Sites: []Site{*s}}
	if s.Cheap && strings.Contains(s.Symbol, "ggml_barrier") {
		return BarrierHit, BarrierHit
	}
	return one.siteCost(0, s.Symbol), one.siteCost(coldAfter, s.Symbol)
}

// cheap reports whether there are sites for the symbols and the kernel emulates all of them.
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

// SpeedLost returns the share of its speed that a target loses if a token takes longer by the
// given share of its time without tracing: 1, twice the time, gives 0.5. It is negative if
// tokens take less time. Every figure of the cost of tracing is in this unit.
func SpeedLost(longer float64) float64 {
	if math.IsInf(longer, 1) {
		return 1
	}
	return longer / (1 + longer)
}

// Longer is the inverse of [SpeedLost]: by which share of its time a token takes longer.
func Longer(lost float64) float64 { return lost / (1 - lost) }

// Delay returns the time that probes add to a token on one thread.
func (o *Observer) Delay() time.Duration {
	return time.Duration(o.HitsOfThread() * float64(o.CostPerHit))
}

// FarMean is the ratio of the mean token to the median one from which a share of one says
// nothing about the other: other programs had the CPUs for much of the time.
const FarMean = 2

// ShareOfMean returns the share of the mean token that tracing takes, if that token is far
// longer than the median one, on which Expected is based: [Observer.Cost] of the time that
// passed. It is absent if the two are close, if the cost was measured, or if the trace has too
// few graphs.
func (o *Observer) ShareOfMean() stat.Opt {
	if o.Windows > 0 || o.GraphTime <= 0 || o.MeanGraph < FarMean*(o.GraphTime+o.Delay()) {
		return stat.None
	}
	return stat.Some(min(float64(o.Delay())/float64(o.MeanGraph)+o.ReaderShare(), 1))
}

// HitsOfThread returns the number of probe hits per token on one thread.
func (o *Observer) HitsOfThread() float64 { return o.HitsPerToken / float64(max(o.Threads, 1)) }

// Over reports whether tracing costs more than Limit.
func (o *Observer) Over() bool {
	return o.Limit > 0 && (!o.Allowed(o.Limit) || o.Windows == 0 && o.Cost() > o.Limit)
}

// Estimated reports whether there was a basis for an estimate of the cost.
func (o *Observer) Estimated() bool { return o.HitsPerToken > 0 && stat.IsFinite(o.HitsPerToken) }

// Cost returns the share of its speed that the target loses to the trace: the measured share,
// which covers probes and reader, or else [Observer.ExpectedCost].
func (o *Observer) Cost() float64 {
	if o.Windows > 0 {
		return o.Measured
	}
	return o.ExpectedCost()
}

// ExpectedCost returns the expected cost of the probes plus the observed share of the target's
// CPUs that rooftop itself took.
func (o *Observer) ExpectedCost() float64 { return min(o.Expected+o.ReaderShare(), 1) }

// TookCPU reports whether rooftop itself took enough of the target's CPUs to be shown
// separately from the probes.
func (o *Observer) TookCPU() bool { return o.ReaderShare() >= LeastShown }

// ReaderShare returns the share of the time for which rooftop itself had a CPU of the target, 0
// if unknown.
func (o *Observer) ReaderShare() float64 {
	if !stat.IsFinite(o.Reader.Or(0)) {
		return 0
	}
	return max(o.Reader.Or(0), 0)
}

// OverLimit describes that tracing is [Observer.Over] its limit, "" if it is not.
func (o *Observer) OverLimit() string {
	if !o.Over() {
		return ""
	}
	return "more than --max-overhead " + strconv.FormatFloat(100*o.Limit, 'g', 4, 64)
}

// FewExpected reports whether an estimate has so few graphs that it is based on the fastest of
// them instead of the median. With few graphs a median does not hold: other programs can make
// it many times as long as an undisturbed token, so that the cost looks small. The delay of the
// probes is the same, so the fastest graph gives the largest share, and admits no level that
// the others would not.
func FewExpected(graphs int) bool { return graphs < FewestGraphs }

// Basis describes the graphs that the expected cost is based on, "" if they are unknown.
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
	case o.From == ExpectedUnknown:
		return which + " graphs before the trace, of unknown phase"
	case o.From == ExpectedOther && o.Graphs == 1:
		return "the only graph before the trace, of other work, as no token was decoded yet"
	case o.From == ExpectedOther:
		return which + " graphs of other work before the trace, as no token was decoded yet"
	}
	return which + " decode graphs before the trace"
}

// Allowed reports whether tracing costs at most limit: by the lower end of the measured
// interval, so that noise refuses nothing, or else by the expected cost of the probes.
func (o Observer) Allowed(limit float64) bool {
	if o.Windows > 0 {
		return o.MeasuredLow <= limit
	}
	return o.Expected <= limit
}

// Lighten removes detail, the most expensive first, until the expected cost is at most limit.
// It returns the remaining detail and its expected cost; false if even calls alone cost more,
// or graphs if calls alone would reveal nothing (Mute).
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

// unexecuted are the operators that compute nothing: other views of a tensor.
var unexecuted = map[string]bool{"": true, "NONE": true, "VIEW": true, "RESHAPE": true, "PERMUTE": true, "TRANSPOSE": true}

// FusedSuffix ends the symbols of operators that compute a norm and the product after it.
const FusedSuffix = "_rms_norm_mul_fused"

// FusedNodes counts the nodes of a graph that can be computed together with the previous one,
// which saves a hit each: the runtime fuses a norm with the product by its weight that follows
// (ggml-cpu.c, RMS_NORM and MUL).
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

// ExecutedNodes counts the nodes of a graph that are computed. Two nodes that are fused count
// as two; [FusedNodes] counts those.
func ExecutedNodes(t *Tables, d *DAG) int {
	n := 0
	for i := range d.Nodes {
		if !unexecuted[t.Operator(d.Nodes[i].Operator).Op] {
			n++
		}
	}
	return n
}

const (
	// LeastShown is the smallest share that is shown: percentages have one decimal.
	LeastShown = 0.0005
)
