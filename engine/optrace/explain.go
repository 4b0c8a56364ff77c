package optrace

import (
	"fmt"
	"slices"
)

// ExplainWord is a word of traces with its meaning.
type ExplainWord struct {
	Name    string
	Also    []string
	Meaning []string
}

// ExplainWords are the words of traces: their figures, those of the levels and of the
// report, then every finding with its condition, its meaning and the next step.
func ExplainWords() []ExplainWord {
	return slices.Concat(figureWords(), levelWords(), reportWords(), findingWords())
}

func figureWords() []ExplainWord {
	return []ExplainWord{
		{"roof", []string{"memory roof", "roofline", "best that was seen"}, []string{
			"What the machine can do at most: bytes read from memory in a second, and operations (a multiply and an add are two) in a second, with as many threads as compute.",
			"measured: by rooftop's own loops of vector instructions, in a few seconds. catalog (est): from data sheets. seen: the best that products with weights reached in the trace itself, eight in a row, while their threads kept their CPUs where scheduling is traced: it tells what memory bounds from what computing bounds, and is no limit of the machine, so that no ceiling is reckoned from it; what reads from caches passes it.",
			"Weights that are quantised are multiplied as eight-bit integers, but kernels unpack them first: they are held against the rate of f32, of which they reach about a third, and against the bare rate of integers (int8) only where they pass it.",
			"Next: measure it while the server rests; beside a server that computes it comes out too low.",
			"Source: Williams, Waterman & Patterson, Roofline, CACM 52(4), 2009.",
		}},
		{"bound", []string{"memory-bound", "compute-bound", "mixed", "neither"}, []string{
			fmt.Sprintf("By counters: memory below %.1f instructions a cycle with more than %.2f misses of the last cache an instruction; compute above %.1f with fewer than %.3f; mixed between.", memoryIPC, memoryMisses, computeIPC, computeMiss),
			fmt.Sprintf("By the roofline (est), where there are no counters: what takes longer at the roof, moving the operator's bytes or computing its operations, by more than %s; mixed between. neither: it reaches less than %s of the nearer side of the roof (for products of quantised weights, %s of the rate of f32), and something else holds it up.", spellPercent(nearRidge-1), spellPercent(farBelow), spellPercent(unpacks)),
			fmt.Sprintf("waiting: its lanes waited for each other or were off their CPUs for more than %s of its time, where that is traced: see preempted and sync-bound.", spellPercent(mostlyIdle)),
			"Meaning: what memory bounds gets faster by fewer bytes (a smaller type, a shorter context), and by more threads only until they fill the memory. What computing bounds gets faster by more threads and better kernels.",
			"Source: counters: ProfInfer (arXiv:2601.20755).",
		}},
		{"lane", []string{"lanes", "ith", "compute thread"}, []string{
			"One of the threads that compute a graph together, by its index (ith). Some runtimes start new threads for each graph: the lane stays, the thread does not.",
		}},
		{"barrier wait", []string{"barrier", "barriers", "sync", "synchronisation"}, []string{
			"The time that a lane waits for the others: after each operator, and within products. GGML's barriers spin, so that a thread which waits keeps its CPU.",
			"On the critical path (synchronisation): from an operator's end on the lane that ended last to the next one's begin.",
			"As a level (barriers): operators with their tensors, and these waits.",
			"Next: see sync-bound, and preempted: a lane that is put off its CPU holds all others up at the next barrier.",
		}},
		{"critical path", []string{"critical"}, []string{
			"The spans that decided how long a graph took: in each step the lane that ended last. Making anything else faster changes nothing.",
		}},
		{"observer effect", []string{"overhead", "observer"}, []string{
			"By how much tracing slows the target: probe hits for each token, times what one costs, over the time of a token; and what rooftop itself had of the CPUs of compute threads, where scheduling is traced.",
			fmt.Sprintf("The token is the median one, which says what is lost where nothing else disturbs. Where the mean one is %d times as long or more, others hold tokens up, and the share of the mean one is said too.", farMean),
			fmt.Sprintf("expected (est): a hit of a probe on an instruction that the kernel emulates costs %s hot, where the caches hold what it needs, and %s cold, where weights stream through them between two hits; one that is single-stepped %s and %s. A tensor that is copied out of cold memory is up to %s more, and hits of barriers follow each other so closely that they cost %s. What stands beside the hits of a token is the mean of all of them. Right within about half of itself.",
				spellTime(hitCheap), spellTime(hitCheap+hitCold), spellTime(hitStepped), spellTime(hitStepped+hitCold+steppedCold), spellTime(tensorCold), spellTime(barrierHit)),
			"measured: windows of a second or less with probes on and off in turn; each one with probes against the one before it and the one after it; the median of all, with the 95 % interval of a bootstrap of blocks of windows.",
			"Next: a lower level of detail costs less.",
		}},
		{"prefill call", []string{"prompt processing"}, []string{
			"A call with several tokens: the prompt. All of them share each reading of the weights, so that computing bounds it where the batch is large.",
		}},
		{"decode call", []string{"generation"}, []string{
			"A call with one token for each sequence: the answer, token by token. Each call reads all weights, so that memory bounds it. A prompt of one token looks the same.",
		}},
		{"CV", []string{"coefficient of variation", "imbalance", "skew"}, []string{
			"The standard deviation of counts over their mean: how unevenly experts are chosen. 0 is perfectly even. n choices of k experts differ by about sqrt((k-1)/n) by chance alone.",
		}},
		{"off the CPU", []string{"off-cpu", "blocked"}, []string{
			"The time of a lane without a CPU. preempted: it could have gone on, and another thread had the CPU. blocked: it waited for something (a disk, a lock).",
			"Source: sched_switch: a thread that leaves in the state running was preempted.",
		}},
		{"level", []string{"level of detail", "detail", "levels"}, []string{
			"What is traced (--level): token: calls alone. graph: graphs of operators as well. operator: each operator on each thread. tensor: its name, shapes and type as well, from which bytes and operations are reckoned. barriers: waits of threads for each other. sched: who had the CPUs. More details cost more; they can be joined with +.",
			"Next: rooftop trace --help lists all of them.",
		}},
		{"operator", []string{"op"}, []string{
			"One step of a graph (MUL_MAT, ROPE): all lanes compute it together, and go on to the next. Its time is from its first begin on any lane to the first begin of the next.",
			"As a level: each operator on each thread, by its name from the graph, without shapes.",
		}},
		{"tensor", nil, []string{
			"What an operator computes, or reads: weights, or values in between. Operators by tensor are rows by the name without its layer (ffn_up).",
			"As a level: names, shapes and types are read, which bytes, operations and bounds are reckoned from.",
		}},
		{"graph", nil, []string{
			"The operators that one call of the runtime computes, in their order. One that lost an event or began before the trace is partial, and in no figure.",
			"As a level: calls, graphs, and the backends that compute them; no operator.",
		}},
		{"sched", []string{"scheduling", "interference"}, []string{
			"As a level: when threads got and lost their CPUs, and to whom. What other programs took is interference; it looks like slow operators where it is not traced.",
			"Next: see preempted and off the CPU.",
		}},
		{"wake-up", nil, []string{
			"The time from a thread's being ready to its running. It is long where all CPUs are taken.",
		}},
		{"expert", []string{"experts", "mixture of experts"}, []string{
			"One of several feed-forward networks of a layer, of which a router chooses a few for each token.",
		}},
		{"splits", []string{"split"}, []string{
			"Parts of a graph that a backend (the CPU, a GPU) computes in one go. Between two of them values may be copied.",
		}},
	}
}

