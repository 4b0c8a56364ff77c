package rules

import (
	"maps"
	"testing"

	"github.com/rooftop-dev/rooftop/engine"
)

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
