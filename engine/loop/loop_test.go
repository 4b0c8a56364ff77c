package loop_test

import (
	"strings"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/engine/loop"
)

func waiting(r *rig) { r.t.Helper(); r.wait(2*time.Minute, "waiting", in(loop.PhaseWaiting)) }

func TestADeadServer(t *testing.T) {
	r := ready(t, "--max-num-seqs 4")
	r.server.down = true
	r.run(time.Hour)
	s := r.loop.Snapshot()
	if s.Phase != loop.PhaseDown || s.Advice == nil || s.Sources[0].State != loop.SourceFailing || s.Sources[0].Failures < 10_000 {
		t.Errorf("phase %d, %+v", s.Phase, s.Sources[0])
	}
	if len(s.Journal) > 20 {
		t.Errorf("%d entries of one death", len(s.Journal))
	}
	r.step(loop.Pressed{Command: loop.CommandQuit})
	if r.done == nil || r.done.ExitCode != 5 {
		t.Errorf("finished %+v", r.done)
	}
}

func TestNoServerYet(t *testing.T) {
	r := newRig(t, "")
	r.server.down = true
	r.step(loop.Begin{})
	r.run(time.Minute)
	s := r.loop.Snapshot()
	if s.Phase != loop.PhaseAttach || s.AttachWhy != "connection refused" || len(s.Journal) != 1 {
		t.Errorf("phase %d, %q, %d entries", s.Phase, s.AttachWhy, len(s.Journal))
	}
	r.server.down = false
	r.wait(3*time.Second, "attached", in(loop.PhaseBaseline))
	if s := r.loop.Snapshot(); s.AttachWhy != "" {
		t.Errorf("%q", s.AttachWhy)
	}
}

func TestAnIdleServerIsNotJudged(t *testing.T) {
	r := newRig(t, "--max-num-seqs 4")
	r.server.clients = 0
	r.step(loop.Begin{})
	r.run(10 * time.Minute)
	s := r.loop.Snapshot()
	if s.Phase != loop.PhaseBaseline || s.Baseline != nil || !strings.Contains(s.Progress.Text, "load") || s.Quiet == "" || s.Advice != nil {
		t.Errorf("phase %d, %q, quiet %q", s.Phase, s.Progress.Text, s.Quiet)
	}
	r.server.clients = 32
	r.wait(25*time.Second, "baseline", in(loop.PhaseWaiting))
	b := r.loop.Snapshot().Baseline
	if got := b.Quantity("running_mean").Value.V; got < 3.5 {
		t.Errorf("running %.1f: idle windows are part of the baseline", got)
	}
}

func TestLoadThatDoesNotComeBackIsWaitedFor(t *testing.T) {
	r := ready(t, "--max-num-seqs 4")
	r.server.clients = 0
	r.restart("--max-num-seqs 32", 5*time.Second)
	r.run(10 * time.Minute)
	s := r.loop.Snapshot()
	if s.Phase != loop.PhaseSettling || !strings.Contains(s.Progress.Text, "load") || s.Progress.Total != 0 {
		t.Errorf("phase %d, %q", s.Phase, s.Progress.Text)
	}
	r.server.clients = 32
	r.wait(50*time.Second, "verdict", in(loop.PhaseWaiting))
	r.expect(loop.AsRecommended, loop.IterationKept, "")
}

func TestLoadThatChangedIsPointedOut(t *testing.T) {
	r := ready(t, "--max-num-seqs 64")
	r.server.clients, r.server.output = 16, 300
	r.restart("--max-num-seqs 128", 5*time.Second)
	r.wait(12*time.Minute, "verdict", func(s *loop.Snapshot) bool { return len(s.Iterations) == 1 && s.Iterations[0].Delta != nil })
	load := strings.Join(r.last().Load, "; ")
	for _, want := range []string{"outputs 100 tok → 300 tok", "requests in 32 → 16"} {
		if !strings.Contains(strings.ReplaceAll(load, "\u00a0", " "), want) {
			t.Errorf("load %q lacks %q", load, want)
		}
	}
}

