package apply

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/launcher"
	"github.com/rooftop-dev/rooftop/cmd/internal/serverdir"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/journal"
	"github.com/rooftop-dev/rooftop/engine/loop"
)

// untouched returns the result of an act that failed before anything was touched by it.
func (s *owned) untouched(a loop.Apply, err error) loop.Applied {
	runs, state := s.process != nil && s.over(s.process) == "", nothingTouched
	switch {
	case !runs && s.began:
		state = "the server does not run"
	case a.Revert && s.runs != s.kept:
		state = "the server still runs with " + engine.JoinChanges(s.changes)
	}
	return loop.Applied{Err: untouched(s.kept.Hide(err.Error()), err, state), Back: runs && (s.runs == nil || s.runs == s.kept), Untouched: runs}
}

// nothingTouched is said only if no server was stopped, started or changed.
const nothingTouched = "nothing was touched"

// untouched returns the text of an error that touched nothing with what is true of the server.
func untouched(text string, err error, state string) string {
	if state := new(serverdir.StateError); errors.As(err, &state) && !state.Underway {
		return text // says it
	}
	return text + "; " + state
}

// unrecorded reports whether an error is that of a record, which says nothing of the server.
func unrecorded(err error) bool { return errors.As(err, new(*serverdir.StateError)) }

// putBack restores the kept launch after a failed change, whatever the reason.
func (s *owned) putBack(why error, a loop.Apply) loop.Applied {
	reason := s.trouble(why)
	s.plan.report("putting the server back: " + reason)
	back, taken := why, new(takenError)
	if errors.As(why, &taken) {
		back = s.yield(taken)
	}
	if back != nil && s.gone == nil {
		back = s.restore()
	}
	if s.gone != nil {
		reason = s.kept.Hide(s.gone.Error())
	}
	did, act := "with the change", "a change"
	if a.Revert {
		did, act = "as before", "the revert"
	}
	text := fmt.Sprintf("the server did not start %s: %s", did, strings.TrimSuffix(reason, "."))
	if unrecorded(why) {
		text = "the server was stopped for " + act + ", and then " + reason
	}
	switch {
	case back != nil:
		text += "; and it could not be put back: " + s.kept.Hide(back.Error())
	case unrecorded(why):
		text += "; the server runs as before"
	default:
		text += "; it runs as before"
	}
	// A failing journal must not keep the server down.
	_ = s.write(journal.Record{Kind: journal.Failed, Iteration: a.Iteration, Revert: a.Revert, Text: text})
	return loop.Applied{Err: text, Back: back == nil, Late: late(why)}
}

// yield leaves the port to the process that took it, so that never two servers remain.
func (s *owned) yield(taken *takenError) error {
	if s.process != nil {
		if err := s.down(); s.process != nil {
			return err
		}
	}
	return s.leave(taken)
}

// patience is the factor by which a start that restores a server may take longer than
// usual.
const patience = 3

// RestoreWithin is how long a restore is tried again after its first failure, at which a change gives up: a
// port, memory or descriptors may be free again only then.
const RestoreWithin = 5 * time.Minute

// persevere calls try until it succeeds, RestoreWithin is over, or no further attempt makes sense. The
// time begins with the first failure since the kept launch last ran.
func (s *owned) persevere(ctx context.Context, try func() error) error {
	for wait := s.restores / 300; ; wait = min(2*wait, s.restores/10) {
		err := try()
		if err == nil {
			s.failing = time.Time{}
			return nil
		}
		if s.failing.IsZero() {
			s.failing = time.Now()
		}
		switch left := s.restores - time.Since(s.failing); {
		case s.gone != nil || unrecorded(err) || ctx.Err() != nil:
			return err
		case left < wait:
			return fmt.Errorf("%w (tried again for %v)", err, s.restores)
		}
		s.plan.report(fmt.Sprintf("the server is not back: %s; trying again in %v, for up to %v", s.kept.Hide(err.Error()), wait, s.restores))
		if err := pause(ctx, wait); err != nil {
			return err
		}
	}
}

// restore stops the started server and starts the kept launch, even if the journal cannot
// be written.
func (s *owned) restore() error {
	journalled := s.plan.Journal
	s.plan.Journal = persistent{journalled}
	defer func() { s.plan.Journal = journalled }()
	// The one who canceled the change still wants the server back.
	ctx := context.Background()
	return s.persevere(ctx, func() error {
		err := s.startKept(ctx)
		if taken := new(takenError); errors.As(err, &taken) {
			return s.yield(taken)
		}
		if err != nil {
			return errors.New(s.trouble(err))
		}
		s.changes = nil
		return s.write(journal.Record{Kind: journal.Ready})
	})
}

// startKept stops the started server, if there is one, and starts the kept launch on a free port. A launch
// that started before deserves more time than a change.
func (s *owned) startKept(ctx context.Context) error {
	if err := s.down(); err != nil {
		return err
	}
	if s.at.Port() != 0 {
		if err := s.free(s.at); err != nil {
			return err
		}
	}
	if err := s.up(ctx, s.kept, s.keptName, nil); err != nil {
		return err
	}
	r := s.plan.Ready
	s.plan.Ready.Within = patience * r.within()
	defer func() { s.plan.Ready = r }()
	return s.await(ctx)
}

// persistent is a journal that ignores write errors, for acts that must not fail because of
// them.
type persistent struct{ Journal }

func (p persistent) Write(r journal.Record) error {
	_ = p.Journal.Write(r)
	return nil
}

func (p persistent) KeepFound(f *launcher.File) (string, error) {
	path, err := p.Journal.KeepFound(f)
	if err != nil {
		return "", nil //nolint:nilerr // the server comes first
	}
	return path, nil
}
