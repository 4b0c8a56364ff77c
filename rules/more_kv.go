package rules

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Remedies for a KV pool that is too small, shared by R2's two paths and by R5.

const (
	// lowUtilization is the --gpu-memory-utilization below which the pool is
	// small by choice: vLLM's default was 0.90 and is 0.92 from 0.20 on.
	lowUtilization = 0.90
	// highUtilization is the most that is proposed: above it starts fail for
	// lack of memory (vllm.md section 3.2).
	highUtilization = 0.95
	utilizationStep = 0.01
	// defaultUtilization is vLLM's default of the newest releases; above it the
	// memory that nobody accounts for may be missing.
	defaultUtilization = 0.92
	// vramMargin is the share of a GPU's memory that stays free beyond what a
	// higher utilisation claims.
	vramMargin = 0.02
	// poolStep is what a number of blocks is rounded up to.
	poolStep = 8
	// leastGrowth is the growth of a pool that is asked for where its measure
	// says that it is large enough, although it filled.
	leastGrowth = 1.25
	// exactSeats is the number of seats up to which a lower one is not rounded:
	// a step of the ladder would give away too much of the batch.
	exactSeats = 64
)

func moreKVRemedies() []string {
	return []string{
		"where --num-gpu-blocks-override makes the pool small: as many blocks as the sequences need",
		fmt.Sprintf("where --gpu-memory-utilization is below %s: raise it, to %s at most", number(lowUtilization), number(highUtilization)),
		"--kv-cache-dtype fp8 where the cache is not 8 bit yet and the GPU has fp8: twice the tokens",
		fmt.Sprintf("--gpu-memory-utilization up to %s where GPU memory is free", number(highUtilization)),
		"hardware: tensor parallelism or a replica",
	}
}

// remedy is one way to a larger pool: a fix with what it does, or why it is
// none here.
type remedy struct {
	fix      *engine.Fix
	gain     gain
	growth   stat.Opt // how many times larger the pool gets
	rejected *engine.Rejected
}

// kvNeed is what the pool lacks.
type kvNeed struct {
	run    *engine.Run
	pool   *pool
	why    string   // what the pool lacks, as a sentence
	wanted float64  // sequences of one rank that want to run
	factor stat.Opt // how many times larger the pool must be; absent where it cannot be told
}

// moreKV proposes how the pool gets room for wanted sequences of one rank: the
// first remedy that this server has; the others are listed. why says in a
// sentence what the pool lacks, "" the usual one.
func moreKV(r *engine.Run, p *pool, wanted float64, preempting bool, why string) remedy {
	n := kvNeed{run: r, pool: p, wanted: wanted, why: why}
	if why == "" {
		n.why = p.lack(wanted)
	}
	n.factor = p.factor(n.wanted)
	if n.factor.OK {
		n.factor.V = max(n.factor.V, leastGrowth)
	}
	var best remedy
	var rejected []engine.Rejected
	for _, try := range []func(*kvNeed) remedy{blocksOverride, lowUtil, cpuSpace, fp8Cache, highUtil} {
		switch m := try(&n); {
		case m.fix != nil && best.fix == nil:
			best = m
		case m.fix != nil:
			rejected = append(rejected, engine.Rejected{What: shortly(m.fix), Why: "also gives the pool room; one change at a time, and the other comes first"})
		case m.rejected != nil:
			rejected = append(rejected, *m.rejected)
		}
	}
	seats, costly := fewerSeats(&n)
	hardware := moreHardware(&n)
	switch {
	case best.fix != nil:
	case seats != nil && preempting && !costly:
		best.fix, seats = seats, nil
		rejected = append(rejected, engine.Rejected{What: hardware.fix.Command, Why: "would carry the whole load; fewer seats end the preemptions on this hardware"})
	default:
		best = hardware
	}
	if seats != nil {
		rejected = append(rejected, engine.Rejected{
			What: shortly(seats),
			Why:  "a latency fix: it ends preemptions and lowers inter-token latency, but throughput stays where it is and requests wait in the queue instead",
		})
	}
	if !r.Facts.V0.Value {
		rejected = append(rejected, engine.Rejected{What: "a lower --max-model-len", Why: "frees nothing: the V1 engine allots blocks on demand, the pool keeps its size"})
	}
	if offloads(r.Facts) {
		rejected = append(rejected, engine.Rejected{What: "--kv-offloading-size", Why: "keeps evicted prefixes in host memory; running sequences still need blocks on the GPU"})
	}
	best.fix.Rejected = append(best.fix.Rejected, rejected...)
	best.fix.Predicted = append(best.fix.Predicted, best.gain.predictions()...)
	return best
}

