package optrace

import "fmt"

// levelWords are the words of --level that have no other meaning.
func levelWords() []ExplainWord {
	return []ExplainWord{
		{"tokens", []string{"token"}, []string{
			"As a figure: the tokens of the batches that were computed, of prompts and of answers alike, each in its phase.",
			"As a level: calls and their batches alone, no graph and no operator. It costs the least, and tells rates and times of calls; where a call does not tell its batch, of no phase.",
		}},
		{"counters", []string{"IPC", "LLC/instr", "performance monitoring unit", "PMU"}, []string{
			"As a detail: instructions, cycles, misses of the last cache (LLC) and of branches are read for each operator, where the CPU shows its performance monitoring unit; most virtual machines do not. Then IPC is instructions a cycle, LLC/instr misses an instruction, and bounds are judged by them.",
			"Without it the kernel's own counters of a thread are read (its time on a CPU, its switches, migrations and faults), which judge no bound and are in the timeline of --trace.",
		}},
		{"sampling", []string{"sampler", "samplers", "sample"}, []string{
			"The choice of the next token from the logits that a call computed: the runtime does it between two calls.",
			"As a detail: each sampler that runs is a mark on the timeline of --trace, and in no figure of the report. What sampling takes is a part of the time between calls, which needs no such detail.",
		}},
		{"syscalls", []string{"syscall", "in them"}, []string{
			"As a detail: the system calls of compute threads while graphs were computed, by lane: how many, and the time in them. Operators need none: many of them say that threads wait in the kernel.",
		}},
		{"io", []string{"disk", "block I/O"}, []string{
			"As a detail: requests to a disk that compute threads made while graphs were computed, in bytes by lane. What the kernel reads ahead for others is not in it.",
			"Next: see mmap-cold.",
		}},
		{"faults", []string{"fault", "page fault", "major", "minor"}, []string{
			"As a detail: pages that compute threads touched and that were not mapped, by lane, while graphs were computed. minor: the page was in memory; major: it had to be read from a disk, which the operator waited for.",
			"Next: see mmap-cold where there are major ones.",
		}},
		{"all", []string{"--level all"}, []string{
			"As a level: every detail that can be had of this target. It costs the most.",
		}},
	}
}

