package proc

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// loaded is a process of a made-up /proc with CPU time, in ticks, and the CPUs that it may use.
type loaded struct {
	pid, ticks int
	start      int
	name       string
	flags      int
	allowed    string
}

// load writes processes and CPUs as they are at one moment. CPUs are "user idle", in ticks.
func load(t *testing.T, dir string, cpus [][2]int, procs ...loaded) {
	t.Helper()
	text := "cpu  1 1 1 1 1 1 1 1 1 1\n"
	for n, c := range cpus {
		text += fmt.Sprintf("cpu%d %d 0 0 %d 0 900 900 900 0 0\n", n, c[0], c[1])
	}
	put(t, dir, "stat", text)
	for _, p := range procs {
		pid := fmt.Sprint(p.pid)
		put(t, dir, filepath.Join(pid, "stat"), fmt.Sprintf("%s (%s) R 1 1 1 0 -1 %d 0 0 0 0 %d 0 0 0 20 0 1 0 %d 1000 256 0 0\n", pid, p.name, p.flags, p.ticks, p.start))
		put(t, dir, filepath.Join(pid, "status"), "Name:\tx\nCpus_allowed_list:\t"+p.allowed+"\n")
		put(t, dir, filepath.Join(pid, "task", pid, "status"), "Cpus_allowed_list:\t"+p.allowed+"\n")
	}
}

// TestHostLoad checks that the CPU time of other programs on the CPUs of a process is that
// of these CPUs, without its own, rooftop's and the kernel's.
func TestHostLoad(t *testing.T) {
	f := mount(t)
	f.self = 5
	now := time.Duration(0)
	target := loaded{pid: 10, name: "llama-server", start: 3, ticks: 1000, allowed: "0-1"}
	rooftop := loaded{pid: 5, name: "rooftop", ticks: 10, allowed: "0-3"}
	busy := loaded{pid: 20, name: "engine.test", ticks: 50, allowed: "0-3"}
	away := loaded{pid: 21, name: "far", ticks: 0, allowed: "2-3"}
	kernel := loaded{pid: 22, name: "kdamond.0", flags: kernelThread, ticks: 7, allowed: "0-3"}
	again := loaded{pid: 23, name: "first", start: 1, ticks: 5000, allowed: "0"}
	gone := loaded{pid: 24, name: "gone", ticks: 5000, allowed: "0"}
	load(t, f.root, [][2]int{{100, 50}, {200, 60}, {0, 0}, {0, 0}}, target, rooftop, busy, away, kernel, again, gone)
	// A limit of CPU time, of the group or one above it.
	group := t.TempDir()
	put(t, f.root, "10/cgroup", "0::/a\n")
	put(t, f.root, "self/mountinfo", "1 0 0:1 / "+group+" rw - cgroup2 cgroup rw\n")
	put(t, group, "a/cpu.max", "150000 100000\n")
	put(t, group, "a/cpu.stat", "nr_periods 100\nnr_throttled 10\nthrottled_usec 500000\n")
	m, err := f.NewLoadMeter(10, func() time.Duration { return now })
	if err != nil {
		t.Fatal(err)
	}
	if l := m.Load(); l != nil {
		t.Errorf("no time has passed: %+v", l)
	}

	now = 10 * time.Second
	target.ticks, rooftop.ticks, busy.ticks, away.ticks, kernel.ticks = 1990, 20, 1020, 900, 27
	again = loaded{pid: 23, name: "second", start: 9, ticks: 8, allowed: "0"}
	idle := loaded{pid: 25, name: "idle", ticks: 1, allowed: "0-1"}
	// 2,000 ticks on two CPUs: 990 the target, 970 engine.test, 20 the kernel, 10 rooftop.
	load(t, f.root, [][2]int{{1085, 60}, {1205, 65}, {1000, 0}, {1000, 0}}, target, rooftop, busy, away, kernel, again, idle)
	put(t, group, "a/cpu.stat", "nr_periods 200\nnr_throttled 85\nthrottled_usec 1700000\n")
	const tick = time.Second / ticksPerSecond
	want := &optrace.HostLoad{
		Elapsed: now, CPUs: 2, Target: 990 * tick, Rooftop: 10 * tick, Kernel: 20 * tick, Others: 970 * tick, Idle: 15 * tick,
		CPULimit: stat.Some(1.5), Throttled: stat.Some(1.2), ThrottledPeriods: stat.Some(0.75),
	}
	if diff := cmp.Diff(want, m.Load()); diff != "" {
		t.Error(diff)
	}

	target.start = 99 // another process of the number
	load(t, f.root, [][2]int{{1085, 60}}, target)
	if l := m.Load(); l != nil {
		t.Errorf("the process has ended: %+v", l)
	}
	if _, err := f.NewLoadMeter(404, func() time.Duration { return 0 }); !errors.Is(err, ErrNotFound) {
		t.Errorf("no such process: %v", err)
	}
}