// withheldIfPointless returns the fix, withheld where the physical model
// expects nothing of it.
func (m remedy) withheldIfPointless() *engine.Fix {
	if m.gain.pointless() {
		m.fix.Withheld = m.gain.because(fmt.Sprintf("a larger pool gains nothing here: the physical model expects %s tokens per second", change(m.gain.Throughput.Mid.V)))
	}
	return m.fix
}

// shortly writes a fix's change in short.
func shortly(fix *engine.Fix) string { return strings.TrimSpace(fix.Flag + " " + fix.To) }

// lack says what the pool lacks for wanted sequences, in one sentence.
func (p *pool) lack(wanted float64) string {
	held := p.whole()
	if held.OK && held.V >= math.Round(wanted) {
		return fmt.Sprintf("The KV pool holds the %s that want to run at their mean context%s, but not when long ones or a burst come together.",
			counted(math.Round(wanted), "sequence", "sequences"), perRank(int(p.ranks)))
	}
	if held.OK {
		return fmt.Sprintf("The KV pool holds %s sequences at the context they reach, and %s want to run%s.",
			number(held.V), number(math.Round(wanted)), perRank(int(p.ranks)))
	}
	return "The KV pool fills up before all that want to run are in."
}

// grown is a fix that makes the pool growth times as large.
func (n *kvNeed) grown(fix *engine.Fix, growth stat.Opt) remedy {
	m := remedy{fix: fix, growth: growth}
	if n.pool.capacity.OK && growth.OK {
		m.gain = moreCapacity(n.run, n.pool, growth.V)
	}
	return m
}

// blocksOverride undoes a pool that was made small by hand.
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
	to = roundUp(max(to, int(math.Ceil(float64(over.Value)*leastGrowth))), poolStep)
	from := strconv.Itoa(over.Value)
	if most := memoryBlocks(n.run.Facts); most.OK && float64(to) > most.V {
		return withoutOverride(n, over, most)
	}
	fix := &engine.Fix{
		Kind: engine.KindFlag, Flag: "--num-gpu-blocks-override", From: from, To: strconv.Itoa(to),
		Command: setFlag(n.run.Facts, "--num-gpu-blocks-override", from, strconv.Itoa(to), over.Source),
		Why:     n.why + " The pool was made small by --num-gpu-blocks-override; " + strconv.Itoa(to) + " blocks hold them all.",
		Price:   []string{priceRestart, "more memory for the pool: the start fails if it is not there"},
		Risk:    2,
	}
	if !onCPU(n.run.Facts) {
		fix.Rejected = []engine.Rejected{{What: "removing --num-gpu-blocks-override", Why: "lets vLLM size the pool by GPU memory, usually larger still; its size is not known from here"}}
	}
	return n.grown(fix, stat.Some(float64(to)/float64(over.Value)))
}

// memoryBlocks estimates the blocks that vLLM would size the pool at by itself;
// absent where model, GPU or block size are not known, or on a CPU.
func memoryBlocks(f *engine.Facts) stat.Opt {
	config, missing := engine.ReplicaConfig(f)
	if len(missing) > 0 || onCPU(f) || !f.BlockSize.Known || f.BlockSize.Value < 1 {
		return stat.None
	}
	util := defaultUtilization
	if f.GPUMemoryUtilization.Known {
		util = f.GPUMemoryUtilization.Value
	}
	tokens, _, _ := config.Capacity(util)
	if tokens <= 0 {
		return stat.None
	}
	return stat.Some(math.Floor(tokens / float64(f.BlockSize.Value)))
}

// withoutOverride leaves the pool's size to vLLM, where more blocks are needed
// than memory is estimated to hold: a larger number would fail at the start.
func withoutOverride(n *kvNeed, over engine.Fact[int], most stat.Opt) remedy {
	const flag = "--num-gpu-blocks-override"
	from := strconv.Itoa(over.Value)
	growth := most.Div(stat.Some(float64(over.Value)))
	if growth.V < leastGrowth {
		return remedy{rejected: &engine.Rejected{
			What: "more blocks by " + flag, Why: fmt.Sprintf("GPU memory holds about %s blocks (est), and %s are given already", number(most.V), from),
		}}
	}
	fix := &engine.Fix{
		Kind: engine.KindFlag, Flag: flag, From: from,
		Command: "take " + flag + " " + from + " out of the launch command, so that vLLM sizes the pool by GPU memory",
		Why:     fmt.Sprintf("%s The pool was made small by %s; memory holds about %s blocks (est).", n.why, flag, number(most.V)),
		Price:   []string{priceRestart, "what memory the pool leaves free now is used by it"},
		Risk:    1,
	}
	return n.grown(fix, growth)
}

