//go:build e2e

package proc

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestE2ETreeInPIDNamespace follows a tree into a PID namespace, as a container has
// one, and finds its processes by the numbers that they have there.
func TestE2ETreeInPIDNamespace(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("NOT CHECKED: a tree in a PID namespace of its own; to make one needs root")
	}
	cmd := exec.Command("bash", "-c", "sleep 1000 & wait")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // the namespace's init: all in it end
		_ = cmd.Wait()
	})
	f, err := Open("/proc")
	if err != nil {
		t.Fatal(err)
	}
	var now time.Duration
	s, err := f.NewSampler(cmd.Process.Pid, func() time.Duration { return now })
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for deadline := time.Now().Add(3 * time.Minute); len(s.members) < 2; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the child of the namespace's init is not found: %+v", s.Tree())
		}
		now += slowEvery
		s.Sample()
	}
	if look := last(s); look.Processes[0].CPU <= 0 || !s.members[0].exact {
		t.Errorf("CPU time of a process in another namespace: %+v", look.Processes[0])
	}
	inner, err := f.Inner(1)
	if err != nil || !slices.Contains(inner, cmd.Process.Pid) {
		t.Errorf("processes that are number 1 of a namespace: %v, %v; want %d among them", inner, err, cmd.Process.Pid)
	}
	if pid, note, err := f.PID(1); pid != 1 || note != "" || err != nil {
		t.Errorf("PID 1 of this machine = %d, %q, %v", pid, strings.TrimSpace(note), err)
	}
}
