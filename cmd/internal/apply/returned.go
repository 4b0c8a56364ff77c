package apply

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/launcher"
	"github.com/rooftop-dev/rooftop/collect/proc"
	"github.com/rooftop-dev/rooftop/engine/journal"
)

const (
	// returnWithin is how long to watch after the first stop whether something restarts the
	// server. Shell loops and unrecognized supervisors do so at once or after a second.
	returnWithin = 1500 * time.Millisecond
	// returnPoll is the interval of this check during a start: a shell loop may pause, and
	// a vLLM takes seconds until it opens the port.
	returnPoll = time.Second
)

// recordTwins records, before the first stop, the processes with the server's command line,
// so that they do not count as a restart.
func (s *owned) recordTwins() {
	if s.first != nil {
		return
	}
	s.first, s.earlier = s.kept, map[int]uint64{}
	for _, one := range s.twins(s.first) {
		s.earlier[one.PID] = one.Ticks
	}
}

// twins lists the processes with the command line of a launch. Anybody can start one: those of a user other than the
// server's and root are left out.
func (h *host) twins(l *launcher.Launch) []proc.Process {
	user := l.Owner.UID
	if l.Inherit {
		user = os.Geteuid()
	}
	return slices.DeleteFunc(h.fs.Twins(l.Argv), func(one proc.Process) bool {
		around, err := h.fs.Surroundings(one.PID)
		return err != nil || around.UID != user && around.UID != 0
	})
}

// stayedDown returns a *takenError if something restarted the server. After the first stop
// it watches for returnWithin, after later stops it checks once.
func (s *owned) stayedDown() error {
	if s.returnWithin > 0 {
		s.plan.report("checking whether something else restarts the server")
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

// again returns a *takenError if something restarted the server. No further change is made
// then.
func (s *owned) again() error {
	pid, ok := s.comeback()
	if !ok {
		return nil
	}
	s.gone = fmt.Errorf("something restarted the server as it was found (process %d), so the change must be made there: pass --apply-cmd with a program that does it", pid)
	return &takenError{s.at, []int{pid}}
}

// comeback finds a process with the server's original command line that started after
// rooftop stopped the server and does not belong to the server that rooftop started.
func (s *owned) comeback() (pid int, ok bool) {
	if s.first == nil {
		return 0, false
	}
	for _, one := range s.twins(s.first) {
		if ticks, before := s.earlier[one.PID]; before && ticks == one.Ticks || !running(one) {
			continue
		}
		if s.process == nil || !slices.Contains(s.pids(s.process), one.PID) {
			return one.PID, true
		}
	}
	return 0, false
}

// pids returns the PIDs of a server's running processes.
func (h *host) pids(p *process) (pids []int) {
	for _, one := range h.alive(p) {
		pids = append(pids, one.PID)
	}
	return pids
}

// leave adopts a server that something else restarted, if it runs the kept launch;
// otherwise it returns an error.
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
	_ = s.again() // no further change is made
	// It may have read the config file while that contained the change.
	asKept := slices.Equal(s.first.Argv, s.kept.Argv) && slices.Equal(s.first.Env, s.kept.Env) && (s.runs == nil || slices.Equal(s.runs.ConfigText(), s.kept.ConfigText()))
	for i := range s.kept.Files {
		if err := s.kept.Files[i].Replace(); err != nil {
			return err
		}
	}
	if !asKept {
		return fmt.Errorf("process %d may run with settings other than the kept ones (%s): check it, and restart it", pid, s.kept.Command())
	}
	s.process, s.runs, s.runsName = p, s.kept, s.keptName
	if err := s.await(context.Background()); err != nil {
		return err
	}
	return s.write(journal.Record{Kind: journal.Ready})
}
