package autopilot

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rooftop-dev/rooftop/cmd/internal/apply"
	"github.com/rooftop-dev/rooftop/cmd/internal/cli"
	"github.com/rooftop-dev/rooftop/cmd/internal/launcher"
	"github.com/rooftop-dev/rooftop/cmd/internal/serverdir"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/journal"
	"github.com/rooftop-dev/rooftop/engine/loop"
)

// handsNoted records the requested changes.
type handsNoted struct {
	*diary
	kept    error
	applied loop.Applied
	takes   func() // what Apply does
}

func (h *handsNoted) Mode() string { return "noted" }
func (h *handsNoted) Apply(_ context.Context, a loop.Apply) loop.Applied {
	h.note(fmt.Sprintf("apply %v, back %v", a.Changes, a.Revert))
	if h.takes != nil {
		h.takes()
	}
	return h.applied
}

func (h *handsNoted) Steps(a loop.Apply) []string {
	return []string{"restart with " + engine.JoinChanges(a.Changes)}
}

func (h *handsNoted) Kept() error {
	h.note("kept")
	return h.kept
}

func (h *handsNoted) Close() error {
	h.note("let go")
	return nil
}

// bookNoted is a journal of a run in a given state.
type bookNoted struct {
	*diary
	state journal.State
}

func (b *bookNoted) Write(r journal.Record) error             { b.note("write " + string(r.Kind)); return nil }
func (b *bookNoted) Keep(*launcher.Launch) (string, error)    { return "", nil }
func (b *bookNoted) KeepFound(*launcher.File) (string, error) { return "", nil }
func (b *bookNoted) Dir() string                              { return "" }
func (b *bookNoted) Run() string                              { return "" }
func (b *bookNoted) State() journal.State                     { return b.state }
func (b *bookNoted) Past() (serverdir.Past, error) {
	return serverdir.Past{Repeats: []float64{0.04}}, nil
}
func (b *bookNoted) End(exit int, why string) error {
	b.note(fmt.Sprintf("end %d: %s", exit, why))
	return nil
}
func (b *bookNoted) Close() error { b.note("closed"); return nil }

func pilotOn(t *testing.T, h *handsNoted, state journal.State) (*Pilot, *diary) {
	t.Helper()
	d := &diary{}
	h.diary = d
	p, err := newPilot(h, &bookNoted{diary: d, state: state})
	if err != nil {
		t.Fatal(err)
	}
	return p, d
}

var moreSlots = engine.Change{Flag: "--max-num-seqs", From: "4", To: "32"}

func TestAKeptChangeIsRecordedBeforeItIsReported(t *testing.T) {
	h := &handsNoted{}
	p, d := pilotOn(t, h, journal.State{})
	tell := p.Follow(func(e loop.Event) { d.note("told " + string(e.Kind) + e.Text) })
	tell(loop.Event{Kind: loop.EventMeasured})
	tell(loop.Event{Kind: loop.EventKept, Change: moreSlots})
	want := []string{"told measured", "kept", "told kept"}
	if diff := cmp.Diff(want, d.notes()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	h.kept = errors.New("disk full")
	tell(loop.Event{Kind: loop.EventContinued})
	if got := d.notes(); !strings.Contains(strings.Join(got, "\n"), "told errorthe kept configuration could not be recorded: disk full") {
		t.Errorf("told %q", got)
	}
	before := len(d.notes())
	r := p.apply(t.Context(), loop.Apply{Changes: []engine.Change{moreSlots}})
	if !r.Back || !strings.Contains(r.Err, "disk full") || len(d.notes()) != before {
		t.Errorf("after what is kept is not known: %+v, %q", r, d.notes()[before:])
	}
}

func TestTheEndOfARunInRooftopsHands(t *testing.T) {
	last := &loop.Snapshot{
		Finished:   &loop.Finished{ExitCode: 3, Reason: "told to"},
		Iterations: []loop.Iteration{{N: 2, Changes: []engine.Change{moreSlots}}},
	}
	unsettled := journal.State{Open: true, Stage: journal.StageTrial}
	for _, c := range []struct {
		name    string
		state   journal.State
		applier handsNoted
		last    *loop.Snapshot
		want    []string
		says    string
		broken  error
	}{
		{name: "what is kept runs", state: journal.State{Open: true}, last: last, want: []string{"let go", "end 3: told to", "closed"}},
		{
			name: "another launch runs", state: unsettled, last: last,
			want: []string{"apply [--max-num-seqs 32 → 4], back true", "let go", "end 3: told to", "closed"},
		},
		{
			name: "it cannot be restored", state: unsettled, last: last, applier: handsNoted{applied: loop.Applied{Err: "the disk is gone"}},
			want: []string{"apply [--max-num-seqs 32 → 4], back true", "let go", "end 3: told to", "closed"}, says: "the disk is gone",
		},
		{
			name: "what is kept was not recorded", state: unsettled, last: last, broken: errors.New("disk full"),
			want: []string{"let go", "closed"}, says: "the server runs the kept configuration, which could not be recorded: disk full; 'rooftop recover' restores the previous one",
		},
		{
			name: "what is kept was recorded and not made last", state: journal.State{Open: true}, last: last, broken: errors.New("no permission"),
			want: []string{"let go", "closed"}, says: "no permission; 'rooftop recover' records it",
		},
		{name: "nothing was seen", state: journal.State{Open: true}, want: []string{"let go", "end 1: ended before anything was measured", "closed"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, d := pilotOn(t, &c.applier, c.state)
			p.broken = c.broken
			err := p.end(t.Context(), c.last)
			if diff := cmp.Diff(c.want, d.notes()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if (err != nil) != (c.says != "") || err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("error %v, want one with %q", err, c.says)
			}
		})
	}
}

// TestTheEndOfARunWaitsForItsChange ends a session by two requests, which leaves a change that it canceled; the applier
// then reverts it.
func TestTheEndOfARunWaitsForItsChange(t *testing.T) {
	for _, reverts := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			h := &handsNoted{}
			p, d := pilotOn(t, h, journal.State{Open: true, Stage: journal.StageStarting})
			h.takes = func() {
				time.Sleep(time.Minute)
				if reverts {
					p.journal.(*bookNoted).state.Stage = journal.StageStable
				}
				d.note("applied")
			}
			go p.apply(t.Context(), loop.Apply{Changes: []engine.Change{moreSlots}})
			synctest.Wait()
			if err := p.end(t.Context(), nil); err != nil {
				t.Error(err)
			}
			want := []string{"apply [--max-num-seqs 4 → 32], back false", "applied", "let go", "end 1: ended before anything was measured", "closed"}
			if !reverts {
				want = slices.Insert(want, 2, "apply [], back true", "applied")
			}
			if diff := cmp.Diff(want, d.notes()); diff != "" {
				t.Errorf("reverts %v (-want +got):\n%s", reverts, diff)
			}
		})
	}
}

