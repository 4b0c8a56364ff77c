package tui

import (
	"strings"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/tui/screentest"

	"github.com/rooftop-dev/rooftop/engine/loop"
	"github.com/rooftop-dev/rooftop/tui/frame"
	"github.com/rooftop-dev/rooftop/tui/lines"
)

// A very wide interval leaves room for the prediction; other intervals are shown in full.
func TestVagueIntervalsAreCut(t *testing.T) {
	band := lines.Stretch{Low: 0.99, High: 5.33}
	for _, c := range []struct {
		interval lines.Stretch
		mid      float64
		band     lines.Stretch
		high     float64
	}{
		{lines.Stretch{Low: -0.92, High: 224.26}, 3.17, band, 4 * 5.33},
		{lines.Stretch{Low: 1.48, High: 7.17}, 3.5, band, 7.17},
		{lines.Stretch{Low: -0.3, High: 0.9}, 0.001, lines.EmptyStretch(), 0.9},
		{lines.Stretch{Low: -0.9, High: 30}, 0.5, lines.EmptyStretch(), 2},
	} {
		if got := within(c.interval, c.mid, c.band); got.High != c.high || got.Low != c.interval.Low {
			t.Errorf("%v about %g is shown as %v, want up to %g", c.interval, c.mid, got, c.high)
		}
	}
	if got := within(lines.EmptyStretch(), 0, band); got.Low <= got.High {
		t.Errorf("nothing is shown as %v", got)
	}
}

// A user who looks at a running autopilot sees that it decides, what comes next and when, and the
// key that stops it, without colours and at any size.
func TestWalkingUpToAnAutopilot(t *testing.T) {
	for _, c := range []struct {
		state string
		want  []string // at 80x24
		small []string // at 40x10
	}{
		{"trial", []string{"AUTO", "look 2 of 7", "output +86 % (+70 to +105 %)", "predicted +71 to +97 %", "Look 3 of 7 in 8 s, the last in 2 min 43 s", "x pause auto"}, []string{"AUTO", "+86 % (+70 to +105 %)"}},
		{"countdown", []string{"AUTO", "autopilot acts in 8 s", "In 8 s: restart with --max-num-seqs 16 → 40", "[x] pause", "1 of 5 restarts, 22 s of 10 min down"}, []string{"In 8 s: restart with --max-num-seqs 16 → 40", "x pauses"}},
		{"held", []string{"AUTO PAUSED", "▲ PAUSED", "No more changes until you resume.", "[x] resume", "x resume"}, []string{"paused", "x resumes"}},
		{"lost", []string{"WORSE", "−73 % (−77 to −69 %)", "outside", "In 3 s: revert to the kept configuration"}, nil},
		{"plateau", []string{"PLATEAU", "+0.4 % (−1.2 to +2.1 %)", "within 3 %"}, nil},
		{"inconclusive", []string{"INCONCLUSIVE", "+4.1 % (−2.1 to +11 %)", "starts of one configuration differ by as much"}, nil},
		{"incomparable", []string{"NOT COMPARABLE", "but the load differs (prompt tokens +31 %): that may be all", "9 of 12 answers are the same"}, nil},
		{"failed", []string{"FAILED", "out of memory; what was kept is back", "The server was down for 2 min 11 s."}, []string{"In 10 s"}},
		{"better", []string{"BETTER", "no queue is left: it may be more", "objective: itl_p99 27.1 ms, limit 30.0 ms: not sure", "unresolved"}, nil},
		{"done", []string{"Output +288 % (+271 to +307 %) over the whole run, in 2 restarts, 42 s down.", "3 of 4 predictions"}, nil},
	} {
		t.Run(c.state, func(t *testing.T) {
			for _, size := range [][2]int{{80, 24}, {40, 10}} {
				want := c.want
				if size[0] < 80 {
					want = c.small
				}
				text := plainFrame(snapshotNamed(t, c.state), plainLook(), size[0], size[1])
				flat := strings.Join(strings.Fields(text), " ")
				for _, w := range want {
					if !strings.Contains(flat, w) {
						t.Errorf("at %dx%d no %q in\n%s", size[0], size[1], w, text)
					}
				}
			}
		})
	}
}

// Quitting an autopilot during a change keeps the screen until the kept configuration is restored.
func TestQuitPutsBackFirst(t *testing.T) {
	s := *snapshotNamed(t, "trial")
	m, feed, controls := testModel(&s, frame.Options{})
	if cmd := press(m, "q y"); screentest.IsQuit(cmd) || len(controls.done) != 1 || controls.done[0] != loop.CommandQuit {
		t.Fatalf("did %v, quit %v", controls.done, screentest.IsQuit(cmd))
	}
	next := s
	next.Seq, next.Phase, next.Now = s.Seq+1, loop.PhaseDone, s.Now+20*time.Second
	next.Finished = &loop.Finished{Reason: "ended by you; what was kept is back"}
	feed.s = &next
	if _, cmd := m.Update(frame.Tick{Beat: m.Beat}); !screentest.IsQuit(cmd) {
		t.Error("it does not end when the run has")
	}
	waiting, _, _ := testModel(snapshotNamed(t, "countdown"), frame.Options{})
	if !screentest.IsQuit(press(waiting, "q")) {
		t.Error("nothing is on trial, and it does not quit")
	}
	folded := *snapshotNamed(t, "plateau") // what gained nothing runs still
	folded.RevertsFirst = true
	off, _, _ := testModel(&folded, frame.Options{})
	if screentest.IsQuit(press(off, "q")) || off.Settings.Over != frame.OverlayAsk {
		t.Error("what is not kept runs, and it quits without a word")
	}
}

// The first ctrl+c ends such a run in order, too; the second leaves the screen.
func TestCtrlCPutsBackFirst(t *testing.T) {
	m, _, controls := testModel(snapshotNamed(t, "trial"), frame.Options{})
	if cmd := press(m, "ctrl+c"); screentest.IsQuit(cmd) || len(controls.done) != 1 {
		t.Errorf("the first: quit %t, %v", screentest.IsQuit(cmd), controls.done)
	}
	if cmd := press(m, "ctrl+c"); !screentest.IsQuit(cmd) || len(controls.done) != 2 {
		t.Errorf("the second: quit %t, %v", screentest.IsQuit(cmd), controls.done)
	}
}
