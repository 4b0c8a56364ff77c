//go:build e2e && linux

package main_test

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/programtest"
)

// Deadlines for texts on a screen, which only a hang reaches: the texts appear within moments, or after some windows.
const (
	soon   = 3 * time.Minute // a key's effect, a first frame, an end
	aWhile = 5 * time.Minute // for some windows of measuring
)

// named returns rooftop under its own name, by which a simulated server is distinguished from other processes. It is
// in a separate directory, where an earlier run of the same test binary may have left it.
var named = sync.OnceValues(func() (string, error) {
	path, err := binary()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(filepath.Dir(path), "named")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	link := filepath.Join(dir, "rooftop")
	if err := os.Symlink(path, link); err != nil && !errors.Is(err, os.ErrExist) {
		return "", err
	}
	return link, nil
})

// screen is a terminal in which rooftop is called by its name.
type screen struct {
	*Terminal
	t *testing.T
}

// openScreen opens a terminal of a size with rooftop on its path, and additional environment variables.
func openScreen(t *testing.T, width, height int, env ...string) *screen {
	t.Helper()
	path := builtByName(t)
	env = append([]string{"PATH=" + filepath.Dir(path) + ":" + os.Getenv("PATH")}, env...)
	return &screen{openTmux(t, width, height, env...), t}
}

// start types a command line, followed by commands that show its exit code and whether the terminal is as before.
func (x *screen) start(args ...string) {
	x.t.Helper()
	x.Type("S=$(stty -g); rooftop " + strings.Join(args, " ") + "; " + x.ending())
}

// ending prints the exit code and whether the modes of the terminal, echo among
// them, are the same as before.
func (x *screen) ending() string {
	return `echo "[exit $?, tty $([ "$S" = "$(stty -g)" ] && echo same || echo changed)]"`
}

// started starts the screen and waits until it shows a text.
func (x *screen) started(text string, args ...string) string {
	x.t.Helper()
	x.start(args...)
	frame := x.Await(text, soon)
	if !x.Alternate() {
		x.t.Errorf("the screen is not on the alternate screen:\n%s", boxedText(frame))
	}
	return frame
}

// pid returns the PID of rooftop in the shell.
func (x *screen) pid() int {
	x.t.Helper()
	shell := x.ShellPID()
	for begin := time.Now(); time.Since(begin) < soon; time.Sleep(20 * time.Millisecond) {
		text, _ := os.ReadFile(filepath.Join("/proc", shell, "task", shell, "children"))
		for _, child := range strings.Fields(string(text)) {
			name, _ := os.ReadFile(filepath.Join("/proc", child, "comm"))
			if strings.HasPrefix(string(name), "rooftop") {
				pid, _ := strconv.Atoi(child)
				return pid
			}
		}
	}
	x.t.Fatal("no rooftop runs in the terminal")
	return 0
}

// exited matches the output of ending.
var exited = regexp.MustCompile(`\[exit \d+, tty \w+\]`)

// ended waits for the end of rooftop, compares the terminal that it leaves with the one it found, and returns the
// normal screen.
func (x *screen) ended(codes ...int) string {
	x.t.Helper()
	x.AwaitThat("an exit code", soon, exited.MatchString)
	x.AwaitNormal(soon)
	left := x.History()
	if !slices.ContainsFunc(codes, func(code int) bool { return strings.Contains(left, fmt.Sprintf("[exit %d, tty same]", code)) }) {
		x.t.Errorf("want one of the exit codes %v, and the same terminal:\n%s", codes, boxedText(left))
	}
	if !x.Cursor() {
		x.t.Error("the cursor is hidden")
	}
	if x.Mouse() {
		x.t.Error("the mouse is still taken")
	}
	x.Type("clear; echo it is $((1+1)) typed")
	x.Await("it is 2 typed", soon)
	return left
}

// simulated is `rooftop sim` with load from `rooftop load`, in separate processes.
type simulated struct {
	t    *testing.T
	at   netip.AddrPort
	sim  *child
	load *child
}

// child is a process that a test started and ends.
type child struct {
	cmd    *exec.Cmd
	output bytes.Buffer
	gone   chan struct{}
}

func spawn(t *testing.T, args ...string) *child {
	t.Helper()
	path := builtByName(t)
	c := &child{cmd: exec.Command(path, args...), gone: make(chan struct{})}
	c.cmd.Stdout, c.cmd.Stderr = &c.output, &c.output
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	started := make(chan error)
	go func() {
		// The death signal comes when the starting thread ends.
		runtime.LockOSThread()
		defer close(c.gone)
		err := c.cmd.Start()
		started <- err
		if err == nil {
			_ = c.cmd.Wait()
		}
	}()
	must(t, <-started)
	t.Cleanup(c.kill)
	return c
}

func (c *child) kill() {
	_ = c.cmd.Process.Kill()
	<-c.gone
}

// Slots of the simulated server, and clients: most of them wait.
const (
	fewSlots   = "4"
	simClients = "24"
)

// startSimulated starts a server that has too few slots, with load.
func startSimulated(t *testing.T) *simulated {
	t.Helper()
	s := &simulated{t: t, at: programtest.Address(t)}
	s.start(fewSlots)
	s.load = spawn(t, "load", "--url", s.url(), "--clients", simClients, "--prompt-tokens", "100-300", "--output-tokens", "50-150",
		"--stagger", "1s", "--duration", "0")
	return s
}

// start starts the server, or restarts it, with a number of slots.
func (s *simulated) start(slots string) {
	s.t.Helper()
	s.sim = spawn(s.t, "sim", "meta-llama/Llama-3.1-8B-Instruct", "--max-num-seqs", slots, "--max-model-len", "8192",
		"--sim-gpu", "A100-SXM4-80GB", "--sim-startup-time", "1s", "--host", s.at.Addr().String(), "--port", strconv.Itoa(int(s.at.Port())))
	v := vllm{at: s.at}
	for begin := time.Now(); !v.answers(s.t.Context(), "/health"); time.Sleep(50 * time.Millisecond) {
		select {
		case <-s.sim.gone:
			s.t.Fatalf("the simulated server ended:\n%s", s.sim.output.String())
		default:
		}
		if time.Since(begin) > soon {
			s.t.Fatalf("the simulated server does not answer")
		}
	}
}

func (s *simulated) url() string { return url(s.at) }

// gone waits until a process that is not a child of the test has ended.
func gone(pid int, within time.Duration) bool {
	for deadline := time.Now().Add(within); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			return true
		}
		// An orphan may be left as a zombie if no process reaps it.
		if text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err != nil || bytes.Contains(text, []byte(") Z ")) {
			return true
		}
	}
	return false
}
