package engine

import (
	"fmt"

	"github.com/rooftop-dev/rooftop/engine/verdict"
)

// Term is a word of the screen and of the reports, explained. Limits in the text
// are those that the engine uses.
type Term struct {
	Name    string   `json:"name"`
	Also    []string `json:"also"` // other words that lead to it
	Meaning []string `json:"meaning"`
}

// Terms are the words of the loop and of its ceilings, in the order in which a
// person meets them.
func Terms() []Term {
	percent := func(ratio float64) string { return fmt.Sprintf("%.0f %%", ratio*100) }
	return []Term{
		{"ceiling", []string{"ideal", "achievable", "binding", "ridge"}, []string{
			"ideal: every byte of weights and KV cache read at the full bandwidth of the datasheet, every FLOP at full rate, nothing fixed. Nothing real gets there.",
			"achievable: what measured kernels of good software reach on this hardware at this batch and context, with the fixed costs of a step. It is an estimate (est): a server may lie a little above.",
			"binding: the part of a step that takes longest: weights, kv, compute, collectives or fixed.",
			"ridge: the running requests from which a step computes for longer than it reads.",
		}},
		{"baseline", []string{"before", "so far", "firm"}, []string{
			"What the next change is judged against: a measurement of the configuration that runs, under load. It is renewed from completed stretches while a change is waited for; what ended less than two windows before a restart never becomes part of it.",
			"Advice before the first baseline is complete is marked 'so far'. It may still change.",
		}},
		{"settling", []string{"steady", "warm-up"}, []string{
			fmt.Sprintf("After a restart nothing counts until at least %d windows with moving tokens show no trend of requests or throughput beyond their own scatter, and %s of the requests are back. What is not steady after %.0f s of load is measured as it is, and says so.",
				settleLeast, percent(settleBack), settleMost.Seconds()),
		}},
		{"direction", []string{"verdict", "better", "worse", "plateau", "veto", "not comparable", "inconclusive"}, []string{
			fmt.Sprintf("Of the goal (output, unless --goal says otherwise), with an interval that repeats of one configuration would leave in one case of twenty: the scatter of the measurement, which measuring on narrows, and that of restarts, which it does not. A difference within %s matters to nobody (--precision).", percent(defaultPrecision)),
			"better: the whole interval lies above zero, and matters. worse: it lies below; the loop asks whether to go back, and does so by itself with --auto.",
			"plateau: there is no difference that matters. inconclusive: noise hides whether there is one. Neither is kept: the next change takes it back.",
			"not comparable: the load differs by as much as explains the difference.",
			fmt.Sprintf("Without objectives, more output is a plateau where the 99th percentile of TTFT grew by more than %s beyond noise; from too few requests for that, the largest percentile that is known, or the mean.", percent(latencyVeto)),
			"A change is looked at after times that are fixed before its measurement begins, and the interval holds for all of the looks together: looking often makes no gain.",
			fmt.Sprintf("Beside it stands the direction by one measurement each: output by more than %s, and the 99th percentile of TTFT not by more than %s.", percent(throughputShift), percent(latencyVeto)),
		}},
		{"classic", []string{"efficiency"}, []string{
			fmt.Sprintf("The direction as PROFILE documents it: by the efficiency of a running request, better above %+.0f points, worse below %s, with the same veto.", betterPoints*100, signed("%+.0f", worsePoints)),
			"More seats raise the output and lower what each request gets of the hardware: classic then says worse where the server makes twice as much. It stands beside the direction wherever the two differ.",
		}},
		{"noise", []string{"same settings"}, []string{
			"The difference between two measurements of one configuration with a restart between them. A gain of that size is none: what is known of it widens every interval.",
		}},
		{"interval", []string{"95 %", "half width", "within noise", "level", "or more"}, []string{
			"+31 % (+29 to +33 %): the difference as it was measured, and the range that holds the true one in 95 of 100 cases, over all looks together. What is 'within noise' has zero in its own.",
			"Its half width has two parts, which add up as squares: the scatter of the measurement, which measuring on narrows, and the restart spread, which it does not.",
			"It can also widen as more is measured: a disturbance that is slow shows only after a while, and an early interval knew nothing of it.",
			"'or more': requests waited before and none does now, so that the load, and not the server, sets what was measured after.",
		}},
		{"precision", []string{"--precision"}, []string{
			fmt.Sprintf("The difference that matters: %s unless --precision says otherwise. A trial ends where its interval lies on one side of it, or within it.", percent(defaultPrecision)),
		}},
		{"look", []string{"looks", "trial", "needs"}, []string{
			"A trial is judged after times that are fixed before it begins, each half as long again as the one before. It ends at the first look that decides, or where measuring on cannot decide; 'needs' says what a look still waits for.",
		}},
		{"restart spread", []string{"spread", "repeats", "starts"}, []string{
			fmt.Sprintf("How much starts of one configuration differ, as the standard deviation of the logarithm of output: a restart is not a repeat. Where no repeats of this server are known %s is assumed. A difference smaller than that is inconclusive, however long it is measured; further starts of both configurations would tell.", percent(verdict.Widen(nil).SD)),
		}},
		{"cause", []string{"traffic", "host", "bias"}, []string{
			"What a difference, or the lack of a verdict, most likely comes from: the change (flag), the load, which differs (traffic), chance (noise), or something else on the machine (host).",
			"Traffic that differs beyond noise gets a bound: what it explains at most. An effect that does not exceed it is not comparable.",
		}},
		{"limited by", []string{"capacity", "demand"}, []string{
			"capacity: requests waited, the server did what it could. demand: none waited, it did what was asked of it; more output was not to be had.",
		}},
		{"objective", []string{"slo", "--slo", "not sure"}, []string{
			"A limit on a latency that a change must keep (--slo). 'not sure' says that the interval about it holds the limit. A few hundred requests have no 99th percentile, and yet tell of a limit that is far away: by how many of them lie beyond it.",
			"Objectives stand above the goal: a change is worse that breaks one which was kept, or misses one by more, whatever else it gains, and better where one is kept that was not, or is missed by less. Where one is missed as before, the goal decides.",
		}},
		{"canary", []string{"answers", "drift"}, []string{
			"Fixed prompts, answered before and after a change that may alter what the model says. Beside the gain stands how many answers are exactly the same, and how far the log probabilities of their tokens drift.",
		}},
		{"autopilot", []string{"auto", "--auto", "hold", "countdown", "restarts", "downtime", "limits", "watching"}, []string{
			"tune --auto says what it will do, counts down, does it, and keeps it only where it is better; else it is taken back. Restarts and downtime are limited, ways back among them.",
			"x holds it before its next act, and lets it go on. Quitting puts back what is kept first.",
			fmt.Sprintf("What was kept is watched for %.0f s before another change is made: what crashes under load does so late.", autoProve.Seconds()),
		}},
		{"predicted", []string{"held", "missed", "prediction", "foretold"}, []string{
			"The range written down before the change, from the physical model scaled by the measured step: it holds the outcome in four of five cases. 'held' says that what was measured lies within it.",
		}},
		{"prediction score", []string{"score", "median error"}, []string{
			"Of the predictions whose outcome was measured: how many held, and the median error: by how much the output that came (or what else the goal is) was off the predicted one, in per cent of that. What the load explains, or what was not measured, is not counted.",
		}},
		{"gain", nil, []string{
			"What the kept changes brought together: before the first of them to after the last, both as they were judged.",
		}},
	}
}