func findingWords() []ExplainWord {
	word := func(name, condition, meaning, next string) ExplainWord {
		return ExplainWord{Name: name, Meaning: []string{"Condition: " + condition, "Meaning: " + meaning, "Next: " + next}}
	}
	return []ExplainWord{
		word("threads-above-memory-roof",
			fmt.Sprintf("decode reads %s to %s of what its threads can read (measured), operators that memory bounds take %s of it, and fewer threads read %s as much and could still unpack and compute it.",
				spellPercent(atRoof), spellPercent(aboveRoof), spellPercent(boundShare), spellPercent(sameRoof)),
			"the memory is full: fewer threads decode as fast, and leave CPUs to others.",
			"llama.cpp: --threads with the number that is named, --threads-batch with the old one, since prefill is bound by computing."),
		word("too-few-threads",
			fmt.Sprintf("lanes compute for %s of the time and wait for less than %s, others take less than %s, and the machine was measured to do %s more with more threads.",
				spellPercent(busyLanes), spellPercent(waitingLanes), spellPercent(preemptedLimit), spellPercent(moreGain)),
			"CPUs that could compute are not used. Two logical CPUs of one core do not count twice: the machine's own rates decide.",
			"llama.cpp: --threads with the number that is named. Expected are 30 to 100 % of what the rates promise."),
		word("preempted",
			fmt.Sprintf("a lane is ready and without a CPU for %s of the time of graphs, and other programs had its CPU for %s, or another CPU of the target, so that its threads took turns on the rest. What rooftop itself had of its CPUs is taken out of both: it is a cost of the trace, see observer-effect. What threads of the kernel had is in the first share alone.", spellPercent(preemptedLimit), spellPercent(thiefLimit)),
			"interference: the operators are not slow, the machine is shared. All lanes wait for the one that is put off.",
			"keep the process that is named off these CPUs (taskset, a cpuset), or give the runtime fewer threads than there are CPUs."),
		word("oversubscribed",
			fmt.Sprintf("more lanes than CPUs that the target may use, and lanes are put off for %s of the time where scheduling was traced; or they are put off for %s, and other programs account for less than half of that, with what they had of the CPUs on which no thread waited.", spellPercent(preemptedLimit), spellPercent(preemptedBad)),
			"threads that wait spin, and keep the CPU from the one that they wait for: those of a graph, of contexts that compute at once, or all of them where a limit of CPU time (cpu.max) is used up.",
			"as many threads as CPUs at most, of all contexts that compute at once; where a limit stops them, a higher one or threads for what it allows; where CPUs were free, threads that are not bound to one."),
		word("sync-bound",
			fmt.Sprintf("lanes wait at barriers for %s of the time of graphs in the mean, and none of them lost its CPU.", spellPercent(syncLimit)),
			fmt.Sprintf("lanes that differ by %s have unequal CPUs; the one that waits least is the slow one. Lanes that wait alike have too little to do each.", spellPercent(unevenLimit)),
			"the fast CPUs alone, or fewer threads, where the figures say that it pays."),
		word("mmap-cold",
			fmt.Sprintf("%d pages or more were read from a disk within operators, and a lane was blocked, not preempted, for %s of the time of graphs.", coldFaults, spellPercent(coldCost)),
			"weights are mapped from the file and come in page by page while operators wait.",
			"a request that warms them up; llama.cpp: --mlock, or --no-mmap, where the model fits into memory."),
		word("prefill-batch-too-small",
			fmt.Sprintf("prompts are cut into %.2g or more graphs of fewer than %d tokens, which do less than %s of the operations a byte that the machine could, and prefill takes %s of the time.",
				splitPrompt, smallBatch, spellPercent(belowRidge), spellPercent(prefillMatters)),
			"each graph reads all weights for little work.",
			fmt.Sprintf("llama.cpp: --ubatch-size %d, and --batch-size no smaller.", fullBatch)),
		word("attention-grows",
			fmt.Sprintf("at the longest context attention takes %s of a graph, and %.2g times what it took at half that length or less.", spellPercent(attentionShare), attentionGrows),
			"each token reads the whole cache.",
			"llama.cpp: --flash-attn on where attention runs as several operators, and --cache-type-k and --cache-type-v q8_0 where it reads the cache at a rate near the memory's: below, fewer bytes gain nothing and have to be unpacked."),
		word("repacking-unused",
			fmt.Sprintf("the command has --no-repack, and weights of types that could be rearranged take %s of a phase. Without that option nothing is claimed: the operators look the same.", spellPercent(repackShare)),
			"products take one row at a time where the CPU could take several.",
			"leave the option out. The rearranged weights are a copy in memory."),
		word("offload-copies",
			fmt.Sprintf("graphs are cut into %d parts or more between backends, and the bytes copied would take %s of the time at %s (est).", splitsEach, spellPercent(copyShare), spellScaled(copyRate, "B/s")),
			"tensors go back and forth between the CPU and a GPU.",
			"llama.cpp: --gpu-layers for all layers, where they fit."),
		word("time-between-calls",
			fmt.Sprintf("between two decodes passes %s or more of a token's time, by medians.", spellPercent(betweenShare)),
			"sampling, a grammar, or the application, and no operator.",
			"fewer samplers, no grammar, less work for each token."),
		word("slow-layer",
			fmt.Sprintf("a layer takes %s more than the median of those that are made alike (the same operators on the same types), and more than these differ otherwise; not where more than %s of the layers do, which is the model's design.", spellPercent(slowLayer), spellPercent(fewSlow)),
			"its weights are of a larger type, lay on the disk, or in memory of another node.",
			"look at its operators; no setting is of one layer."),
		word("quantisation",
			fmt.Sprintf("decode is bound by memory at %s of the roof or more, weights in f32, f16, bf16 or q8_0 take %s of it, and a smaller type promises %s.", spellPercent(nearRoof), spellPercent(wideShare), spellPercent(smallerGain)),
			"fewer bytes for each token are less time.",
			"another model file: Q8_0 for f16 (quality as good as the same), Q4_K_M for q8_0 (a little quality)."),
		word("decode-at-roof",
			fmt.Sprintf("decode reads %s or more of what the memory gives, and operators that memory bounds take %s of it.", spellPercent(atRoof), spellPercent(boundShare)),
			"no flag fixes this: it is as fast as the memory.",
			"a smaller quantisation, more bandwidth, several sequences in a batch, speculative decoding."),
		word("experts-uneven",
			fmt.Sprintf("in a layer the CV of choices is %.2g or more, and %d times what chance makes it.", unevenExperts, chanceTimes),
			"a few experts do most of the work: the router's and the text's doing.",
			"nothing to set; those experts are the ones worth keeping in fast memory."),
		word("observer-effect",
			fmt.Sprintf("tracing slows the target by more than %s, the lower end of what was measured, or by more than %s where it is only expected; what rooftop itself had of the CPUs of compute threads was seen, and counts twice beside what is expected.", spellPercent(observerMeasured), spellPercent(observerExpected)),
			"small operators look longer than they are.",
			"trace again with less detail, then change settings."),
		word("uneven-graphs",
			fmt.Sprintf("one decode graph in twenty takes %.2g times as long as the median one, and scheduling was not traced.", unevenGraphs),
			"something comes between that is not the model; at this level a thread that waits for a CPU looks like one that computes.",
			"trace again with --level sched, which tells the two apart and names who took the CPU."),
		word("events-lost",
			fmt.Sprintf("more than %s of the events were lost, or of the graphs are incomplete.", spellPercent(lostShare)),
			"totals are too low; rates hold as far as what is left is like the rest.",
			"less detail, or fewer other programs on the machine."),
	}
}
