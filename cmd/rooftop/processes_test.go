package main

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rooftop-dev/rooftop/collect/proc"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

func TestProcessesByDifferences(t *testing.T) {
	wall := time.Date(2026, 11, 21, 7, 0, 0, 0, time.UTC)
	tree := []proc.Process{
		{PID: 10, PPID: 1, Ticks: 5, Started: wall.Add(-time.Minute), Comm: "python3", Role: proc.APIServer, State: "S"},
		{PID: 11, PPID: 10, Ticks: 6, Started: wall.Add(-30 * time.Second), Comm: "VLLM::EngineCor", Title: "VLLM::EngineCore", Role: proc.EngineCore, State: "R"},
		{PID: 12, PPID: 11, Ticks: 7, Comm: "gone"},
	}
	w := &processWatch{}
	first := w.take(tree, []proc.Usage{
		{PID: 10, CPU: time.Second, RSSBytes: 1 << 20, Threads: 3},
		{PID: 11, CPU: 10 * time.Second, RunWait: time.Second, RSSBytes: 2 << 20, Threads: 9},
	}, 4*time.Second, wall)
	want := []engine.Process{
		{PID: 10, PPID: 1, Role: "api-server", Name: "python3", State: "S", Age: time.Minute, RSSBytes: 1 << 20, Threads: 3},
		{PID: 11, PPID: 10, Role: "engine-core", Name: "VLLM::EngineCore", State: "R", Age: 30 * time.Second, RSSBytes: 2 << 20, Threads: 9},
	}
	if diff := cmp.Diff(want, first); diff != "" {
		t.Errorf("first reading (-want +got):\n%s", diff)
	}
	tree[0].Ticks = 500 // the number is used again by another process
	second := w.take(tree[:2], []proc.Usage{
		{PID: 10, CPU: 2 * time.Second},
		{PID: 11, CPU: 13 * time.Second, RunWait: 1500 * time.Millisecond},
	}, 6*time.Second, wall.Add(2*time.Second))
	if got := second[0]; got.CPU.OK || got.RunWait.OK {
		t.Errorf("a new process has shares of a time in which it was not there: %+v", got)
	}
	if got := second[1]; got.CPU != stat.Some(1.5) || got.RunWait != stat.Some(0.25) {
		t.Errorf("uses %v cores and waits %v, want 1.5 and 0.25", got.CPU, got.RunWait)
	}
	third := w.take(tree[1:2], []proc.Usage{{PID: 11, CPU: 13 * time.Second, RunWait: 1500 * time.Millisecond}}, 8*time.Second, wall)
	if got := third[0]; got.CPU != stat.Some(0) || got.RunWait != stat.Some(0) {
		t.Errorf("an idle process uses %v cores and waits %v", got.CPU, got.RunWait)
	}
}

func TestNoRunWaitWhereTheKernelDoesNotTell(t *testing.T) {
	if got := runWait(proc.Usage{}, proc.Usage{}, time.Second); got.OK {
		t.Errorf("%v where nothing was told", got)
	}
}
