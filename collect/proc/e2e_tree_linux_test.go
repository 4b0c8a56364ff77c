//go:build e2e

package proc

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// nearShare is how far from an independent reading the issue allows a figure to be.
const nearShare = 0.02

// totals are what a tree uses, read by a few lines of this test's own: from status
// and stat of every process of the machine, by their parents.
type totals struct {
	cpu       float64 // seconds, children that were waited for included
	rss       float64 // bytes
	threads   float64
	processes int
	levels    int
}

func totalsOf(t *testing.T, root int) totals {
	t.Helper()
	parents, cpu := map[int]int{}, map[int]float64{}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			continue
		}
		fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
		parents[pid], _ = strconv.Atoi(fields[1])
		for _, f := range fields[11:15] {
			n, _ := strconv.ParseFloat(f, 64)
			cpu[pid] += n / 100
		}
	}
	var sum totals
	for pid := range parents {
		level := levelBelow(pid, root, parents)
		if level == 0 {
			continue
		}
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if err != nil {
			continue
		}
		sum.processes++
		sum.levels = max(sum.levels, level)
		sum.cpu += cpu[pid]
		for line := range strings.Lines(string(text)) {
			fields := strings.Fields(line)
			switch {
			case len(fields) < 2:
			case fields[0] == "VmRSS:":
				n, _ := strconv.ParseFloat(fields[1], 64)
				sum.rss += 1024 * n
			case fields[0] == "Threads:":
				n, _ := strconv.ParseFloat(fields[1], 64)
				sum.threads += n
			}
		}
	}
	return sum
}

// levelBelow is 1 for the root, 2 for its children and so on; 0 outside of its tree.
func levelBelow(pid, root int, parents map[int]int) int {
	for level := 1; level < 64 && pid > 0; level++ {
		if pid == root {
			return level
		}
		pid = parents[pid]
	}
	return 0
}

// TestE2ETreeAgainstIndependentReading samples, by its wrapper's PID, a program
// that a shell started in the background with its output sent to a file, while
// children of it and of these come and go, some in less time than a look takes to
// come round.
func TestE2ETreeAgainstIndependentReading(t *testing.T) {
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
	group := ""
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // the group that we made
		_ = cmd.Wait()
		removeGroup(t, group)
	})
	group = ownGroup(t, cmd.Process.Pid)
	for deadline := time.Now().Add(3 * time.Minute); ; time.Sleep(100 * time.Millisecond) {
		if now := totalsOf(t, cmd.Process.Pid); now.rss >= churnMB<<20 && now.threads > churnThreads {
			break // the shell has a thread, too
		}
		if time.Now().After(deadline) {
			text, _ := os.ReadFile(log)
			t.Fatalf("the program does not come up: %s", text)
		}
	}

	f, err := Open("/proc")
	if err != nil {
		t.Fatal(err)
	}
	origin := time.Now()
	s, err := f.NewSampler(cmd.Process.Pid, func() time.Duration { return time.Since(origin) })
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	s.Deep()
	before, cgroup := totalsOf(t, cmd.Process.Pid), groupSeconds(group)
	begin := time.Since(origin)
	var rss, threads, looks float64
	levels, most := 0, 0
	for time.Since(origin) < begin+10*time.Second {
		time.Sleep(50 * time.Millisecond)
		s.Sample()
		if len(s.tree.Samples)%10 == 0 {
			now := totalsOf(t, cmd.Process.Pid)
			rss, threads, looks = rss+now.rss, threads+now.threads, looks+1
			levels, most = max(levels, now.levels), max(most, now.processes)
		}
	}
	after, used := totalsOf(t, cmd.Process.Pid), groupSeconds(group)-cgroup
	stop := time.Since(origin)
	s.Deep()

	tree := s.Tree()
	u := tree.Usage(begin, stop)
	t.Logf("%d looks, %d processes seen, at most %d at once on %d levels", len(tree.Samples), len(tree.Processes), most, levels)
	t.Logf("CPU %.3f s, stat of the living %.3f s, control group %.3f s; peak %.2f cores", u.Total.CPUSeconds.V, after.cpu-before.cpu, used, u.Total.CPU.Peak.V)
	t.Logf("RSS %.1f MiB, status %.1f; threads %.1f, status %.1f", u.Total.RSS.Mean.V/(1<<20), rss/looks/(1<<20), u.Total.Threads.Mean.V, threads/looks)
	if levels < 3 || len(tree.Processes) < 10 {
		t.Errorf("%d levels and %d processes: the case is not what it is for", levels, len(tree.Processes))
	}
	if u.Total.CPUSeconds.V < 2 {
		t.Errorf("%.2f s of CPU: the tree had nothing to do", u.Total.CPUSeconds.V)
	}
	within(t, "CPU against stat", u.Total.CPUSeconds.V, after.cpu-before.cpu)
	if group != "" {
		within(t, "CPU against the control group", u.Total.CPUSeconds.V, used)
	}
	within(t, "RSS", u.Total.RSS.Mean.V, rss/looks)
	within(t, "threads", u.Total.Threads.Mean.V, threads/looks)
}

func within(t *testing.T, what string, got, want float64) {
	t.Helper()
	if off := got/want - 1; off > nearShare || off < -nearShare {
		t.Errorf("%s: %v, independently %v, which is %+.1f %%", what, got, want, 100*off)
	}
}

// ownGroup moves a process to a control group of its own, where this test may make
// one; "" where it may not.
func ownGroup(t *testing.T, pid int) string {
	t.Helper()
	for _, base := range []string{"/sys/fs/cgroup/cpuacct", "/sys/fs/cgroup"} {
		dir := fmt.Sprintf("%s/rooftop-test-%d", base, pid)
		if os.Mkdir(dir, 0o755) != nil {
			continue
		}
		// What the shell has started already stays where it was: all of them move.
		if os.WriteFile(dir+"/cgroup.procs", []byte(strconv.Itoa(pid)), 0) != nil {
			_ = os.Remove(dir)
			return ""
		}
		for _, child := range childrenOf(pid) {
			_ = os.WriteFile(dir+"/cgroup.procs", []byte(strconv.Itoa(child)), 0)
		}
		return dir
	}
	t.Log("no control group can be made here: CPU time is held against stat alone")
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

func childrenOf(pid int) []int {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	var pids []int
	for field := range strings.FieldsSeq(string(text)) {
		if n, err := strconv.Atoi(field); err == nil {
			pids = append(pids, n)
		}
	}
	return pids
}

// groupSeconds is the CPU time that a control group has used.
func groupSeconds(dir string) float64 {
	if text, err := os.ReadFile(dir + "/cpuacct.usage"); err == nil {
		n, _ := strconv.ParseFloat(strings.TrimSpace(string(text)), 64)
		return n / 1e9
	}
	text, _ := os.ReadFile(dir + "/cpu.stat")
	_, after, _ := strings.Cut(string(text), "usage_usec ")
	first, _, _ := strings.Cut(after, "\n")
	n, _ := strconv.ParseFloat(first, 64)
	return n / 1e6
}
