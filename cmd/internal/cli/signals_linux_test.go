package cli

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A run under nohup survives its terminal.
func TestAnIgnoredHangUpStaysIgnored(t *testing.T) {
	caught := make(chan os.Signal, 1)
	signal.Notify(caught, syscall.SIGHUP) // the test may itself run under nohup
	signal.Stop(caught)
	if !slices.Contains(endings(), os.Signal(syscall.SIGHUP)) {
		t.Error("a hang-up does not end a run that was started in a terminal")
	}
	signal.Ignore(syscall.SIGHUP)
	defer signal.Reset(syscall.SIGHUP)
	if slices.Contains(endings(), os.Signal(syscall.SIGHUP)) {
		t.Error("a hang-up ends a run that was started to ignore it")
	}
}

// A shell that starts with an ignored signal cannot undo that: pipelines of programs called by
// rooftop would fail in unusual ways.
func TestProgramsDoNotInheritBrokenPipes(t *testing.T) {
	CatchBrokenPipes()
	defer signal.Reset(syscall.SIGPIPE)
	out, err := exec.CommandContext(t.Context(), "grep", "SigIgn", "/proc/self/status").Output()
	if err != nil {
		t.Fatal(err)
	}
	ignored, err := strconv.ParseUint(strings.Fields(string(out))[1], 16, 64)
	if err != nil {
		t.Fatal(err)
	}
	if ignored&(1<<(syscall.SIGPIPE-1)) != 0 {
		t.Errorf("signal %d is ignored: %s", syscall.SIGPIPE, out)
	}
}

// The second SIGQUIT ends the process, also with a stderr that no one reads: no stacks are printed.
func TestASecondQuitEnds(t *testing.T) {
	if os.Getenv("ROOFTOP_TEST_QUIT") != "" {
		ctx, stop := SignalContext()
		defer stop()
		fmt.Println("ready")
		<-ctx.Done()
		fmt.Println("ended")
		select {}
	}
	reads, writes, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer reads.Close()
	fd := int(writes.Fd())
	if err := syscall.SetNonblock(fd, true); err != nil {
		t.Fatal(err)
	}
	for err == nil { // the pipe is full
		_, err = syscall.Write(fd, make([]byte, 4096))
	}
	if err := syscall.SetNonblock(fd, false); err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestASecondQuitEnds$")
	c.Env = append(os.Environ(), "ROOFTOP_TEST_QUIT=1")
	c.Stderr = writes
	stdout, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	said := bufio.NewScanner(stdout)
	for said.Scan() && said.Text() != "ready" {
	}
	ended := make(chan error, 1)
	_ = c.Process.Signal(syscall.SIGQUIT)
	said.Scan()
	go func() { ended <- c.Wait() }()
	for again := time.NewTicker(50 * time.Millisecond); ; { // one within 250 ms belongs to the first
		select {
		case <-again.C:
			_ = c.Process.Signal(syscall.SIGQUIT)
		case err := <-ended:
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.ExitCode() != 128+int(syscall.SIGQUIT) {
				t.Errorf("it ended with %v", err)
			}
			return
		}
	}
}
