package apply

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/rooftop-dev/rooftop/collect/proc"
	"github.com/rooftop-dev/rooftop/engine/journal"
)

// gateWithin bounds what a gate does before it says that it is ready.
const gateWithin = 30 * time.Second

// host starts and stops servers on this machine.
type host struct {
	fs    proc.FS
	boot  string
	grace time.Duration // from SIGTERM to SIGKILL
}

// Grace is how long a server may take to end by itself.
const Grace = 30 * time.Second

// graceStarting is the same for one that is not ready yet.
const graceStarting = 5 * time.Second

func newHost(grace time.Duration) (*host, error) {
	if runtime.GOOS != "linux" {
		return nil, fmt.Errorf("rooftop starts and stops servers itself on Linux alone, and this is %s; give a program that does it with --apply-cmd", runtime.GOOS)
	}
	fs, err := proc.Open("/proc")
	if err != nil {
		return nil, err
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return nil, fmt.Errorf("read boot id: %w", err)
	}
	if grace <= 0 {
		grace = Grace
	}
	return &host{fs: fs, boot: strings.TrimSpace(string(boot)), grace: grace}, nil
}

// process is a server's launch process with what came of it.
type process struct {
	journal.Process
	session bool // it leads a session of its own, whose processes are all the server's
	group   bool // all of them are asked to end, not the launch process alone

	// Of one that was started here:
	ended chan struct{} // closed when it was reaped; nil of a found one
	state *os.ProcessState
	log   *logTail

	// known are the processes of its tree that were seen so far, by PID, with their
	// start ticks: those that outlive it are stragglers.
	known map[int]uint64
}

// start starts a server with given standard streams; missing ones are /dev/null.
// Written is told the process before it becomes the server, and where it fails the
// server is not started. A nil error says that the program runs.
func (h *host) start(l *Launch, std [3]*os.File, log *logTail, written func(journal.Process) error) (*process, error) {
	g, err := h.open(l, std)
	if err != nil {
		return nil, err
	}
	p := g.process
	p.log = log
	if err := written(p.Process); err != nil {
		g.close()
		return nil, err
	}
	if err := g.pass(); err != nil {
		return nil, err
	}
	return p, nil
}

// rehearse says why a launch could not be started, without starting it: what it is
// to have is taken on by a process that then ends.
func (h *host) rehearse(l *Launch) error {
	g, err := h.open(l, [3]*os.File{})
	if err != nil {
		return err
	}
	g.close()
	return nil
}

// gate is a process that waits to become a server.
type gate struct {
	socket  *os.File
	answers *json.Decoder
	process *process
}

// open has a gate take on what a launch is to have.
func (h *host) open(l *Launch, std [3]*os.File) (*gate, error) {
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		return nil, fmt.Errorf("socket pair: %w", err)
	}
	syscall.CloseOnExec(pair[0])
	syscall.CloseOnExec(pair[1])
	ours, theirs := os.NewFile(uintptr(pair[0]), "gate"), os.NewFile(uintptr(pair[1]), "gate")
	defer theirs.Close()
	cmd := &exec.Cmd{
		Path: "/proc/self/exe", Args: []string{"rooftop", gateFlag}, Env: []string{}, Dir: "/",
		ExtraFiles: []*os.File{theirs}, SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
	if std[0] != nil {
		cmd.Stdin = std[0]
	}
	if std[1] != nil {
		cmd.Stdout = std[1]
	}
	if std[2] != nil {
		cmd.Stderr = std[2]
	}
	if err := cmd.Start(); err != nil {
		ours.Close()
		return nil, fmt.Errorf("start a process: %w", err)
	}
	g := &gate{socket: ours, answers: json.NewDecoder(ours), process: &process{
		session: true, group: true, ended: make(chan struct{}), known: map[int]uint64{},
	}}
	p := g.process
	p.PID, p.Boot = cmd.Process.Pid, h.boot
	if found, err := h.fs.Find(p.PID); err == nil {
		p.Ticks = found.Ticks
	}
	p.known[p.PID] = p.Ticks
	go func() {
		_ = cmd.Wait()
		p.state = cmd.ProcessState
		close(p.ended)
	}()
	late := time.AfterFunc(gateWithin, func() { _ = cmd.Process.Kill() })
	defer late.Stop()
	err = json.NewEncoder(ours).Encode(gateOrder{Launch: l})
	if err == nil {
		err = g.heard()
	}
	if err != nil {
		g.close()
		return nil, err
	}
	return g, nil
}

