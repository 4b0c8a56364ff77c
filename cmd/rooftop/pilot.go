package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/apply"
	"github.com/rooftop-dev/rooftop/cmd/internal/session"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/journal"
)

// pilot makes the changes of a run: the hands on one server, and the journal that
// stands behind them. The session calls its methods, one at a time.
type pilot struct {
	hands   apply.Hands
	book    book // nil in a dry run, which writes nothing
	record  *apply.Recorder
	past    apply.Past
	dry     bool // nothing is done, and what would be is told
	quiet   bool // stdout is for events
	settled bool // the session came to its end
	// broken is why nothing is changed any more: what is kept could not be written
	// down.
	broken error
	// left says in words what goes on when rooftop has ended; "" says nothing.
	left func() string
}

// book is the journal of one server while a run is on it: an [apply.Store].
type book interface {
	apply.Journal
	Run() string
	State() journal.State
	Past() (apply.Past, error)
	End(exit int, why string) error
	Close() error
}

// fly opens the past of a server for hands that stand ready.
func fly(hands apply.Hands, b book) (*pilot, error) {
	past, err := b.Past()
	if err != nil {
		return nil, err
	}
	return &pilot{hands: hands, book: b, past: past, record: apply.NewRecorder(b)}, nil
}

// journalled names the run as [runOf] does; "" where it has no journal.
func (p *pilot) journalled() string {
	if p == nil || p.book == nil {
		return ""
	}
	return runOf(p.book.Dir(), p.book.Run())
}

// errDry is the answer of a dry run to whoever would have it change something.
const errDry = "--dry-run touches nothing"

// attaching is attach for a run whose server is in these hands.
func (p *pilot) attaching(attach func(context.Context) (*session.Server, error)) func(context.Context) (*session.Server, error) {
	if p == nil {
		return attach
	}
	return func(ctx context.Context) (*session.Server, error) {
		s, err := attach(ctx)
		if err == nil {
			s.NoHands, s.Apply, s.Steps = "", p.apply, p.steps
		}
		return s, err
	}
}

// apply has a change made, and refuses where it could not be written down.
func (p *pilot) apply(ctx context.Context, a engine.Apply) engine.Applied {
	switch {
	case p.dry:
		return engine.Applied{Err: errDry, Back: true}
	case p.broken != nil:
		return engine.Applied{Err: "nothing is changed any more: " + p.broken.Error(), Back: true}
	}
	ended := ""
	if t, ok := p.hands.(interface{ Trouble() string }); ok && a.Revert {
		ended = t.Trouble() // once it is put back nobody can tell any more
	}
	r := p.hands.Apply(ctx, a)
	r.Ended = cmp.Or(r.Ended, ended)
	return r
}

// steps says what a change would take.
func (p *pilot) steps(a engine.Apply) []string {
	if p.hands == nil {
		return stepsByHand(a)
	}
	return p.hands.Steps(a)
}

// stepsByHand are those of whoever restarts the server.
func stepsByHand(a engine.Apply) []string {
	with := "start it again with its launch command as it was"
	if !a.Revert {
		with = "start it again with " + changesText(a.Changes)
	}
	return []string{"stop the server", with, "wait until /health answers"}
}

func changesText(changes []engine.Change) string {
	text := ""
	for i, c := range changes {
		if i > 0 {
			text += ", "
		}
		text += c.String()
	}
	return text
}

// follow puts the journal in front of whoever is told of the run. What is kept is
// written down before anybody hears of it.
func (p *pilot) follow(tell func(engine.Event)) func(engine.Event) {
	if p == nil {
		return tell
	}
	return func(e engine.Event) {
		if p.dry && e.Kind == engine.EventRecommendation && e.Advice != nil {
			change, back := wouldBe(e.Advice)
			e.Steps, e.StepsBack = p.steps(change), p.steps(back)
		}
		if p.record != nil {
			p.record.Tell(e)
		}
		if p.hands != nil && !p.dry && (e.Kind == engine.EventKept || e.Kind == engine.EventContinued) {
			if err := p.hands.Kept(); err != nil {
				p.broken = err
				tell(engine.Event{T: e.T, Kind: engine.EventError, Iteration: e.Iteration, Text: "what is kept could not be written down: " + err.Error()})
			}
		}
		tell(e)
	}
}

