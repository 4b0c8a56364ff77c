package rules

import (
	"maps"
	"testing"

	"github.com/rooftop-dev/rooftop/engine"
)

func TestEveryRuleIsExplained(t *testing.T) {
	explained := Explanations()
	for i, r := range All() {
		e := explained[i]
		if e.ID != r.ID || e.Rule != r.Code || e.Title != r.Title || e.Group != r.Group || e.Impact != r.Impact {
			t.Errorf("%s: the explanation belongs to another rule: %+v", r.ID, e)
		}
		for part, n := range map[string]int{
			"condition": len(e.Condition), "thresholds": len(e.Thresholds), "formula": len(e.Formula), "gate": len(e.Gate),
			"confidence": len(e.Confidence), "remedy": len(e.Remedy), "limits": len(e.Limits),
		} {
			if n == 0 {
				t.Errorf("%s: no %s", r.ID, part)
			}
		}
		for _, x := range e.Thresholds {
			if x.Name == "" || x.Source == "" {
				t.Errorf("%s: a threshold without name or source: %+v", r.ID, x)
			}
		}
	}
}

// TestDocumentedLimits compares the limits of R1 to R5 with those of PROFILE, the document that
// rooftop implements: this project does not change them.
func TestDocumentedLimits(t *testing.T) {
	want := map[engine.FindingID]map[string]float64{
		engine.UnderBatching:         {"running / max_num_seqs": 0.25, "waiting": 2, "prefill seconds / window seconds": 0.40, "prefill seconds in a window": 4},
		engine.KVPressure:            {"kv_usage_peak": 0.88, "preemptions": 0, "vram_peak / vram_total (support only)": 0.78},
		engine.KVAdmission:           {"queued / (running + queued)": 0.30},
		engine.LowPrefixReuse:        {"prefix_hit_rate": 0.35, "prompt_tokens_mean": 20, "requests_per_s, in PROFILE's form only": 5, "running": 0.75},
		engine.OOMRisk:               {"kv_headroom_gb = vram_total_gb - weight_gb / tp": 0, "reserve per GPU": 3, "gpu_memory_utilization if unknown": 0.9},
		engine.ConcurrencySaturation: {"|running - max_num_seqs|": 0.5, "queued / (running + queued)": 0.30, "kv_usage_peak: raise the slots": 0.80},
	}
	for _, e := range Explanations() {
		got := map[string]float64{}
		for _, x := range e.Thresholds {
			if x.Source == fromProfile {
				got[x.Name] = x.Value
			}
		}
		if limits := want[e.ID]; !maps.Equal(got, limits) {
			t.Errorf("%s: the limits that are called documented are %v, want %v", e.ID, got, limits)
		}
	}
}
