package loop_test

import (
	"cmp"
	"strings"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/loop"
	"github.com/rooftop-dev/rooftop/engine/verdict"
)

// canaryGroup is the canary of a rig and the servers beside it.
type canaryGroup struct {
	asked, ends time.Duration // when it was asked for, and when it is gone; 0 is neither
	starts      int
	pods        []*fake     // the canary first; nil while there is none
	clients     float64     // of each; 0 is as many as the server has
	becomes     func(*fake) // makes the canary what it is in a test
	fails       string      // why it does not start
	itself      bool        // it fails by its change
	left        string      // why it cannot be removed
}

// canary starts, reads and ends the canary that the loop asked for.
func (r *rig) canary() {
	g := &r.group
	switch {
	case g.asked > 0 && r.now >= g.asked+3*time.Second && g.fails != "":
		g.asked = 0
		r.step(loop.CanaryEnded{Err: g.fails, Failed: g.itself})
	case g.asked > 0 && r.now >= g.asked+3*time.Second:
		g.asked = 0
		for i := range 4 {
			pod := &fake{args: r.kept, started: 1_790_000_000 + float64(100*i), clients: r.server.clients, prompt: 200, output: 100, last: r.now}
			pod.clients = cmp.Or(g.clients, pod.clients)
			pod.reset()
			g.pods = append(g.pods, pod)
		}
		g.pods[0].args = loop.CommandWithChanges(r.kept, r.last().Changes...)
		if g.becomes != nil {
			g.becomes(g.pods[0])
		}
		r.step(loop.CanaryStarted{Name: "pod a", Others: 3})
	case g.ends > 0 && r.now >= g.ends:
		g.ends, g.pods = 0, nil
		r.step(loop.CanaryEnded{Err: g.left, Left: g.left != ""})
	case r.now%(2*engine.PollInterval) == 0:
		for i, pod := range g.pods {
			s := &engine.Sample{T: r.now, Page: pod.page(r.now, r.random), Health: &engine.Health{T: r.now, State: engine.HealthOK}}
			if pod.dead {
				s.Health = &engine.Health{T: r.now, State: engine.HealthFailed, Why: "/health answers 503"}
			}
			r.step(loop.CanarySampled{Server: i, Sample: s})
		}
	}
}

// withCanary tries each change on a canary first.
func withCanary(p *loop.Plan) { p.Canary = true }

func TestCanaryThatIsBetter(t *testing.T) {
	r := autoRun(t, withCanary)
	f := r.ends(30 * time.Minute)
	r.atRest("--max-num-seqs 32")
	it := r.loop.Snapshot().Iterations[0]
	if f.ExitCode != 0 || it.End != loop.IterationKept || !strings.Contains(it.Beside, "as a canary beside 3 others: output +") || r.group.starts != 1 || r.starts != 1 {
		r.errorf("exit %d, %q, %q, %d canaries, %d starts", f.ExitCode, it.End, it.Beside, r.group.starts, r.starts)
	}
}

// TestWhatACanaryDecides has the change made to all after a canary that was better: what the load hides there
// is kept, and what is seen to bring nothing is not.
func TestWhatACanaryDecides(t *testing.T) {
	for _, c := range []struct {
		name  string
		lives func(*fake)
		is    verdict.Direction
		kept  bool
	}{
		{"fewer clients", func(f *fake) { f.clients = 2 }, verdict.NotComparable, true},
		{"as fast as four slots were", func(f *fake) { f.limit = 193 }, verdict.Plateau, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := autoRun(t, withCanary)
			r.lives = func(string) { c.lives(r.server) }
			f := r.ends(60 * time.Minute)
			it := r.loop.Snapshot().Iterations[0]
			if (it.End == loop.IterationKept) != c.kept || it.Delta.Direction != c.is || !strings.Contains(it.Delta.Reason, "as a canary") {
				r.errorf("exit %d, %q: %+v", f.ExitCode, it.End, it.Delta)
			}
		})
	}
}

