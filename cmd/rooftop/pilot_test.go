package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rooftop-dev/rooftop/cmd/internal/apply"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/journal"
)

// handsNoted note what they are asked to do.
type handsNoted struct {
	*diary
	kept    error
	applied engine.Applied
}

func (h *handsNoted) Mode() string { return "noted" }
func (h *handsNoted) Apply(_ context.Context, a engine.Apply) engine.Applied {
	h.note(fmt.Sprintf("apply %v, back %v", a.Changes, a.Revert))
	return h.applied
}

func (h *handsNoted) Steps(a engine.Apply) []string {
	return []string{"restart with " + changesText(a.Changes)}
}

func (h *handsNoted) Kept() error {
	h.note("kept")
	return h.kept
}

func (h *handsNoted) Close() error {
	h.note("let go")
	return nil
}

// bookNoted is a journal of a run that stands where it is told.
type bookNoted struct {
	*diary
	state journal.State
}

func (b *bookNoted) Write(r journal.Record) error         { b.note("write " + string(r.Kind)); return nil }
func (b *bookNoted) Keep(*apply.Launch) (string, error)   { return "", nil }
func (b *bookNoted) Launch(string) (*apply.Launch, error) { return nil, nil }
func (b *bookNoted) Dir() string                          { return "" }
func (b *bookNoted) Run() string                          { return "" }
func (b *bookNoted) State() journal.State                 { return b.state }
func (b *bookNoted) Past() (apply.Past, error)            { return apply.Past{Repeats: []float64{0.04}}, nil }
func (b *bookNoted) End(exit int, why string) error {
	b.note(fmt.Sprintf("end %d: %s", exit, why))
	return nil
}
func (b *bookNoted) Close() error { b.note("closed"); return nil }

func pilotOn(t *testing.T, h *handsNoted, state journal.State) (*pilot, *diary) {
	t.Helper()
	d := &diary{}
	h.diary = d
	p, err := fly(h, &bookNoted{diary: d, state: state})
	if err != nil {
		t.Fatal(err)
	}
	return p, d
}

var moreSeats = engine.Change{Flag: "--max-num-seqs", From: "4", To: "32"}

