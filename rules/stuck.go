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
	// stuckDoubtConfidence stands where the gauge itself may be stale: before
	// 0.13 vLLM refreshed gauges only when the engine stepped, so that a request
	// aborted last stays on the page as running (issues 22545, 29928).
	stuckDoubtConfidence = 0.30
	stuckStaleBefore     = "0.13.0"

	// stuckBlocks is what a sequence that runs holds of the KV pool at least, in
	// blocks: the last one is its own even where the rest is a shared prefix (vLLM
	// computes at least the last token itself, v1/core/kv_cache_manager.py,
	// get_computed_blocks).
	stuckBlocks   = 1.0
	stuckKVInUse  = 0.03 // share of the pool from which requests hold it, where its blocks are not known
	stuckKVEmpty  = 1e-6 // and below which none does, whatever its size
	stuckGPUIdle  = 0.05 // share of the time that the busiest GPU works, below
	stuckDrainage = 0.5  // share of the earlier running requests below which the load has ended
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
				fmt.Sprintf("%s where it may be an idle server whose running gauge is stale: nothing waits, and the version is before %s or not known, or the KV pool reads empty, or the GPU is idle and less of the pool is in use than what runs must hold: %s block each, or %s of a pool whose blocks are not known", number(stuckDoubtConfidence), stuckStaleBefore, number(stuckBlocks), percent(stuckKVInUse)),
				fmt.Sprintf("in that doubt not significant where less than %s of the earlier load is left: the load has ended", percent(stuckDrainage)),
			},
			Remedy: []string{
				"no flag: look at the states of the server's processes (T stopped, Z dead, D waiting for a device) and at its log, then restart it",
				"in doubt: send one request; a server that answers it was idle",
			},
			Limits: []string{"/health and /metrics go on answering with frozen numbers when the engine process is stopped or dead"},
		},
	}
}

// standstill is the longest time in which requests were in and nothing moved,
// with what the page showed then.
type standstill struct {
	still            time.Duration
	limit            time.Duration // from which it counts
	running, waiting float64       // requests
	ranks            float64       // whose pools those are
	kv               stat.Opt      // share of the pools, mean over ranks
	gpu              stat.Opt      // share of the time that the busiest GPU worked
}

func standstillOf(r *engine.Run) standstill {
	var s standstill
	longest := time.Duration(0)
	for i := range r.Windows {
		w := &r.Windows[i]
		longest = max(longest, w.LongestStep)
		if w.Stall > s.still && !w.Asleep {
			s.still, s.running, s.waiting, s.kv, s.gpu = w.Stall, w.Running.Or(0), w.Waiting.Or(0), w.KV, w.GPUBusy
			s.ranks = float64(ranks(w))
		}
	}
	if itl := r.Agg.P99(engine.HistITL); itl.OK {
		longest = max(longest, time.Duration(itl.V*float64(time.Second)))
	}
	s.limit = max(stuckLeast, stuckSteps*longest)
	return s
}

// doubt says why the standstill may be that of an idle server whose running
// gauge is stale; "" where it cannot be.
func (s *standstill) doubt(f *engine.Facts) string {
	v := f.EngineVersion
	switch {
	case s.waiting > 0:
		return ""
	case !v.Known:
		return "the version is not known, and releases before " + stuckStaleBefore + " can leave their running gauge behind"
	case olderThan(v.Value, stuckStaleBefore):
		return "vLLM " + v.Value + " can leave its running gauge behind"
	case s.kv.OK && s.kv.V < stuckKVEmpty:
		return "the KV pool reads empty, and a running request holds a block of it"
	case s.gpu.OK && s.gpu.V < stuckGPUIdle && !s.held(f):
		return "the GPU is idle, and less is held of the KV pool than requests that run must hold"
	}
	return ""
}

// held says whether what is in use of the KV pool can be that of the sequences
// that the page shows as running.
func (s *standstill) held(f *engine.Facts) bool {
	if !f.NumGPUBlocks.Known || f.NumGPUBlocks.Value <= 0 {
		return s.kv.Or(0) >= stuckKVInUse
	}
	blocks := s.kv.Or(0) * float64(f.NumGPUBlocks.Value) * s.ranks
	return blocks > stuckBlocks*(s.running-0.5) // a share of the pool times its blocks, to the nearest
}

// drained says whether only a rest of the load was left at the standstill: less
// than half of what ran while the run still moved.
func (s *standstill) drained(r *engine.Run) bool {
	running, seconds := 0.0, 0.0
	for i := range r.Windows {
		if w := &r.Windows[i]; w.Evaluable && w.Progress && w.Running.Or(0) > 0 {
			running += w.Running.V * w.Seconds()
			seconds += w.Seconds()
		}
	}
	return seconds > 0 && s.running < stuckDrainage*running/seconds
}

func judgeStuck(r *engine.Run, f *engine.Finding) {
	if r.Agg.Windows.Collected == 0 {
		f.State, f.Reason, f.Missing = engine.NotEvaluable, inputWindow, []string{inputWindow}
		return
	}
	s := standstillOf(r)
	f.Evaluable = r.Agg.Windows.Evaluable
	f.State = engine.NotFired
	f.Reason = fmt.Sprintf("nothing moved for %s at most (limit %s)", seconds(s.still.Seconds()), seconds(s.limit.Seconds()))
	if s.still < s.limit {
		return
	}
	for i := range r.Windows {
		if w := &r.Windows[i]; w.Stall > 0 && !w.Progress && w.Evaluable && !w.Asleep {
			f.Fired++
		}
	}
	f.State, f.Significant, f.Confidence = engine.Fired, true, stuckConfidence
	f.Reason = fmt.Sprintf("nothing moved for %s with %s running and %s waiting", seconds(s.still.Seconds()), number(s.running), number(s.waiting))
	f.Evidence = append(f.Evidence,
		evidence("standstill", stat.Some(s.still.Seconds()), "s", ">=", stat.Some(s.limit.Seconds()), engine.FromMeasured,
			"no token and no step was counted for "+seconds(s.still.Seconds())+" while requests were in"),
		measured("running", stat.Some(s.running), "req", counted(s.running, "request was", "requests were")+" running"),
		measured("waiting", stat.Some(s.waiting), "req", counted(s.waiting, "request was", "requests were")+" waiting"))
	f.Fix = lookAtProcesses(r)
	if why := s.doubt(r.Facts); why != "" {
		f.Title = "Stuck engine, or idle with a stale gauge"
		f.Confidence, f.Significant = stuckDoubtConfidence, !s.drained(r)
		f.Reason += "; idle with a stale gauge, or stuck: send one request to tell"
		f.Evidence = append(f.Evidence, measured("stale_gauge", stat.None, "", "nothing waits, and "+why+": the server may be idle"))
		f.Fix = sendOne(&s)
	}
	setImpact(f, 5)
}

// sendOne is the fix in doubt: the one request that tells.
func sendOne(s *standstill) *engine.Fix {
	return &engine.Fix{
		Kind:    engine.KindHost,
		Command: "send one request: if it is answered, the server was idle and its running gauge stale; if not, the engine is stuck",
		Why:     fmt.Sprintf("The page shows %s running and no movement. Whether the engine is stuck or idle cannot be told from it.", counted(s.running, "request", "requests")),
		Price:   []string{"one request"},
	}
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
