package apply

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/launcher"
	"github.com/rooftop-dev/rooftop/collect/proc"
	"github.com/rooftop-dev/rooftop/engine/journal"
)

// launcherWithin limits the time until a launcher process is ready.
const launcherWithin = 30 * time.Second

// host starts and stops servers on this machine.
type host struct {
	fs    proc.FS
	boot  string
	grace time.Duration // from SIGTERM to SIGKILL
}

// Grace is how long a server may take to end by itself.
const Grace = 30 * time.Second

// graceStarting is how long a server that is not ready yet may take to end by itself.
const graceStarting = 5 * time.Second

func newHost(grace time.Duration) (*host, error) {
	if runtime.GOOS != "linux" {
		return nil, fmt.Errorf("rooftop starts and stops servers itself only on Linux, and this is %s; pass --apply-cmd with a program that does it", runtime.GOOS)
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

// process is a server's launch process and its state.
type process struct {
	journal.Process
	session bool // it leads its own session, whose processes all belong to the server
	group   bool // to stop the server, signal the whole group instead of the launch process

	// Set only if this rooftop started the process:
	ended chan struct{} // closed when the process was reaped; nil if it was found
	state *os.ProcessState
	log   *logTail

	// known has the processes of its tree that were seen so far, PID to start ticks, to
	// find those that outlive the launch process.
	known map[int]uint64
}

// start starts a server with the given standard streams; nil ones are /dev/null. It calls
// record with the process before that becomes the server, and does not start the server
// if record fails. If the error is nil, the program runs.
func (h *host) start(l *launcher.Launch, std [3]*os.File, log *logTail, record func(journal.Process) error) (*process, error) {
	g, err := h.open(l, std)
	if err != nil {
		return nil, err
	}
	p := g.process
	p.log = log
	if err := record(p.Process); err != nil {
		g.close()
		return nil, err
	}
	if err := g.become(); err != nil {
		return nil, err
	}
	return p, nil
}

// rehearse returns why a launch could not be started, without starting it: a launcher
// process assumes the attributes of the launch and then ends.
func (h *host) rehearse(l *launcher.Launch) error {
	g, err := h.open(l, [3]*os.File{})
	if err != nil {
		return err
	}
	g.close()
	return nil
}

// waiting is a launcher process that has assumed the attributes of a launch and waits to
// become the server.
type waiting struct {
	socket  *os.File
	answers *json.Decoder
	process *process
}

// open starts a launcher process, which assumes the attributes of a launch.
func (h *host) open(l *launcher.Launch, std [3]*os.File) (*waiting, error) {
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		return nil, fmt.Errorf("socket pair: %w", err)
	}
	syscall.CloseOnExec(pair[0])
	syscall.CloseOnExec(pair[1])
	ours, theirs := os.NewFile(uintptr(pair[0]), "launcher"), os.NewFile(uintptr(pair[1]), "launcher")
	defer theirs.Close()
	cmd := &exec.Cmd{
		Path: "/proc/self/exe", Args: []string{"rooftop", launcher.Flag}, Env: []string{}, Dir: "/",
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
	g := &waiting{socket: ours, answers: json.NewDecoder(ours), process: &process{
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
	late := time.AfterFunc(launcherWithin, func() { _ = cmd.Process.Kill() })
	defer late.Stop()
	err = json.NewEncoder(ours).Encode(launcher.Order{Launch: l})
	if err == nil {
		err = g.ready()
	}
	if err != nil {
		g.close()
		return nil, err
	}
	return g, nil
}

// ready waits for the launcher's answer.
func (w *waiting) ready() error {
	var a launcher.Answer
	switch err := w.answers.Decode(&a); {
	case err != nil:
		return errors.New("rooftop could not start itself as a launcher: a program that starts servers must call launcher.BecomeServer first")
	case a.Err != "":
		return errors.New(a.Err)
	}
	return nil
}

// become permits the process to become the server and waits until it has.
func (w *waiting) become() error {
	defer w.socket.Close()
	err := json.NewEncoder(w.socket).Encode(launcher.Order{Go: true})
	var a launcher.Answer
	if w.answers.Decode(&a) == nil && a.Err != "" {
		err = errors.New(a.Err)
	}
	if err != nil {
		<-w.process.ended
	}
	return err
}

// close ends a waiting launcher process.
func (w *waiting) close() {
	_ = w.socket.Close()
	<-w.process.ended
}

// adopt returns a process for one that this rooftop did not start.
func (h *host) adopt(p journal.Process) *process {
	a := &process{Process: p, known: map[int]uint64{p.PID: p.Ticks}}
	if s, err := h.fs.Surroundings(p.PID); err == nil && h.same(p) {
		// rooftop starts each server in its own session.
		a.session, a.group = s.Session == p.PID, s.Session == p.PID
	}
	return a
}

// same reports whether a recorded process still runs: its PID was not reused, and it is not
// a zombie.
func (h *host) same(p journal.Process) bool {
	if p.Boot != "" && p.Boot != h.boot {
		return false
	}
	found, err := h.fs.Find(p.PID)
	return err == nil && found.Ticks == p.Ticks && running(found)
}

func running(p proc.Process) bool { return p.State != "Z" && p.State != "X" && p.State != "x" }

// alive lists the running processes of a server, launch process included, by PID. It
// excludes zombies.
func (h *host) alive(p *process) []proc.Process {
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
	var list []proc.Process
	for _, pid := range slices.Sorted(maps.Keys(p.known)) {
		if one, err := h.fs.Find(pid); err == nil && one.Ticks == p.known[pid] && running(one) {
			list = append(list, one)
		}
	}
	return list
}

// ofSession reports whether the session with the process's PID as its ID is still its own.
// The kernel does not reuse a PID while its session has members.
func (h *host) ofSession(p *process) bool {
	if p.Boot != "" && p.Boot != h.boot {
		return false
	}
	found, err := h.fs.Find(p.PID)
	return err != nil || found.Ticks == p.Ticks
}

// over describes how the launch process ended; "" while it runs.
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

// ending describes how a process ended.
func ending(s *os.ProcessState) string {
	if s == nil {
		return "it ended"
	}
	status, ok := s.Sys().(syscall.WaitStatus)
	switch {
	case ok && status.Signaled() && status.Signal() == syscall.SIGKILL:
		return "it was killed (signal 9; unless somebody did it, the machine ran out of memory)"
	case ok && status.Signaled():
		return fmt.Sprintf("it was ended by signal %d (%s)", int(status.Signal()), status.Signal())
	case s.ExitCode() == 0:
		return "it ended with exit status 0"
	}
	return fmt.Sprintf("it ended with exit status %d", s.ExitCode())
}
