//go:build e2e && linux

package main_test

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// managed is a server that a manager runs on a machine, with clients that need more than its slots.
type managed interface {
	tune(further ...string) *exec.Cmd
	// recover restores the server after a killed run; n is the number of the run.
	recover(n int) *exec.Cmd
	// address is the name of the server on rooftop's command line.
	address() string
	// output runs a command on the machine that must succeed.
	output(argv ...string) string
	// state returns what must be as before once a change is reverted. It checks that the manager runs its configuration.
	state() any
	// keeps reports whether the later of two states has a change that was kept.
	keeps(before, after any) bool
}

// testKept has rooftop tune a server, and checks that it kept a change. It returns everything that rooftop printed.
func testKept(t *testing.T, s managed) (printed string) {
	t.Helper()
	before := s.state()
	var said bytes.Buffer
	cmd := s.tune()
	cmd.Stderr = &said
	out, err := cmd.Output()
	events := eventsOf(t, out)
	if code := cmd.ProcessState.ExitCode(); code != 0 && code != 3 {
		t.Fatalf("%v: %s\n%s", err, said.String(), told(events))
	}
	if after := s.state(); len(ofType(events, "kept")) == 0 || !s.keeps(before, after) {
		t.Errorf("it kept nothing, or changed more than that:\n%s\n%s", cmp.Diff(before, after), told(events))
	}
	return said.String() + string(out)
}

// testPutBack has rooftop change servers with changes that are reverted: a change with which the server does not
// start (at a port above 9000), one that is interrupted, and those of a rooftop that is killed. start makes a server
// from a number and a port.
func testPutBack(t *testing.T, start func(t *testing.T, n, port int) managed) {
	asBefore := func(t *testing.T, s managed, before any, when string) {
		t.Helper()
		if diff := cmp.Diff(before, s.state()); diff != "" {
			t.Errorf("%s: it is not as before:\n%s", when, diff)
		}
	}
	t.Run("does not start", func(t *testing.T) {
		t.Parallel()
		s := start(t, 0, 9001)
		before := s.state()
		out, _ := s.tune().Output()
		if events := eventsOf(t, out); !strings.Contains(told(ofType(events, "error")), "ValueError: 100% of the memory is taken") {
			t.Errorf("no reason why it does not start:\n%s", told(events))
		}
		asBefore(t, s, before, "after a change that does not start")
	})
	t.Run("interrupted", func(t *testing.T) {
		t.Parallel()
		s := start(t, 0, 8002)
		before := s.state()
		cmd, events := untilEvent(t, s.tune(), "server-up")
		s.output("pkill", "-INT", "-f", "tune .*"+s.address())
		_, _ = io.Copy(io.Discard, events)
		_ = cmd.Wait()
		asBefore(t, s, before, "interrupted")
	})
	kills, _ := strconv.Atoi(os.Getenv("ROOFTOP_E2E_KILLS"))
	for n := range max(kills, 4) {
		t.Run(fmt.Sprintf("killed %d", n), func(t *testing.T) {
			t.Parallel()
			s := start(t, n, 8100+n)
			before := s.state()
			cmd, _ := untilEvent(t, s.tune(), "applying")
			after := time.Duration(rand.N(int64(20 * time.Second)))
			if n%2 == 0 {
				after /= 20 // while it is being changed
			}
			time.Sleep(after)
			s.output("pkill", "-KILL", "-f", "tune .*"+s.address())
			_ = cmd.Wait()
			when := fmt.Sprintf("killed %v after its first change began", after)
			if out, err := s.recover(n).CombinedOutput(); err != nil {
				t.Errorf("%s: recover: %v\n%s", when, err, out)
			}
			if !s.keeps(before, s.state()) {
				asBefore(t, s, before, when)
			}
		})
	}
}
