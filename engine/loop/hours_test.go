package loop_test

import (
	"strings"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/engine/loop"
	"github.com/rooftop-dev/rooftop/engine/verdict"
)

// begins is the time of day at which the runs of the rig begin.
const begins = 14*time.Hour + 13*time.Minute + 20*time.Second

// until returns hours from 13:00 to some time after the run began.
func until(after time.Duration) func(*loop.Plan) {
	return func(p *loop.Plan) { p.Limits.From, p.Limits.To = 13*time.Hour, begins+after }
}

// firstChange is when an automatic run makes its first change: the baseline outlasts a burst, and two windows
// are left out of it.
const firstChange = verdict.LongestBurst + 5*time.Second

// wholeChange is the duration of a change whose start time is unknown: two starts, half a minute to
// settle, and the longest measurement.
const wholeChange = 2*5*time.Second + 30*time.Second + loop.DefaultLongest

// TestAChangeBeginsOnlyWhereTheHoursHoldIt has the hours end soon after the baseline.
func TestAChangeBeginsOnlyWhereTheHoursHoldIt(t *testing.T) {
	for _, c := range []struct {
		name      string
		left      time.Duration // remaining hours once the baseline is complete
		countdown time.Duration
		starts    int
		says      string
	}{
		{"they hold it", wholeChange + 5*time.Second, 0, 1, ""},
		{"they do not", wholeChange - 5*time.Second, 0, 0, "waiting for 13:00: restarts are allowed between 13:00 and 14:19, and the remaining time is too short for a change"},
		{"the countdown takes what is missing", wholeChange + 5*time.Second, 10 * time.Second, 0, "waiting for 13:00"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := autoRun(t, until(firstChange+c.left), func(p *loop.Plan) { p.Countdown = c.countdown })
			r.run(time.Minute)
			s := r.loop.Snapshot()
			if r.starts != c.starts || !strings.Contains(s.Progress.Text, c.says) {
				r.dump()
				t.Errorf("%d starts; %q, want %q", r.starts, s.Progress.Text, c.says)
			}
		})
	}
}

// TestHoursThatNeverHoldAChange checks that a run ends instead of waiting forever.
func TestHoursThatNeverHoldAChange(t *testing.T) {
	r := autoRun(t, func(p *loop.Plan) { p.Limits.From, p.Limits.To = 22*time.Hour, 22*time.Hour+5*time.Minute })
	f := r.ends(10 * time.Minute)
	if f.ExitCode != 3 || r.starts > 0 || !strings.Contains(plain(f.Reason), "the hours from 22:00 to 22:05 are too short for a change: its start, its measurement and a revert take up to 5 min 40 s") {
		t.Errorf("%d starts, exit %d: %s", r.starts, f.ExitCode, f.Reason)
	}
}

// TestWhenTheHoursEndWhatIsNotProvenIsPutBack has the hours end while a change is in place that took
// longer than expected.
func TestWhenTheHoursEndWhatIsNotProvenIsPutBack(t *testing.T) {
	for _, c := range []struct {
		name  string
		end   time.Duration // end of the hours, since the run began
		start time.Duration // duration of the change's start
		at    loop.Phase    // phase when the hours end
	}{
		{"while it starts", 7 * time.Minute, 8 * time.Minute, loop.PhaseApplying},
		{"while it settles", 7 * time.Minute, 371 * time.Second, loop.PhaseSettling},
		{"while it is measured", 7 * time.Minute, 351 * time.Second, loop.PhaseMeasuring},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := autoRun(t, until(c.end))
			r.slow(3*time.Second, c.start)
			r.run(c.end - time.Second)
			if s := r.loop.Snapshot(); s.Phase != c.at || r.done != nil {
				r.dump()
				t.Fatalf("phase %d, want %d", s.Phase, c.at)
			}
			back := func(*loop.Snapshot) bool { return r.apply != nil && r.apply.Revert }
			r.wait(max(0, c.start+firstChange-c.end)+3*time.Second, "the way back", back)
			r.wait(2*time.Minute, "waiting", func(s *loop.Snapshot) bool { return strings.Contains(s.Progress.Text, "waiting for 13:00") })
			r.atRest("--max-num-seqs 4")
			if it := r.last(); it.Delta != nil || it.End != loop.IterationBroken || it.Failure != "" {
				t.Errorf("%q, %q, judged %v: it may be tried again", it.End, it.Failure, it.Delta != nil)
			}
			if !r.said("reverting: --max-num-seqs 32 → 4 (it is past 14:20, and an unproven change does not stay until 13:00)") {
				r.dump()
				t.Error("why it is put back is not said")
			}
		})
	}
}

// TestWhatIsNotProvenDoesNotWaitForTheNextHours has a change whose effect is below the noise, and no
// time for another one.
func TestWhatIsNotProvenDoesNotWaitForTheNextHours(t *testing.T) {
	r := newRig(t, "--max-num-seqs 4", auto, until(firstChange+wholeChange+5*time.Second))
	r.server.limit = 212
	r.step(loop.Begin{})
	r.wait(3*time.Minute, "verdict", func(s *loop.Snapshot) bool { return len(s.Iterations) == 1 && s.Iterations[0].Delta != nil })
	r.run(10 * time.Second)
	r.atRest("--max-num-seqs 4")
	if r.starts != 2 || !r.said("the remaining hours are too short for another change") {
		r.dump()
		t.Errorf("%d starts", r.starts)
	}
}

// TestWhatSomebodyElseStartedIsLeftOutsideTheHours has a person restart the server outside the hours.
// The change is measured first, and then reverted as it is worse.
func TestWhatSomebodyElseStartedIsLeftOutsideTheHours(t *testing.T) {
	r := autoRun(t, until(10*time.Second))
	r.wait(time.Minute, "waiting", in(loop.PhaseWaiting))
	r.restart("--max-num-seqs 2", 3*time.Second)
	r.wait(time.Minute, "measuring", in(loop.PhaseMeasuring))
	r.run(10 * time.Second)
	if r.starts > 0 || r.apply != nil {
		r.dump()
		t.Error("it was put back unmeasured")
	}
	r.wait(time.Minute, "put back", func(*loop.Snapshot) bool { return r.starts == 1 })
	if r.last().Delta == nil || !r.said("(reverts are made outside the hours too)") {
		r.dump()
		t.Error("not said that it is outside the hours")
	}
}
