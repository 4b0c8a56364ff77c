package apply

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/rooftop-dev/rooftop/engine/journal"
)

const (
	// returnWithin is how long after its first end a server is watched for that
	// something starts it again: shells in a loop and supervisors that were not
	// recognized do so at once or after a second.
	returnWithin = 1500 * time.Millisecond
	// returnPoll is how often that is looked for while a start lasts: a loop may pause,
	// and a vLLM takes seconds until it asks for the port.
	returnPoll = time.Second
)

// remember notes before the first stop what ran with the server's command line: it is
// not what starts the server again.
func (s *owned) remember() {
	if s.first != nil {
		return
	}
	s.first, s.earlier = s.kept, map[int]uint64{}
	for _, one := range s.fs.Twins(s.first.Argv) {
		s.earlier[one.PID] = one.Ticks
	}
}

// stayedDown says by a takenError that something started the server again: after the
// first stop it watches for that, after others it looks once.
func (s *owned) stayedDown() error {
	if s.returnWithin > 0 {
		s.plan.say("looking whether something else starts the server again")
	}
	for deadline := time.Now().Add(s.returnWithin); ; time.Sleep(stopPoll) {
		if err := s.again(); err != nil {
			return err
		}
		if !time.Now().Before(deadline) {
			s.returnWithin = 0
			return nil
		}
	}
}

// again says by a takenError that something started the server again. Then no change
// is made any more.
func (s *owned) again() error {
	pid, ok := s.comeback()
	if !ok {
		return nil
	}
	s.gone = fmt.Errorf("something started the server again as it was when it was found (process %d), so a change has to be made there: give a program that does it with --apply-cmd", pid)
	return &takenError{s.port, []int{pid}}
}

// comeback finds a process with the command line that the server was found with, which
// began after rooftop stopped it and is not of the one that rooftop started.
func (s *owned) comeback() (pid int, ok bool) {
	if s.first == nil {
		return 0, false
	}
	for _, one := range s.fs.Twins(s.first.Argv) {
		if ticks, before := s.earlier[one.PID]; before && ticks == one.Ticks || !running(one) {
			continue
		}
		if s.process == nil || !slices.Contains(s.pids(s.process), one.PID) {
			return one.PID, true
		}
	}
	return 0, false
}

// pids are the processes of a server.
func (h *host) pids(p *process) (pids []int) {
	for _, one := range h.alive(p) {
		pids = append(pids, one.PID)
	}
	return pids
}

// leave makes the best of a server that something else started again: where that is
// the kept one, the server runs as it did before.
func (s *owned) leave(taken *takenError) error {
	pid, ok := s.comeback()
	if !ok {
		return taken
	}
	one, err := s.fs.Find(pid)
	if err != nil {
		return err
	}
	p := s.adopt(journal.Process{PID: pid, Ticks: one.Ticks, Boot: s.boot})
	holds := func(pid int) bool { return slices.Contains(s.pids(p), pid) }
	if len(taken.pids) > 0 && !slices.ContainsFunc(taken.pids, holds) {
		return taken
	}
	_ = s.again() // no change is made any more
	// It may have read the config file while the change stood in it.
	asKept := slices.Equal(s.first.Argv, s.kept.Argv) && slices.Equal(s.first.Env, s.kept.Env) && (s.runs == nil || slices.Equal(s.runs.configText(), s.kept.configText()))
	for i := range s.kept.Files {
		if err := s.kept.Files[i].put(); err != nil {
			return err
		}
	}
	if !asKept {
		return fmt.Errorf("process %d may run with other settings than those that were kept (%s): look at it, and start it again", pid, s.kept.Command())
	}
	s.process, s.runs, s.runsName = p, s.kept, s.keptName
	if err := s.await(context.Background()); err != nil {
		return err
	}
	return s.write(journal.Record{Kind: journal.Ready})
}
