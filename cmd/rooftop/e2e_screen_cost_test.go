//go:build e2e && linux

package main_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Budgets of the screen: the bytes sent over SSH in a steady state at 80x24, and the share of the machine, which the
// server needs itself, that the whole program takes.
const (
	terminalBudget = 4 << 10 // bytes per second
	cpuBudget      = 0.015   // of a core
	memoryBudget   = 40 << 20
)

// Only the bytes are judged. CPU and memory are reported: this machine simulates a server and its clients at the same
// time.
func TestE2EScreenCost(t *testing.T) {
	server := startSimulated(t)
	x := openScreen(t, 80, 24)
	x.started("Now", "tune", "--url", server.url())
	x.AwaitThat("concurrency saturation with the number of slots", aWhile, func(s string) bool { return slots(s) != "" })
	time.Sleep(25 * time.Second) // until the first measurement is complete

	file := filepath.Join(t.TempDir(), "written")
	pid := x.pid()
	x.Pipe(file)
	const span = 40 * time.Second
	before, began := cpuTime(t, pid), time.Now()
	time.Sleep(span)
	took := time.Since(began).Seconds()
	used := (cpuTime(t, pid) - before).Seconds() / took
	written, err := os.Stat(file)
	must(t, err)
	rate := float64(written.Size()) / took
	peak := peakMemory(t, pid)
	t.Logf("page %d bytes; %.0f bytes/s to the terminal (budget %d), %.2f %% of a core (%.1f %%), %.1f MB at most (%d MB)",
		pageSize(t, server.url()), rate, terminalBudget, used*100, cpuBudget*100, float64(peak)/(1<<20), memoryBudget>>20)
	if written.Size() == 0 {
		t.Error("nothing was drawn")
	}
	if rate > terminalBudget {
		t.Errorf("%.0f bytes/s to the terminal, at most %d", rate, terminalBudget)
	}
	if used > cpuBudget || peak > memoryBudget {
		t.Logf("OVER BUDGET: %.2f %% of a core, %.1f MB", used*100, float64(peak)/(1<<20))
	}
	x.Press("q")
	x.ended(3)
}

// cpuTime returns the CPU time of a process with all of its threads (proc(5), stat).
func cpuTime(t *testing.T, pid int) time.Duration {
	t.Helper()
	text := readFile(t, fmt.Sprintf("/proc/%d/stat", pid))
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	const ticks = 100 // USER_HZ, the same on every Linux of today
	var sum int
	for _, f := range fields[11:13] { // utime, stime
		n, err := strconv.Atoi(f)
		must(t, err)
		sum += n
	}
	return time.Duration(sum) * time.Second / ticks
}

// peakMemory returns the largest memory use of a process, in bytes.
func peakMemory(t *testing.T, pid int) int {
	t.Helper()
	text := readFile(t, fmt.Sprintf("/proc/%d/status", pid))
	found := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(text)
	if found == nil {
		t.Fatal("no VmHWM")
	}
	n, err := strconv.Atoi(string(found[1]))
	must(t, err)
	return n << 10
}

func pageSize(t *testing.T, url string) int64 {
	t.Helper()
	response, err := http.Get(url + "/metrics")
	must(t, err)
	defer response.Body.Close()
	n, err := io.Copy(io.Discard, response.Body)
	must(t, err)
	return n
}
