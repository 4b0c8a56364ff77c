package capture

import (
	"fmt"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/figure"
)

// Terms returns the words of probes and observations: their warnings, then their figures.
func Terms() []engine.Term {
	var out []engine.Term
	add := func(name string, also []string, meaning ...string) {
		out = append(out, engine.Term{Name: name, Also: also, Meaning: meaning})
	}
	add("idle-pid", []string{"wrapper"},
		fmt.Sprintf("Condition: in every sample of the tree of the PID, RSS is below %s, there is one thread, and no CPU time is used.", figure.Value(idleRSSBytes, "B")),
		"Meaning: the sampled process is idle while the server works: the PID belongs to a shell or another wrapper ($! after '… > log 2>&1 &' in a subshell), or to another program.",
		"Next: give the PID that the warning names, or leave out --pid to find it from the port. To check: grep -E 'VmRSS|Threads' /proc/PID/status.",
		"Source: the three conditions of inferscope's warning.")
	add("wrong-tree", nil,
		fmt.Sprintf("Condition: the tree used less than %s of a core while tokens arrived, and the process that listens on the port is outside of it, or unknown.", figure.PercentSign(idleCores)),
		"Meaning: this is not the serving process. The figures are correct, but they describe another program.",
		"Next: as for idle-pid.")
	add("part-of-server", nil,
		"Condition: the process that listens on the server's port is not in the tree of --pid.",
		"Meaning: the figures describe a part of the server, such as one worker, or another program.",
		"Next: give the PID of the listening process, which the warning names, or leave out --pid.")
	add("cpu-starved", []string{"starved", "waited for a CPU"},
		fmt.Sprintf("Condition: the tree's threads were ready and waited for a CPU for more than %s of the time that they ran, and for more than %.2g s in each second of the run.", figure.PercentSign(starvedRatio), starvedRate),
		"Meaning: the server did not get the CPU time that it needed, so TTFT and ITL are inflated. Other programs share its cores, cgroup or taskset limit them, or there are fewer cores than threads.",
		"Next: find the other programs with top and measure again without them; or give the server dedicated cores; or start it with fewer threads if it has the machine to itself.",
		"Source: the second number of /proc/PID/task/TID/schedstat (Documentation/scheduler/sched-stats.rst). The limits are rooftop's own: a vLLM alone on two cores, both busy, waited for 18 % of the time that it ran.")
	add("cpu-throttled", []string{"throttled"},
		fmt.Sprintf("Condition: the tree's control group was throttled in more than %s of its enforcement periods.", figure.PercentSign(throttledShare)),
		"Meaning: the server used up its CPU limit (docker --cpus, resources.limits.cpu) before a period ended (100 ms unless set otherwise), and was stopped for the rest of it: some tokens are late.",
		"Next: raise the limit, or run fewer threads than it has cores.",
		"Source: nr_throttled over nr_periods of cpu.stat (Documentation/admin-guide/cgroup-v2.rst).")
	add("server-ended", nil,
		"Condition: a process of the server ended during the run: the given one, the one that listens on the port, or one that existed at the start and serves (API server, engine core, worker). Short-lived helpers do not count.",
		"Meaning: later figures describe only the remaining processes.",
		"Next: read the server's log; dmesg | grep -i 'killed process' shows whether the kernel killed it because memory ran out.")
	add("outside", []string{"TTFT split"},
		"The client's time to first token less the server's own: the network, the client, and what the server does before its clock starts.",
		"Condition: the server's metrics counted as many first tokens as arrived here, so its mean covers these requests; otherwise the server's mean is shown and the rest is not split. llama.cpp reports only its prefill, in the timings of its answers: the rest is then its queue and other requests as well as the network.",
		"Next: if outside is large, check the network, proxies, and cpu-starved; if it is small, check queue and prefill.")
	add("decode batch", nil,
		"How many sequences decoded at once: the mean over the time in which any did, from rooftop's own requests, or from the server's gauge of running requests if that is clearly larger: then other clients use it too.",
		"The ceiling beside the measured rate holds for this batch: with one request at a time no server comes near the limit of its GPU.",
		"Next: use --concurrency N for a larger batch.")
	add("sizing", []string{OverProvisioned, PartlyUsed, Earned},
		fmt.Sprintf("The larger of two used shares counts: of the GPU's power, and of its memory bandwidth. %s: below %s. %s: from %s. %s: between.",
			OverProvisioned, figure.PercentSign(loafing), Earned, figure.PercentSign(earning), PartlyUsed),
		"It holds for this load: a card that is idle with one request may be well used with thirty.",
		"Next: use the --concurrency of production; otherwise consider one of the smaller cards listed. They hold the model and this batch, and cost less per token (est).",
		"Source: the readings in \"The profiler had to teach me about the hardware\" (inferscope): an H100 at 24 % of its power loafs, at 63 % it earns its price.")
	add("RSS", []string{"resident memory"},
		"Resident set size: the memory of a process that is in RAM. Pages that processes share (libraries, weights mapped from a file) count in each of them, so a sum over processes can exceed the actual memory.",
		"Source: /proc/PID/statm (proc_pid_statm(5)).")
	add("nearest rank", []string{"quantile", "percentile", "p50", "p95", "p99"},
		"A quantile is the smallest observed value that at least that share of all values does not exceed: of ten values p95 and p99 are the largest. Nothing is interpolated: each quantile is a latency that some request had.",
		"Next: for a p99 that differs from the maximum, measure at least a hundred values (--repeat).")
	add("token counts", []string{"usage", "chunks", "counter", "tokens"},
		"Output tokens are counted three ways. usage: the server's report at the end of an answer. chunks: the streamed messages with output that arrived here. counter: the growth of the server's own counter.",
		"Figures use usage if every complete request has a report, otherwise chunks; an observation uses the counter.",
		"A counter that changes when a request ends (llama.cpp, SGLang, TGI) includes tokens from before the run and lacks those of unfinished requests. Requests in flight at the start therefore make its figures an estimate with bounds, or unknown; vLLM's counter changes with each step. If such a server reports its steps (llama.cpp), the estimate is one token per request and step; speculative decoding produces more.",
		"usage above chunks: the server uses speculative decoding, or sends several tokens in a message. counter above usage: other clients used the server, or interrupted requests continued on the server.",
		"Next: read 'differ' in the report before believing a rate; observe for longer than a request.")
	add("joules per token", []string{JoulesPerToken, MillijoulesPer, TokensPerJoule, "J/token"},
		"The energy of all GPUs that were sampled, over the run, divided by the output tokens. It includes the prefill of the prompt, but not the CPU and the rest of the machine.",
		"It uses the GPU's energy counter if there is one, otherwise power over time; the report says which. It is absent if the run is too short for the driver's readings, or if other clients' tokens are not counted.",
		"Next: for a reliable figure, make the run several seconds long (--repeat).")
	add("bandwidth share", []string{BandwidthShare},
		"The share of the GPU's memory bandwidth that was used: counted by the GPU over the run if it can (DRAM active), otherwise estimated (est) from the weights and the cache that decoding has to read.",
		"Decoding is bound by it: near 100 % the hardware cannot do more at this batch; far below, the batch is small or something else limits the server.")
	return out
}

// OwnTimes returns the description of the latency that rooftop's own client measures under the name
// of a server metric, nil if there is none.
func OwnTimes(metric string) []string {
	switch metric {
	case "ttft":
		return []string{
			"From the send to the first chunk of output. It includes the network, and the setup of a new connection.",
			"probe counts from the actual send; load from the scheduled send, and reports both if they differ.",
		}
	case "itl":
		return []string{"Every gap between two neighbouring chunks of a request, as they arrived here: n - 1 of n chunks, however many tokens a chunk holds."}
	case "tpot":
		return []string{"(last chunk - first chunk) / (output tokens - 1), one value per request; none for a request with one token or one chunk."}
	case "e2e":
		return []string{"From the send (load: from the scheduled one) to the last chunk of output, of completed requests."}
	}
	return nil
}