// A dry run shows each step and takes none, with an applier and without.
func TestADryRunTellsEachStepAndTakesNone(t *testing.T) {
	advice := &engine.Recommendation{Fix: engine.Fix{Kind: engine.KindFlag,
		Flag: moreSlots.Flag, From: moreSlots.From, To: moreSlots.To, Also: []engine.Change{{Flag: "--block-size", To: "32"}},
	}}
	h := &handsNoted{diary: &diary{}}
	for _, c := range []struct {
		name       string
		applier    apply.Applier
		step, back string
	}{
		{"by hand", nil, "restart it with --max-num-seqs 4 → 32, --block-size unset → 32", "original"},
		{"by rooftop", h, "restart with --max-num-seqs 4 → 32, --block-size unset → 32", "restart with --max-num-seqs 32 → 4, --block-size 32 left out"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := &Pilot{dry: true, applier: c.applier}
			var told loop.Event
			p.Follow(func(e loop.Event) { told = e })(loop.Event{Kind: loop.EventRecommendation, Advice: advice})
			if got := strings.Join(told.Steps, "\n"); !strings.Contains(got, c.step) {
				t.Errorf("steps %q, want %q", got, c.step)
			}
			if got := strings.Join(told.StepsBack, "\n"); !strings.Contains(got, c.back) {
				t.Errorf("revert %q, want %q", got, c.back)
			}
			if r := p.apply(t.Context(), loop.Apply{Changes: []engine.Change{moreSlots}}); r.Err != errDry || !r.Back {
				t.Errorf("asked to change something: %+v", r)
			}
			var out bytes.Buffer
			if err := p.Report(&cli.World{Stdout: &out}, &loop.Snapshot{Advice: advice}); err != nil {
				t.Fatal(err)
			}
			if got := out.String(); !strings.Contains(got, "nothing was touched") || !strings.Contains(got, c.step) || !strings.Contains(got, c.back) {
				t.Errorf("the report ends with:\n%s", got)
			}
		})
	}
	if got := h.notes(); len(got) != 0 {
		t.Errorf("a dry run did %q", got)
	}
}

// diary notes what happens, in order, from any goroutine.
type diary struct {
	mu   sync.Mutex
	list []string
}

func (d *diary) note(what string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.list = append(d.list, what)
}

func (d *diary) notes() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.list)
}

// The end of a run says what it waits for while a change is made or not kept.
func TestWhatARunThatEndsWaitsFor(t *testing.T) {
	trial := journal.State{Open: true, Stage: journal.StageFailed}
	p, _ := pilotOn(t, &handsNoted{}, trial)
	if got := p.Restoring(); got != "a change is not kept" {
		t.Errorf("a trial that no step is known of: %q", got)
	}
	p.step = new(atomic.Value)
	p.step.Store("stopping process 7")
	if got := p.Restoring(); got != "stopping process 7" {
		t.Errorf("a trial: %q", got)
	}
	h := &handsNoted{}
	p, _ = pilotOn(t, h, journal.State{})
	p.step = new(atomic.Value)
	if got := p.Restoring(); got != "" {
		t.Errorf("nothing is under way: %q", got)
	}
	h.takes = func() {
		p.step.Store("rehearsing")
		if got := p.Restoring(); got != "rehearsing" {
			t.Errorf("before the change is in the journal: %q", got)
		}
	}
	p.apply(t.Context(), loop.Apply{Changes: []engine.Change{moreSlots}})
	if got := p.Restoring(); got != "" {
		t.Errorf("the change is over: %q", got)
	}
	p.journal = &bookNoted{state: trial}
	if got := p.Restoring(); got != "a change is not kept" {
		t.Errorf("the change is made, and its steps are over: %q", got)
	}
}

func TestASecondSignalSaysWhatTheThirdLeaves(t *testing.T) {
	var stderr bytes.Buffer
	on := OnSignals(&cli.World{Stderr: &stderr}, "restoring the server")
	on(1, syscall.SIGTERM)
	on(2, syscall.SIGHUP)
	const want = "rooftop: restoring the server; a third signal, or kill -9, leaves the server as it is then, and 'rooftop recover' restores it\n"
	if got := stderr.String(); got != want {
		t.Errorf("said %q, want %q", got, want)
	}
}