// reportWords are the words of the screen and of the report.
func reportWords() []ExplainWord {
	return []ExplainWord{
		{"tok/s", []string{"tokens a second", "tokens per second", "rate of tokens", "in answers", "in calls"}, []string{
			"Tokens a second of a phase. in calls: over the time of the runtime's calls that compute them (of its graphs, where no call was seen), which is what operators and the roof are held against, and what a comparison compares.",
			fmt.Sprintf("in answers: over the time from the begin of a decode to the begin of the next one of the same answer, so that sampling and the application's work between the calls is in it: what the runtime's own log and a client see. Pauses of more than %s and %d decodes are waits for a request and not counted. Both are shown where the first is %s or more above the other; one alone is in calls.",
				spellTime(samePrompt), sameAnswer, spellPercent(paceApart)),
			"Next: see between calls, and time-between-calls; the smaller the model, the more of the time lies there.",
		}},
		{"first token", []string{"TTFT", "time to first token"}, []string{
			"From the begin of a prefill to the begin of the decode after it; calls that compute one prompt batch by batch are one prefill. It is what computing the prompt takes.",
			"What a request waited for before (a queue, a seat, the network) is not in it: a client sees more, and 'rooftop probe' measures that.",
		}},
		{"call", []string{"calls"}, []string{
			"One call of the runtime's interface that computes a batch (llama_decode, llama_process, llama_encode), with all of its graphs. Its phase is that of its batch: see prefill call and decode call.",
		}},
		{"between calls", []string{"between"}, []string{
			"From the end of a call to the begin of the next one, between two decodes or after a prefill: sampling, and what the application does for a token. From a decode to a prefill it may only wait for a request, which is not counted.",
			"Next: see time-between-calls.",
		}},
		{"unknown", []string{"phase unknown"}, []string{
			"As a phase: calls whose batch could not be read, so that they are neither prefill nor decode. Graphs tell it where the call does not, so that a level above token does.",
		}},
		{"partial", []string{"partial graph", "partial graphs"}, []string{
			"A graph that lost an event, was begun before the trace, or was cut by its end, a pause or a change of detail. It is left out of every figure, and counted.",
		}},
		{"lost", []string{"events lost", "dropped"}, []string{
			"Events that the target made faster than rooftop read them. The graphs that they were of are left out, as partial.",
			"Next: see events-lost.",
		}},
		{"coverage", []string{"covered", "watched"}, []string{
			"How much of the target's work is in the figures: the share of the time of graphs that operators on lane 0 cover, with waits that were traced, and the share of the time of calls that graphs cover. The rest is time that no probe sees: work on a GPU, or of the runtime between operators.",
		}},
		{"hook", []string{"probe", "probes", "site", "hit", "hits"}, []string{
			"The function of the runtime that each operator goes through, on which the probe of operators sits. A hit is one pass of a thread over a probe.",
			"emulated: the kernel carries out the instruction under the probe itself; single-stepped: the CPU does, with a second trap, which costs several times as much. See observer effect.",
		}},
		{"moved", []string{"bytes moved"}, []string{
			"The bytes that operators have to read and to write by their definition and the shapes of their operands (est): each element once, however often it is used. Caches may spare the memory a part of it.",
			"GB/s is that over the time in which it was moved, GFLOP/s the operations in the same way; a multiply and an add are two.",
		}},
		{"of roof", []string{"roof share", "share of the roof"}, []string{
			"The share that an operator reaches of the side of the roof that bounds it: of the bytes a second where memory does, of the operations a second where computing does; of the nearer side where neither does. Above 100 % its operands came from caches.",
			"Next: see roof for what is measured, from the catalog or only seen.",
		}},
		{"waiting", []string{"waits"}, []string{
			"As a column (waits): the time in which lanes waited for each other in barriers, on their CPU. By operator it is a mean over lanes of each, by thread a share of the time of graphs.",
			"As a bound: the operator's lanes waited for each other, or were off their CPUs, for most of its time, so that neither memory nor computing is to be judged.",
			"Next: see barrier wait, sync-bound and preempted.",
		}},
		{"busy", nil, []string{
			"The share of the time of graphs in which a lane computes operators. Where barriers, or scheduling, are not traced, its waits, or its time off the CPU, look busy too.",
		}},
		{"type", []string{"types", "types of weights", "weights"}, []string{
			"How the numbers of the weights that an operator reads are stored: f32, f16, bf16, or a quantised type (q8_0, q4_K …), which has fewer bits a weight and has to be unpacked. Operators without weights have none.",
		}},
		{"of median", []string{"over median", "layers"}, []string{
			"A layer's mean time in a graph over the median of the layers of its phase, both without the time for which others had the CPU of a lane. The time beside it holds that, so that one does not follow from the other where threads lost their CPUs.",
			"Next: see slow-layer.",
		}},
		{"flash_attn_ext", []string{"flash attention", "attention"}, []string{
			"Attention as one operator: it reads the keys and values of all tokens before (the KV cache), and takes longer the longer the context is. Without it attention is several operators (products, a softmax).",
			"Next: see attention-grows.",
		}},
		{"start", nil, []string{
			"On the critical path: from the begin of a graph to the first operator; threads are started or woken meanwhile.",
		}},
		{"copies", []string{"copy"}, []string{
			"Tensors that were copied into a backend, out of it, or from one to another. On the CPU alone they are inputs and results, and small.",
			"Next: see offload-copies where they are not.",
		}},
		{"DAG", []string{"distinct graphs", "nodes", "edges", "leaves", "views", "computed"}, []string{
			"A graph of operators as it was read: nodes are operators, edges their uses of each other's results, leaves what is computed by none (weights, inputs, caches). Views are nodes that only look at the memory of another, and compute nothing.",
			"Graphs that differ in anything (another batch, a longer context in some runtimes) are distinct ones; computed is how often each was.",
		}},
		{"switches", []string{"context switches"}, []string{
			"How often a thread of the lane lost its CPU while graphs were computed, whether it waited for something or was preempted.",
			"Next: see off the CPU.",
		}},
	}
}
