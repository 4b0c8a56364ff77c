package rules

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/lever"
	"github.com/rooftop-dev/rooftop/engine/roofline"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Fixes for a KV pool that is too small, shared by both paths of R2 and by R5.

const (
	// lowUtilization is the --gpu-memory-utilization below which the operator chose a small pool:
	// vLLM's default was 0.90, and is 0.92 since 0.20.
	lowUtilization  = 0.90
	utilizationStep = 0.01
	// dividedGrowth is the growth to propose where requests are cut off at their part of the pool, so that it does not show
	// how much they need.
	dividedGrowth = 2
	// minGrowth is the minimum growth to propose for a pool that filled, even if mean lengths
	// say that it is large enough.
	minGrowth = 1.25
	// exactSlots is the number of slots up to which a lower number is not rounded to a CUDA
	// graph: rounding would give away too much of the batch.
	exactSlots = 64
)

func moreKVRemedies() []string {
	return []string{
		"if --num-gpu-blocks-override makes the pool small: as many blocks as the sequences need",
		fmt.Sprintf("if --gpu-memory-utilization is below %v: raise it, to at most %v", lowUtilization, lever.MostUtilization),
		"--kv-cache-dtype fp8, if the cache is not 8-bit yet and the GPU supports fp8: twice the tokens",
		fmt.Sprintf("--gpu-memory-utilization up to %v, if GPU memory is free", lever.MostUtilization),
		"hardware: tensor parallelism or a replica",
	}
}

// costPoolMemory is the cost of a pool with more blocks than now.
const costPoolMemory = "more memory for the pool: the start fails if it is not available"

// removeOverride is the alternative to a larger --num-gpu-blocks-override.
var removeOverride = engine.Rejected{
	What: "removing --num-gpu-blocks-override",
	Why:  "lets vLLM size the pool by GPU memory, which is usually larger still, but its size is unknown",
}

// remedy is one way to a larger pool: a fix with its effect, or why it does not apply here.
type remedy struct {
	fix      *engine.Fix
	gain     gain
	growth   stat.Opt // new size of the pool over the current one
	rejected *engine.Rejected
}

// notApplicable returns a remedy that does not apply to this server, with the reason.
func notApplicable(what, why string) remedy {
	return remedy{rejected: &engine.Rejected{What: what, Why: why}}
}

// kvNeed describes what the pool lacks.
type kvNeed struct {
	run    *engine.Run
	pool   *pool
	why    string   // what the pool lacks, a sentence
	wanted float64  // sequences of one rank that would run
	factor stat.Opt // required size of the pool over the current one; absent if unknown
}

// moreKV returns the first remedy for room for wanted sequences of one rank that applies to this
// server; the others are listed as rejected. why is a sentence about what the pool lacks, "" for
// the usual one.
func moreKV(r *engine.Run, p *pool, wanted float64, preempting bool, why string) remedy {
	n := kvNeed{run: r, pool: p, wanted: wanted, why: why}
	if why == "" {
		n.why = p.lack(wanted)
	}
	n.factor = p.factor(n.wanted)
	if n.factor.OK {
		n.factor.V = max(n.factor.V, minGrowth)
	}
	var best remedy
	var rejected []engine.Rejected
	for _, try := range []func(*kvNeed) remedy{blocksOverride, lowUtil, cpuSpace, fp8Cache, highUtil} {
		switch m := try(&n); {
		case m.fix != nil && best.fix == nil:
			best = m
		case m.fix != nil:
			rejected = append(rejected, engine.Rejected{What: shortForm(m.fix), Why: "also enlarges the pool, but only one change is made at a time, and another takes precedence"})
		case m.rejected != nil:
			rejected = append(rejected, *m.rejected)
		}
	}
	slots, costly := fewerSlots(&n)
	hardware := moreHardware(&n)
	switch {
	case best.fix != nil:
	case slots != nil && preempting && !costly:
		best.fix, slots = slots, nil
		rejected = append(rejected, engine.Rejected{What: hardware.fix.Command, Why: "would serve the whole load, but fewer slots end the preemptions on the current hardware"})
	default:
		best = hardware
	}
	if slots != nil {
		rejected = append(rejected, engine.Rejected{
			What: shortForm(slots),
			Why:  "a latency fix: it ends preemptions and lowers inter-token latency, but does not raise throughput, and requests wait in the queue instead",
		})
	}
	if !r.Facts.V0.Value {
		rejected = append(rejected, engine.Rejected{What: "a lower --max-model-len", Why: "frees nothing: the V1 engine allocates blocks on demand, and the pool keeps its size"})
	}
	if offloads(r.Facts) {
		rejected = append(rejected, engine.Rejected{What: "--kv-offloading-size", Why: "keeps evicted prefixes in host memory; running sequences still need blocks on the GPU"})
	}
	best.fix.Rejected = append(best.fix.Rejected, rejected...)
	best.fix.Predicted = append(best.fix.Predicted, best.gain.predictions()...)
	return best
}