func TestWhatIsKeptIsWrittenDownBeforeItIsTold(t *testing.T) {
	h := &handsNoted{}
	p, d := pilotOn(t, h, journal.State{})
	tell := p.follow(func(e engine.Event) { d.note("told " + string(e.Kind) + e.Text) })
	tell(engine.Event{Kind: engine.EventMeasured})
	tell(engine.Event{Kind: engine.EventKept, Change: moreSeats})
	want := []string{"told measured", "kept", "told kept"}
	if diff := cmp.Diff(want, d.notes()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	h.kept = errors.New("disk full")
	tell(engine.Event{Kind: engine.EventContinued})
	if got := d.notes(); !strings.Contains(strings.Join(got, "\n"), "told errorwhat is kept could not be written down: disk full") {
		t.Errorf("told %q", got)
	}
	before := len(d.notes())
	r := p.apply(t.Context(), engine.Apply{Changes: []engine.Change{moreSeats}})
	if !r.Back || !strings.Contains(r.Err, "disk full") || len(d.notes()) != before {
		t.Errorf("after what is kept is not known: %+v, %q", r, d.notes()[before:])
	}
}

func TestTheEndOfARunInRooftopsHands(t *testing.T) {
	last := &engine.Snapshot{
		Finished:   &engine.Finished{ExitCode: 3, Reason: "told to"},
		Iterations: []engine.Iteration{{N: 2, Changes: []engine.Change{moreSeats}}},
	}
	unsettled := journal.State{Open: true, Stage: journal.Trying}
	for _, c := range []struct {
		name  string
		state journal.State
		hands handsNoted
		last  *engine.Snapshot
		want  []string
		says  string
	}{
		{name: "what is kept runs", state: journal.State{Open: true}, last: last, want: []string{"let go", "end 3: told to", "closed"}},
		{
			name: "another launch runs", state: unsettled, last: last,
			want: []string{"apply [--max-num-seqs 32 → 4], back true", "let go", "end 3: told to", "closed"},
		},
		{
			name: "it cannot be put back", state: unsettled, last: last, hands: handsNoted{applied: engine.Applied{Err: "the disk is gone"}},
			want: []string{"apply [--max-num-seqs 32 → 4], back true", "let go", "end 3: told to", "closed"}, says: "the disk is gone",
		},
		{name: "nothing was seen", state: journal.State{Open: true}, want: []string{"let go", "end 1: ended before anything was measured", "closed"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, d := pilotOn(t, &c.hands, c.state)
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

// A dry run tells each step and takes none, with hands and without.
func TestADryRunTellsEachStepAndTakesNone(t *testing.T) {
	advice := &engine.Recommendation{Fix: engine.Fix{Kind: engine.KindFlag,
		Flag: moreSeats.Flag, From: moreSeats.From, To: moreSeats.To, Also: []engine.Change{{Flag: "--block-size", To: "32"}},
	}}
	h := &handsNoted{diary: &diary{}}
	for _, c := range []struct {
		name       string
		hands      apply.Hands
		step, back string
	}{
		{"by hand", nil, "start it again with --max-num-seqs 4 → 32, --block-size unset → 32", "as it was"},
		{"by rooftop", h, "restart with --max-num-seqs 4 → 32, --block-size unset → 32", "restart with --max-num-seqs 32 → 4, --block-size 32 left out"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := &pilot{dry: true, hands: c.hands}
			var told engine.Event
			p.follow(func(e engine.Event) { told = e })(engine.Event{Kind: engine.EventRecommendation, Advice: advice})
			if got := strings.Join(told.Steps, "\n"); !strings.Contains(got, c.step) {
				t.Errorf("steps %q, want %q", got, c.step)
			}
			if got := strings.Join(told.StepsBack, "\n"); !strings.Contains(got, c.back) {
				t.Errorf("the way back %q, want %q", got, c.back)
			}
			if r := p.apply(t.Context(), engine.Apply{Changes: []engine.Change{moreSeats}}); r.Err != errDry || !r.Back {
				t.Errorf("asked to change something: %+v", r)
			}
			var out bytes.Buffer
			if err := p.told(&world{stdout: &out}, &engine.Snapshot{Advice: advice}); err != nil {
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

// The run with a server in its hands waits for it to be put in order, and where it
// is cut short says what that means.
func TestAServerInHandIsSettledOrSaidNotToBe(t *testing.T) {
	signalsBegin()
	for _, c := range []struct {
		name  string
		lasts time.Duration // of the session's end
		hurry time.Duration // of the second signal, 0 none
		want  string
		says  string
		took  time.Duration
	}{
		{name: "in order", lasts: 2 * time.Minute, want: "session ended, settled, files, terminal restored, report", took: 3 * time.Minute},
		{
			name: "cut short", lasts: time.Hour, hurry: 90 * time.Second,
			want: "terminal restored, files, report", says: "rooftop recover", took: 91 * time.Second,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				d := &diary{}
				time.AfterFunc(time.Minute, func() { cancel(&signalError{15}) })
				began := time.Now()
				f := &following{
					session: &scripted{diary: d, lasts: c.lasts}, view: &scriptedView{diary: d, hurry: c.hurry}, stderr: &bytes.Buffer{},
					keep:     func(*engine.Snapshot) kept { d.note("files"); return kept{} },
					patience: 10 * time.Minute, unsettled: recoverText,
					settle: func(*engine.Snapshot) error { d.note("settled"); return nil },
				}
				err := f.run(ctx)
				if got := strings.Join(d.notes(), ", "); got != c.want {
					t.Errorf("%s, want %s", got, c.want)
				}
				if errCode(err) != 143 || c.says != "" && !strings.Contains(err.Error(), c.says) {
					t.Errorf("code %d: %v, want 143 and %q", errCode(err), err, c.says)
				}
				if took := time.Since(began); took != c.took {
					t.Errorf("took %v, want %v", took, c.took)
				}
				time.Sleep(2 * time.Hour)
			})
		})
	}
}
