package capture

import (
	"fmt"

	"github.com/rooftop-dev/rooftop/engine"
)

// Terms are the words of probes and observations: their warnings, then their figures.
func Terms() []engine.Term {
	var out []engine.Term
	add := func(name string, also []string, meaning ...string) {
		out = append(out, engine.Term{Name: name, Also: also, Meaning: meaning})
	}
	add("idle-pid", []string{"wrapper"},
		fmt.Sprintf("Condition: in every look at the tree of the PID its RSS is below %s, it has one thread, and no CPU time, page fault, context switch or I/O is added.", memory(idleRSSBytes)),
		"Meaning: what was sampled rests while the server works: the PID is that of a shell or another wrapper ($! after '… > log 2>&1 &' in a subshell), or of another program.",
		"Next: give the PID that the warning names, or leave --pid out, so that it is found from the port. Check it: grep -E 'VmRSS|Threads' /proc/PID/status.",
		"Source: the three conditions of inferscope's warning; that nothing else stirs is rooftop's own.")
	add("wrong-tree", nil,
		fmt.Sprintf("Condition: the tree used less than %s of a core while tokens came, and the process that listens on the port is not in it, or not known.", percent(idleCores)),
		"Meaning: this is not the process that serves. Its figures are true, and of another program.",
		"Next: as of idle-pid.")
	add("part-of-server", nil,
		"Condition: the process that listens on the server's port is not in the tree of --pid.",
		"Meaning: the figures are of a part of the server (one worker of it), or of another program.",
		"Next: give the PID that listens, which the warning names, or leave --pid out.")
	add("cpu-starved", []string{"starved", "waited for a CPU"},
		fmt.Sprintf("Condition: the tree's threads were ready and waited for a CPU for more than %s of the time that they ran, and for more than %.2g s in each second of the run.", percent(starvedRatio), starvedRate),
		"Meaning: the server did not get the CPU that it asked for, so that TTFT and ITL are longer than its own. Its cores are shared with other programs, limited (cgroup, taskset), or fewer than its threads.",
		"Next: see with top who else runs, and measure again without them; or give the server cores of its own; or start it with fewer threads, where it has the machine to itself.",
		"Source: the second number of /proc/PID/task/TID/schedstat (Documentation/scheduler/sched-stats.rst). The limits are rooftop's own: a vLLM alone on two cores, both busy, waited for 18 % of the time that it ran.")
	add("cpu-throttled", []string{"throttled"},
		fmt.Sprintf("Condition: the tree's control group was cut short in more than %s of its enforcement periods.", percent(throttledShare)),
		"Meaning: the server used up its CPU limit (docker --cpus, resources.limits.cpu) before a period was over (100 ms unless set otherwise), and stood still for the rest of it: single tokens come late.",
		"Next: raise the limit, or run fewer threads than it has cores.",
		"Source: nr_throttled over nr_periods of cpu.stat (Documentation/admin-guide/cgroup-v2.rst).")
	add("server-ended", nil,
		"Condition: a process of the server ended during the run: the one that was asked for, the one that listens on the port, or one that was there at the begin and serves (API server, engine core, worker). Helpers that come and go are none of these.",
		"Meaning: what was measured afterwards is of what was left of the server.",
		"Next: read the server's log; dmesg | grep -i 'killed process' tells whether the kernel ended it for want of memory.")
	add("outside", []string{"TTFT split"},
		"The client's time to first token less the server's own: the network, the client, and what the server does before its clock starts.",
		"Condition: the server's page counted as many first tokens as came here, so that its mean is of these requests; else the server's mean is told, and the rest is not told apart. llama.cpp tells its prefill alone, in the timings of its answers: the rest is then its queue and other requests as well as the network.",
		"Next: where outside is large, look at the network and the proxy in front, and at cpu-starved; where it is small, look at queue and prefill.")
	add("decode batch", nil,
		"How many sequences decoded at once: the mean over the time in which any did, from rooftop's own requests, or from the server's gauge of running requests where that is clearly more: then other clients are on it too.",
		"The ceiling beside the measured rate is the one of this batch: with one request at a time no server comes near what its GPU can do.",
		"Next: --concurrency N makes it larger.")
	add("sizing", []string{OverProvisioned, PartlyUsed, Earned},
		fmt.Sprintf("Of the shares of its power and of its memory bandwidth that the GPU used, the larger counts. %s: below %s. %s: from %s. %s: between.",
			OverProvisioned, percent(loafing), Earned, percent(earning), PartlyUsed),
		"It is of this load: a card that loafs with one request may be earned with thirty.",
		"Next: try --concurrency as in earnest; else a smaller card of those that are named. They hold the model and this batch, and cost less for each token (est).",
		"Source: the readings in \"The profiler had to teach me about the hardware\" (inferscope): an H100 at 24 % of its power loafs, at 63 % it earns its price.")
	add("RSS", []string{"resident memory"},
		"Resident set size: the memory of a process that lies in RAM. Pages that processes share (libraries, weights that are mapped from a file) count in each of them, so that a sum over processes can exceed what there is.",
		"Source: /proc/PID/statm (proc_pid_statm(5)).")
	add("PSS", []string{"proportional set size"},
		"Proportional set size: as RSS, each shared page divided by how many processes share it. Sums over processes are right.",
		"It is read at the begin and the end alone, since the kernel walks all pages for it, and needs the server's user or root.",
		"Source: /proc/PID/smaps_rollup (proc_pid_smaps(5)).")
	add("nearest rank", []string{"quantile", "percentile", "p50", "p95", "p99"},
		"A quantile is the smallest value that was observed and that at least that share of all values does not exceed: of ten values p95 and p99 are the largest. Nothing is interpolated, so that each is a time that some request had.",
		"Next: for a p99 that says more than max, measure at least a hundred values (--repeat).")
	add("witness", []string{"usage", "chunks", "counter", "tokens"},
		"Output tokens are counted three ways. usage: the server's report at the end of an answer. chunks: the streamed messages with output that came here. counter: by how much the server's own counter grew.",
		"Figures go by usage where every whole request has one, else by chunks; those of an observation by the counter.",
		"A counter that moves when a request ends (llama.cpp, SGLang, TGI) holds tokens from before the run, and lacks those of requests that run on. So what runs as the run begins makes its figures an estimate with bounds, or unknown; vLLM's counter moves with each step. Where such a server tells its steps (llama.cpp), a token for each request in each of them is the estimate; with speculation more come.",
		"usage above chunks: the server speculates, or sends several tokens in a message. counter above usage: other clients were on it, or requests that were cut off went on there.",
		"Next: read 'differ' in the report before believing a rate; observe for longer than a request.")
	add("joules per token", []string{JoulesPerToken, MillijoulesPer, TokensPerJoule, "J/token"},
		"The energy of all GPUs that were sampled, over the run, divided by the output tokens. The prompt's prefill is in it; the CPU and the rest of the machine are not.",
		"By the GPU's energy counter where there is one, else by power over time: the report says which. There is none where the run is too short for the driver's readings, or where other clients' tokens are not counted.",
		"Next: for a firm figure, make the run several seconds long (--repeat).")
	add("bandwidth share", []string{BandwidthShare},
		"The share of the GPU's memory bandwidth that was used: counted by the GPU over the run where it tells (DRAM active), else estimated (est) from the weights and the cache that decoding has to read, while it decodes.",
		"Decoding is bound by it: near 100 % the hardware gives no more at this batch; far below, the batch is small or something else holds the server up.")
	return out
}

// OwnTimes says what rooftop's own client, in probe and in load, means by a time that
// the server's page has under the same name; nil of what it does not measure.
func OwnTimes(metric string) []string {
	switch metric {
	case "ttft":
		return []string{
			"From the send to the first chunk of output. The way there and back is in it, and a new connection where one is made.",
			"probe counts from the actual send; load from the time at which its schedule wanted it sent, and tells both where they differ.",
		}
	case "itl":
		return []string{"Every gap between two neighbouring chunks of a request, as they came here: n - 1 of n chunks, however many tokens a chunk holds."}
	case "tpot":
		return []string{"(last chunk - first chunk) / (output tokens - 1), one value a request; none of a request with one token or one chunk."}
	case "e2e":
		return []string{"From the send (load: from the scheduled one) to the last chunk of output, of requests that were answered to their end."}
	}
	return nil
}
