package proc

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestSamplerManyChildren reads a real tree with more children than the kernel lists at a time: everything of an own
// process can be read, its CPU time by its clock, and the kernel reports its end.
func TestSamplerManyChildren(t *testing.T) {
	const many = 900
	cmd := exec.Command("sh", "-c", fmt.Sprintf("i=0; while [ $i -lt %d ]; do sleep 1000 & i=$((i+1)); done; echo ready; wait", many))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stop := sync.OnceFunc(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
	})
	defer stop()
	if _, err := bufio.NewReader(stdout).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	f, err := Open("/proc")
	if err != nil {
		t.Fatal(err)
	}
	s, err := f.NewSampler(cmd.Process.Pid, func() time.Duration { return 0 })
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	s.Deep()
	look := last(s)
	if len(look.Processes) != 1+many || look.Partial || s.Tree().CPUs < 1 {
		t.Errorf("%d processes, partial %v, %d CPUs; want %d", len(look.Processes), look.Partial, s.Tree().CPUs, 1+many)
	}
	if p := look.Processes[0]; p.CPU <= 0 || p.CPU%(10*time.Millisecond) == 0 || p.RSSBytes <= 0 || !p.RunWaitSeconds.OK {
		t.Errorf("process %+v", p)
	}
	stop()
	for range 100 { // until the last of them is gone
		if s.Sample(); last(s).Error != "" {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Errorf("%d processes after the end of all", len(last(s).Processes))
}

// TestHidden distinguishes processes that hidepid hides from those that have ended.
func TestHidden(t *testing.T) {
	f, err := Open("/proc")
	if err != nil {
		t.Fatal(err)
	}
	const unused = 1<<22 + 1 // PIDs are smaller
	for name, tt := range map[string]struct {
		pid  int
		err  error
		want bool
	}{
		"there, and not shown": {os.Getpid(), unix.ENOENT, true},
		"may not be opened":    {unused, unix.EACCES, true},
		"too many open files":  {unused, unix.EMFILE, true},
		"ended":                {unused, unix.ENOENT, false},
		"ended while opened":   {unused, errGone, false},
	} {
		if got := f.hidden(tt.pid, tt.err); got != tt.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	if !isProc("/proc/loadavg") || isProc(t.TempDir()) {
		t.Error("a procfs is not distinguished from other file systems")
	}
}
