package engine_test

import (
	"strings"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
)

// begins is the time of day at which the rig's runs begin.
const begins = 14*time.Hour + 13*time.Minute + 20*time.Second

// until are hours that end some time after the run began; they are from 13:00.
func until(after time.Duration) func(*engine.LoopPlan) {
	return func(p *engine.LoopPlan) { p.Limits.From, p.Limits.To = 13*time.Hour, begins+after }
}

// wholeChange is what a change takes where its start is not known: two starts, half a
// minute to settle, and the longest measurement.
const wholeChange = 2*5*time.Second + 30*time.Second + engine.LoopLongest

// TestAChangeBeginsOnlyWhereTheHoursHoldIt has the hours end soon after the baseline.
func TestAChangeBeginsOnlyWhereTheHoursHoldIt(t *testing.T) {
	const baseline = 21 * time.Second
	for _, c := range []struct {
		name      string
		left      time.Duration // of the hours, once the baseline is there
		countdown time.Duration
		starts    int
		says      string
	}{
		{"they hold it", wholeChange + 5*time.Second, 0, 1, ""},
		{"they do not", wholeChange - 5*time.Second, 0, 0, "waiting for 13:00: restarts are allowed between 13:00 and 14:19, and what is left of that holds no change"},
		{"the countdown takes what is missing", wholeChange + 5*time.Second, 10 * time.Second, 0, "waiting for 13:00"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := autoRun(t, until(baseline+c.left), func(p *engine.LoopPlan) { p.Countdown = c.countdown })
			r.run(time.Minute)
			s := r.loop.Snapshot()
			if r.starts != c.starts || !strings.Contains(s.Progress.Text, c.says) {
				r.dump()
				t.Errorf("%d starts; %q, want %q", r.starts, s.Progress.Text, c.says)
			}
		})
	}
}

// TestHoursThatNeverHoldAChange ends a run that would wait for ever.
func TestHoursThatNeverHoldAChange(t *testing.T) {
	r := autoRun(t, func(p *engine.LoopPlan) { p.Limits.From, p.Limits.To = 22*time.Hour, 22*time.Hour+5*time.Minute })
	f := r.ends(10 * time.Minute)
	if f.ExitCode != 3 || r.starts > 0 || !strings.Contains(plain(f.Reason), "from 22:00 to 22:05 there is no time for a change: its start, its measurement and its way back take up to 5 min 40 s") {
		t.Errorf("%d starts, exit %d: %s", r.starts, f.ExitCode, f.Reason)
	}
}

// TestWhenTheHoursEndWhatIsNotProvenIsPutBack has the hours end while a change is in
// place, which took longer than was known.
func TestWhenTheHoursEndWhatIsNotProvenIsPutBack(t *testing.T) {
	for _, c := range []struct {
		name  string
		end   time.Duration // of the hours, since the run began
		start time.Duration // that the change takes
		at    engine.Phase  // what the run is at when they end
	}{
		{"while it starts", 7 * time.Minute, 8 * time.Minute, engine.PhaseApplying},
		{"while it settles", 7 * time.Minute, 395 * time.Second, engine.PhaseSettling},
		{"while it is measured", 7 * time.Minute, 375 * time.Second, engine.PhaseMeasuring},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := autoRun(t, until(c.end))
			r.slow(3*time.Second, c.start)
			r.run(c.end - time.Second)
			if s := r.loop.Snapshot(); s.Phase != c.at || r.done != nil {
				r.dump()
				t.Fatalf("phase %d, want %d", s.Phase, c.at)
			}
			back := func(*engine.Snapshot) bool { return r.apply != nil && r.apply.Revert }
			r.wait(max(0, c.start+21*time.Second-c.end)+3*time.Second, "the way back", back)
			r.wait(2*time.Minute, "waiting", func(s *engine.Snapshot) bool { return strings.Contains(s.Progress.Text, "waiting for 13:00") })
			r.atRest("--max-num-seqs 4")
			if it := r.last(); it.Delta != nil || it.End != engine.IterationBroken || it.Failure != "" {
				t.Errorf("%q, %q, judged %v: it may be tried again", it.End, it.Failure, it.Delta != nil)
			}
			if !r.said("putting back: --max-num-seqs 32 → 4 (it is past 14:20, and what is not proven does not stay until 13:00)") {
				r.dump()
				t.Error("why it is put back is not said")
			}
		})
	}
}

// TestWhatIsNotProvenDoesNotWaitForTheNextHours has noise hide what a change brings,
// and no time be left for another.
func TestWhatIsNotProvenDoesNotWaitForTheNextHours(t *testing.T) {
	r := newRig(t, "--max-num-seqs 4", auto, until(21*time.Second+wholeChange+5*time.Second))
	r.server.limit = 200
	r.step(engine.Begin{})
	r.wait(3*time.Minute, "verdict", func(s *engine.Snapshot) bool { return len(s.Iterations) == 1 && s.Iterations[0].Delta != nil })
	r.run(10 * time.Second)
	r.atRest("--max-num-seqs 4")
	if r.starts != 2 || !r.said("what is left of the hours holds no other change") {
		r.dump()
		t.Errorf("%d starts", r.starts)
	}
}

// TestWhatSomebodyElseStartedIsLeftOutsideTheHours has a person restart the server
// while rooftop may not: it is measured first, and then put back as it is worse.
func TestWhatSomebodyElseStartedIsLeftOutsideTheHours(t *testing.T) {
	r := autoRun(t, until(10*time.Second))
	r.wait(time.Minute, "waiting", in(engine.PhaseWaiting))
	r.restart("--max-num-seqs 2", 3*time.Second)
	r.wait(time.Minute, "measuring", in(engine.PhaseMeasuring))
	r.run(10 * time.Second)
	if r.starts > 0 || r.apply != nil {
		r.dump()
		t.Error("it was put back unmeasured")
	}
	r.wait(time.Minute, "put back", func(*engine.Snapshot) bool { return r.starts == 1 })
	if r.last().Delta == nil || !r.said("(a way back is made outside the hours too)") {
		r.dump()
		t.Error("not said that it is outside the hours")
	}
}
