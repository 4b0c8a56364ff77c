package apply

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/rooftop-dev/rooftop/collect/proc"
)

// Pace of watching a server end.
const (
	stopPoll = 50 * time.Millisecond
	// killWithin is how long the kernel may take for a process that was killed: one
	// that waits for a device does not end before that answers.
	killWithin = 10 * time.Second
	// hollowWithin is how long an API server may stay when its engine has ended. vLLM
	// 0.32 ends the engine at once when told to (mode=abort) and then waits for the
	// connections of requests that nobody answers any more; Ctrl-C, as it says itself,
	// has it end.
	hollowWithin = 2 * time.Second
)

// takenError says that another process listens on the server's port.
type takenError struct {
	port uint16
	pids []int // may be empty: processes of others cannot be named
}

func (e *takenError) Error() string {
	who := "a process of another user"
	if len(e.pids) > 0 {
		var words []string
		for _, pid := range e.pids {
			words = append(words, strconv.Itoa(pid))
		}
		who = "process " + strings.Join(words, ", ")
	}
	return fmt.Sprintf("port %d is held by %s", e.port, who)
}

// stop ends a server: SIGTERM, and after the grace SIGKILL to whatever is left of
// its tree. It returns when the whole tree is gone and the port is free; a
// takenError says that the tree is gone and another process listens there. Port 0
// is not looked at.
func (h *host) stop(p *process, port uint16, grace time.Duration) error {
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
		left = h.wait(p, hollowWithin)
	}
	if len(left) > 0 {
		h.signalAll(p, left, syscall.SIGKILL)
		if left = h.wait(p, killWithin); len(left) > 0 {
			return fmt.Errorf("%s does not end, even killed", listed(left))
		}
	}
	if port == 0 {
		return nil
	}
	return h.free(port)
}

// engines are the processes of a server that schedule and run the model: without them
// no request in flight can end. None where they are not told apart.
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

// wait waits until nothing of a server runs and returns what does at the end.
func (h *host) wait(p *process, within time.Duration) []proc.Process {
	return h.waitFor(p, within, func([]proc.Process) bool { return false })
}

// waitFor is wait with another reason to end it.
func (h *host) waitFor(p *process, within time.Duration, enough func(left []proc.Process) bool) []proc.Process {
	for deadline := time.Now().Add(within); ; {
		left := h.alive(p)
		if len(left) == 0 {
			if p.ended != nil {
				<-p.ended // reaped
			}
			return nil
		}
		if !time.Now().Before(deadline) || enough(left) {
			return left
		}
		time.Sleep(stopPoll)
	}
}

// free waits for the port of a server that is gone: the kernel closes a socket
// after its process is no longer listed.
func (h *host) free(port uint16) error {
	for deadline := time.Now().Add(killWithin); ; time.Sleep(stopPoll) {
		pids, listening, err := h.fs.Holders(port)
		if err != nil {
			return err
		}
		if !listening {
			return nil
		}
		if len(pids) > 0 || time.Now().After(deadline) {
			return &takenError{port, pids}
		}
	}
}

// holdersPatience is how long a port may be held by nobody who can be seen: the kernel
// ends a program's other threads, and closes its sockets, after its first thread.
const holdersPatience = 2 * time.Second

// holders tells who listens on a port, as proc.FS.Holders does, but looks again for a
// while where nobody can be named.
func (h *host) holders(port uint16) (pids []int, listening bool, err error) {
	for deadline := time.Now().Add(holdersPatience); ; time.Sleep(stopPoll) {
		pids, listening, err = h.fs.Holders(port)
		if err != nil || !listening || len(pids) > 0 || time.Now().After(deadline) {
			return pids, listening, err
		}
	}
}

// signal asks a server to end: its whole group where rooftop started it, else the
// launch process alone, which ends its children itself.
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
	// Its launch process is gone: what it left behind has nobody else to end it.
	h.signalAll(p, left, s)
}

// signalAll signals the group of a server and each process of it beside.
func (h *host) signalAll(p *process, left []proc.Process, s syscall.Signal) {
	grouped := false
	if p.session && slices.ContainsFunc(left, func(one proc.Process) bool { return one.PID == p.PID }) {
		grouped = syscall.Kill(-p.PID, s) == nil
	}
	for _, one := range left {
		if grouped && s == syscall.SIGTERM && h.inGroup(one.PID, p.PID) {
			continue // a second SIGTERM has servers end at once
		}
		h.send(one, s)
	}
}

func (h *host) inGroup(pid, group int) bool {
	g, err := syscall.Getpgid(pid)
	return err == nil && g == group
}

// send signals one process, beyond doubt the one that was seen.
func (h *host) send(one proc.Process, s syscall.Signal) {
	now, err := h.fs.Find(one.PID)
	if err != nil || now.Ticks != one.Ticks {
		return
	}
	if now.State == "T" && s == syscall.SIGTERM {
		// A stopped process takes a signal only once it goes on.
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
