package engine_test

import (
	"strings"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
)

// TestTheExitCodeOfWhatWasTried goes by what came of the change that is recommended:
// without a verdict it is left open, with one there is nothing left to do.
func TestTheExitCodeOfWhatWasTried(t *testing.T) {
	for _, c := range []struct {
		name   string
		limit  float64 // of the throughput, tok/s; 4 seats make 192
		near   float64 // precision, 0 where starts may differ by more than is asked for
		want   engine.Direction
		code   int
		reason string
	}{
		{"noise hides it", 200, 0, engine.Inconclusive, 3, "--max-num-seqs 4 → 32 is recommended and could not be judged, so it is not kept: output"},
		{"no gain", 192, 0.08, engine.Plateau, 0, ""},
		{"worse", 150, 0.03, engine.Worse, 0, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, "--max-num-seqs 4", auto, func(p *engine.LoopPlan) {
				if c.near > 0 {
					quiet(p)
					p.Precision = c.near
				}
			})
			r.lives = func(args string) {
				r.server.limit = 0
				if !strings.HasSuffix(args, "seqs 4") {
					r.server.limit = c.limit
				}
			}
			r.step(engine.Begin{})
			f := r.ends(2 * time.Hour)
			r.atRest("--max-num-seqs 4")
			if d := r.loop.Snapshot().Iterations[0].Delta; d == nil || d.Direction != c.want {
				r.dump()
				t.Fatalf("the change is %+v", d.Direction)
			}
			if f.ExitCode != c.code || !strings.Contains(f.Reason, c.reason) {
				r.dump()
				t.Errorf("exit %d: %s, want %d with %q", f.ExitCode, f.Reason, c.code, c.reason)
			}
		})
	}
}
