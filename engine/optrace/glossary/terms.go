// Package glossary explains the words of traces: their figures, levels, columns and findings.
package glossary

import (
	"fmt"
	"slices"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/engine/optrace/advice"
	"github.com/rooftop-dev/rooftop/engine/optrace/tally"
)

// entry has the fields of [engine.Term].
type entry struct {
	Name          string
	Also, Meaning []string
}

// Terms returns the terms of traces: figures, levels and words of the report, then every
// finding with its condition, its meaning and the next step.
func Terms() []engine.Term {
	var words []engine.Term
	for _, e := range slices.Concat(figureWords(), levelWords(), reportWords()) {
		words = append(words, engine.Term(e))
	}
	for _, e := range advice.Explanations() {
		words = append(words, engine.Term{Name: e.ID, Meaning: []string{"Condition: " + e.Condition, "Meaning: " + e.Meaning, "Next: " + e.Next}})
	}
	return words
}

// figureWords returns the terms for figures.
func figureWords() []entry {
	return []entry{
		{"machine peak", []string{"peak", "roof", "memory roof", "roofline", "best that was seen"}, []string{
			"What the machine can do at most with as many threads as compute: bytes read from memory per second, and operations per second (a multiply and an add are two).",
			"measured: by rooftop's own loops of vector instructions, in a few seconds. catalog (est): from data sheets. seen: the best that eight products with weights in a row reached in the trace itself, counting only those whose threads kept their CPUs if scheduling was traced. It separates memory-bound from compute-bound operators, but is no limit of the machine: no ceiling is derived from it, and reads from caches can exceed it.",
			"Quantised weights are multiplied as eight-bit integers, but kernels unpack them first. They are compared with the rate of f32, of which they reach about a third, and with the bare rate of integers (int8) only if they exceed it.",
			"Next: measure it while the server is idle; under load the result is too low.",
			"Source: Williams, Waterman & Patterson, Roofline, CACM 52(4), 2009.",
		}},
		{"bound", []string{"memory-bound", "compute-bound", "mixed", "neither"}, []string{
			fmt.Sprintf("By counters: memory below %.1f instructions per cycle with more than %.2f last-level cache misses per instruction; compute above %.1f with fewer than %.3f; mixed otherwise.", tally.MemoryIPC, tally.MemoryMisses, tally.ComputeIPC, tally.ComputeMiss),
			fmt.Sprintf("By the roofline (est), without counters: whichever takes longer at the machine's peak, moving the operator's bytes or computing its operations, by more than %s; mixed otherwise. neither: the operator reaches less than %s of the nearer peak (for products of quantised weights, of %s of the f32 rate), so something else limits it.", figure.PercentSign(optrace.NearRidge-1), figure.PercentSign(optrace.FarBelow), figure.PercentSign(optrace.UnpackingRate)),
			fmt.Sprintf("waiting: the operator's threads waited for each other or were off their CPUs for more than %s of its time, if that is traced: see preempted and sync-bound.", figure.PercentSign(tally.MostlyIdle)),
			"Meaning: memory-bound operators get faster with fewer bytes (a smaller type, a shorter context), and with more threads only until memory is saturated. Compute-bound operators get faster with more threads and better kernels.",
			"Source: counters: ProfInfer (arXiv:2601.20755).",
		}},
		{"thread", []string{"threads", "compute thread", "lane", "lanes", "ith"}, []string{
			"One of the threads that compute a graph together, by its index (GGML's ith). Some runtimes start new threads for each graph: the index stays, the thread id does not.",
		}},
		{"barrier wait", []string{"barrier", "barriers", "sync", "synchronisation"}, []string{
			"The time that a thread waits for the others: after each operator, and within products. GGML's barriers spin, so a waiting thread keeps its CPU.",
			"On the critical path (synchronisation): from the end of an operator on its last thread to the start of the next one.",
			"As a level (barriers): operators with their tensors, and these waits.",
			"Next: see sync-bound, and preempted: a preempted thread holds all others up at the next barrier.",
		}},
		{"critical path", []string{"critical"}, []string{
			"The parts that decided how long a graph took: in each step, the thread that ended last. Making anything else faster changes nothing.",
		}},
		{"observer effect", []string{"overhead", "observer"}, []string{
			"By how much tracing slows the target: probe hits per token times the cost of one, over the time of a token; plus the CPU time that rooftop itself took from compute threads, if scheduling is traced.",
			fmt.Sprintf("The token is the median one: it gives the cost on an undisturbed machine. If the mean token takes %d times as long or more, other programs delay tokens, and the share of the mean token is shown too.", optrace.FarMean),
			fmt.Sprintf("expected (est): a probe hit on an instruction that the kernel emulates costs %s hot, with its data in the caches, and %s cold, when weights stream through the caches between two hits; a single-stepped one costs %s and %s. A tensor that is copied from cold memory adds up to %s. Hits of barriers follow each other so closely that they cost %s. The mean of all hits is shown beside the hits per token. The estimate is right within about half of itself.",
				figure.Duration(optrace.HitCheap), figure.Duration(optrace.HitCheap+optrace.HitCold), figure.Duration(optrace.HitStepped), figure.Duration(optrace.HitStepped+optrace.HitCold+optrace.SteppedCold), figure.Duration(optrace.TensorCold), figure.Duration(optrace.BarrierHit)),
			"measured: windows of a second or less, alternately with and without probes; each window with probes is compared with the one before and the one after it. The result is the median, with the 95 % interval of a block bootstrap.",
			"Next: a lower level of detail costs less.",
		}},
		{"prefill call", []string{"prompt processing"}, []string{
			"A call with several tokens: the prompt. The tokens share each read of the weights, so computing bounds it if the batch is large.",
		}},
		{"decode call", []string{"generation"}, []string{
			"A call with one token per sequence: the answer, token by token. Each call reads all weights, so memory bounds it. A prompt of one token looks the same.",
		}},
		{"CV", []string{"coefficient of variation", "imbalance", "skew"}, []string{
			"The standard deviation of counts over their mean: how unevenly experts are chosen. 0 is perfectly even. By chance alone, n choices of k experts give about sqrt((k-1)/n).",
		}},
		{"off the CPU", []string{"off-cpu", "blocked"}, []string{
			"The time of a thread without a CPU. preempted: it could run, but another thread had the CPU. blocked: it waited for something (a disk, a lock).",
			"Source: sched_switch: a thread that leaves in the state running was preempted.",
		}},
		{"level", []string{"level of detail", "detail", "levels"}, []string{
			"What is traced (--level). token: calls only. graph: graphs of operators too. operator: each operator on each thread. tensor: its name, shapes and type too, which give bytes and operations. barriers: waits of threads for each other. sched: which processes had the CPUs. More detail costs more; levels can be joined with +.",
			"Next: rooftop trace --help lists all of them.",
		}},
		{"operator", []string{"op"}, []string{
			"One step of a graph (MUL_MAT, ROPE), which all threads compute together. Its time is from its first start on any thread to the first start of the next operator.",
			"As a level: each operator on each thread, by its name in the graph, without shapes.",
		}},
		{"tensor", nil, []string{
			"What an operator computes or reads: weights, or intermediate values. The table \"Operators by tensor\" has one row per tensor name, without the layer number (ffn_up).",
			"As a level: names, shapes and types are read; they give bytes, operations and bounds.",
		}},
		{"graph", nil, []string{
			"The operators that one call of the runtime computes, in order. A graph that lost an event or started before the trace is partial and excluded from every figure.",
			"As a level: calls, graphs, and the backends that compute them; no operators.",
		}},
		{"sched", []string{"scheduling", "interference"}, []string{
			"As a level: when threads got and lost their CPUs, and to which process. CPU time taken by other programs is interference; without this level it looks like slow operators.",
			"Next: see preempted and off the CPU.",
		}},
		{"wake-up", nil, []string{
			"The time from when a thread is ready to when it runs. It is long if all CPUs are taken.",
		}},
		{"expert", []string{"experts", "mixture of experts"}, []string{
			"One of several feed-forward networks of a layer, of which a router chooses a few for each token.",
		}},
		{"splits", []string{"split"}, []string{
			"Parts of a graph that a backend (the CPU, a GPU) computes in one go. Values may be copied between two of them.",
		}},
	}
}