// TestCanaryWhileThingsChange checks that the change is not made to all although the canary is better.
func TestCanaryWhileThingsChange(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(*rig)
		said string
		kept string
	}{
		{"the autopilot is paused", func(r *rig) { r.press(loop.CommandHold) }, "not made to all: the autopilot is paused", "--max-num-seqs 4"},
		{"ended by hand", func(r *rig) { r.press(loop.CommandRevert); r.press(loop.CommandHold) }, "the canary was ended by hand", "--max-num-seqs 4"},
		{"the server was restarted", func(r *rig) { r.restart("--max-num-seqs 4", 3*time.Second); r.press(loop.CommandHold) }, "restarted while the canary was measured", "--max-num-seqs 4"},
		{"someone else changed it", func(r *rig) { r.restart("--max-num-seqs 8", 3*time.Second); r.press(loop.CommandHold) }, "you changed something else: --max-num-seqs 4 → 8", "--max-num-seqs 8"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := autoRun(t, withCanary)
			r.wait(2*time.Minute, "canary", in(loop.PhaseCanary))
			r.run(10 * time.Second)
			c.do(r)
			r.run(10 * time.Minute)
			if !r.said(c.said) || r.starts != 0 || r.server.args != serve+" "+c.kept || r.done != nil || len(r.group.pods) > 0 {
				r.errorf("%d starts of %q, %+v, %d pods", r.starts, r.server.args, r.done, len(r.group.pods))
			}
		})
	}
}

func TestCanaryThatIsNotMadeToAll(t *testing.T) {
	for _, c := range []struct {
		name  string
		group canaryGroup
		end   loop.IterationEnd
		said  string
	}{
		{"worse", canaryGroup{becomes: func(f *fake) { f.limit = 90 }}, loop.IterationReverted, "worse: as a canary beside 3 others: output −"},
		{"no requests", canaryGroup{becomes: func(f *fake) { f.clients = 0 }}, loop.IterationReverted, "no requests reached the canary within"},
		{"hung", canaryGroup{becomes: func(f *fake) { f.frozen = true }}, loop.IterationBroken, "the canary cannot be compared: the engine is hung"},
		{"dead", canaryGroup{becomes: func(f *fake) { f.dead = true }}, loop.IterationBroken, "the canary cannot be compared: the engine is dead"},
		{"has no room", canaryGroup{fails: "no node has room for one more pod"}, loop.IterationReverted, "no node has room for one more pod"},
		{"does not start", canaryGroup{fails: "CUDA out of memory", itself: true}, loop.IterationBroken, "the server failed with --max-num-seqs 4 → 32"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := autoRun(t, withCanary)
			r.group = c.group
			f := r.ends(60 * time.Minute)
			r.atRest("--max-num-seqs 4")
			it := r.loop.Snapshot().Iterations[0]
			if it.End != c.end || !r.said(c.said) || r.starts != 0 || f.Downtime != 0 || f.Gain.OK {
				r.errorf("%q, %d starts, down %v, gain %v", it.End, r.starts, f.Downtime, f.Gain)
			}
		})
	}
}

// TestCanaryThatAnswersAllThatItIsSent has no queue on any of the servers: that they make as much of what they
// are sent is not a verdict on the change.
func TestCanaryThatAnswersAllThatItIsSent(t *testing.T) {
	r := autoRun(t, withCanary, func(p *loop.Plan) { p.Precision = 0.2 })
	r.group.clients = 3
	r.ends(30 * time.Minute)
	it := r.loop.Snapshot().Iterations[0]
	if it.Delta == nil || it.Delta.Direction != verdict.Inconclusive || !r.said("it answered every request that it was sent, so the output could not be higher") {
		r.errorf("%+v", it.Delta)
	}
}

func TestCanaryThatIsLeft(t *testing.T) {
	r := autoRun(t, withCanary)
	r.group.left = "the API server does not answer"
	f := r.ends(30 * time.Minute)
	if f.ExitCode != 1 || !strings.Contains(f.Reason, "the canary could not be removed: the API server does not answer") || r.starts != 0 {
		r.errorf("exit %d: %s", f.ExitCode, f.Reason)
	}
}

// TestQuitDuringACanary ends the run at once: who started the canary removes it.
func TestQuitDuringACanary(t *testing.T) {
	r := autoRun(t, withCanary)
	r.wait(2*time.Minute, "canary", in(loop.PhaseCanary))
	r.run(20 * time.Second)
	if s := r.loop.Snapshot(); s.Trial == nil || s.Trial.Measured == 0 || !strings.Contains(s.Progress.Text, "beside 3 others") {
		t.Errorf("%+v, %q", s.Trial, s.Progress.Text)
	}
	r.step(loop.Pressed{Command: loop.CommandQuit})
	if r.done == nil || r.starts != 0 {
		r.errorf("%+v, %d starts", r.done, r.starts)
	}
}