// lowUtil raises a utilisation below the default.
func lowUtil(n *kvNeed) remedy {
	u := n.run.Facts.GPUMemoryUtilization
	if onCPU(n.run.Facts) || !u.Known || u.Value >= lowUtilization || n.run.Facts.NumGPUBlocksOverride.Known {
		return remedy{}
	}
	return raiseUtil(n, u, lowUtilization)
}

// highUtil goes beyond the default, where there is memory for it.
func highUtil(n *kvNeed) remedy {
	u := n.run.Facts.GPUMemoryUtilization
	if onCPU(n.run.Facts) || !u.Known || u.Value < lowUtilization || u.Value >= highUtilization-utilizationStep/2 || n.run.Facts.NumGPUBlocksOverride.Known {
		return remedy{}
	}
	if !n.run.Facts.Device.Known && !n.run.Facts.GPUKnown {
		return remedy{rejected: &engine.Rejected{
			What: fmt.Sprintf("--gpu-memory-utilization above %s", number(u.Value)), Why: "what the server runs on is not known: give --gpu",
		}}
	}
	return raiseUtil(n, u, u.Value+utilizationStep)
}

// raiseUtil proposes the lowest utilisation from least on whose pool suffices.
func raiseUtil(n *kvNeed, u engine.Fact[float64], least float64) remedy {
	to, growth := utilFor(n, u.Value, least)
	text := strconv.FormatFloat(to, 'f', 2, 64)
	if used := vramShare(n.run); used.OK && used.V+to-u.Value > 1-vramMargin {
		return remedy{rejected: &engine.Rejected{
			What: "--gpu-memory-utilization " + text,
			Why:  fmt.Sprintf("GPU memory is %s full already: another process or the engine itself holds what it would claim", percent(used.V)),
		}}
	}
	from := number(u.Value)
	fix := &engine.Fix{
		Kind: engine.KindFlag, Flag: "--gpu-memory-utilization", From: from, To: text,
		Command: setFlag(n.run.Facts, "--gpu-memory-utilization", from, text, u.Source),
		Why:     fmt.Sprintf("%s A utilisation of %s gives the pool less than the GPU has.", n.why, from),
		Price:   []string{priceRestart, "less GPU memory to spare: the start fails if another process holds it"},
		Risk:    1,
	}
	if to > defaultUtilization {
		fix.Risk = 2
	}
	if !growth.OK {
		fix.Price = append(fix.Price, "by how much the pool grows is not known: model or GPU are not in the catalog")
	}
	return n.grown(fix, growth)
}

// utilFor returns the utilisation to propose and by what factor the pool grows;
// the factor is absent where the model's memory is not known, and the least
// utilisation is proposed then.
func utilFor(n *kvNeed, from, least float64) (to float64, growth stat.Opt) {
	config, missing := engine.ReplicaConfig(n.run.Facts)
	if len(missing) > 0 {
		return least, stat.None
	}
	now, _, _ := config.Capacity(from)
	if now <= 0 {
		return least, stat.None
	}
	for to = least; ; to += utilizationStep {
		to = math.Round(to/utilizationStep) * utilizationStep
		then, _, _ := config.Capacity(to)
		growth = stat.Some(then / now)
		if growth.V >= n.factor.Or(leastGrowth) || to >= highUtilization-utilizationStep/2 {
			return to, growth
		}
	}
}

// vramShare returns the share of the fullest GPU's memory in use at its peak.
func vramShare(r *engine.Run) stat.Opt {
	share := stat.None
	for i := range r.Agg.GPUs {
		g := &r.Agg.GPUs[i]
		share = share.Max(g.Peak[engine.GPUVRAMUsed].Div(g.Last[engine.GPUVRAMTotal]))
	}
	return share
}

// cpuSpace is the pool of the CPU backend, set by an environment variable in
// whole GiB.
func cpuSpace(n *kvNeed) remedy {
	if !onCPU(n.run.Facts) || n.run.Facts.NumGPUBlocksOverride.Known {
		return remedy{}
	}
	times := n.factor.Or(2)
	fix := &engine.Fix{
		Kind: engine.KindHost, From: "", To: number(times) + " times the present space",
		Command: fmt.Sprintf("restart with VLLM_CPU_KVCACHE_SPACE at %s times its present value (whole GiB)", number(math.Ceil(times*10)/10)),
		Why:     n.why + " On a CPU the pool is what VLLM_CPU_KVCACHE_SPACE gives it.",
		Price:   []string{priceRestart, "host memory"},
		Risk:    1,
	}
	return n.grown(fix, stat.Some(times))
}

