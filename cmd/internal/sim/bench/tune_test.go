package bench

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/session"
	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/settings"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/launch"
	"github.com/rooftop-dev/rooftop/engine/loop"
	"github.com/rooftop-dev/rooftop/rules"
)

// Tuned is the result of an automatic run on a simulated server.
type Tuned struct {
	Finished   loop.Finished
	Iterations []loop.Iteration
	Journal    []loop.Entry
	Took       time.Duration // virtual
}

// longestTuning is the virtual time after which an automatic run counts as endless.
const longestTuning = 6 * time.Hour

// Tune runs an automatic loop on the server of a scenario in virtual time, to its end. The plan's Auto,
// CanApply and Rules are set. The error is the server's refusal to start, or a run that does not end.
func Tune(sc *settings.Scenario, plan loop.Plan, o Options) (Tuned, error) {
	command, err := launch.Parse(strings.Fields(sc.Server), nil, nil)
	if err != nil {
		return Tuned{}, err
	}
	plan.Auto, plan.CanApply, plan.Rules, plan.Version = true, true, rules.All(), version
	plan.Started, plan.Watch = epoch, "http://127.0.0.1:8000"
	t := &tuning{sc: sc, seed: o.Seed, world: NewWorld(), loop: loop.New(plan), kept: command}
	if err := t.start(command); err != nil {
		return Tuned{}, err
	}
	healthy, _ := t.world.Healthy()
	for i := range sc.Load {
		if err := t.world.Offer(&sc.Load[i], Offering{Origin: healthy, Seed: o.Seed*31 + uint64(i)}); err != nil {
			return Tuned{}, err
		}
	}
	t.step(loop.Begin{})
	t.poll()
	for t.finished == nil && t.world.Now() < longestTuning {
		t.world.Until(t.world.Now() + engine.WindowLength)
	}
	s := t.loop.Snapshot()
	if t.finished == nil {
		return Tuned{Journal: s.Journal}, fmt.Errorf("%s: the automatic run did not end within %v", sc.Name, longestTuning)
	}
	return Tuned{Finished: *t.finished, Iterations: s.Iterations, Journal: s.Journal, Took: s.Now}, nil
}

// tuning is an automatic run in progress.
type tuning struct {
	sc       *settings.Scenario
	seed     uint64
	world    *World
	loop     *loop.Loop
	command  *launch.Config    // of the current start
	kept     *launch.Config    // configuration that changes are applied to
	analysis *session.Analysis // reads the pages of the current start; nil before attaching
	starts   int
	finished *loop.Finished
}

// start replaces the server.
func (t *tuning) start(c *launch.Config) error {
	s, err := Settings(c, t.sc, t.seed)
	if err != nil {
		return err
	}
	if t.starts == 0 {
		s.Faults = t.sc.Faults
	}
	if err := t.world.Restart(s); err != nil {
		return err
	}
	t.command = c
	t.starts++
	return nil
}

// step passes an input to the loop and performs its actions.
func (t *tuning) step(in loop.Input) {
	for _, a := range t.loop.Step(t.world.Now(), in) {
		switch a := a.(type) {
		case loop.Attach:
			t.world.At(t.world.Now()+a.After, t.attach)
		case loop.Apply:
			t.apply(a)
		case loop.Emit:
			if k := a.Event.Kind; k == loop.EventKept || k == loop.EventContinued {
				t.kept = t.command
			}
		case loop.Finish:
			t.finished = &a.Finish
		}
	}
}

func (t *tuning) attach() {
	if !t.world.Listening() {
		t.step(loop.AttachFailed{Why: errRefused.Error()})
		return
	}
	h := t.world.Header(t.command)
	analysis, err := session.NewAnalysis(h)
	if err != nil {
		t.step(loop.AttachFailed{Why: err.Error()})
		return
	}
	t.analysis = analysis
	t.step(loop.Attached{Target: h.Target, Inputs: h.Inputs, Identity: fmt.Sprintf("%d since start %d", serverPID, t.starts), CanApply: true})
}

// poll reads the page and the devices, and again after engine.PollInterval.
func (t *tuning) poll() {
	if t.finished != nil {
		return
	}
	now := t.world.Now()
	if t.analysis != nil {
		p := &session.Poll{T: now, PageT: now + scrapeTook, Took: scrapeTook, GPU: t.world.GPUs(now)}
		if body, err := t.world.Page(nil); err != nil {
			p.PageErr = err.Error()
		} else {
			p.Body = string(body)
		}
		sample, _ := t.analysis.Add(p)
		t.step(loop.Sampled{Sample: sample})
	} else {
		t.step(loop.Ticked{})
	}
	t.world.At(now+engine.PollInterval, t.poll)
}

// apply restarts the server with changes, or as it was kept. A server that refuses to start is
// replaced by the kept one.
func (t *tuning) apply(a loop.Apply) {
	next := t.kept
	if !a.Revert {
		next = loop.WithChanges(t.kept, a.Changes...)
	}
	var answer loop.Applied
	if err := t.start(next); err != nil {
		answer = loop.Applied{Err: err.Error(), Back: !a.Revert}
		if back := t.start(t.kept); back != nil {
			answer = loop.Applied{Err: errors.Join(err, back).Error()}
		}
	}
	healthy, _ := t.world.Healthy()
	t.world.At(healthy, func() { t.step(answer) })
}
