package main

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rooftop-dev/rooftop/engine/loop"
)

// TestTheWholeProgramByItself runs the autopilot, with one key that pauses and one that resumes it:
// it announces a change, makes it, measures it, keeps it, watches it for a while and ends with how
// its prediction compared.
func TestTheWholeProgramByItself(t *testing.T) {
	signalsBegin()
	synctest.Test(t, func(t *testing.T) {
		d := sit(t, 120, 30, func(p *loop.Plan) {
			p.Auto, p.Countdown, p.Limits = true, 10*time.Second, loop.Limits{Restarts: 5}
		})
		must(t, d.host.Start(""))
		before := d.host.Command()
		said := d.until("what is about to be done", 2*time.Minute, func(s *loop.Snapshot) bool { return s.Pending.Text != "" })
		d.shows("autopilot", "--max-num-seqs 16 → ", "pause auto")
		d.transcript.frame("about to be done", d.glass)
		d.press("x")
		d.shows("paused", "no more changes until x is pressed again")
		d.transcript.frame("held", d.glass)
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := d.host.Command(); got != before || len(d.live.Latest().Iterations) > 0 {
			t.Fatalf("held, it changed the server to %s", got)
		}
		d.press("x")
		d.until("the change", time.Minute, func(s *loop.Snapshot) bool { return len(s.Iterations) == 1 })
		d.until("the measurement of it", 2*time.Minute, func(s *loop.Snapshot) bool { return s.Trial != nil && s.Trial.Measured > 0 })
		d.shows("predicted")
		d.everyView("measured")
		kept := d.until("that it is kept", 6*time.Minute, func(s *loop.Snapshot) bool {
			return len(s.Iterations) > 0 && s.Iterations[0].End == loop.IterationKept
		})
		if v := kept.Iterations[0].Delta.Verdict; v == nil || v.Effect.Low <= 0 {
			t.Errorf("kept with %+v", v)
		}
		d.shows("better")
		d.everyView("kept")
		err := <-d.end
		if code := errCode(err); code != 0 {
			t.Errorf("exit code %d (%v), want 0", code, err)
		}
		last := d.last
		if n := last.Finished.Restarts; n > 5 {
			t.Errorf("%d restarts, at most 5 were allowed", n)
		}
		if last.Score.Made == 0 || !strings.Contains(d.stdout.String(), "predictions were within range") {
			t.Errorf("no score of %d predictions in:\n%s", last.Score.Made, d.stdout.String())
		}
		// The configuration at the end is the kept one, whatever was tried before it.
		if last.Launch != last.Kept || !strings.Contains(d.host.Command(), said.Advice.Flag) || d.host.Command() == before {
			t.Errorf("at the end %s runs, kept is %s", d.host.Command(), last.Kept)
		}
		if d.glass.TakenOver() {
			t.Error("the terminal is not as it was")
		}
		d.hold("session-by-itself", true)
		t.Logf("%d bytes to the terminal\n%s", d.glass.Written(), d.stdout.String())
	})
}
