package loop_test

import (
	"math"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/engine/loop"
)

func TestTheCurveGoesThroughTheMeasuredPoint(t *testing.T) {
	r := newRig(t, "--max-num-seqs 4")
	r.server.gpu = "NVIDIA A100-SXM4-40GB"
	r.step(loop.Begin{})
	r.wait(time.Minute, "baseline", in(loop.PhaseWaiting))
	d := r.loop.Snapshot().Baseline
	c := d.Curve
	if c == nil {
		t.Fatalf("no curve: %s", d.Ceiling.PhysicalReason)
	}
	if n := len(c.Points); n < 30 || n > 50 {
		t.Errorf("%d points", n)
	}
	at := -1
	for i, p := range c.Points {
		if i > 0 && p.Running <= c.Points[i-1].Running {
			t.Errorf("point %d at %v follows %v", i, p.Running, c.Points[i-1].Running)
		}
		if p.Ideal.V < p.Achievable.V || p.Expected <= 0 || p.Expected > p.Ideal.V*(1+1e-9) || p.Lower.V > p.Achievable.V || p.Upper.V > p.Ideal.V*(1+1e-9) {
			t.Errorf("at %.1f requests: ideal %.0f, achievable %.0f, expected %.0f", p.Running, p.Ideal.V, p.Achievable.V, p.Expected)
		}
		if p.Running == c.Now.Running {
			at = i
		}
	}
	if at < 0 {
		t.Fatalf("the measured batch of %v is no point", c.Now.Running)
	}
	if got, want := c.Now.Expected, d.Quantity("generation_tokens_per_s").Value.V; got != want {
		t.Errorf("the point of now is at %v, measured %v", got, want)
	}
	if off := math.Abs(c.Points[at].Expected/c.Now.Expected - 1); off > 0.001 {
		t.Errorf("the calibrated model is %.0f %% off what it was calibrated on", off*100)
	}
	o := d.Ceiling.Physical
	if got, want := c.Now.Ideal.V, o.IdealTokensPerS.V; math.Abs(got/want-1) > 1e-9 {
		t.Errorf("ideal %v at the measured point, the ceiling says %v", got, want)
	}
	if got, want := c.Now.Achievable.V, o.AchievableTokensPerS.V; math.Abs(got/want-1) > 1e-9 {
		t.Errorf("achievable %v at the measured point, the ceiling says %v", got, want)
	}
	if c.Slots.V != 4 || !c.Pool.OK || !c.Ridge.OK || c.Points[len(c.Points)-1].Running < 32 {
		t.Errorf("slots %v, pool %v, ridge %v, up to %v", c.Slots, c.Pool, c.Ridge, c.Points[len(c.Points)-1].Running)
	}
}
