package main

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
)

// TestTheWholeProgramByItself is a run without keys but for one that stops it, and
// one that lets it go on: it says what it is about to do, does it, proves it, keeps
// it, watches it for a while and ends with how well its prediction held.
func TestTheWholeProgramByItself(t *testing.T) {
	signalsBegin()
	synctest.Test(t, func(t *testing.T) {
		d := sit(t, func(p *engine.LoopPlan) {
			p.Auto, p.Countdown, p.Limits = true, 10*time.Second, engine.Limits{Restarts: 5}
		})
		if err := d.host.Start(""); err != nil {
			t.Fatal(err)
		}
		before := d.host.Command()
		said := d.until("what is about to be done", 2*time.Minute, func(s *engine.Snapshot) bool { return s.Pending.Text != "" })
		d.shows("autopilot", "--max-num-seqs 16 → ", "stop it")
		d.press("x")
		d.shows("held", "go on")
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := d.host.Command(); got != before || len(d.live.Latest().Iterations) > 0 {
			t.Fatalf("held, it changed the server to %s", got)
		}
		d.press("x")
		d.until("the change", time.Minute, func(s *engine.Snapshot) bool { return len(s.Iterations) == 1 })
		d.until("the measurement of it", 2*time.Minute, func(s *engine.Snapshot) bool { return s.Trial != nil && s.Trial.Measured > 0 })
		d.shows("predicted")
		kept := d.until("that it is kept", 6*time.Minute, func(s *engine.Snapshot) bool {
			return len(s.Iterations) > 0 && s.Iterations[0].End == engine.IterationKept
		})
		if v := kept.Iterations[0].Delta.Verdict; v == nil || v.Effect.Low <= 0 {
			t.Errorf("kept with %+v", v)
		}
		d.shows("better")
		err := <-d.end
		if code := errCode(err); code != 0 {
			t.Errorf("exit code %d (%v), want 0", code, err)
		}
		last := d.last
		if n := last.Finished.Restarts; n > 5 {
			t.Errorf("%d restarts, at most 5 were allowed", n)
		}
		if last.Score.Made == 0 || !strings.Contains(d.stdout.String(), "predictions held") {
			t.Errorf("no score of %d predictions in:\n%s", last.Score.Made, d.stdout.String())
		}
		// What runs at the end is what is kept, whatever was tried in between.
		if last.Launch != last.Kept || !strings.Contains(d.host.Command(), said.Advice.Flag) || d.host.Command() == before {
			t.Errorf("at the end %s runs, kept is %s", d.host.Command(), last.Kept)
		}
		if d.glass.alternate || d.glass.hidden {
			t.Error("the terminal is not as it was")
		}
		t.Logf("%d bytes to the terminal\n%s", d.glass.written(), d.stdout.String())
	})
}

// A signal while a change is tried puts back what is kept before the run ends.
func TestASignalPutsBackWhatIsNotKept(t *testing.T) {
	signalsBegin()
	synctest.Test(t, func(t *testing.T) {
		d := sit(t, func(p *engine.LoopPlan) { p.Auto = true })
		if err := d.host.Start(""); err != nil {
			t.Fatal(err)
		}
		before := d.host.Command()
		d.until("the measurement of a change", 5*time.Minute, func(s *engine.Snapshot) bool { return s.Phase == engine.PhaseMeasuring })
		if d.host.Command() == before {
			t.Fatal("nothing was changed")
		}
		d.press("q")
		if d.last == nil {
			d.press("y") // it asks during a change
		}
		<-d.end
		if got := d.host.Command(); got != before {
			t.Errorf("left with %s, began with %s", got, before)
		}
	})
}