// fp8Cache halves the bytes of a token.
func fp8Cache(n *kvNeed) remedy {
	f := n.run.Facts
	const what = "--kv-cache-dtype fp8"
	if onCPU(f) || !f.KVCacheDType.Known || n.run.Facts.NumGPUBlocksOverride.Known {
		return remedy{}
	}
	bytes := catalog.DType(f.KVCacheDType.Value).Bytes()
	switch {
	case bytes < 2:
		return remedy{rejected: &engine.Rejected{What: what, Why: "the KV cache is 8 bit already"}}
	case !f.GPUKnown:
		return remedy{rejected: &engine.Rejected{What: what, Why: "whether this GPU has fp8 is not known: no GPU is readable; give --gpu"}}
	case f.GPU.FP8TFLOPS <= 0:
		return remedy{rejected: &engine.Rejected{What: what, Why: f.GPU.Name + " has no fp8 units"}}
	}
	fix := &engine.Fix{
		Kind: engine.KindFlag, Flag: "--kv-cache-dtype", From: f.KVCacheDType.Value, To: "fp8",
		Command: setFlag(f, "--kv-cache-dtype", f.KVCacheDType.Value, "fp8", f.KVCacheDType.Source),
		Why:     fmt.Sprintf("%s With 8 bits a value the same memory holds %s times as many tokens.", n.why, number(bytes)),
		Price:   []string{priceRestart, "a small accuracy risk: check the model's answers"},
		Risk:    2,
	}
	if f.KVCacheDType.Source == engine.FromDefault && f.Launch == "" {
		fix.From = ""
		fix.Why += " That the cache is 16 bit now is assumed: neither the page nor the launch tells."
	}
	return remedy{fix: fix, gain: fp8KV(n.run), growth: stat.Some(bytes)}
}

// fewerSeats is the latency fix: as many seats as the pool holds; nil where it
// would not lower them. costly says that the physical model expects a loss of
// throughput from it.
func fewerSeats(n *kvNeed) (fix *engine.Fix, costly bool) {
	seats := n.run.Facts.MaxNumSeqs
	held := n.pool.whole()
	if !seats.Known || !held.OK {
		return nil, false
	}
	to := int(held.V)
	if to >= exactSeats {
		to = seatsWithin(held.V)
	}
	if to < 1 || to >= seats.Value || float64(to) >= max(n.pool.peak, n.pool.running+n.pool.queued) {
		return nil, false
	}
	from := strconv.Itoa(seats.Value)
	fix = &engine.Fix{
		Kind: engine.KindFlag, Flag: "--max-num-seqs", From: from, To: strconv.Itoa(to),
		Command: setFlag(n.run.Facts, "--max-num-seqs", from, strconv.Itoa(to), seats.Source),
		Why:     n.why + " As many seats as it holds end the preemptions.",
		Price:   []string{priceRestart, "requests beyond the seats wait in the queue: time to first token does not improve"},
		Risk:    1,
	}
	g := lowerSeats(n.run, to)
	if float64(to) < n.pool.running {
		// At or above what runs on average the model sees no change: what is saved,
		// the preemptions of its peaks, is not in it.
		fix.Predicted = g.predictions()
	}
	return fix, g.Throughput.Mid.Or(0) < -gainFloor
}

// moreHardware is what is left: another GPU.
func moreHardware(n *kvNeed) remedy {
	fix := &engine.Fix{
		Kind: engine.KindHardware, Risk: 2,
		Command: "add a replica, or raise --tensor-parallel-size with more GPUs",
		Why:     n.why + " No flag of this server makes the pool larger.",
		Price:   []string{"another GPU"},
	}
	if n.factor.OK {
		fix.To = number(math.Ceil(n.factor.V)) + " replicas"
		fix.Command = fmt.Sprintf("serve the load from %s replicas, or raise --tensor-parallel-size with more GPUs", number(math.Ceil(n.factor.V)))
	}
	if tp := n.run.Facts.TensorParallel; tp.Known {
		fix.Price = []string{fmt.Sprintf("%d GPUs instead of %d for tensor parallelism, or as many again for each replica", 2*tp.Value, tp.Value)}
		return remedy{fix: fix, gain: tensorParallel(n.run, 2*tp.Value)}
	}
	return remedy{fix: fix}
}

// offloads says whether this vLLM has --kv-offloading-size.
func offloads(f *engine.Facts) bool {
	return !onCPU(f) && f.EngineVersion.Known && flagMissing(f, "--kv-offloading-size") == ""
}
