package loop_test

import (
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/engine/loop"
)

// timed is an input with its time.
type timed struct {
	at time.Duration
	in loop.Input
}

// hour records an hour of a server, four samples a second, with five restarts: as recommended, with
// too few slots and reverted, with the same settings, and with a flag without a gain.
func hour(t testing.TB) *rig {
	r := newRig(t, "--max-num-seqs 4")
	r.record, r.server.gpu = true, "A100-PCIE-40GB"
	restart := map[time.Duration]string{
		5 * time.Minute: "--max-num-seqs 32", 15 * time.Minute: "--max-num-seqs 2", 25 * time.Minute: "--max-num-seqs 32",
		35 * time.Minute: "--max-num-seqs 32", 40 * time.Minute: "--max-num-seqs 32 --block-size 32", 50 * time.Minute: "--max-num-seqs 16",
	}
	r.step(loop.Begin{})
	for r.now < time.Hour {
		r.run(250 * time.Millisecond)
		if args, ok := restart[r.now]; ok {
			r.restart(args, 20*time.Second)
		}
		if r.loop.Snapshot().Phase == loop.PhaseWorse && r.now > 24*time.Minute && r.now < 25*time.Minute {
			r.press(loop.CommandRevert)
		}
	}
	return r
}

func replayed(inputs []timed, p loop.Plan) *loop.Snapshot {
	l := loop.New(p)
	for _, in := range inputs {
		l.Step(in.at, in.in)
		_ = l.Snapshot()
	}
	return l.Snapshot()
}

func plan(t testing.TB) loop.Plan { return newRig(t, "").plan }

func TestAnHour(t *testing.T) {
	s := hour(t).loop.Snapshot()
	var ends []loop.IterationEnd
	for _, it := range s.Iterations {
		ends = append(ends, it.End)
	}
	want := []loop.IterationEnd{loop.IterationKept, loop.IterationReverted, loop.IterationNoise, loop.IterationNoGain, loop.IterationOpen}
	if len(ends) != len(want) {
		t.Fatalf("ends %q, want %q", ends, want)
	}
	for i := range want[:4] {
		if ends[i] != want[i] {
			t.Errorf("iteration %d ends %q, want %q", i+1, ends[i], want[i])
		}
	}
	if len(s.Points) < 1700 || len(s.Points) > 1800 {
		t.Errorf("%d points", len(s.Points))
	}
}

// BenchmarkLoopHour measures the loop over an hour of samples with five changes.
func BenchmarkLoopHour(b *testing.B) {
	inputs, p := hour(b).recorded, plan(b)
	b.ReportAllocs()
	for b.Loop() {
		replayed(inputs, p)
	}
}