// promptsSaturate is the share of the engine's time from which prompts leave nothing for more requests at once.
const promptsSaturate = 0.9

// busyWithPrompts says that prompts take the engine's time, so that a larger pool hardly raises the output; "" if they
// leave time for more requests, or if their share is unknown.
func busyWithPrompts(r *engine.Run) string {
	if stepPrefill(r).Or(0) < promptsSaturate {
		return ""
	}
	of := "the engine's time"
	if r.Facts.OnCPU() {
		of = "the CPU's time"
	}
	return "prompts take nearly all of " + of + " already (est): with a larger pool more requests run at once, each more slowly, and output hardly rises"
}

// withheldIfPointless returns the fix, withheld if the physical model predicts no gain, or without one if prompts
// take the engine's time.
func (m remedy) withheldIfPointless(r *engine.Run) *engine.Fix {
	switch busy := busyWithPrompts(r); {
	case m.gain.pointless():
		m.fix.Withheld = m.gain.because(fmt.Sprintf("a larger pool gains nothing here: the physical model predicts %s", m.gain.predictedThroughput()))
	case busy != "" && r.Perf == nil:
		m.fix.Withheld = busy
	}
	return m.fix
}

// shortForm returns the flag of a fix with its value.
func shortForm(fix *engine.Fix) string { return strings.TrimSpace(fix.Flag + " " + fix.To) }

// lack returns a sentence about what the pool lacks for wanted sequences.
func (p *pool) lack(wanted float64) string {
	fit, n := p.wholeSequences(), math.Round(wanted)
	switch {
	case !fit.OK:
		return "The KV pool fills up before all requests can run."
	case fit.V >= n:
		return fmt.Sprintf("The KV pool fits %s at their mean context%s, but not several long ones or a burst at once.",
			figure.Counted(n, "sequence"), perRank(p.ranks))
	}
	return fmt.Sprintf("The KV pool fits %s at the context they reach%s; %s would run%s.", figure.Counted(fit.V, "sequence"), p.notAtTheirEnd(fit.V), figure.Count(n), perRank(p.ranks))
}

// withGrowth returns a fix that makes the pool growth times as large, with its gain.
func (n *kvNeed) withGrowth(fix *engine.Fix, growth stat.Opt) remedy {
	m := remedy{fix: fix, growth: growth}
	if n.pool.capacity.OK && growth.OK {
		m.gain = moreCapacity(n.run, n.pool, growth.V)
	}
	return m
}

// blocksOverride enlarges a pool that --num-gpu-blocks-override makes small.
func blocksOverride(n *kvNeed) remedy {
	over := n.run.Facts.NumGPUBlocksOverride
	if !over.Known {
		return remedy{}
	}
	to := 0
	if block := n.run.Facts.BlockSize; block.Known && n.pool.context.OK {
		each := math.Ceil(n.pool.context.V / float64(block.Value))
		to = int(math.Ceil(n.wanted*each/kvPressureUsage)) + 1
	} else if n.factor.OK {
		to = int(math.Ceil(float64(over.Value) * n.factor.V))
	}
	to = max(to, int(math.Ceil(float64(over.Value)*minGrowth)))
	divided := n.run.Facts.Dialect().Divided != ""
	if divided {
		to = max(to, dividedGrowth*over.Value)
	}
	to = (to + lever.BlockStep - 1) / lever.BlockStep * lever.BlockStep
	if most := memoryBlocks(n.run.Facts); most.OK && float64(to) > most.V {
		return withoutOverride(n, over, most)
	}
	fix := flagFix(n.run.Facts, lever.Blocks, strconv.Itoa(to),
		n.why+" --num-gpu-blocks-override makes the pool small; "+strconv.Itoa(to)+" blocks fit them all.", costPoolMemory)
	fix.Risk = 2
	if divided { // what is gained are whole answers, which no rate shows
		fix.Why = fmt.Sprintf("A request that fills its part of the context (%s for %s) is cut off or refused there: neither preempted nor queued. How much it needed is not known; twice the context is the next step.",
			figure.Counted(float64(over.Value), "token"), figure.Counted(runSlots(n.run).V, "slot"))
		return remedy{fix: fix, growth: stat.Some(float64(to) / float64(over.Value))}
	}
	if !n.run.Facts.OnCPU() {
		fix.Rejected = []engine.Rejected{removeOverride}
	}
	return n.withGrowth(fix, stat.Some(float64(to)/float64(over.Value)))
}

