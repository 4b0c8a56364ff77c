package glossary

import (
	"fmt"

	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/engine/optrace/tally"
)

// levelWords returns the words of --level that are not terms for figures.
func levelWords() []entry {
	return []entry{
		{"tokens", []string{"token"}, []string{
			"As a figure: the tokens of the computed batches, of prompts and answers alike, by phase.",
			"As a level: calls and their batches only, no graphs and no operators. It costs the least and gives the rates and times of calls. Where a call does not report its batch, its phase is unknown.",
		}},
		{"counters", []string{"IPC", "LLC/instr", "performance monitoring unit", "PMU"}, []string{
			"As a detail: instructions, cycles, last-level cache (LLC) misses and branch misses of each operator, if the CPU exposes its performance monitoring unit; most virtual machines do not. IPC is instructions per cycle, LLC/instr misses per instruction, and both decide the bound of an operator.",
			"Without the unit, the kernel's own counters of a thread are read (CPU time, context switches, migrations and faults). They decide no bound and appear in the timeline of --trace.",
		}},
		{"sampling", []string{"sampler", "samplers", "sample"}, []string{
			"The choice of the next token from the logits of a call, which the runtime makes between two calls.",
			"As a detail: each sampler that runs is a mark on the timeline of --trace, and in no figure of the report. The time of sampling is part of the time between calls, which needs no such detail.",
		}},
		{"syscalls", []string{"syscall", "in them"}, []string{
			"As a detail: the number and time of system calls that compute threads made while graphs were computed, by thread. Operators need none: many of them show that threads wait in the kernel.",
		}},
		{"io", []string{"disk", "block I/O"}, []string{
			"As a detail: disk requests of compute threads while graphs were computed, in bytes by thread. What the kernel reads ahead for others is not included.",
			"Next: see mmap-cold.",
		}},
		{"faults", []string{"fault", "page fault", "major", "minor"}, []string{
			"As a detail: pages that compute threads touched and that were not mapped, by thread, while graphs were computed. minor: the page was in memory. major: it was read from a disk while the operator waited.",
			"Next: see mmap-cold if there are major faults.",
		}},
		{"all", []string{"--level all"}, []string{
			"As a level: every detail that this target supports. It costs the most.",
		}},
	}
}

