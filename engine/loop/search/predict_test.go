package search_test

import (
	"strings"
	"testing"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/loop/search"
)

func TestPredictHasABasisOrAReason(t *testing.T) {
	bare := &engine.Diagnosis{Ceiling: engine.Ceiling{PhysicalReason: "the GPU is unknown"}}
	for flag, want := range map[string]string{
		"--max-num-seqs": "the GPU is unknown", "--num-gpu-blocks-override": "the size of the KV pool", "--enforce-eager": "the GPU is unknown",
	} {
		if r, why := search.Predict(bare, engine.Change{Flag: flag, To: "8"}); r != nil || !strings.Contains(why, want) {
			t.Errorf("%s: %+v, %q, want %q", flag, r, why, want)
		}
	}
	for _, to := range []string{"", "x", "NaN", "Inf", "-4", "0", "1e300"} {
		if r, why := search.Predict(bare, engine.Change{Flag: "--max-num-seqs", To: to}); r != nil || !strings.Contains(why, "takes a positive number") {
			t.Errorf("%q: %+v, %q", to, r, why)
		}
	}
	own := &engine.Recommendation{Fix: engine.Fix{Kind: engine.KindFlag, Flag: "--max-num-seqs", From: "4", To: "32"}}
	bare.Recommendation = own
	if r, _ := search.Predict(bare, engine.Change{Flag: "--max-num-seqs", From: "4", To: "32"}); r != own {
		t.Errorf("the rule's own recommendation: %+v", r)
	}
}