// memoryBlocks estimates the number of blocks that vLLM would choose by itself; absent if
// model, GPU or block size are unknown, or on a CPU.
func memoryBlocks(f *engine.Facts) stat.Opt {
	if f.OnCPU() || !f.BlockSize.Known || f.BlockSize.Value < 1 {
		return stat.None
	}
	util := lever.DefaultUtilization
	if f.GPUMemoryUtilization.Known {
		util = f.GPUMemoryUtilization.Value
	}
	tokens := lever.PoolTokens(f, util)
	if tokens <= 0 {
		return stat.None
	}
	return stat.Some(math.Floor(tokens / float64(f.BlockSize.Value)))
}

// withoutOverride removes the override if more blocks are needed than the estimated maximum that
// fits into memory (most): a larger override would fail at the start.
func withoutOverride(n *kvNeed, over engine.Fact[int], most stat.Opt) remedy {
	flag, from := lever.Blocks.Flag, strconv.Itoa(over.Value)
	growth := most.Div(stat.Some(float64(over.Value)))
	if growth.V < minGrowth {
		return notApplicable("more blocks by "+flag, fmt.Sprintf("GPU memory holds about %s blocks (est), and the pool already has %s", figure.Count(most.V), from))
	}
	fix := flagFix(n.run.Facts, lever.Blocks, "",
		fmt.Sprintf("%s %s makes the pool small; memory holds about %s blocks (est).", n.why, flag, figure.Count(most.V)), "the pool then uses the GPU memory that is free now")
	fix.Command = "remove " + flag + " " + from + " from " + launchCommand(n.run.Facts) + " to let vLLM size the pool by GPU memory"
	return n.withGrowth(fix, growth)
}

// low reports whether a utilization is below the default, which leaves memory unused. Others than vLLM compute theirs
// from what they need beside the pool.
func low(f *engine.Facts) bool {
	return f.GPUMemoryUtilization.Value < lowUtilization && f.Dialect().ID == catalog.VLLM
}

// lowUtil raises a utilization below the default.
func lowUtil(n *kvNeed) remedy {
	u := n.run.Facts.GPUMemoryUtilization
	if n.run.Facts.OnCPU() || !u.Known || !low(n.run.Facts) || n.run.Facts.NumGPUBlocksOverride.Known {
		return remedy{}
	}
	return raiseUtil(n, u, lowUtilization)
}

// highUtil raises the utilization above the default if there is memory for it.
func highUtil(n *kvNeed) remedy {
	u := n.run.Facts.GPUMemoryUtilization
	if n.run.Facts.OnCPU() || !u.Known || low(n.run.Facts) || u.Value >= lever.MostUtilization-utilizationStep/2 || n.run.Facts.NumGPUBlocksOverride.Known {
		return remedy{}
	}
	if !n.run.Facts.Device.Known && !n.run.Facts.GPUKnown {
		return notApplicable(fmt.Sprintf("--gpu-memory-utilization above %v", u.Value), "the device of the server is unknown: pass --gpu")
	}
	return raiseUtil(n, u, u.Value+utilizationStep)
}

// raiseUtil proposes the lowest utilization, at least least, that makes the pool large enough.
func raiseUtil(n *kvNeed, u engine.Fact[float64], least float64) remedy {
	to, growth := utilFor(n, u.Value, least)
	text := strconv.FormatFloat(to, 'f', 2, 64)
	if gpus := n.run.Agg.GPUs; lever.MemoryTaken(gpus, to-u.Value) {
		return notApplicable("--gpu-memory-utilization "+text, fmt.Sprintf("GPU memory is already %s full: another process or the engine itself holds the rest", figure.PercentSign(lever.MemoryInUse(gpus).V)))
	}
	fix := flagFix(n.run.Facts, lever.Utilization, text, fmt.Sprintf("%s A utilization of %v leaves GPU memory unused.", n.why, u.Value))
	if to > lever.DefaultUtilization {
		fix.Risk = 2
	}
	if !growth.OK {
		fix.Costs = append(fix.Costs, "the growth of the pool is unknown: model or GPU is not in the catalog")
	}
	return n.withGrowth(fix, growth)
}

// utilFor returns the utilization to propose and the factor by which the pool grows. If the
// memory that the model needs is unknown, it returns least, and no factor.
func utilFor(n *kvNeed, from, least float64) (to float64, growth stat.Opt) {
	now := lever.PoolTokens(n.run.Facts, from)
	if now <= 0 {
		return least, stat.None
	}
	for to = least; ; to += utilizationStep {
		to = math.Round(to/utilizationStep) * utilizationStep
		growth = stat.Some(lever.PoolTokens(n.run.Facts, to) / now)
		if growth.V >= n.factor.Or(minGrowth) || to >= lever.MostUtilization-utilizationStep/2 {
			return to, growth
		}
	}
}

