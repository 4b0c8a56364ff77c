package attach

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rooftop-dev/rooftop/collect/proc"
	"github.com/rooftop-dev/rooftop/engine/loop"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

func TestProcessesByDifferences(t *testing.T) {
	wall := time.Date(2026, 11, 21, 7, 0, 0, 0, time.UTC)
	tree := []proc.Process{
		{PID: 10, PPID: 1, Ticks: 5, Started: wall.Add(-time.Minute), Comm: "python3", Role: proc.APIServer, State: "S"},
		{PID: 11, PPID: 10, Ticks: 6, Started: wall.Add(-30 * time.Second), Comm: "VLLM::EngineCor", Title: "VLLM::EngineCore", Role: proc.EngineCore, State: "R"},
		{PID: 12, PPID: 11, Ticks: 7, Comm: "gone"},
	}
	of := func(known map[int]proc.Usage) func(proc.Process) (proc.Usage, bool) {
		return func(p proc.Process) (proc.Usage, bool) {
			u, ok := known[p.PID]
			return u, ok
		}
	}
	w := &processWatch{}
	first := w.compare(tree, of(map[int]proc.Usage{
		10: {CPU: time.Second, RSSBytes: 1 << 20, Threads: 3},
		11: {CPU: 10 * time.Second, RunWait: stat.Some(1), RSSBytes: 2 << 20, Threads: 9},
	}), 4*time.Second, wall)
	want := []loop.Process{
		{PID: 10, PPID: 1, Role: "api-server", Name: "python3", State: "S", Age: time.Minute, RSSBytes: 1 << 20, Threads: 3},
		{PID: 11, PPID: 10, Role: "engine-core", Name: "VLLM::EngineCore", State: "R", Age: 30 * time.Second, RSSBytes: 2 << 20, Threads: 9},
	}
	if diff := cmp.Diff(want, first); diff != "" {
		t.Errorf("first reading (-want +got):\n%s", diff)
	}
	tree[0].Ticks = 500 // the number is used again by another process
	second := w.compare(tree[:2], of(map[int]proc.Usage{
		10: {CPU: 2 * time.Second},
		11: {CPU: 13 * time.Second, RunWait: stat.Some(1.5)},
	}), 6*time.Second, wall.Add(2*time.Second))
	if got := second[0]; got.CPU.OK || got.RunWait.OK {
		t.Errorf("a new process has shares of a time in which it was not there: %+v", got)
	}
	if got := second[1]; got.CPU != stat.Some(1.5) || got.RunWait != stat.Some(0.25) {
		t.Errorf("uses %v cores and waits %v, want 1.5 and 0.25", got.CPU, got.RunWait)
	}
	third := w.compare(tree[1:2], of(map[int]proc.Usage{11: {CPU: 13 * time.Second, RunWait: stat.Some(1.5)}}), 8*time.Second, wall)
	if got := third[0]; got.CPU != stat.Some(0) || got.RunWait != stat.Some(0) {
		t.Errorf("an idle process uses %v cores and waits %v", got.CPU, got.RunWait)
	}
}

func TestRunWaitIsWholeOrAbsent(t *testing.T) {
	for _, c := range []struct {
		name          string
		before, after stat.Opt
	}{
		{"the kernel reports nothing", stat.None, stat.None},
		{"the kernel does not count", stat.Some(0), stat.Some(0)},
		{"unknown before", stat.None, stat.Some(3)},
		{"unknown now", stat.Some(3), stat.None},
		{"a thread ended", stat.Some(100), stat.Some(3)},
	} {
		if got := waited(c.before, c.after, time.Second); got.OK {
			t.Errorf("%s: got %v", c.name, got)
		}
	}
}

func TestOtherProgramsUseTheRest(t *testing.T) {
	uses := func(cores ...float64) []loop.Process {
		var list []loop.Process
		for _, c := range cores {
			list = append(list, loop.Process{CPU: stat.Some(c)})
		}
		return list
	}
	for _, c := range []struct {
		name   string
		cores  float64
		server []loop.Process
		want   stat.Opt
	}{
		{"a neighbour", 3, uses(1.5, 0.5), stat.Some(0.25)},
		{"nothing else runs", 2, uses(1.5, 0.5), stat.Some(0)},
		{"ticks of the kernel do not add up", 1.99, uses(2), stat.Some(0)},
		{"a process of the server is new", 3, append(uses(1), loop.Process{}), stat.None},
	} {
		if got := othersCPU(c.cores, c.server, 4); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