// reportWords returns the terms of the screen and of the report.
func reportWords() []entry {
	return []entry{
		{"tok/s", []string{"tokens a second", "tokens per second", "rate of tokens", "in answers", "in calls"}, []string{
			"Tokens per second of a phase. in calls: over the time of the runtime's calls that compute them (of its graphs, where no call was seen). Operators and the machine's peak are compared with this rate, and so are two traces.",
			fmt.Sprintf("in answers: over the time from the start of a decode to the start of the next one of the same answer. It includes sampling and the application's work between calls, as the runtime's own log and a client see it. Pauses of more than %s and %d decodes count as waits for a request and are excluded. Both rates are shown if the first is %s or more above the other; a single rate is in calls.",
				figure.Duration(tally.SamePrompt), tally.SameAnswer, figure.Count(100*optrace.MinPaceDifference)+figure.NBSP+"%"),
			"Next: see between calls, and time-between-calls; the smaller the model, the larger that part.",
		}},
		{"first token", []string{"TTFT", "time to first token"}, []string{
			"From the start of a prefill to the start of the decode after it: the time to compute the prompt. Calls that compute one prompt batch by batch are one prefill.",
			"Waits of a request before that (a queue, a slot, the network) are not included: a client sees more, which 'rooftop probe' measures.",
		}},
		{"call", []string{"calls"}, []string{
			"One call of the runtime's interface that computes a batch (llama_decode, llama_process, llama_encode), with all of its graphs. Its phase is that of its batch: see prefill call and decode call.",
		}},
		{"between calls", []string{"between"}, []string{
			"From the end of a call to the start of the next one, between two decodes or after a prefill: sampling, and the application's work per token. Between a decode and a prefill the server may just wait for a request, so that time is excluded.",
			"Next: see time-between-calls.",
		}},
		{"unknown", []string{"phase unknown"}, []string{
			"As a phase: calls whose batch could not be read, so they are neither prefill nor decode. Graphs show the phase if the call does not; use a level above token.",
		}},
		{"partial", []string{"partial graph", "partial graphs"}, []string{
			"A graph that lost an event, started before the trace, or was cut by its end, a pause or a change of detail. Partial graphs are counted and excluded from every figure.",
		}},
		{"lost", []string{"events lost", "dropped"}, []string{
			"Events that the target made faster than rooftop read them. Their graphs are excluded as partial.",
			"Next: see events-lost.",
		}},
		{"coverage", []string{"covered", "watched"}, []string{
			"How much of the target's work is in the figures: the share of the time of graphs that operators on thread 0 and traced waits cover, and the share of the time of calls that graphs cover. No probe sees the rest: work on a GPU, or of the runtime between operators.",
		}},
		{"hook", []string{"probe", "probes", "site", "hit", "hits"}, []string{
			"The function of the runtime that each operator goes through, where the operator probe sits. A hit is one pass of a thread over a probe.",
			"emulated: the kernel executes the instruction under the probe itself. single-stepped: the CPU does, with a second trap that costs several times as much. See observer effect.",
		}},
		{"moved", []string{"bytes moved"}, []string{
			"The bytes that operators must read and write by their definition and the shapes of their operands (est), each element once. Caches may save part of the memory traffic.",
			"GB/s is that over the time in which it was moved; GFLOP/s is operations over time, where a multiply and an add are two.",
		}},
		{"of peak", []string{"peak share", "share of the peak", "of roof", "roof share"}, []string{
			"The share of the machine's peak that an operator reaches: of the bytes per second if memory bounds it, of the operations per second if computing does, of the nearer one if neither does. Above 100 % its operands came from caches.",
			"Next: see machine peak for what is measured, from the catalog or only seen.",
		}},
		{"waiting", []string{"waits"}, []string{
			"As a column (waits): the time in which threads waited for each other in barriers, on their CPU. For operators it is a mean over threads of each, for threads a share of the time of graphs.",
			"As a bound: the operator's threads waited for each other, or were off their CPUs, most of its time, so neither memory nor computing is judged.",
			"Next: see barrier wait, sync-bound and preempted.",
		}},
		{"busy", nil, []string{
			"The share of the time of graphs in which a thread computes operators. If barriers or scheduling are not traced, its waits or its time off the CPU look busy too.",
		}},
		{"type", []string{"types", "types of weights", "weights"}, []string{
			"The number format of the weights that an operator reads: f32, f16, bf16, or a quantised type (q8_0, q4_K …), which has fewer bits per weight and must be unpacked. Operators without weights have none.",
		}},
		{"of median", []string{"over median", "layers"}, []string{
			"A layer's mean time in a graph over the median of the layers of its phase, both without the time for which a thread was preempted. The time beside it includes that, so the two need not agree if threads lost their CPUs.",
			"Next: see slow-layer.",
		}},
		{"flash_attn_ext", []string{"flash attention", "attention"}, []string{
			"Attention as one operator: it reads the keys and values of all earlier tokens (the KV cache) and takes longer the longer the context is. Without it attention is several operators (products, a softmax).",
			"Next: see attention-grows.",
		}},
		{"start", nil, []string{
			"On the critical path: from the start of a graph to its first operator, while threads are started or woken.",
		}},
		{"copies", []string{"copy"}, []string{
			"Tensors that were copied into a backend, out of it, or from one to another. On the CPU alone they are inputs and results, and small.",
			"Next: see offload-copies if they are not.",
		}},
		{"DAG", []string{"distinct graphs", "nodes", "edges", "leaves", "views", "computed"}, []string{
			"A graph of operators as it was read. Nodes are operators, edges are uses of results, leaves are tensors that no node computes (weights, inputs, caches). Views are nodes that refer to the memory of another tensor and compute nothing.",
			"Graphs that differ in anything (another batch, a longer context in some runtimes) are distinct; computed is how often each ran.",
		}},
		{"switches", []string{"context switches"}, []string{
			"How often the thread lost its CPU while graphs were computed, because it waited for something or was preempted.",
			"Next: see off the CPU.",
		}},
	}
}
