package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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

// launcherWithin limits the time until a launcher process is ready, and then the time until it
// has become the server.
const launcherWithin = 30 * time.Second

// host starts and stops servers on this machine.
type host struct {
	fs    proc.FS
	boot  string
	grace time.Duration // from SIGTERM to SIGKILL

	// Only tests change these:
	self     string        // program of a launcher process
	launches time.Duration // launcherWithin
	restores time.Duration // RestoreWithin
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
	return &host{
		fs: fs, boot: strings.TrimSpace(string(boot)), grace: grace,
		self: "/proc/self/exe", launches: launcherWithin, restores: RestoreWithin,
	}, nil
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
// if record fails. If the error is nil, the program runs; after an error, nothing does.
func (h *host) start(ctx context.Context, l *launcher.Launch, std [3]*os.File, log *logTail, record func(journal.Process) error) (*process, error) {
	w, err := h.open(ctx, l, std)
	if err != nil {
		return nil, err
	}
	p := w.process
	p.log = log
	if err := record(p.Process); err != nil {
		return nil, errors.Join(err, w.close())
	}
	if err := w.become(ctx); err != nil {
		return nil, err
	}
	return p, nil
}

// rehearse returns why a launch could not be started, without starting it: a launcher
// process assumes the attributes of the launch and is then ended.
func (h *host) rehearse(ctx context.Context, l *launcher.Launch) error {
	w, err := h.open(ctx, l, [3]*os.File{})
	if err != nil {
		return err
	}
	return w.close()
}

// waiting is a launcher process that has assumed the attributes of a launch and waits to
// become the server.
type waiting struct {
	host    *host
	socket  *os.File
	answers *json.Decoder
	process *process
	kill    func() error
}

// open starts a launcher process, which assumes the attributes of a launch.
func (h *host) open(ctx context.Context, l *launcher.Launch, std [3]*os.File) (*waiting, error) {
	ours, theirs, err := socketPair()
	if err != nil {
		return nil, fmt.Errorf("socket pair: %w", err)
	}
	cmd := &exec.Cmd{
		Path: h.self, Args: []string{"rooftop", launcher.Flag}, Env: []string{}, Dir: "/",
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
	err = cmd.Start()
	// As long as this process has that end too, reads do not end with the launcher.
	_ = theirs.Close()
	if err != nil {
		_ = ours.Close()
		return nil, fmt.Errorf("start a process: %w", err)
	}
	w := &waiting{host: h, socket: ours, answers: json.NewDecoder(ours), kill: cmd.Process.Kill, process: &process{
		session: true, group: true, ended: make(chan struct{}), known: map[int]uint64{},
	}}
	p := w.process
	p.PID, p.Boot = cmd.Process.Pid, h.boot
	if found, err := h.fs.Find(p.PID); err == nil {
		p.Ticks = found.Ticks
	}
	p.known[p.PID] = p.Ticks
	go func() {
		_ = cmd.Wait() // all streams are files, so that it waits for nothing but the process
		p.state = cmd.ProcessState
		close(p.ended)
	}()
	if err := w.limited(ctx, func() error {
		if err := json.NewEncoder(w.socket).Encode(launcher.Order{Launch: l}); err != nil {
			return err
		}
		return w.answer()
	}); err != nil {
		return nil, err
	}
	return w, nil
}

// socketPair returns two connected sockets that no program inherits, the first with deadlines.
func socketPair() (ours, theirs *os.File, err error) {
	// No other goroutine may start a program before the sockets close on exec.
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		return nil, nil, err
	}
	syscall.CloseOnExec(pair[0])
	syscall.CloseOnExec(pair[1])
	if err := syscall.SetNonblock(pair[0], true); err != nil {
		return nil, nil, errors.Join(err, syscall.Close(pair[0]), syscall.Close(pair[1]))
	}
	return os.NewFile(uintptr(pair[0]), "launcher"), os.NewFile(uintptr(pair[1]), "launcher"), nil
}

// answer reads an answer of the launcher.
func (w *waiting) answer() error {
	var a launcher.Answer
	if err := w.answers.Decode(&a); err != nil {
		return err
	}
	if a.Err != "" {
		return &refusedError{a.Err}
	}
	return nil
}

// refusedError is why a launcher cannot become the server, in its words.
type refusedError struct{ why string }

func (e *refusedError) Error() string { return e.why }

// limited calls talk, which exchanges messages with the launcher, until the time of a launcher is
// over or ctx ends. After an error the launcher has ended.
func (w *waiting) limited(ctx context.Context, talk func() error) error {
	_ = w.socket.SetDeadline(time.Now().Add(w.host.launches))
	stop := context.AfterFunc(ctx, func() { _ = w.socket.SetDeadline(time.Unix(0, 1)) })
	err := talk()
	stop()
	if err == nil {
		return nil
	}
	left := w.close()
	refused := new(refusedError)
	switch {
	case errors.As(err, &refused):
	case errors.Is(err, os.ErrDeadlineExceeded) && ctx.Err() != nil:
		err = context.Cause(ctx)
	case errors.Is(err, os.ErrDeadlineExceeded):
		err = fmt.Errorf("the launcher (process %d) did not answer within %v", w.process.PID, w.host.launches)
	case left == nil: // it closed the socket
		err = fmt.Errorf("the launcher (process %d) does not start the server: %s", w.process.PID, ending(w.process.state))
	}
	return errors.Join(err, left)
}

// become permits the process to become the server and waits until it has.
func (w *waiting) become(ctx context.Context) error {
	err := w.limited(ctx, func() error {
		if err := json.NewEncoder(w.socket).Encode(launcher.Order{Go: true}); err != nil {
			return err
		}
		// The socket closes when the program is executed; until then it is the launcher.
		if err := w.answer(); !errors.Is(err, io.EOF) {
			return err
		}
		return nil
	})
	_ = w.socket.Close()
	return err
}

// close ends the launcher process, which may be stopped, and waits until it is reaped.
func (w *waiting) close() error {
	_ = w.socket.Close()
	_ = w.kill() // fails if it has ended
	if !w.process.reaped(killWithin) {
		return fmt.Errorf("the launcher (process %d) does not end, even when killed", w.process.PID)
	}
	return nil
}

// reaped waits until a process that this rooftop started is reaped, and reports whether it is.
func (p *process) reaped(within time.Duration) bool {
	t := time.NewTimer(within)
	defer t.Stop()
	select {
	case <-p.ended:
		return true
	case <-t.C:
		return false
	}
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

const endedWell = "it ended with exit status 0"

// ending describes how a process ended.
func ending(s *os.ProcessState) string {
	if s == nil {
		return "it ended"
	}
	status, ok := s.Sys().(syscall.WaitStatus)
	switch {
	case ok && status.Signaled() && status.Signal() == syscall.SIGKILL:
		return "it was killed (signal 9; unless someone did it, the machine ran out of memory)"
	case ok && status.Signaled():
		return fmt.Sprintf("it was ended by signal %d (%s)", int(status.Signal()), status.Signal())
	case s.ExitCode() == 0:
		return endedWell
	}
	return fmt.Sprintf("it ended with exit status %d", s.ExitCode())
}
