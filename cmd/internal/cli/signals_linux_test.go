package cli

import (
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
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