// cpuSpace enlarges the pool of the CPU backend, whose size is an environment variable in whole
// GiB.
func cpuSpace(n *kvNeed) remedy {
	if !n.run.Facts.OnCPU() || n.run.Facts.NumGPUBlocksOverride.Known || n.run.Facts.Dialect().PoolVariable == "" {
		return remedy{}
	}
	times := n.factor.Or(2)
	fix := &engine.Fix{
		Kind: engine.KindHost, From: "", To: figure.Count(times) + " times the current space",
		Command: fmt.Sprintf("restart with %v times the current VLLM_CPU_KVCACHE_SPACE (whole GiB)", math.Ceil(times*10)/10),
		Why:     n.why + " On a CPU, VLLM_CPU_KVCACHE_SPACE sets the size of the pool.",
		Costs:   []string{lever.Restart, "host memory"},
		Risk:    1,
	}
	return n.withGrowth(fix, stat.Some(times))
}

// fp8Cache stores the KV cache in fp8, which takes one byte per value.
func fp8Cache(n *kvNeed) remedy {
	f := n.run.Facts
	what := "--kv-cache-dtype " + f.Dialect().ByteCache
	if f.OnCPU() || !f.KVCacheDType.Known || n.run.Facts.NumGPUBlocksOverride.Known || f.Dialect().ByteCache == "" {
		return remedy{}
	}
	bytes := catalog.DType(f.KVCacheDType.Value).Bytes()
	switch {
	case bytes < 2:
		return notApplicable(what, "the KV cache is already 8-bit")
	case !f.GPUKnown:
		return notApplicable(what, "no GPU can be read, so its fp8 support is unknown: pass --gpu")
	case f.GPU.FP8TFLOPS <= 0:
		return notApplicable(what, f.GPU.Name+" has no fp8 units")
	}
	fix := flagFix(f, lever.CacheType, f.Dialect().ByteCache,
		fmt.Sprintf("%s With 8 bits per value the same memory holds %v times as many tokens.", n.why, bytes))
	fix.Risk = 2
	if f.KVCacheDType.Source == engine.FromDefault && f.Launch == "" {
		fix.From = ""
		fix.Why += " The current 16-bit cache is an assumption: neither the metrics page nor the launch command shows it."
	}
	return remedy{fix: fix, gain: modelled(n.run, (*roofline.Performance).FP8KV), growth: stat.Some(bytes)}
}

// fewerSlots returns the latency fix: as many slots as sequences fit into the pool; nil if that
// would not lower the slots. costly reports whether the physical model predicts a loss of
// throughput above gainFloor.
func fewerSlots(n *kvNeed) (fix *engine.Fix, costly bool) {
	slots := n.run.Facts.MaxNumSeqs
	held := n.pool.wholeSequences()
	if !slots.Known || !held.OK {
		return nil, false
	}
	to := int(held.V)
	if to >= exactSlots {
		to = engine.SlotsWithin(held.V)
	}
	if to < 1 || to >= slots.Value || float64(to) >= max(n.pool.peak, n.pool.running+n.pool.queued) {
		return nil, false
	}
	fix = flagFix(n.run.Facts, lever.Slots, strconv.Itoa(to),
		n.why+" As many slots as sequences fit end the preemptions.", "requests beyond the slots wait in the queue")
	g := modelled(n.run, func(m *roofline.Performance) roofline.Gain { return m.LowerSlots(to) })
	if float64(to) < n.pool.running {
		// At or above the mean running requests the model predicts no change: it does not
		// include the preemptions at peaks.
		fix.Predicted = g.predictions()
	}
	return fix, g.Throughput.Mid.Or(0) < -gainFloor
}

// moreHardware returns the last remedy: more GPUs.
func moreHardware(n *kvNeed) remedy {
	fix := &engine.Fix{
		Kind: engine.KindHardware, Risk: 2,
		Command: "add a replica, or raise --tensor-parallel-size with more GPUs",
		Why:     n.why + " No server flag makes the pool larger.",
		Costs:   []string{"another GPU"},
	}
	if n.factor.OK {
		fix.To = figure.Whole(math.Ceil(n.factor.V)) + " replicas"
		fix.Command = fmt.Sprintf("serve the load from %s, or raise --tensor-parallel-size with more GPUs", fix.To)
	}
	if tp := n.run.Facts.TensorParallel; tp.Known {
		fix.Costs = []string{fmt.Sprintf("%d GPUs instead of %d for tensor parallelism, or as many again for each replica", 2*tp.Value, tp.Value)}
		g := modelled(n.run, func(m *roofline.Performance) roofline.Gain { return m.TensorParallel(2 * tp.Value) })
		return remedy{fix: fix, gain: g}
	}
	return remedy{fix: fix}
}

// offloads reports whether this vLLM has --kv-offloading-size.
func offloads(f *engine.Facts) bool {
	return !f.OnCPU() && f.EngineVersion.Known && flagMissing(f, "--kv-offloading-size") == ""
}