// wouldBe is the change that a recommendation asks for, and its way back.
func wouldBe(r *engine.Recommendation) (change, back engine.Apply) {
	changes := append([]engine.Change{{Flag: r.Flag, From: r.From, To: r.To}}, r.Also...)
	undo := make([]engine.Change, len(changes))
	for i, c := range changes {
		undo[i] = engine.Change{Flag: c.Flag, From: c.To, To: c.From}
	}
	return engine.Apply{Changes: changes, Iteration: 1, Predicted: r.Predicted}, engine.Apply{Changes: undo, Revert: true, Iteration: 1}
}

// end closes the journal of a run whose session is over. What runs and is not kept
// is put back first: nobody watches any more.
func (p *pilot) end(ctx context.Context, s *engine.Snapshot) error {
	if p == nil || p.dry {
		return nil
	}
	var errs []error
	if state := p.book.State(); !state.Settled() && p.broken == nil {
		if r := p.hands.Apply(ctx, p.wayBack(s)); r.Err != "" && !r.Back {
			errs = append(errs, errors.New("what was kept could not be put back: "+r.Err))
		}
	}
	code, why := int(exitError), "ended before anything was measured"
	if s != nil && s.Finished != nil {
		code, why = s.Finished.ExitCode, s.Finished.Reason
	}
	errs = append(errs, p.hands.Close(), p.book.End(code, why), p.book.Close(), p.broken, p.record.Err())
	return errors.Join(errs...)
}

// wayBack undoes the change that was made last.
func (p *pilot) wayBack(s *engine.Snapshot) engine.Apply {
	a := engine.Apply{Revert: true}
	if s == nil || len(s.Iterations) == 0 {
		return a
	}
	it := &s.Iterations[len(s.Iterations)-1]
	a.Iteration = it.N
	for _, c := range it.Changes {
		a.Changes = append(a.Changes, engine.Change{Flag: c.Flag, From: c.To, To: c.From})
	}
	return a
}

// under has a run that is followed end with everything put in order.
func (p *pilot) under(ctx context.Context, f *following, live *session.Live, within time.Duration) {
	if p == nil || p.dry {
		return
	}
	p.record.Latest = live.Latest
	f.patience, f.unsettled = 2*within, recoverText
	f.settle = func(s *engine.Snapshot) error {
		p.settled = true
		return p.end(context.WithoutCancel(ctx), s)
	}
}

// stopWithin is what stopping a server and asking the new one may take in all,
// beside its start.
const stopWithin = 3 * time.Minute

// within bounds one change: a start that fails, and the start as before.
func (o *autoOptions) within() time.Duration { return 2*o.start + stopWithin }

// recoverText says how to put right what an end at once left.
const recoverText = "ended at once: the server may not run what is kept; 'rooftop recover' says what was left and puts it right"

// told says what a run leaves behind: of a dry run, what would have been done.
func (p *pilot) told(w *world, s *engine.Snapshot) error {
	switch {
	case p == nil:
		return nil
	case p.dry:
		return p.tellSteps(w, s)
	case p.left != nil && p.settled:
		if text := p.left(); text != "" {
			fmt.Fprintln(w.stderr, "rooftop:", text)
		}
	}
	return nil
}

// tellSteps writes what a dry run would have done.
func (p *pilot) tellSteps(w *world, s *engine.Snapshot) error {
	if p.quiet || s == nil || s.Advice == nil || s.Advice.Kind != engine.KindFlag || s.Advice.Flag == "" {
		return nil
	}
	change, back := wouldBe(s.Advice)
	var b strings.Builder
	list := func(title string, steps []string) {
		fmt.Fprintf(&b, "\n%s\n", title)
		for i, step := range steps {
			fmt.Fprintf(&b, "  %d. %s\n", i+1, step)
		}
	}
	list("DRY RUN: nothing was touched. To make the change:", p.steps(change))
	list("To take it back:", p.steps(back))
	if p.hands == nil {
		b.WriteString("\nThese are your steps. With --restart-in-place, --apply-cmd PROGRAM or -- COMMAND\nthey are rooftop's, and --dry-run shows them.\n")
	}
	_, err := io.WriteString(w.stdout, b.String())
	return err
}
