//go:build e2e && linux

package main_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rooftop-dev/rooftop/cmd/internal/gguf"
	"github.com/rooftop-dev/rooftop/cmd/internal/programtest"
	"github.com/rooftop-dev/rooftop/engine/optrace"
)

// thiefName is the kernel's name for the process that takes the CPU.
const thiefName = "cpu-thief"

// TestE2ETraceInterference runs another process on the CPU of the target: it must be found as interference, and no
// operator or layer may be called slow. Without it nothing of the kind must be found.
func TestE2ETraceInterference(t *testing.T) {
	needsRoot(t)
	var cpus unix.CPUSet
	if err := unix.SchedGetaffinity(0, &cpus); err != nil || cpus.Count() < 2 {
		t.Skipf("NOT CHECKED: interference (it takes a CPU for the target and one for rooftop; there are %d)", cpus.Count())
	}
	cpu := 0
	for !cpus.IsSet(cpu) {
		cpu++
	}
	pinned := func(program string, args ...string) *exec.Cmd {
		cmd := exec.Command("nice", append([]string{"-n", "-20", "taskset", "-c", strconv.Itoa(cpu), program}, args...)...)
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		return cmd
	}
	d := driveAs(t, pinned, "npm-new", gguf.Mid, 1)
	first(t, d.pid)
	t.Run("quiet", func(t *testing.T) { quiet(t, d, cpu) })
	t.Run("stolen", func(t *testing.T) {
		thief := steal(t, pinned)
		first(t, thief)
		stolen(t, d, cpu, thief)
	})
}

// first gives a process that leads a session priority over other sessions, so that other programs on the machine get
// little of its CPU (sched(7), autogroup).
func first(t *testing.T, pid int) {
	t.Helper()
	err := os.WriteFile("/proc/"+strconv.Itoa(pid)+"/autogroup", []byte("-20"), 0)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
}

// interfered traces some decodes with the kernel's switches. It returns the figures and, by the kernel's own account,
// the shares of the time for which the target's CPU ran others, and a thief.
func interfered(t *testing.T, d *driven, cpu, thief int) (s *optrace.Summary, others, taking float64) {
	t.Helper()
	const tokens = 120
	r := beginTrace(t, d, "--level", "tensor,sched")
	r.attached(t, func() { d.run(t, tracePrompt, tokens) })
	began, all, own, took := time.Now(), cpuRan(t, cpu), processRan(t, d.pid), processRan(t, thief)
	for range 3 {
		d.run(t, tracePrompt, tokens)
	}
	all, own, took = cpuRan(t, cpu)-all, processRan(t, d.pid)-own, processRan(t, thief)-took
	passed := time.Since(began)
	if s = r.figures(t); s.Coverage.Graphs < 3*(tokens-1) {
		t.Fatalf("%d graphs in the trace, want %d at least: %+v, gaps %+v", s.Coverage.Graphs, 3*(tokens-1), s.Coverage, s.Gaps)
	}
	return s, (all - own).Seconds() / passed.Seconds(), took.Seconds() / passed.Seconds()
}

// userHZ is the number of ticks per second in /proc/stat (proc(5)) on every current architecture.
const userHZ = 100

// cpuRan returns for how long a CPU ran anything: user, nice, system, irq and softirq of /proc/stat (proc(5)).
func cpuRan(t *testing.T, cpu int) time.Duration {
	t.Helper()
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); fields[0] == "cpu"+strconv.Itoa(cpu) && len(fields) > 7 {
			ticks := 0
			for _, of := range []int{1, 2, 3, 6, 7} {
				ticks += number(t, fields[of])
			}
			return time.Duration(ticks) * (time.Second / userHZ)
		}
	}
	t.Fatalf("CPU %d is not in /proc/stat: %.400s", cpu, text)
	return 0
}

