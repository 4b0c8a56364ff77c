package catalog

import (
	"testing"
)

// TestParametersMatchDimensions recounts every model from its dimensions.
func TestParametersMatchDimensions(t *testing.T) {
	exceptions := map[string]string{
		"nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-NVFP4": "no dimensions known",
		"Qwen/Qwen3-Next-80B-A3B-Instruct":               "linear layers: counted from config.json, not from the entry",
		"Qwen/Qwen3.5-27B":                               "linear layers and a vision tower",
		"Qwen/Qwen3.5-35B-A3B":                           "linear layers and a vision tower",
		"Qwen/Qwen3.5-122B-A10B":                         "linear layers and a vision tower",
		"Qwen/Qwen3.5-397B-A17B":                         "linear layers and a vision tower",
		"facebook/opt-125m":                              "two matrices in its FFN",
	}
	counted := 0
	for _, m := range Default().Models() {
		got := m.shape().count()
		ok := within(got.total, m.TotalParams-m.VisionParams, 0.015)
		// Publishers count active parameters with or without embedding tables, and truncate
		// to whole billions.
		okActive := within(got.active, m.ActiveParams-pick(m.Experts == 0, m.VisionParams, 0), pick(m.Experts == 0, 0.015, 0.2))
		if _, listed := exceptions[m.ID]; listed {
			if ok && okActive {
				t.Errorf("%s: listed as an exception, but its dimensions make %.4g", m.ID, got.total)
			}
			continue
		}
		if !ok || !okActive {
			t.Errorf("%s: %.4g parameters (%.4g active), its dimensions make %.4g (%.4g)", m.ID, m.TotalParams, m.ActiveParams, got.total, got.active)
		}
		counted++
	}
	if counted < 120 {
		t.Errorf("only %d models counted", counted)
	}
}
