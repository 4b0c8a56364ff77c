package advice

import (
	"fmt"

	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/optrace/evidence"
)

// percent formats a threshold with as few digits as it needs: "3 %".
func percent(share float64) string { return figure.Count(100*share) + figure.NBSP + "%" }

// Explanation is when a finding is made, what it means and what to do next.
type Explanation struct{ ID, Condition, Meaning, Next string }

// Explanations returns an [Explanation] for each finding.
func Explanations() []Explanation {
	return []Explanation{
		{tooManyThreads,
			fmt.Sprintf("decode reads %s to %s of what its threads can read (measured), memory-bound operators take %s of it, and fewer threads read %s as much and could still unpack and compute it.",
				percent(atPeak), percent(abovePeak), percent(boundShare), percent(samePeak)),
			"memory is saturated: fewer threads decode as fast and leave CPUs to other programs.",
			"llama.cpp: set --threads to the number given, and --threads-batch to the present one, because computing bounds prefill."},
		{"too-few-threads",
			fmt.Sprintf("threads compute for %s of the time and wait for less than %s, other programs take less than %s, and more threads were measured to do %s more on this machine.",
				percent(busyThreads), percent(waitingThreads), percent(evidence.PreemptedLimit), percent(moreGain)),
			"CPUs that could compute are idle. Two logical CPUs of one core do not count twice: the machine's measured rates decide.",
			"llama.cpp: set --threads to the number given. Expect 30 to 100 % of what the measured rates promise."},
		{"preempted",
			fmt.Sprintf("a thread is ready but has no CPU for %s of the time of graphs, and other programs had its CPU for %s, or another CPU of the target, so that its threads took turns on the rest. The CPU time of rooftop itself is excluded: it is a cost of the trace, see observer-effect. The time of kernel threads counts in the first share only.", percent(evidence.PreemptedLimit), percent(evidence.TakerLimit)),
			"interference: the operators are not slow, the machine is shared. All threads wait for the preempted one.",
			"keep the named process off these CPUs (taskset, a cpuset), or give the runtime fewer threads than there are CPUs."},
		{"oversubscribed",
			fmt.Sprintf("more threads than CPUs that the target may use, preempted for %s of the time if scheduling was traced; or threads are preempted for %s, and other programs account for less than half of that, including the CPUs on which no thread waited.", percent(evidence.PreemptedLimit), percent(evidence.PreemptedBad)),
			"waiting threads spin and keep the CPU from the thread they wait for. They belong to one graph or to contexts that compute at the same time; or a limit of CPU time (cpu.max) stops all of them.",
			"use at most as many threads as CPUs, over all contexts that compute at the same time. If a limit stops them, raise it or use as many threads as it allows. If CPUs were free, do not bind threads to one."},
		{"sync-bound",
			fmt.Sprintf("threads wait at barriers for %s of the time of graphs on average, and none of them lost its CPU.", percent(syncLimit)),
			fmt.Sprintf("if waits differ by %s, the CPUs are unequal and the thread that waits least is the slow one. If all threads wait about as long, each has too little to do.", percent(unevenLimit)),
			"use the fast CPUs only, or fewer threads, if the figures say that it pays."},
		{"mmap-cold",
			fmt.Sprintf("operators read %d pages or more from a disk, and a thread was blocked, not preempted, for %s of the time of graphs.", coldFaults, percent(coldCost)),
			"weights are mapped from the file and loaded page by page while operators wait.",
			"send a warm-up request; llama.cpp: --mlock, or --no-mmap, if the model fits into memory."},
		{"prefill-batch-too-small",
			fmt.Sprintf("prompts are split into %.2g or more graphs of fewer than %d tokens, which do less than %s of the operations per byte that the machine can, and prefill takes %s of the time.",
				splitPrompt, smallBatch, percent(belowRidge), percent(prefillMatters)),
			"each graph reads all weights for little work.",
			fmt.Sprintf("llama.cpp: --ubatch-size %d, and --batch-size no smaller.", fullBatch)},
		{"attention-grows",
			fmt.Sprintf("at the longest context attention takes %s of a graph, and %.2g times as long as at half that length or less.", percent(attentionShare), attentionGrows),
			"each token reads the whole KV cache.",
			"llama.cpp: --flash-attn on if attention runs as several operators; --cache-type-k and --cache-type-v q8_0 if it reads the cache at nearly the memory's rate. Below that rate, fewer bytes gain nothing and must be unpacked."},
		{"repacking-unused",
			fmt.Sprintf("the command has --no-repack, and weights of types that can be rearranged take %s of a phase. Without that option nothing is claimed: the operators look the same.", percent(repackShare)),
			"products take one row at a time although the CPU can take several.",
			"remove the option. The rearranged weights are a copy in memory."},
		{"offload-copies",
			fmt.Sprintf("graphs are split into %d parts or more between backends, and the copied bytes would take %s of the time at %s (est).", splitsEach, percent(copyShare), figure.Value(copyRate, "B/s")),
			"tensors go back and forth between the CPU and a GPU.",
			"llama.cpp: --gpu-layers for all layers, if they fit."},
		{"time-between-calls",
			fmt.Sprintf("the median time between two decodes is %s of a token's time or more.", percent(betweenShare)),
			"sampling, a grammar or the application takes that time, not an operator.",
			"use fewer samplers, no grammar, less application work per token."},
		{"slow-layer",
			fmt.Sprintf("a layer takes %s longer than the median of layers with the same operators and types, and more than these vary; not if more than %s of the layers do, which is the model's design.", percent(slowLayer), percent(fewSlow)),
			"its weights have a larger type, were on the disk, or are in the memory of another node.",
			"look at its operators; settings do not apply to one layer."},
		{"quantisation",
			fmt.Sprintf("memory bounds decode at %s of the machine's peak or more, weights in f32, f16, bf16 or q8_0 take %s of it, and a smaller type promises %s.", percent(nearPeak), percent(wideShare), percent(smallerGain)),
			"fewer bytes per token take less time.",
			"use another model file: Q8_0 for f16 (nearly the same quality), Q4_K_M for q8_0 (slightly lower quality)."},
		{"decode-at-memory-peak",
			fmt.Sprintf("decode reads %s of the memory's peak or more, and memory-bound operators take %s of it.", percent(atPeak), percent(boundShare)),
			"no flag fixes this: decode is as fast as the memory.",
			"use a smaller quantisation, more bandwidth, several sequences per batch, or speculative decoding."},
		{"experts-uneven",
			fmt.Sprintf("in a layer the CV of choices is %.2g or more, and %d times what chance gives.", unevenExperts, chanceTimes),
			"a few experts do most of the work; the router and the text decide that.",
			"no setting applies; these experts are the ones to keep in fast memory."},
		{"observer-effect",
			fmt.Sprintf("tracing slows the target by more than %s (the lower end of what was measured), or by more than %s where it is only expected. The CPU time that rooftop took from compute threads was measured, and counts twice as much as expected cost.", percent(observerMeasured), percent(observerExpected)),
			"small operators look longer than they are.",
			"trace again with less detail before changing settings."},
		{"uneven-graphs",
			fmt.Sprintf("the 95th percentile of decode graphs is %.2g times the median, and scheduling was not traced.", unevenGraphs),
			"something other than the model delays graphs; at this level a thread that waits for a CPU looks like one that computes.",
			"trace again with --level sched, which distinguishes the two and names the processes that took the CPU."},
		{"events-lost",
			fmt.Sprintf("more than %s of the events were lost, or of the graphs are incomplete.", percent(LostShare)),
			"totals are too low; rates hold if the rest is like what was lost.",
			"use less detail, or run fewer other programs on the machine."},
	}
}
