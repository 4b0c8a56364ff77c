package tuning

import (
	"fmt"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/effect"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/loop"
	"github.com/rooftop-dev/rooftop/engine/verdict"
)

// Terms returns the terms of tuning and of its ceilings, in the order in which they are
// encountered.
func Terms() []engine.Term {
	return []engine.Term{
		{Name: "ceiling", Also: []string{"ideal", "achievable", "achv", "binding", "ridge"}, Meaning: []string{
			"ideal: weights and KV cache read at the full bandwidth of the datasheet, every FLOP at full rate, no fixed costs. No real server reaches it.",
			"achievable: what measured kernels of good software reach on this hardware at this batch and context, with the fixed costs of a step. It is an estimate with a range, which holds nine of ten published results; a server above it shows the error of the estimate.",
			"binding: the part of a step that takes longest: weights, kv, compute, collectives or fixed.",
			"ridge: the running requests from which a step computes for longer than it reads.",
		}},
		{Name: "headroom", Meaning: []string{
			"How many more requests a second of the measured kind the server can take with these settings before some of them wait or an objective of --slo is missed. Other settings may allow more.",
		}},
		{Name: "PROFILE", Also: []string{"PROFILE ceilings", "PROFILE formula", "ridge batch", "not used", "recoverable", "left for KV"}, Meaning: []string{
			"Published formulas and rules (R1 to R5), shown for comparison: nothing is recommended or predicted by these formulas.",
			"decode = bandwidth × TP / (parameters × bytes), for one sequence. prefill = FP32 peak × TP / (6 × parameters × prompt length), in prompts a second.",
			"ridge batch = FP32 peak × bytes / bandwidth. The physical model's ridge is that of the matrix units at the dtype of the weights, mostly a larger one.",
			"efficiency = output / (decode × running). not used = 1 − efficiency, which PROFILE calls headroom. recoverable = cost × (1 − efficiency): what an hour would cost less at that ceiling, which no server reaches; it is not a predicted saving.",
			"left for KV: the memory of a GPU without the weights.",
		}},
		{Name: "server's best", Also: []string{"best", "best allowed", "this server"}, Meaning: []string{
			"The most output that this server would reach with its slots and KV pool, at its own measured speed. It is below achievable if the steps of this server take longer than good software needs, and above it if they take less.",
		}},
		{Name: "est", Also: []string{"(est)", "estimate"}, Meaning: []string{
			"The figure is an estimate by the physical model or from the catalog; it was not measured.",
		}},
		{Name: "not judged", Also: []string{"not fired", "seen", "suppressed", "beyond", "fired"}, Meaning: []string{
			"fired: the condition of the rule held in enough windows to act on. seen: it held, but in too few of them. not fired: it did not hold; if the figure differs between windows, the one nearest to its limit is shown.",
			"suppressed: another finding explains it, or a condition of the rule excludes it.",
			"not judged: an input is missing, or no window had load.",
			"beyond: a rule of rooftop's own, which PROFILE (R1 to R5) does not have.",
		}},
		{Name: "window", Also: []string{"windows", "with load", "judged", "evaluable"}, Meaning: []string{
			fmt.Sprintf("%s of readings, the unit in which rules are checked. Evaluable: its pages were read and the server did not restart in it. With load: the server was working. Judged: the rule had all its inputs.", figure.Elapsed(engine.WindowLength)),
		}},
		{Name: "outcome", Also: []string{"not evaluable", "no load", "overloaded", "nothing to change"}, Meaning: []string{
			"nothing to change: enough windows with load, and no finding that a change would help. overloaded: requests wait, and no flag helps. no load: nothing to judge without requests. not evaluable: the measurement does not tell whether the server is well, for the reason given.",
		}},
		{Name: "since start", Also: []string{"of those that ended", "mostly before the run"}, Meaning: []string{
			"Which requests a mean covers if it does not cover all in the run. since start: none was observed in the run, so the mean covers all since the server started. of those that ended: more requests got their first token than ended, and the mean is below their mean wait. mostly before the run: the requests that ended had waited before the run began.",
		}},
		{Name: "evidence", Also: []string{"prefill_time_share", "cached_block_stay_s", "hit_rate_spread", "lookup_ratio", "sequences_held", "longest_prompt_tokens"}, Meaning: []string{
			"The figures behind a finding, with the limit that each is compared with and its source: measured, launch command, derived, est. rooftop explain NAME shows the formulas.",
			"prefill_time_share is a share of the engine's time, not of a request's.",
		}},
		{Name: "confidence", Also: []string{"impact", "score of a finding"}, Meaning: []string{
			"How sure a rule is of its finding, 0 to 1; windows that it could not judge lower it. Impact is the benefit of acting on it, 1 to 5. Their product, the score, ranks the findings; advice to clients whose gain is unknown counts a fifth less there.",
		}},
		{Name: "second priority", Also: []string{"recommended"}, Meaning: []string{
			"A finding to act on after the recommended change, because one change is made at a time.",
		}},
		{Name: "fix by", Also: []string{"client changes", "work on the host", "hardware changes"}, Meaning: []string{
			"What has to change if no server flag helps: the clients and what they send, the machine, or the hardware.",
		}},
		{Name: "request time", Also: []string{"own prefill", "queue", "decode", "front end", "lost to preemption"}, Meaning: []string{
			"Where the time of the mean request goes. front end: outside the engine, in HTTP and tokenization. queue: waiting for a slot or KV blocks. own prefill: computing its prompt. decode: generating its tokens.",
			"lost to preemption: the part of decode in which a preempted request waits and is computed again.",
			"own prefill is a share of a request's time. The share of the engine's time that prefill takes, which findings name, is another figure: many requests decode while one prompt is computed.",
		}},
		{Name: "slot", Also: []string{"slots", "max-num-seqs", "batch", "running"}, Meaning: []string{
			"A place in the batch: a server with --max-num-seqs 16 has 16 and computes at most that many requests in one step. Further ones wait. With data parallelism each rank has its own.",
		}},
		{Name: "KV pool", Also: []string{"KV", "KV cache", "blocks", "pool", "preemption"}, Meaning: []string{
			"The GPU memory for keys and values of the tokens that requests have read and written, in blocks of several tokens. Without a free block a request waits, or a running one is preempted: it loses its blocks and is computed again later.",
		}},
		{Name: "step", Also: []string{"step time", "token budget", "max-num-batched-tokens"}, Meaning: []string{
			"One pass of the model: each request that generates gets one token, and prompts as many as are left of the token budget (--max-num-batched-tokens). The step time is what a running request waits for its next token.",
		}},
		{Name: "baseline", Also: []string{"before", "so far", "firm"}, Meaning: []string{
			"The measurement that the next change is judged against: of the running configuration, under load. While rooftop waits for a change, it is renewed from completed stretches; the last two windows before a restart never become part of it.",
			"A recommendation is preliminary until the measurement behind it is complete: until the first baseline is complete, and while the KV pool is still filling. It is marked, and cannot be applied or copied until then.",
		}},
		{Name: "settling", Also: []string{"steady", "warm-up"}, Meaning: []string{
			fmt.Sprintf("After a restart nothing counts until at least %d windows with moving tokens show no trend of requests or throughput beyond their own scatter, and %s of the requests are back. A load that is not steady after %.0f s is measured anyway, and the verdict says so.",
				loop.SettleLeast, figure.PercentSign(loop.SettleRequestShare), loop.SettleMost.Seconds()),
		}},
		{Name: "direction", Also: []string{"verdict", "better", "worse", "plateau", "veto", "not comparable", "inconclusive"}, Meaning: []string{
			fmt.Sprintf("The direction of the goal (output, unless --goal says otherwise) with its interval; repeats of one configuration would fall outside it in one case of twenty. The interval includes the scatter of the measurement, which a longer measurement narrows, and that of restarts, which it does not. A difference within %s does not matter (--precision).", figure.PercentSign(loop.DefaultPrecision)),
			"better: the whole interval lies above zero, and matters. worse: it lies below; the loop asks whether to revert, and reverts by itself with --auto.",
			"plateau: there is no difference that matters. unresolved (inconclusive in JSON): noise hides whether there is one. Neither is kept: the next change reverts it.",
			"not comparable: the load differs by enough to explain the difference.",
			fmt.Sprintf("Without objectives, more output is a plateau if the 99th percentile of TTFT grew by more than %s beyond noise. With too few requests for that percentile, the largest known one counts, or the mean.", figure.PercentSign(effect.LatencyVeto)),
			"A change is looked at after times that are fixed before its measurement begins, and the interval holds for all looks together, so looking often cannot produce a gain.",
			fmt.Sprintf("Beside it, rooftop shows the direction by one measurement of each side: output by more than %s, and the 99th percentile of TTFT not by more than %s.", figure.PercentSign(effect.ThroughputShift), figure.PercentSign(effect.LatencyVeto)),
		}},
		{Name: "classic", Also: []string{"efficiency"}, Meaning: []string{
			fmt.Sprintf("The direction as PROFILE documents it: by the efficiency of a running request, better above %+.0f points, worse below %s, with the same veto.", effect.BetterPoints*100, figure.Change(effect.WorsePoints)),
			"More slots raise the output and lower the efficiency of each request: the PROFILE formula then says worse although the server may produce twice as much. rooftop shows it beside the direction wherever the two differ.",
		}},
		{Name: "noise", Also: []string{"same settings", "restart noise", "measurement noise"}, Meaning: []string{
			"The difference between two measurements of one configuration with a restart between them. A gain of that size does not count: this noise widens every interval.",
		}},
		{Name: "interval", Also: []string{"95 %", "half width", "unresolved", "level", "or more"}, Meaning: []string{
			"+31 % (+29 to +33 %): the difference as it was measured, and the range that holds the true one in 95 of 100 cases, over all looks together. An effect whose interval contains zero is unresolved, however large its middle.",
			"Its half width has two parts, which add up as squares: the scatter of the measurement, which a longer measurement narrows, and the restart spread, which it does not.",
			"It can also widen as more is measured: a slow disturbance shows only after a while.",
			"'or more': requests waited before and none does now, so the load, not the server, limits what was measured after.",
		}},
		{Name: "precision", Also: []string{"--precision"}, Meaning: []string{
			fmt.Sprintf("The difference that matters: %s unless --precision says otherwise. A trial ends when its interval lies on one side of it, or within it.", figure.PercentSign(loop.DefaultPrecision)),
		}},
		{Name: "look", Also: []string{"looks", "trial", "needs"}, Meaning: []string{
			"A trial is judged after times that are fixed before it begins, each half as long again as the previous one. It ends at the first look that decides, or when a longer measurement cannot decide; 'needs' says what a look still waits for.",
		}},
		{Name: "restart spread", Also: []string{"spread", "repeats", "starts"}, Meaning: []string{
			fmt.Sprintf("How much starts of one configuration differ, as the standard deviation of the logarithm of output: a restart is not a repeat. If no repeats of this server are known, %s is assumed. A difference smaller than that is unresolved, however long it is measured; only further starts of both configurations can resolve it.", figure.PercentSign(verdict.Widen(nil).SD)),
		}},
		{Name: "cause", Also: []string{"traffic", "host", "bias"}, Meaning: []string{
			"The most likely reason of a difference, or of a missing verdict: the change (flag), the load, which differs (traffic), chance (noise), or something else on the machine (host).",
			"Traffic that differs beyond noise gets a bound: what it explains at most. An effect that does not exceed it is not comparable.",
		}},
		{Name: "limited by", Also: []string{"capacity", "demand"}, Meaning: []string{
			"capacity: requests waited; the server was at its limit. demand: none waited; the server met the demand, and more output was not possible.",
		}},
		{Name: "objective", Also: []string{"slo", "--slo", "not sure"}, Meaning: []string{
			"A limit on a latency that a change must keep (--slo). 'not sure' says that the interval about the measured value contains the limit, so the value alone decides nothing. A few hundred requests give no 99th percentile, but the number of them beyond a distant limit may still decide.",
			"Objectives take precedence over the goal: a change that breaks a kept objective, or misses one by more, is worse, whatever it gains; one that meets a missed objective, or misses it by less, is better. If an objective is missed as before, the goal decides.",
		}},
		{Name: "search", Also: []string{"step of the search", "proposed by the search"}, Meaning: []string{
			"tune does not stop at what the rules find: it also predicts other numbers of slots, token budgets, pools and pairs of flags by the calibrated model, or brackets them by what was measured, and recommends the one with the largest gain that can be distinguished from noise. Its finding is then 'search', and the reason names the model or the measurements.",
			"A pair is one recommendation if one limit hides the gain from lifting the other, so neither flag helps alone.",
			"diagnose reports the rules alone, and its exit code follows them; tune lists the same findings, and exits with code 3 while any recommendation is open, including one of the search.",
		}},
		{Name: "answers", Also: []string{"drift"}, Meaning: []string{
			"Fixed prompts, answered before and after a change that may alter what the model says. The verdict shows how many answers are exactly the same, and how far the log probabilities of their tokens drift.",
		}},
		{Name: "canary", Also: []string{"--canary"}, Meaning: []string{
			"One more copy of the server with a change, beside the others and under the same traffic (tune --canary). Both are measured at the same time, so changes of the load affect both; servers with the same settings still differ by a few per cent, and the interval allows for that.",
			"Only if the canary is better are all servers changed, and the change is measured once more. The canary is removed in any case.",
			"If requests are distributed evenly, a faster server gets no more of them: its output then shows no gain; use --goal latency.",
		}},
		{Name: "autopilot", Also: []string{"auto", "--auto", "hold", "countdown", "restarts", "downtime", "limits", "watching"}, Meaning: []string{
			"tune --auto announces each change, counts down, applies it, and keeps it only if it is better; otherwise it reverts. Restarts and downtime are limited, reverts included.",
			"x pauses it before its next change, and resumes it. Quitting reverts to the kept configuration first.",
			fmt.Sprintf("A kept change is watched for %.0f s before another change is made: crashes under load come late.", loop.DefaultStable.Seconds()),
		}},
		{Name: "predicted", Also: []string{"prediction"}, Meaning: []string{
			"The range written down before the change, from the physical model scaled by the measured step: it contains the outcome in four of five cases. 'within the predicted range' says that the measurement lies within it.",
		}},
		{Name: "prediction score", Also: []string{"score", "median error"}, Meaning: []string{
			"How many of the predictions with a measured outcome were within their range, and the median error: how far the measured output (or other goal) was from the predicted one, in per cent of the predicted one. A change that the load explains, or that was not measured, is not counted.",
		}},
		{Name: "gain", Meaning: []string{
			"The change of output from before the first kept change to after the last, both as they were judged.",
		}},
	}
}
