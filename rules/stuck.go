package rules

import (
	"fmt"

	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Limits of stuck, beside those of [engine.Condition].
const (
	stuckConfidence      = 0.95
	stuckDoubtConfidence = 0.30 // the running gauge may be stale
	// stuckDrainage is the share of the earlier running requests below which the load has ended.
	stuckDrainage = 0.5
)

var stuck = definition{engine.Rule{
	ID: engine.Stuck, Code: "beyond", Title: "Stuck engine", Group: engine.GroupHost, Impact: 5,
	Once: judgeStuck, While: "the server is ill",
	Overrides: []engine.FindingID{
		engine.UnderBatching, engine.KVPressure, engine.KVAdmission, engine.LowPrefixReuse, engine.ConcurrencySaturation,
		engine.TokenBudget, engine.SlowSteps, engine.FrontEnd, engine.PowerLimit, engine.DPImbalance,
	},
}, Explanation{
	Condition: []string{
		"dead: two successive readings of /health are answered with a server error although the metrics page answers, or a process of the engine has ended, and nothing has moved since",
		fmt.Sprintf("hung: requests run or wait, and no token, step, preemption, finished request or change of the KV usage is seen for %v s, nor for %d of the longest steps seen, or %v s more than the longest; an engine that is asleep or paused is not, and the time of a failed scrape does not count", engine.HungMinimum.Seconds(), engine.HungSteps, engine.HungBeyond.Seconds()),
		"partly hung: the same of one data-parallel rank, while others work",
		fmt.Sprintf("failing: more than %s of the latest answers are 5xx errors (client errors and refusals by admission limits left out), or of the finished requests ended with an error; by more than chance explains", figure.PercentSign(engine.FailingShare)),
		"down: the metrics page stopped answering",
		"it lasts until the opposite is seen: a step, /health with 200, a page",
	},
	Thresholds: []Threshold{
		{"time without progress", ">=", engine.HungMinimum.Seconds(), "s", fromDecision},
		{"time without progress / longest step", ">=", engine.HungSteps, "", fromDecision},
		{"errors / latest answers", ">", engine.FailingShare, "ratio", fromDecision},
	},
	Formula: []string{"longest step = the longest time between two changes of the counters while the server had requests"},
	Confidence: []string{
		fmt.Sprintf("%v", stuckConfidence),
		fmt.Sprintf("%v if the server may be idle with a stale running gauge: nothing waits, and the version is unknown or before %s, or the KV pool reads empty, or the GPU is idle and less of the pool is in use than the running requests must hold (%v block each, or %s of a pool with an unknown number of blocks)",
			stuckDoubtConfidence, catalog.EngineOf(catalog.VLLM).StaleGauges.Before, engine.MinimumBlocks, figure.PercentSign(engine.KVInUse)),
		fmt.Sprintf("then not significant if less than %s of the earlier load is left: the load has ended", figure.PercentSign(stuckDrainage)),
	},
	Remedy: []string{
		"no flag: check the states of the server's processes (T stopped, Z dead, D waiting for a device) and its log, then restart it",
		"if in doubt, send one request: a server that answers it was idle",
	},
	Limits: []string{"/health and /metrics keep answering with frozen numbers while the engine process is stopped"},
}}

// drained reports whether most of the load had ended before a standstill with this many running
// requests.
func drained(r *engine.Run, left float64) bool {
	running, seconds := 0.0, 0.0
	for w := range windows(r, evaluable) {
		if w.Progress && w.Running.Or(0) > 0 {
			running += w.Running.V * w.Seconds()
			seconds += w.Seconds()
		}
	}
	return seconds > 0 && left < stuckDrainage*running/seconds
}

func judgeStuck(r *engine.Run, f *engine.Finding) {
	if r.Agg.Windows.Collected == 0 {
		f.State, f.Reason, f.Missing = engine.NotEvaluable, inputWindow, []string{inputWindow}
		return
	}
	f.Evaluable = r.Agg.Windows.Evaluable
	c := r.Condition
	last, ill := engine.Window{}, 0
	for w := range windows(r, always) {
		if w.Polls > 0 {
			last = *w
		}
		if w.Evaluable && (frozen(w) && !w.Asleep || engine.ConditionOf(w, r.Facts).State != "") {
			ill++
		}
	}
	if c.State == "" {
		f.State = engine.NotFired
		if r.HungBefore > 0 {
			f.Reason = "hung for at least " + figure.Elapsed(r.HungBefore) + " before, and stepping at the end"
			return
		}
		f.Reason = fmt.Sprintf("at most %s without progress (limit %s)", figure.Duration(r.Agg.LongestStall), figure.Duration(engine.HungAfter(last.LongestStep)))
		return
	}
	f.State, f.Significant, f.Confidence = engine.Fired, true, stuckConfidence
	f.Title, f.Reason, f.Fired = c.Title(), c.Reason, max(1, ill)
	addEvidence(f, conditionEvidence(c, &last)...)
	f.Fix = inspectProcesses(r)
	if c.Doubt != "" {
		running := last.Running.Or(0)
		f.Confidence, f.Significant = stuckDoubtConfidence, !drained(r, running)
		f.Reason += "; hung, or idle with a stale gauge: send one request to find out"
		addEvidence(f, measured("stale_gauge", stat.None, "", "nothing waits, and "+c.Doubt+": the server may be idle"))
		f.Fix = sendOneRequest(running)
	}
}

// conditionEvidence returns the figures of a condition.
func conditionEvidence(c engine.Condition, w *engine.Window) []engine.Evidence {
	running, waiting := w.Running.Or(0), w.Waiting.Or(0)
	requests := []engine.Evidence{
		measured("running", stat.Some(running), "req", figure.Counted(running, "request")+" running"),
		measured("waiting", stat.Some(waiting), "req", figure.Counted(waiting, "request")+" waiting"),
	}
	switch c.State {
	case engine.Hung:
		return append([]engine.Evidence{compared("standstill", stat.Some(c.Lasted.Seconds()), "s", ">=", engine.HungAfter(w.LongestStep).Seconds(), engine.FromMeasured,
			"no tokens generated and no steps counted for "+figure.Duration(c.Lasted)+" although the server had requests")}, requests...)
	case engine.Failing:
		return []engine.Evidence{compared("errors", stat.Some(c.Ended.Failed/c.Ended.Ended), "ratio", ">", engine.FailingShare, engine.FromMeasured, c.Reason)}
	}
	return append([]engine.Evidence{measured("condition", stat.Some(c.Lasted.Seconds()), "s", c.String())}, requests...)
}

// sendOneRequest returns the fix for a server that may be idle with a stale gauge.
func sendOneRequest(running float64) *engine.Fix {
	return &engine.Fix{
		Kind:    engine.KindHost,
		Command: "send one request: if the server answers it, it was idle and its running gauge stale; if not, the engine is hung",
		Why:     fmt.Sprintf("The metrics page shows %s running and no progress. It does not show whether the engine is hung or idle.", figure.Counted(running, "request")),
		Costs:   []string{"one request"},
	}
}

// inspectProcesses returns what to do about a condition: no flag helps.
func inspectProcesses(r *engine.Run) *engine.Fix {
	states := "check the states of the server's processes (T stopped, Z dead, D waiting for a device) and its log"
	if r.Facts.PID > 0 {
		states = fmt.Sprintf("ps --ppid %d -o pid,stat,wchan:20,comm (T stopped, Z dead, D waiting for a device), then check the server's log", r.Facts.PID)
	}
	fix := &engine.Fix{Kind: engine.KindHost, Costs: []string{"a restart drops the requests in the server"}}
	switch r.Condition.State {
	case engine.Down:
		fix.Command = "check the server's log and start it again, if it is not starting already"
		fix.Why = "The server no longer answers."
	case engine.Dead:
		fix.Command = "read in the server's log why the engine ended, then restart the server"
		fix.Why = "The engine has ended; only the API server answers. No server flag helps."
	case engine.Failing:
		fix.Command = "read the errors in the server's log"
		fix.Why = "Requests end with server errors, so measurements say nothing about the server's settings."
		fix.Costs = []string{"none: nothing on the server changes"}
	default:
		fix.Command = states + "; then restart it"
		fix.Why = "The engine does not step although the server has requests. The metrics page keeps answering with frozen numbers. No server flag helps."
	}
	return fix
}
