package loop_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/longtest"
	"github.com/rooftop-dev/rooftop/engine/loop"
)

// look is a snapshot with a copy of its content at the time it was returned.
type look struct {
	given *loop.Snapshot
	copy  string
}

// spelled formats a snapshot with everything it points to. Diagnoses are represented by address and headline.
func spelled(s *loop.Snapshot) string {
	text := fmt.Sprintf("%d %v %d %v %+v %v %q %q %q %v %v %v %+v", s.Seq, s.Now, s.Phase, s.Since, s.Progress, s.Paused, s.Ask, s.Quiet, s.Launch, s.Sources, s.Points, s.Noise, s.Can)
	text += fmt.Sprintf("%+v %+v %v %v %v", s.Marks, s.Journal, s.Processes, s.Problems, s.Notes)
	for _, it := range s.Iterations {
		text += fmt.Sprintf("%d %v %v %v %v %v %v %q %q %v %p %p %v", it.N, it.At, it.Up, it.Settled, it.End, it.Noticed, it.Changes, it.Text, it.Command, it.Predicted, it.Before, it.After, it.Load)
	}
	for _, d := range []*engine.Diagnosis{s.Live, s.Baseline} {
		if d != nil {
			text += fmt.Sprintf("%v %v %v %v %v", d.Outcome, d.Windows, d.Measured, d.Findings, d.Notes)
		}
	}
	return text
}

// monkey sends random inputs in random order.
type monkey struct {
	*rig
	yes    bool // the next Apply was allowed, by the user or by Auto
	looked []look
}

func (m *monkey) send(in loop.Input) {
	before := m.loop.Snapshot()
	if p, ok := in.(loop.Pressed); ok {
		switch p.Command {
		case loop.CommandApply, loop.CommandRevert, loop.CommandContinue:
			m.yes = true
		}
	}
	for _, a := range m.loop.Step(m.now, in) {
		switch a := a.(type) {
		case loop.Apply:
			if !m.yes {
				m.t.Fatal("a change without a yes")
			}
			if len(a.Changes) == 0 {
				m.t.Fatal("an empty change")
			}
			m.yes = false
		case loop.Attach:
			m.due = m.now
		case loop.Finish:
			m.done = &a.Finish
		}
	}
	after := m.loop.Snapshot()
	if after.Now < before.Now || after.Seq < before.Seq {
		m.t.Fatalf("time ran back: %v to %v", before.Now, after.Now)
	}
	m.invariants(after)
}

func (m *monkey) invariants(s *loop.Snapshot) {
	m.t.Helper()
	for c, can := range s.Can {
		if can.OK != (can.Why == "") {
			m.t.Fatalf("phase %d, command %d: OK %v, %q", s.Phase, c, can.OK, can.Why)
		}
	}
	if (s.Phase == loop.PhaseWorse) != (s.Ask != "") {
		m.t.Fatalf("phase %d asks %q", s.Phase, s.Ask)
	}
	open := 0
	for i, it := range s.Iterations {
		if i > 0 && it.N != s.Iterations[i-1].N+1 {
			m.t.Fatalf("iteration %d follows %d", it.N, s.Iterations[i-1].N)
		}
		if it.End == loop.IterationOpen {
			open++
		}
		if it.Noticed != loop.AsRecommended && it.Predicted != nil {
			m.t.Fatalf("iteration %d is %q and predicts %v", it.N, it.Noticed, it.Predicted)
		}
	}
	if open > 1 || open == 1 && s.Iterations[len(s.Iterations)-1].End != loop.IterationOpen {
		m.t.Fatalf("%d iterations are open", open)
	}
	if s.Firm && s.Baseline == nil {
		m.t.Fatal("firm without a baseline")
	}
	if s.Phase != loop.PhaseDone && s.Progress.Text == "" {
		m.t.Fatalf("phase %d does not say what it waits for", s.Phase)
	}
}

func (m *monkey) act(random *rand.Rand) loop.Input {
	f := m.server
	switch n := random.IntN(400); {
	case n < 300:
		m.now += 250 * time.Millisecond
		s := &engine.Sample{T: m.now}
		if f.down || m.now < f.up {
			s.PageErr = "connection refused"
		} else {
			s.Page = f.page(m.now, random)
		}
		return loop.Sampled{Sample: s}
	case n < 320:
		if m.due > 0 || random.IntN(3) == 0 {
			m.due = 0
			if f.down {
				return loop.AttachFailed{Why: "connection refused"}
			}
			return m.attached()
		}
		return loop.Ticked{}
	case n < 322:
		return loop.Pressed{Command: loop.Command(random.IntN(int(loop.CommandQuit)))}
	case n < 324:
		return loop.Applied{Err: []string{"", "refused"}[random.IntN(2)]}
	case n < 325:
		m.restart(fmt.Sprintf("--max-num-seqs %d", 2<<random.IntN(6)), time.Duration(random.IntN(20))*time.Second)
	case n < 326:
		f.down = !f.down
	case n < 327:
		f.clients = float64(random.IntN(3) * 20)
	case n < 328:
		f.remote = random.IntN(4) == 0
	case n < 329:
		m.now += time.Duration(random.IntN(100)) * time.Second
	case n < 330 && random.IntN(20) == 0:
		return loop.Sampled{Sample: &engine.Sample{T: m.now, Page: &engine.Page{T: m.now}}}
	case n < 332:
		return loop.Observed{Processes: []loop.Process{{PID: f.pid}}, Problems: []string{"a worker is gone"}[:random.IntN(2)]}
	case n < 333:
		return loop.Noted{Text: "a report was written"}
	case n == 399 && random.IntN(200) == 0:
		return loop.Pressed{Command: loop.CommandQuit}
	}
	return loop.Ticked{}
}

// TestWhateverHappens sends random inputs and checks that nothing panics, time does not decrease, returned
// snapshots do not change, refused commands have a reason, and nothing is changed without consent.
func TestWhateverHappens(t *testing.T) {
	runs, steps := 60, 6000
	if !longtest.Tests {
		runs, steps = 10, 3000
	}
	verdicts := 0
	for seed := range runs {
		random := rand.New(rand.NewPCG(uint64(seed), 7))
		alter := func(p *loop.Plan) {
			p.Measure = 8 * time.Second
			p.Longest = time.Duration(10+seed%4*20) * time.Second
			if seed%3 > 0 {
				withHands(p)
			}
			if p.Auto = seed%6 == 5; p.Auto {
				p.Countdown = time.Duration(seed%4) * time.Second
				p.Limits.Restarts, p.Limits.Downtime = 2+seed%7, time.Duration(seed%5)*time.Minute
			}
		}
		m := &monkey{rig: newRig(t, "--max-num-seqs 4", alter)}
		m.yes = seed%6 == 5
		m.send(loop.Begin{})
		for range steps {
			in := m.act(random)
			if seed%6 == 5 {
				m.yes = true
			}
			m.send(in)
			if random.IntN(100) == 0 {
				s := m.loop.Snapshot()
				m.looked = append(m.looked, look{s, spelled(s)})
			}
		}
		for _, l := range m.looked {
			if diff := cmp.Diff(l.copy, spelled(l.given)); diff != "" {
				t.Fatalf("seed %d: a snapshot of %v changed after it was handed out:\n%s", seed, l.given.Now, diff)
			}
		}
		for _, it := range m.loop.Snapshot().Iterations {
			if it.Delta != nil {
				verdicts++
			}
		}
	}
	if verdicts < runs/4 {
		t.Errorf("only %d verdicts in %d runs: the inputs lead nowhere", verdicts, runs)
	}
	t.Logf("%d verdicts", verdicts)
}
