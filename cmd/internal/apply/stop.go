package apply

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/rooftop-dev/rooftop/collect/proc"
)

// Parameters of waiting for a server to end.
const (
	stopPoll = 50 * time.Millisecond
	// killWithin is how long the kernel may take to end a killed process. A process that
	// waits for a device ends only when the device answers.
	killWithin = 10 * time.Second
	// hollowWithin is how long an API server may outlive its engine. vLLM 0.32 ends the
	// engine at once (mode=abort) and then waits for the connections of requests that are
	// never answered; SIGINT ends it, as its log says.
	hollowWithin = 2 * time.Second
)

// takenError means that another process listens where the server is to listen.
type takenError struct {
	at   netip.AddrPort
	pids []int // empty if the process belongs to another user
}

func (e *takenError) Error() string {
	who := "a process of another user"
	if len(e.pids) > 0 {
		who = "process " + joinPIDs(e.pids)
	}
	return fmt.Sprintf("port %d is held by %s", e.at.Port(), who)
}

// joinPIDs formats PIDs for a sentence: "17, 4711".
func joinPIDs(pids []int) string {
	words := make([]string, len(pids))
	for i, pid := range pids {
		words[i] = strconv.Itoa(pid)
	}
	return strings.Join(words, ", ")
}

// stop ends a server with SIGTERM, and after grace with SIGKILL to the rest of its tree. It
// returns when the whole tree is gone and the port is free. A *takenError means that the
// tree is gone but another process listens on the port. Port 0 is not checked.
func (h *host) stop(p *process, at netip.AddrPort, grace time.Duration) error {
	left := h.alive(p)
	engines := h.engines(p)
	h.signal(p, left, syscall.SIGTERM)
	hollow := time.Duration(0)
	left = h.waitFor(p, grace, func(left []proc.Process) bool {
		if len(engines) == 0 || slices.ContainsFunc(left, func(one proc.Process) bool { return slices.Contains(engines, one.PID) }) {
			return false
		}
		hollow += stopPoll
		return hollow >= hollowWithin
	})
	if len(left) > 0 && hollow >= hollowWithin {
		h.signal(p, left, syscall.SIGINT)
		left = h.waitFor(p, hollowWithin, nil)
	}
	if len(left) > 0 {
		h.signalAll(p, left, syscall.SIGKILL)
		if left = h.waitFor(p, killWithin, nil); len(left) > 0 {
			return fmt.Errorf("%s does not end, even when killed", listed(left))
		}
	}
	if at.Port() == 0 {
		return nil
	}
	return h.free(at)
}

// engines returns the PIDs of the processes that schedule and run the model, without which
// no request in flight can finish; nil if they cannot be identified.
func (h *host) engines(p *process) (pids []int) {
	tree, err := h.fs.Tree(p.PID)
	if err != nil {
		return nil
	}
	for _, one := range tree {
		if one.Role == proc.EngineCore || one.Role == proc.Worker {
			pids = append(pids, one.PID)
		}
	}
	return pids
}

// waitFor waits until no process of a server runs, the time is over, or enough, which may
// be nil, returns true. It returns the processes that still run.
func (h *host) waitFor(p *process, within time.Duration, enough func(left []proc.Process) bool) []proc.Process {
	for deadline := time.Now().Add(within); ; {
		left := h.unreaped(p, h.alive(p))
		if len(left) == 0 {
			return nil
		}
		if !time.Now().Before(deadline) || enough != nil && enough(left) {
			return left
		}
		time.Sleep(stopPoll)
	}
}

// unreaped adds the launch process to the ones that run if this rooftop started it and its other
// threads still run: the kernel then shows it as a zombie, but does not let it be reaped.
func (h *host) unreaped(p *process, left []proc.Process) []proc.Process {
	if len(left) > 0 || p.ended == nil || p.reaped(stopPoll) {
		return left
	}
	if one, err := h.fs.Find(p.PID); err == nil && one.Ticks == p.Ticks {
		return []proc.Process{one}
	}
	p.reaped(killWithin) // it is being reaped
	return nil
}

// free waits until the port of an ended server is free.
func (h *host) free(at netip.AddrPort) error {
	pids, listening, err := h.holders(at)
	if err != nil || !listening {
		return err
	}
	return &takenError{at, pids}
}

// holders lists the processes that listen at an address, as proc.FS.Holders does, but retries
// for killWithin if the port is in use and no process is visible: the kernel ends a
// program's other threads, and closes its sockets, after its first thread.
func (h *host) holders(at netip.AddrPort) (pids []int, listening bool, err error) {
	for deadline := time.Now().Add(killWithin); ; time.Sleep(stopPoll) {
		pids, listening, err = h.fs.Holders(at)
		if err != nil || !listening || len(pids) > 0 || time.Now().After(deadline) {
			return pids, listening, err
		}
	}
}

// signal signals the whole group of a server that rooftop started, else only the launch
// process, which ends its children itself.
func (h *host) signal(p *process, left []proc.Process, s syscall.Signal) {
	if p.group {
		h.signalAll(p, left, s)
		return
	}
	for _, one := range left {
		if one.PID == p.PID {
			h.send(one, s)
			return
		}
	}
	// The launch process is gone, so nothing else ends the remaining processes.
	h.signalAll(p, left, s)
}

// signalAll signals the group of a server and each process of it outside the group.
func (h *host) signalAll(p *process, left []proc.Process, s syscall.Signal) {
	grouped := false
	if p.session && slices.ContainsFunc(left, func(one proc.Process) bool { return one.PID == p.PID }) {
		grouped = syscall.Kill(-p.PID, s) == nil
	}
	for _, one := range left {
		if grouped && s == syscall.SIGTERM && h.inGroup(one.PID, p.PID) {
			continue // a second SIGTERM would make the server abort
		}
		h.send(one, s)
	}
}

func (h *host) inGroup(pid, group int) bool {
	g, err := syscall.Getpgid(pid)
	return err == nil && g == group
}

// send signals one process, unless its PID was reused.
func (h *host) send(one proc.Process, s syscall.Signal) {
	now, err := h.fs.Find(one.PID)
	if err != nil || now.Ticks != one.Ticks {
		return
	}
	if now.State == "T" && s == syscall.SIGTERM {
		// A stopped process receives the signal only once it continues.
		defer func() { _ = syscall.Kill(one.PID, syscall.SIGCONT) }()
	}
	if err := syscall.Kill(one.PID, s); err != nil && !errors.Is(err, syscall.ESRCH) {
		return
	}
}

func listed(list []proc.Process) string {
	var words []string
	for _, one := range list {
		words = append(words, fmt.Sprintf("process %d (%s)", one.PID, one.Comm))
	}
	return strings.Join(words, ", ")
}
