package apply

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/rooftop-dev/rooftop/engine/journal"
)

// returnWithin is how long after its end a server is watched for that something
// starts again: shells in a loop and supervisors that were not recognized do so at
// once or after a second.
const returnWithin = 1500 * time.Millisecond

// stayedDown watches whether something starts the server again, and says by a
// takenError that it does. Where it stays down nothing else will start it.
func (s *owned) stayedDown() error {
	s.plan.say("looking whether something else starts the server again")
	for deadline := time.Now().Add(s.returnWithin); time.Now().Before(deadline); time.Sleep(stopPoll) {
		if pid, ok := s.comeback(); ok {
			return &takenError{s.port, []int{pid}}
		}
	}
	s.returns = ""
	return nil
}

// comeback finds a process with the server's own command line.
func (s *owned) comeback() (pid int, ok bool) {
	for _, one := range s.fs.Twins(s.kept.Argv) {
		if running(one) {
			return one.PID, true
		}
	}
	return 0, false
}

// leave makes the best of a server that something else started again: where that is
// the kept one, the server runs as it did before. No change is made any more.
func (s *owned) leave(taken *takenError) error {
	pid, ok := s.comeback()
	if !ok || len(taken.pids) > 0 && !slices.Contains(taken.pids, pid) {
		return taken
	}
	s.gone = fmt.Errorf("something started the server again as it was when it ended (process %d), so a change has to be made there: give a program that does it with --apply-cmd", pid)
	for i := range s.kept.Files {
		if err := s.kept.Files[i].put(); err != nil {
			return err
		}
	}
	one, err := s.fs.Find(pid)
	if err != nil {
		return err
	}
	s.process = s.adopt(journal.Process{PID: pid, Ticks: one.Ticks, Boot: s.boot})
	s.runs, s.runsName = s.kept, s.keptName
	if err := s.await(context.Background()); err != nil {
		return err
	}
	return s.write(journal.Record{Kind: journal.Ready})
}
