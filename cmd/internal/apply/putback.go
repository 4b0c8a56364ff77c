package apply

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/rooftop-dev/rooftop/cmd/internal/serverdir"
	"github.com/rooftop-dev/rooftop/engine/journal"
	"github.com/rooftop-dev/rooftop/engine/loop"
)

// untouched returns the result of a change that failed before anything was touched.
func (s *owned) untouched(err error) loop.Applied {
	runs := s.process != nil && s.over(s.process) == ""
	return loop.Applied{Err: untouched(s.kept.Hide(err.Error()), err), Back: runs && (s.runs == nil || s.runs == s.kept), Untouched: runs}
}

// untouched returns the text of an error with the fact that nothing was touched.
func untouched(text string, err error) string {
	if state := new(serverdir.StateError); errors.As(err, &state) && !state.Underway {
		return text // says it
	}
	return text + "; nothing was touched"
}

// unrecorded reports whether an error is that of a record, which says nothing of the server.
func unrecorded(err error) bool { return errors.As(err, new(*serverdir.StateError)) }

// putBack restores the kept launch after a failed change, whatever the reason.
func (s *owned) putBack(why error, a loop.Apply) loop.Applied {
	reason := s.trouble(why)
	s.plan.report("putting the server back: " + reason)
	var taken *takenError
	back := why
	if !errors.As(why, &taken) || s.process != nil {
		back = s.restore()
	}
	if errors.As(back, &taken) {
		back = s.yield(taken)
	}
	if s.gone != nil {
		reason = s.kept.Hide(s.gone.Error())
	}
	did := "with the change"
	if a.Revert {
		did = "as before"
	}
	text := fmt.Sprintf("the server did not start %s: %s", did, strings.TrimSuffix(reason, "."))
	if unrecorded(why) {
		text = "the server was stopped for a change, and then " + reason
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

// restore stops the started server and starts the kept launch, even if the journal cannot
// be written.
func (s *owned) restore() error {
	journalled := s.plan.Journal
	s.plan.Journal = persistent{journalled}
	defer func() { s.plan.Journal = journalled }()
	if err := s.down(); err != nil {
		return err
	}
	if err := s.up(context.Background(), s.kept, s.keptName); err != nil {
		return err
	}
	s.changes = nil
	// Whoever canceled the change still wants the server back, and a launch that started
	// before deserves more time.
	r := s.plan.Ready
	s.plan.Ready.Within = patience * r.within()
	err := s.await(context.Background())
	s.plan.Ready = r
	if taken := new(takenError); errors.As(err, &taken) {
		return taken
	}
	if err != nil {
		return errors.New(s.trouble(err))
	}
	return s.write(journal.Record{Kind: journal.Ready})
}

// persistent is a journal that ignores write errors, for acts that must not fail because of
// them.
type persistent struct{ Journal }

func (p persistent) Write(r journal.Record) error {
	_ = p.Journal.Write(r)
	return nil
}
