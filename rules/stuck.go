package rules

import (
	"fmt"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Limits of stuck.
const (
	stuckLeast = 10 * time.Second // nothing moved, at least
	stuckSteps = 5                // and at least so many of the longest steps

	stuckConfidence = 0.95
	// stuckStaleConfidence stands where the gauge itself may be stale: before
	// 0.13 vLLM refreshed gauges only when the engine stepped, so that a request
	// aborted last stays on the page as running (issues 22545, 29928).
	stuckStaleConfidence = 0.50
	stuckStaleBefore     = "0.13.0"
)

func stuck() definition {
	return definition{
		rule: engine.Rule{
			ID: engine.Stuck, Code: "beyond", Title: "Stuck engine", Group: engine.GroupHost, Impact: 5,
			Once: judgeStuck,
			Overrides: []engine.FindingID{
				engine.UnderBatching, engine.KVPressure, engine.KVAdmission, engine.LowPrefixReuse, engine.SeatSaturation,
				engine.TokenBudget, engine.SlowSteps, engine.FrontEnd, engine.PowerLimit, engine.DPImbalance,
			},
		},
		explain: Explanation{
			Condition: []string{
				"requests run or wait",
				fmt.Sprintf("no token, step, preemption or request counter moves for %s and for %d of the longest steps seen", seconds(stuckLeast.Seconds()), stuckSteps),
				"the engine is not asleep or paused, and the page was read all along: a missed or failed scrape is no standstill",
			},
			Thresholds: []Threshold{
				{"time without progress", ">=", stuckLeast.Seconds(), "s", fromDecisions},
				{"time without progress / longest step", ">=", stuckSteps, "", fromDecisions},
			},
			Formula: []string{"longest step = the longest time between two moves of the counters while requests were in, or the p99 of inter-token latency where that is longer"},
			Confidence: []string{
				number(stuckConfidence),
				fmt.Sprintf("%s where nothing waits and the version is before %s, whose gauges can stay at their last value after aborts", number(stuckStaleConfidence), stuckStaleBefore),
			},
			Remedy: []string{"no flag: look at the states of the server's processes (T stopped, Z dead, D waiting for a device) and at its log, then restart it"},
			Limits: []string{"/health and /metrics go on answering with frozen numbers when the engine process is stopped or dead"},
		},
	}
}

// standstill returns the longest time in which requests were in and nothing
// moved, the wait that it is held against, and what was in then.
func standstill(r *engine.Run) (still, limit time.Duration, running, waiting float64) {
	longest := time.Duration(0)
	for i := range r.Windows {
		w := &r.Windows[i]
		longest = max(longest, w.LongestStep)
		if w.Stall > still && !w.Asleep {
			still, running, waiting = w.Stall, w.Running.Or(0), w.Waiting.Or(0)
		}
	}
	if itl := r.Agg.P99(engine.HistITL); itl.OK {
		longest = max(longest, time.Duration(itl.V*float64(time.Second)))
	}
	return still, max(stuckLeast, stuckSteps*longest), running, waiting
}

func judgeStuck(r *engine.Run, f *engine.Finding) {
	if r.Agg.Windows.Collected == 0 {
		f.State, f.Reason, f.Missing = engine.NotEvaluable, inputWindow, []string{inputWindow}
		return
	}
	still, limit, running, waiting := standstill(r)
	f.Evaluable = r.Agg.Windows.Evaluable
	f.State = engine.NotFired
	f.Reason = fmt.Sprintf("nothing moved for %s at most (limit %s)", seconds(still.Seconds()), seconds(limit.Seconds()))
	if still < limit {
		return
	}
	for i := range r.Windows {
		if w := &r.Windows[i]; w.Stall > 0 && !w.Progress && w.Evaluable && !w.Asleep {
			f.Fired++
		}
	}
	f.State, f.Significant, f.Confidence = engine.Fired, true, stuckConfidence
	f.Reason = fmt.Sprintf("nothing moved for %s with %s running and %s waiting", seconds(still.Seconds()), number(running), number(waiting))
	f.Evidence = append(f.Evidence,
		evidence("standstill", stat.Some(still.Seconds()), "s", ">=", stat.Some(limit.Seconds()), engine.FromMeasured,
			"no token and no step was counted for "+seconds(still.Seconds())+" while requests were in"),
		measured("running", stat.Some(running), "req", counted(running, "request was", "requests were")+" running"),
		measured("waiting", stat.Some(waiting), "req", counted(waiting, "request was", "requests were")+" waiting"))
	if staleGauge(r, waiting) {
		f.Confidence = stuckStaleConfidence
		f.Evidence = append(f.Evidence, evidence("engine_version", stat.None, "", "", stat.None, r.Facts.EngineVersion.Source,
			"vLLM "+r.Facts.EngineVersion.Value+" can leave its running gauge behind after an abort: send one request; if it is answered, the server is idle, not stuck"))
	}
	f.Fix = lookAtProcesses(r)
	setImpact(f, 5)
}

// staleGauge says whether the running gauge alone may be wrong.
func staleGauge(r *engine.Run, waiting float64) bool {
	v := r.Facts.EngineVersion
	if waiting > 0 || !v.Known || !olderThan(v.Value, stuckStaleBefore) {
		return false
	}
	for i := range r.Windows {
		if r.Windows[i].Progress {
			return false
		}
	}
	return true
}

func lookAtProcesses(r *engine.Run) *engine.Fix {
	command := "look at the states of the server's processes (T stopped, Z dead, D waiting for a device) and at its log, then restart it"
	if r.Facts.PID > 0 {
		command = fmt.Sprintf("ps --ppid %d -o pid,stat,wchan:20,comm (T stopped, Z dead, D waiting for a device), then the server's log; then restart it", r.Facts.PID)
	}
	return &engine.Fix{
		Kind:    engine.KindHost,
		Command: command,
		Why:     "The engine does not step although requests are in. The page goes on answering with frozen numbers. No flag helps.",
		Price:   []string{"requests in the server are lost at the restart"},
	}
}
