package search

import (
	"strings"
	"testing"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// On unknown hardware, 16 slots run what a pool of 64 blocks holds, while others wait: the rule's larger pool for 16
// gains nothing, nor do slots alone. With the pool for all, slots beyond their number stay empty and leave none waiting.
func TestSearchPairsSlotsAndPoolWithoutAModel(t *testing.T) {
	for _, waiting := range []float64{16.2, 12.2} {
		s := scene{blind: true, slots: 16, running: 15.8, waiting: waiting, prompt: 436, output: 80, advice: fix("--num-gpu-blocks-override", "64", "112", 0.01), id: engine.KVPressure}
		d := s.diagnosis(t)
		d.Facts.NumGPUBlocksOverride, d.Facts.BlockSize = engine.Know(64, engine.FromCmdline, ""), engine.Know(128, engine.FromMetrics, "")
		d.Facts.KVCapacityTokens = engine.Know(64.0*128, engine.FromMetrics, "")
		r, why := searched(d).Next()
		if r == nil {
			t.Fatal(why)
		}
		if slots, blocks := value(t, r, "--max-num-seqs"), value(t, r, "--num-gpu-blocks-override"); slots != 32 || blocks < 128 {
			t.Errorf("%v waiting: %v slots and %v blocks, want 32 slots with the blocks for all", waiting, slots, blocks)
		}
		if r.Finding != engine.SearchStep || !strings.Contains(r.Why, "one restart for both, because neither alone gains anything") {
			t.Errorf("%v waiting: finding %s: %s", waiting, r.Finding, r.Why)
		}
	}
}

// An API server at its limit keeps more slots from gaining anything.
func TestSearchPairsSlotsWithAPIServers(t *testing.T) {
	d := chat().diagnosis(t)
	d.Performance.Measured.FrontShare = stat.Some(0.94)
	d.Facts.APIServerCount = engine.Know(1, engine.FromDefault, "")
	r, why := searched(d).Next()
	if r == nil {
		t.Fatal(why)
	}
	if servers := value(t, r, "--api-server-count"); servers < 2 || value(t, r, "--max-num-seqs") < 32 {
		t.Errorf("%v, want API servers and slots together", r.Changes())
	}
	if !strings.Contains(r.Why, "One API server uses 94") {
		t.Errorf("why: %s", r.Why)
	}
	d.Performance.Measured.FrontShare = stat.Some(0.1)
	if r, _ := searched(d).Next(); r == nil || len(r.Also) > 0 {
		t.Errorf("%+v, want slots alone where the API server is idle", r)
	}
}

func TestSearchTakesIdleGPUsOnlyIfAllowed(t *testing.T) {
	d := scene{slots: 64, running: 40, prompt: 400, output: 400, pool: 100_000, util: 0.9}.diagnosis(t)
	d.Facts.GPUsFree = engine.Know(3, engine.FromGPU, "")
	if r, why := searched(d).Next(); r != nil || !strings.Contains(why, "it takes idle GPUs of the machine") {
		t.Errorf("%+v, %q: want it named as not allowed", r, why)
	}
	r, why := searched(d, func(s *Search) { s.Allow = []string{"tensor-parallel-size"} }).Next()
	if r == nil {
		t.Fatal(why)
	}
	if to := value(t, r, "--tensor-parallel-size"); to != 4 {
		t.Errorf("degree %v, want 4: three further GPUs are idle", to)
	}
	d.Facts.GPUsFree = engine.Fact[int]{}
	if r, _ := searched(d, func(s *Search) { s.Allow = []string{"tensor-parallel-size"} }).Next(); r != nil {
		t.Errorf("%v although no GPU is known to be idle", r.Changes())
	}
}
