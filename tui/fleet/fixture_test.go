package fleet

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/fleet"
	"github.com/rooftop-dev/rooftop/engine/roofline"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// diagnosed returns the diagnosis of a server of a model with running and waiting requests.
func diagnosed(model string, running, waiting float64) engine.Diagnosis {
	d := engine.Diagnosis{Started: time.Date(2026, 11, 26, 3, 0, 0, 0, time.UTC), Duration: 10 * time.Minute, Version: "test", Outcome: engine.OutcomeHealthy}
	d.Target = engine.Target{Engine: "vllm", EngineVersion: "0.11.0", Model: model}
	d.Windows = engine.WindowCounts{Collected: 20, Evaluable: 20, Active: 20}
	d.Facts.GPUName, d.Facts.GPUKnown = engine.Know("NVIDIA L4", engine.FromFlag, ""), true
	put := func(name, unit string, v float64) {
		d.Measured = append(d.Measured, engine.NamedQuantity{Name: name, Quantity: engine.Quantity{Value: stat.Some(v), Unit: unit, Source: engine.Measured}})
	}
	put("running_mean", "", running)
	put("waiting_mean", "", waiting)
	put("kv_usage_peak", "ratio", min(1, running/40))
	put("generation_tokens_per_s", "tok/s", 41*running)
	d.Ceiling.Physical = &roofline.Operating{AchievableTokensPerS: stat.Some(60 * running), IdealTokensPerS: stat.Some(80 * running)}
	return d
}

// changing recommends a flag with a predicted gain.
func changing(d engine.Diagnosis, id engine.FindingID, impact float64, flag, from, to string, low, mid, high float64) engine.Diagnosis {
	fix := engine.Fix{
		Kind: engine.KindFlag, Flag: flag, From: from, To: to, Command: "restart vllm serve with " + flag + " " + to, Why: "The slots are full while requests wait.", Costs: []string{"one restart"},
		Predicted: []engine.Prediction{{Metric: "generation_tokens_per_s", Low: stat.Some(low), Mid: stat.Some(mid), High: stat.Some(high)}},
	}
	d.Findings = []engine.Finding{{ID: id, Title: strings.ReplaceAll(string(id), "-", " "), State: engine.Fired, Significant: true, Fired: 20, Judged: 20, Evaluable: 20, Confidence: 0.9, Impact: impact, Score: impact, Fix: &fix}}
	d.Recommendation = &engine.Recommendation{Finding: id, Fix: fix, Launch: "vllm serve Qwen/Qwen3-8B --max-model-len 8192 " + flag + " " + to}
	d.Outcome = engine.OutcomeRecommendation
	return d
}

// fleetOf returns a ranked fleet of n servers: most healthy or idle, some with each fault, and some not read.
func fleetOf(n int) []fleet.Server {
	hung := diagnosed("Qwen/Qwen3-8B", 8, 3)
	hung.Outcome, hung.Condition = engine.OutcomeUnhealthy, engine.Condition{State: engine.Hung, Lasted: 36 * time.Second, Reason: "no tokens generated for 36 s with 8 running and 3 waiting"}
	idle := diagnosed("Qwen/Qwen3-4B", 0, 0)
	idle.Outcome, idle.Windows.Active = engine.OutcomeNoLoad, 0
	slots := changing(diagnosed("Qwen/Qwen3-8B", 8, 31), engine.ConcurrencySaturation, 4, "--max-num-seqs", "8", "32", 0.4, 0.9, 1.4)
	pool := changing(diagnosed("Qwen/Qwen3-8B", 38, 12), engine.KVPressure, 5, "--num-gpu-blocks-override", "520", "1800", 0.1, 0.35, 0.5)
	cache := changing(diagnosed("Qwen/Qwen3-4B", 6, 0), engine.LowPrefixReuse, 2, "--enable-prefix-caching", "", "", 0.05, 0.2, 0.3)
	well, other := diagnosed("Qwen/Qwen3-8B", 12, 0), diagnosed("meta-llama/Llama-3.1-70B-Instruct", 20, 0)
	other.Target.EngineVersion = "0.10.2"
	kinds := []engine.Diagnosis{slots, well, idle, well, hung, cache, other, well, idle, pool, well, other}
	var list []fleet.Server
	for i := range n {
		s := fleet.Server{Name: fmt.Sprintf("gpu-%03d:8000", i), Diagnosis: kinds[i%len(kinds)]}
		if i%20 == 17 {
			s = fleet.Unread(s.Name, "http://prometheus:9090: unreachable: 503 Service Unavailable")
		} else if i%24 == 4+12 {
			s.Diagnosis = well
		}
		s.Target.URL = s.Name
		s.Deployment = []string{"vllm-chat", "vllm-code", "vllm-eval"}[i%3]
		s.Command = "rooftop diagnose --prometheus http://prometheus:9090 --match 'instance=\"" + s.Name + "\"'"
		s.Facts.CostPerHour = engine.Know(0.7+float64(i%5)/10, engine.FromFlag, "")
		list = append(list, s)
	}
	fleet.Rank(list)
	return list
}

// liveOf returns the state of a fleet of n servers that was read 12 s ago.
func liveOf(n int) *fleet.Live {
	return &fleet.Live{Source: "http://prometheus:9090", Servers: fleetOf(n), Now: 4*time.Minute + 12*time.Second, Read: 4 * time.Minute, Every: 30 * time.Second}
}

// states are the states of a list.
func states() map[string]*fleet.Live {
	reading := liveOf(40)
	reading.Reading, reading.Began, reading.Done, reading.All = true, reading.Now-5*time.Second, 20, 40
	failed := liveOf(40)
	failed.Failed, failed.FailedAt, failed.Now = "http://prometheus:9090: unreachable: no answer within 30s; ask for a shorter time, or for fewer servers with --match", 5*time.Minute, 5*time.Minute+10*time.Second
	first := &fleet.Live{Source: "http://prometheus:9090", Now: 7 * time.Second, Every: 30 * time.Second, Reading: true, Done: 340, All: 1000}
	never := &fleet.Live{Source: "http://prometheus:9090", Now: 7 * time.Second, Every: 30 * time.Second, Failed: "http://prometheus:9090: unreachable: connection refused", FailedAt: 6 * time.Second}
	well := liveOf(40)
	well.Servers = well.Servers[:0:0]
	for _, s := range fleetOf(40) {
		if s.Outcome == engine.OutcomeHealthy {
			well.Servers = append(well.Servers, s)
		}
	}
	empty := liveOf(0)
	empty.Servers = []fleet.Server{}
	return map[string]*fleet.Live{"nothing": nil, "first": first, "never": never, "three": liveOf(3), "forty": liveOf(40), "reading": reading, "failed": failed, "well": well, "empty": empty}
}

func named(t testing.TB, name string) *fleet.Live {
	t.Helper()
	if n, ok := map[string]int{"3": 3, "40": 40, "1000": 1000}[name]; ok {
		return liveOf(n)
	}
	l, ok := states()[name]
	if !ok {
		t.Fatalf("no state %q", name)
	}
	return l
}

// words returns a text with single spaces.
func words(s string) string { return strings.Join(strings.Fields(s), " ") }
