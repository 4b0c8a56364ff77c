//go:build e2e && linux

package main_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// What a tree of processes uses, read by a few lines of our own: what rooftop says
// is held against it. Nothing here is shared with collect/proc; where that follows
// lists of children, this walks the parents of all processes.

// ticks is USER_HZ, in which /proc counts CPU time: 100 on every architecture that
// Go runs on.
const ticks = 100

// statLine is what /proc/PID/stat says of one process (proc_pid_stat(5)).
type statLine struct {
	parent int
	cpu    float64 // seconds: utime, stime, and those of children that were waited for
}

func readStat(pid int) (statLine, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return statLine{}, err
	}
	// The name before it may hold blanks and brackets. Field 3 comes after it.
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	if len(fields) < 15 {
		return statLine{}, fmt.Errorf("/proc/%d/stat has %d fields", pid, len(fields))
	}
	parent, err := strconv.Atoi(fields[1])
	line := statLine{parent: parent}
	for _, field := range fields[11:15] {
		n, wrong := strconv.ParseFloat(field, 64)
		err = errors.Join(err, wrong)
		line.cpu += n / ticks
	}
	return line, err
}

// treeReading is a tree at one instant.
type treeReading struct {
	at        time.Time
	processes []int   // PIDs
	levels    int     // of the tree, 1 for a lone process
	cpu       float64 // seconds so far
	rss       float64 // bytes
	threads   float64
	cgroup    float64 // seconds that the control group has used, NaN without one
}

// readTree adds up what a process and all its descendants use.
func readTree(root int, cgroup string) (treeReading, error) {
	began := time.Now()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return treeReading{}, err
	}
	all := map[int]statLine{}
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		if line, err := readStat(pid); err == nil {
			all[pid] = line
		}
	}
	r := treeReading{cgroup: cgroupSeconds(cgroup)}
	for pid, line := range all {
		depth := 1
		for at := pid; at != root && depth > 0; depth++ {
			up, ok := all[at]
			if at = up.parent; !ok {
				depth = math.MinInt
			}
		}
		if depth > 0 {
			r.processes = append(r.processes, pid)
			r.levels = max(r.levels, depth)
			r.cpu += line.cpu
			r.rss += resident(pid)
			r.threads += threads(pid)
		}
	}
	if len(r.processes) == 0 {
		return r, fmt.Errorf("no process %d", root)
	}
	r.at = began.Add(time.Since(began) / 2)
	return r, nil
}

// resident is what a process holds in memory, by the second field of statm; 0 as
// it has gone.
func resident(pid int) float64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(text))
	if len(fields) < 2 {
		return 0
	}
	pages, err := strconv.ParseFloat(fields[1], 64)
	if err != nil {
		return 0
	}
	return pages * float64(os.Getpagesize())
}

func threads(pid int) float64 {
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return 0
	}
	return float64(len(entries))
}

func cgroupSeconds(dir string) float64 {
	if dir == "" {
		return math.NaN()
	}
	text, err := os.ReadFile(filepath.Join(dir, "cpu.stat"))
	if err != nil {
		return math.NaN()
	}
	for line := range strings.Lines(string(text)) {
		if micros, ok := strings.CutPrefix(line, "usage_usec "); ok {
			n, err := strconv.ParseFloat(strings.TrimSpace(micros), 64)
			if err != nil {
				return math.NaN()
			}
			return n / 1e6
		}
	}
	return math.NaN()
}

// watching is a series of readings of one tree.
type watching struct {
	readings []treeReading
	err      error
	end      chan struct{}
	ended    chan struct{}
}

// watch reads a tree every 100 ms until over is called. It has a thread of its own
// above the servers: vLLM's engine would keep one of normal priority waiting.
func watch(root int, cgroup string) *watching {
	w := &watching{end: make(chan struct{}), ended: make(chan struct{})}
	go func() {
		defer close(w.ended)
		// Never unlocked: the thread and its priority end with this goroutine.
		runtime.LockOSThread()
		_ = unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_RR, Priority: 2}, 0)
		for {
			r, err := readTree(root, cgroup)
			if err != nil {
				w.err = err
				return
			}
			w.readings = append(w.readings, r)
			select {
			case <-w.end:
				return
			default:
			}
			// The runtime's own timers are served by threads of normal priority.
			_ = unix.Nanosleep(&unix.Timespec{Nsec: int64(100 * time.Millisecond)}, nil)
		}
	}()
	return w
}

// over stops the readings.
func (w *watching) over(t *testing.T) []treeReading {
	t.Helper()
	close(w.end)
	<-w.ended
	if w.err != nil {
		t.Fatal(w.err)
	}
	return w.readings
}

// span is what a tree used between two instants.
type span struct {
	seconds, cpu, cgroup     float64
	meanRSS, peakRSS         float64
	peakThreads              float64
	fewest, most, mostLevels int // processes at a time, and levels of them
	seen                     int // different processes
}

// between adds up readings over a run. CPU time at its ends is taken in proportion
// between the readings around them.
func between(t *testing.T, readings []treeReading, begin, end time.Time) span {
	t.Helper()
	if len(readings) == 0 || begin.Before(readings[0].at) || end.After(readings[len(readings)-1].at) {
		t.Fatalf("%d readings do not cover %v to %v", len(readings), begin, end)
	}
	at := func(when time.Time, of func(treeReading) float64) float64 {
		i, _ := slices.BinarySearchFunc(readings, when, func(r treeReading, when time.Time) int { return r.at.Compare(when) })
		if i == 0 {
			return of(readings[0])
		}
		a, b := readings[i-1], readings[i]
		return of(a) + (of(b)-of(a))*when.Sub(a.at).Seconds()/b.at.Sub(a.at).Seconds()
	}
	used := func(of func(treeReading) float64) float64 { return at(end, of) - at(begin, of) }
	s := span{
		seconds: end.Sub(begin).Seconds(),
		cpu:     used(func(r treeReading) float64 { return r.cpu }),
		cgroup:  used(func(r treeReading) float64 { return r.cgroup }),
		fewest:  math.MaxInt,
	}
	count, seen := 0.0, map[int]bool{}
	for _, r := range readings {
		if r.at.Before(begin) || r.at.After(end) {
			continue
		}
		count++
		s.meanRSS += r.rss
		s.peakRSS, s.peakThreads = max(s.peakRSS, r.rss), max(s.peakThreads, r.threads)
		s.fewest, s.most, s.mostLevels = min(s.fewest, len(r.processes)), max(s.most, len(r.processes)), max(s.mostLevels, r.levels)
		for _, pid := range r.processes {
			seen[pid] = true
		}
	}
	s.seen = len(seen)
	s.meanRSS /= count
	return s
}
