package apply

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/journal"
)

// untouched answers a change that was not begun.
func (s *owned) untouched(err error) engine.Applied {
	back := s.process != nil && (s.runs == nil || s.runs == s.kept) && s.over(s.process) == ""
	text := s.kept.hide(err.Error())
	if state := new(StateError); !errors.As(err, &state) {
		text += "; nothing was touched"
	}
	return engine.Applied{Err: text, Back: back}
}

// putBack has the kept launch run again after a change failed. It is done whatever
// ended the attempt.
func (s *owned) putBack(why error, a engine.Apply) engine.Applied {
	reason := s.trouble(why)
	s.plan.say("putting the server back: " + reason)
	var taken *takenError
	back := why
	if !errors.As(why, &taken) || s.process != nil {
		back = s.restore()
	}
	if errors.As(back, &taken) {
		back = s.yield(taken)
	}
	if s.gone != nil {
		reason = s.kept.hide(s.gone.Error())
	}
	did := "with the change"
	if a.Revert {
		did = "as before"
	}
	text := fmt.Sprintf("the server did not start %s: %s", did, strings.TrimSuffix(reason, "."))
	if back != nil {
		text += "; and it could not be put back: " + s.kept.hide(back.Error())
	} else {
		text += "; it runs as before"
	}
	// What could not be written down is not worth a server that is down.
	_ = s.write(journal.Record{Kind: journal.Failed, Iteration: a.Iteration, Revert: a.Revert, Text: text})
	return engine.Applied{Err: text, Back: back == nil, Late: late(why)}
}

// yield leaves the port to whoever took it: two servers are never left.
func (s *owned) yield(taken *takenError) error {
	if s.process != nil {
		if err := s.down(); s.process != nil {
			return err
		}
	}
	return s.leave(taken)
}

// patience is how many times as long as usual a start may take that puts a server
// back.
const patience = 3

// restore stops what was started and has the kept launch run again. A journal that
// cannot be written does not keep it from that.
func (s *owned) restore() error {
	journalled := s.plan.Journal
	s.plan.Journal = persistent{journalled}
	defer func() { s.plan.Journal = journalled }()
	if err := s.down(); err != nil {
		return err
	}
	if err := s.up(s.kept, s.keptName); err != nil {
		return err
	}
	s.changes = nil
	// A person who called the change off wants the server back all the same, and a
	// launch that started before is worth some patience.
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

// persistent is a journal whose errors keep nobody from what must be done.
type persistent struct{ Journal }

func (p persistent) Write(r journal.Record) error {
	_ = p.Journal.Write(r)
	return nil
}