func TestSourcesTellHowTheyAre(t *testing.T) {
	r := ready(t, "--max-num-seqs 4")
	state := func(i int) loop.SourceState { return r.loop.Snapshot().Sources[i] }
	if s := state(0); s.State != loop.SourceFresh || s.Interval != 250*time.Millisecond || s.Took == 0 {
		t.Errorf("%+v", s)
	}
	if s := state(1); s.State != loop.SourceAbsent || s.Why != "no GPU" {
		t.Errorf("%+v", s)
	}
	r.step(loop.Observed{Processes: []loop.Process{{PID: 1}}})
	if s := state(2); s.State != loop.SourceFresh {
		t.Errorf("%+v", s)
	}
	r.now += 10 * time.Second
	r.step(loop.Ticked{})
	if a, b := state(0), state(2); a.State != loop.SourceLate || b.State != loop.SourceLate {
		t.Errorf("%+v, %+v", a, b)
	}
	r.step(loop.Observed{Err: "no permission"})
	if s := state(2); s.State != loop.SourceFailing || s.Failures != 1 || s.Why != "no permission" {
		t.Errorf("%+v", s)
	}
}

func TestAServerThatReportsNothing(t *testing.T) {
	r := newRig(t, "--max-num-seqs 4")
	r.server.mute = true
	r.step(loop.Begin{})
	r.run(2 * time.Minute)
	s := r.loop.Snapshot()
	if s.Phase != loop.PhaseBaseline || !strings.Contains(s.Progress.Text, "running gauge") || !strings.Contains(s.Quiet, "running gauge") {
		t.Errorf("phase %d, %q, quiet %q", s.Phase, s.Progress.Text, s.Quiet)
	}
	r.press(loop.CommandQuit)
	if r.done.ExitCode != 4 {
		t.Errorf("finished %+v", r.done)
	}
}

func TestABurstyLoadIsMeasured(t *testing.T) {
	r := newRig(t, "--max-num-seqs 4")
	bursts := func(d time.Duration, end func(*loop.Snapshot) bool) bool {
		for at := time.Duration(0); at < d; at += 250 * time.Millisecond {
			r.server.clients = 0
			if at%(10*time.Second) < 4*time.Second {
				r.server.clients = 8
			}
			r.run(250 * time.Millisecond)
			if end(r.loop.Snapshot()) {
				return true
			}
		}
		return false
	}
	r.step(loop.Begin{})
	if !bursts(2*time.Minute, in(loop.PhaseWaiting)) {
		t.Fatalf("no baseline: %q", r.loop.Snapshot().Progress.Text)
	}
	r.restart("--max-num-seqs 8", 5*time.Second)
	if !bursts(12*time.Minute, func(s *loop.Snapshot) bool { return len(s.Iterations) == 1 && s.Iterations[0].Delta != nil }) {
		r.fatalf("no verdict: %q", r.loop.Snapshot().Progress.Text)
	}
}

// TestThePredictionIsReportedBeforeTheChange reads the events of a run like a script.
func TestThePredictionIsReportedBeforeTheChange(t *testing.T) {
	r := ready(t, "--max-num-seqs 4")
	r.restart("--max-num-seqs 32", 5*time.Second)
	r.run(20 * time.Second)
	waiting(r)
	var kinds []string
	for _, e := range r.events {
		if e.Kind != loop.EventWindow {
			kinds = append(kinds, string(e.Kind))
		}
		if e.Kind == loop.EventRecommendation && e.Iteration == 1 && (e.Advice == nil || len(e.Advice.Predicted) == 0) {
			t.Error("the recommendation predicts nothing")
		}
	}
	want := "attached measured diagnosis recommendation server-down server-up settling trial measured diagnosis verdict kept recommendation"
	if got := strings.Join(kinds, " "); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
