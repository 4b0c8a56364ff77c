//go:build e2e

package proc

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// TestE2ETreeAgainstItsControlGroup samples, by its wrapper's PID, a program that a shell started in the background with
// its output sent to a file, while children of it and of these come and go, some in less time than a look takes to come
// round. The kernel's own account of the control group is the measure of CPU time.
func TestE2ETreeAgainstItsControlGroup(t *testing.T) {
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(t.TempDir(), "log")
	cmd := exec.Command("bash", "-c", `"$0" > "$1" 2>&1 & wait`, binary, log)
	cmd.Env = append(os.Environ(), roleVariable+"=churn")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	own := ""
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // the group that we made
		_ = cmd.Wait()
		removeGroup(t, own)
	})
	f, err := Open("/proc")
	if err != nil {
		t.Fatal(err)
	}
	if own = ownGroup(t, f, cmd.Process.Pid); own == "" {
		t.Skip("NOT CHECKED: CPU time of a tree; no control group can be made here")
	}
	origin := time.Now()
	s, err := f.NewSampler(cmd.Process.Pid, func() time.Duration { return time.Since(origin) })
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	up := func() bool {
		s.Sample()
		var rss int64
		threads := 0
		for _, p := range last(s).Processes {
			rss, threads = rss+p.RSSBytes, threads+p.Threads
		}
		return rss >= churnMB<<20 && threads > churnThreads // the shell has a thread, too
	}
	for deadline := time.Now().Add(3 * time.Minute); !up(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			text, _ := os.ReadFile(log)
			t.Fatalf("the program does not come up: %s", text)
		}
	}
	group := func() float64 { // seconds
		if ns, ok := number64(own, "cpuacct.usage"); ok {
			return float64(ns) / 1e9
		}
		us, _ := cpuStat(own, "usage_usec")
		return float64(us) / 1e6
	}
	before, begin := group(), time.Since(origin)
	for time.Since(origin) < begin+10*time.Second {
		time.Sleep(50 * time.Millisecond)
		s.Sample()
	}
	stop := time.Since(origin)
	s.Sample()
	used := group() - before

	tree := s.Tree()
	u := tree.Usage(begin, stop)
	cpu := u.Total.CPUSeconds.V
	t.Logf("%d looks, %d processes seen; CPU %.3f s, control group %.3f s; peak %.2f cores; RSS %.1f MiB, %.1f threads",
		len(tree.Samples), len(tree.Processes), cpu, used, u.Total.CPU.Peak.V, u.Total.RSS.Mean.V/(1<<20), u.Total.Threads.Mean.V)
	if len(tree.Processes) < 10 || cpu < 1 {
		t.Errorf("%d processes used %.2f s of CPU: the case is not what it is for", len(tree.Processes), cpu)
	}
	const tick = 0.01 // seconds, to which the kernel cuts the time of ended children
	if math.Abs(cpu-used) > 0.02*used+2*tick {
		t.Errorf("CPU: %v s, control group %v s, which is %+.1f %%", cpu, used, 100*(cpu/used-1))
	}
	// The shells, and the runtime of the program, have some as well.
	if mb, threads := u.Total.RSS.Mean.V/(1<<20), u.Total.Threads.Mean.V; mb < churnMB || mb > 1.2*churnMB || threads < churnThreads || threads > 1.2*churnThreads {
		t.Errorf("%.1f MiB and %.1f threads, want little more than %d and %d", mb, threads, churnMB, churnThreads)
	}
}

// ownGroup moves a process to a control group of its own, if this test may make one; "" if it
// may not.
func ownGroup(t *testing.T, f FS, pid int) string {
	t.Helper()
	for _, base := range []string{"/sys/fs/cgroup/cpuacct", "/sys/fs/cgroup"} {
		dir := fmt.Sprintf("%s/rooftop-test-%d", base, pid)
		if os.Mkdir(dir, 0o755) != nil {
			continue
		}
		move := func(pid int) error { return os.WriteFile(dir+"/cgroup.procs", []byte(strconv.Itoa(pid)), 0) }
		if move(pid) != nil {
			_ = os.Remove(dir)
			return ""
		}
		// What the shell has started already stays where it was: all of them move.
		tree, _ := f.Tree(pid)
		for _, p := range tree {
			_ = move(p.PID)
		}
		return dir
	}
	return ""
}

// removeGroup removes a control group once its processes are gone.
func removeGroup(t *testing.T, dir string) {
	t.Helper()
	for range 100 {
		if dir == "" || os.Remove(dir) == nil {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Errorf("%s is left behind", dir)
}