// heard is what a gate has to say.
func (g *gate) heard() error {
	var a gateAnswer
	switch err := g.answers.Decode(&a); {
	case err != nil:
		return errors.New("rooftop could not start itself for this: a program that starts servers calls apply.BecomeServer first")
	case a.Err != "":
		return errors.New(a.Err)
	}
	return nil
}

// pass lets a process through. It is the server then: nothing is left of the gate.
func (g *gate) pass() error {
	defer g.socket.Close()
	err := json.NewEncoder(g.socket).Encode(gateOrder{Go: true})
	var a gateAnswer
	if g.answers.Decode(&a) == nil && a.Err != "" {
		err = errors.New(a.Err)
	}
	if err != nil {
		<-g.process.ended
	}
	return err
}

// close ends a process at the gate.
func (g *gate) close() {
	_ = g.socket.Close()
	<-g.process.ended
}

// adopt takes a process that was found, as a record or a search names it.
func (h *host) adopt(p journal.Process) *process {
	a := &process{Process: p, known: map[int]uint64{p.PID: p.Ticks}}
	if s, err := h.fs.Surroundings(p.PID); err == nil && h.same(p) {
		// rooftop starts each server in a session of its own.
		a.session, a.group = s.Session == p.PID, s.Session == p.PID
	}
	return a
}

// same says that a process of a record still is that one and no zombie.
func (h *host) same(p journal.Process) bool {
	if p.Boot != "" && p.Boot != h.boot {
		return false
	}
	found, err := h.fs.Find(p.PID)
	return err == nil && found.Ticks == p.Ticks && running(found)
}

func running(p proc.Process) bool { return p.State != "Z" && p.State != "X" && p.State != "x" }

// alive lists the processes of a server that run, its launch process among them,
// by PID. Ended ones that nobody reaps are not.
func (h *host) alive(p *process) []proc.Process {
	found := map[int]proc.Process{}
	note := func(list []proc.Process) {
		for _, one := range list {
			if _, seen := p.known[one.PID]; !seen {
				p.known[one.PID] = one.Ticks
			}
		}
	}
	for pid, ticks := range p.known {
		one, err := h.fs.Find(pid)
		if err != nil || one.Ticks != ticks {
			continue
		}
		if tree, err := h.fs.Tree(pid); err == nil {
			note(tree)
		}
	}
	if p.session && h.ofSession(p) {
		note(h.fs.Members(p.PID))
	}
	for pid, ticks := range p.known {
		if one, err := h.fs.Find(pid); err == nil && one.Ticks == ticks && running(one) {
			found[pid] = one
		}
	}
	list := make([]proc.Process, 0, len(found))
	for _, one := range found {
		list = append(list, one)
	}
	slices.SortFunc(list, func(a, b proc.Process) int { return a.PID - b.PID })
	return list
}

// ofSession says that the session of a process's number is still its own: a number
// is not used again while its session has members.
func (h *host) ofSession(p *process) bool {
	if p.Boot != "" && p.Boot != h.boot {
		return false
	}
	found, err := h.fs.Find(p.PID)
	return err != nil || found.Ticks == p.Ticks
}

// over says that the launch process ended, and how in words; "" while it runs.
func (h *host) over(p *process) string {
	if p.ended != nil {
		select {
		case <-p.ended:
			return ending(p.state)
		default:
			return ""
		}
	}
	if h.same(p.Process) {
		return ""
	}
	return "it ended"
}

// ending says how a process ended.
func ending(s *os.ProcessState) string {
	if s == nil {
		return "it ended"
	}
	status, ok := s.Sys().(syscall.WaitStatus)
	switch {
	case ok && status.Signaled() && status.Signal() == syscall.SIGKILL:
		return "it was killed (signal 9: where nobody did it, the machine ran out of memory)"
	case ok && status.Signaled():
		return fmt.Sprintf("it was ended by signal %d (%s)", int(status.Signal()), status.Signal())
	case s.ExitCode() == 0:
		return "it ended with exit status 0"
	}
	return fmt.Sprintf("it ended with exit status %d", s.ExitCode())
}