// processRan returns for how long the threads of a process ran, by the first number of their schedstat; 0 means no
// process. This runtime ends no thread while it computes.
func processRan(t *testing.T, pid int) time.Duration {
	t.Helper()
	ran := time.Duration(0)
	files, _ := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*/schedstat")
	for _, f := range files {
		text, err := os.ReadFile(f)
		if fields := strings.Fields(string(text)); err == nil && len(fields) == 3 {
			ran += time.Duration(number(t, fields[0]))
		}
	}
	return ran
}

// quietLimit is the largest share of time that others may have the target's CPU, by the kernel's own account, without
// a report: half of what counts as interference.
const quietLimit = 0.015

func quiet(t *testing.T, d *driven, cpu int) {
	for range 3 {
		s, others, _ := interfered(t, d, cpu, 0)
		found := findingOf(s, "preempted")
		t.Logf("by the kernel's account the CPU ran others for %.2f %% of the time; threads %+v; found: %v", 100*others, s.Threads, found)
		if others > quietLimit {
			continue
		}
		if found != nil || s.Advice.Finding == "preempted" {
			t.Errorf("nothing takes the CPU, and yet: %+v", found)
		}
		return
	}
	t.Skipf("NOT CHECKED: that a quiet target has no interference (others had its CPU for more than %.1f %% of the time in each of three traces)", 100*quietLimit)
}

// steal starts a process that computes on the CPU of the target, until the test ends.
func steal(t *testing.T, pinned func(string, ...string) *exec.Cmd) int {
	t.Helper()
	program, err := os.ReadFile("/bin/sh")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), thiefName)
	if err := programtest.Write(path, program); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	cmd := pinned(path, "-c", "while :; do :; done")
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if said.Len() > 0 {
			t.Errorf("the thief says: %s", said.String())
		}
	})
	return cmd.Process.Pid
}

// fairShare is the smallest share of a CPU that the thief must have had, by the kernel's own account, to have shared
// it with the target.
const fairShare = 0.4

func stolen(t *testing.T, d *driven, cpu, thief int) {
	for range 3 {
		s, others, took := interfered(t, d, cpu, thief)
		t.Logf("by the kernel's account the CPU ran others for %.1f %% of the time, the thief for %.1f %%; they are reported as %+v", 100*others, 100*took, s.HostLoad)
		if took >= fairShare && others-took <= quietLimit {
			robbed(t, s)
			return
		}
	}
	t.Skipf("NOT CHECKED: interference by a process that takes the CPU (it had less than %.0f %% of one, or others more than %.1f %%, in each of three traces)", 100*fairShare, 100*quietLimit)
}

func robbed(t *testing.T, s *optrace.Summary) {
	t.Helper()
	found := findingOf(s, "preempted")
	if found == nil {
		t.Fatalf("no interference among the findings %+v; threads %+v", s.Findings, s.Threads)
	}
	t.Logf("%+v; %+v", *found, s.Advice)
	if found.Severity != "bad" || s.Findings[0].ID != "preempted" || s.Advice.Finding != "preempted" {
		t.Errorf("it is %s, first of the findings is %s, and the advice follows from %q: %s", found.Severity, s.Findings[0].ID, s.Advice.Finding, s.Advice.Do)
	}
	// A fair scheduler gives each of two processes half of the CPU.
	if lost := s.Threads[0].Preempted.V; lost < 0.25 || lost > 0.75 {
		t.Errorf("its thread lost the CPU for %.1f %% of the time of graphs", 100*lost)
	}
	for _, f := range s.Findings {
		if f.ID == "slow-layer" || f.ID == "mmap-cold" {
			t.Errorf("time taken by another process is reported as %+v", f)
		}
	}
	// Time that is taken counts as off CPU in the operators' rows as well.
	away, all := time.Duration(0), time.Duration(0)
	for i := range s.Kinds {
		away, all = away+s.Kinds[i].Off.D, all+s.Kinds[i].Time
	}
	if share := away.Seconds() / all.Seconds(); !(share > 0.25) {
		t.Errorf("operators are off their CPU for %.1f %% of their time", 100*share)
	}
}
