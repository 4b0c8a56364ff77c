//go:build e2e && linux && (amd64 || arm64)

package ggml

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/cilium/ebpf/link"

	"github.com/rooftop-dev/rooftop/collect/ggml/binary"
	"github.com/rooftop-dev/rooftop/engine/optrace"
)

// changedText returns every place at which the mapped code of a process differs from its file,
// not only at probes.
func changedText(t *testing.T, r *binary.Runtime) []string {
	t.Helper()
	maps, err := binary.Mappings(r.PID)
	if err != nil {
		t.Fatal(err)
	}
	var changed []string
	read := 0
	for _, image := range r.Images {
		file, err := os.ReadFile(image.Open)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range maps {
			if !m.Code || m.Path != image.Path || m.Offset >= uint64(len(file)) {
				continue
			}
			want := file[m.Offset:min(m.Offset+m.End-m.Begin, uint64(len(file)))]
			now := make([]byte, len(want))
			if err := readMemory(r.PID, m.Begin, now); err != nil {
				t.Fatal(err)
			}
			read += len(now)
			for i := range now {
				if now[i] != want[i] {
					changed = append(changed, fmt.Sprintf("%s+%#x", m.Path, m.Offset+uint64(i)))
				}
			}
		}
	}
	if read == 0 {
		t.Fatal("no code of the target was compared")
	}
	return changed
}

// linksOf returns the number of links on the machine with probes of a file, without those of
// single probes, which do not show their file.
func linksOf(t *testing.T, path string) int {
	t.Helper()
	n := 0
	it := new(link.Iterator)
	defer it.Close()
	for it.Next() {
		info, err := it.Link.Info()
		if err != nil {
			continue // it was closed meanwhile, or is of a kind without any
		}
		if m := info.UprobeMulti(); m != nil && m.File == path {
			n++
		}
	}
	if err := it.Err(); err != nil {
		t.Fatal(err)
	}
	return n
}

// threadZero returns the names of operators on thread 0.
func threadZero(s *Session, events []optrace.Event) []string {
	var got []string
	for _, e := range of(events, optrace.OpBegin, optrace.FusedBegin) {
		if e.Thread == 0 {
			got = append(got, text(s.Tables(), e))
		}
	}
	return got
}

// Two traces of one target do not affect each other: each has all events at its own detail,
// also after the other one ends.
func TestE2ETwoSessions(t *testing.T) {
	b := build(t)
	for _, single := range []bool{false, true} {
		k := start(t, b.program)
		r := runtimeOf(t, k.pid())
		one := open(t, r, Options{Single: single}, optrace.LevelTensor)
		two := open(t, r, Options{Single: single}, optrace.LevelBarriers)
		k.decode(t, 3, 5, 2, 0)
		for i, s := range []*Session{one, two} {
			if got := threadZero(s, drained(t, s)); !slices.Equal(got, slices.Repeat(sequence, 3)) {
				t.Errorf("single=%v: session %d saw %q", single, i, got)
			}
		}
		if err := two.Close(); err != nil {
			t.Error(err)
		}
		k.decode(t, 2, 5, 2, 0)
		events := drained(t, one)
		if got := threadZero(one, events); !slices.Equal(got, slices.Repeat(sequence, 2)) || len(of(events, optrace.BarrierBegin)) != 0 {
			t.Errorf("single=%v: after the other's end %q", single, got)
		}
		if err := one.Close(); err != nil {
			t.Error(err)
		}
		if left := changedText(t, r); len(left) != 0 {
			t.Errorf("single=%v: %v are left", single, left)
		}
	}
}

// Sessions attach, change their detail and detach while all threads of the target compute: it
// continues, and its code is restored.
func TestE2ESessionsComeAndGoWhileItComputes(t *testing.T) {
	b := build(t)
	k := start(t, b.program)
	r := runtimeOf(t, k.pid())
	for _, single := range []bool{false, true} {
		k.order(t, "decode 3000 5 3 50")
		for i := range 3 {
			s := open(t, r, Options{Single: single, Ring: minRing << (2 * i)}, optrace.LevelAll)
			for _, d := range []optrace.Detail{optrace.LevelOperator, optrace.LevelBarriers, optrace.LevelToken, optrace.LevelTensor} {
				if err := s.SetDetail(d); err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
				for ctx.Err() == nil {
					_, _ = s.Next(ctx)
				}
				cancel()
			}
			if i%2 == 0 { // else with events left in the ring
				drained(t, s)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
		if left := changedText(t, r); len(left) != 0 {
			t.Errorf("single=%v: %v are left", single, left)
		}
		k.expect(t, "done")
	}
	if n := linksOf(t, b.program); n != 0 {
		t.Errorf("%d links are left", n)
	}
}

// Attaching to a stopped target does not block; what it computes after it continues is seen.
func TestE2EStoppedTarget(t *testing.T) {
	b := build(t)
	k := start(t, b.program)
	r := runtimeOf(t, k.pid())
	k.cmd.Process.Signal(syscall.SIGSTOP)
	s := open(t, r, Options{}, optrace.LevelTensor)
	if events := of(drained(t, s), optrace.OpBegin, optrace.TargetExit); len(events) != 0 {
		t.Errorf("a process that is stopped does %+v", events)
	}
	k.order(t, "decode 2 5 1 0")
	k.cmd.Process.Signal(syscall.SIGCONT)
	k.expect(t, "done")
	if got := threadZero(s, drained(t, s)); !slices.Equal(got, slices.Repeat(sequence, 2)) {
		t.Errorf("%q", got)
	}
	k.order(t, "decode 20 5 1 5000")
	k.cmd.Process.Signal(syscall.SIGSTOP)
	if err := s.SetDetail(optrace.LevelToken); err != nil { // in the middle of a graph, perhaps of a probe
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if left := changedText(t, r); len(left) != 0 {
		t.Errorf("%v are left", left)
	}
	k.cmd.Process.Signal(syscall.SIGCONT)
	k.expect(t, "done")
}

// A target in its own container, where its PID is 1, is traced from outside.
func TestE2ETargetInAContainer(t *testing.T) {
	b := build(t)
	for _, single := range []bool{false, true} {
		k := startAs(t, exec.Command(b.program), &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS | syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS})
		r := runtimeOf(t, k.pid())
		s := open(t, r, Options{Single: single}, optrace.LevelTensor|optrace.DetailSched)
		k.decode(t, 2, 5, 3, 200)
		events := drained(t, s)
		if got := threadZero(s, events); !slices.Equal(got, slices.Repeat(sequence, 2)) {
			t.Errorf("single=%v: %q", single, got)
		}
		for _, e := range of(events, optrace.OpBegin, optrace.SwitchOut, optrace.SwitchIn) {
			if e.PID != int32(k.pid()) {
				t.Fatalf("single=%v: %+v, the target is %d", single, e, k.pid())
			}
		}
		if len(of(events, optrace.SwitchOut)) == 0 || s.Dropped() != 0 || !s.Target().Verified {
			t.Errorf("single=%v: %d switches, %+v", single, len(of(events, optrace.SwitchOut)), s.Target())
		}
	}
}

// Root traces a target of another user that changed its user at its start (setuid).
func TestE2ESetuidTarget(t *testing.T) {
	b := build(t)
	raw, err := os.ReadFile(b.program)
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "rooftop-setuid")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	program := filepath.Join(dir, "program")
	const owner = 12345
	if err := os.WriteFile(program, raw, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{os.Chmod(dir, 0o755), os.Chown(program, owner, owner), os.Chmod(program, 0o755|os.ModeSetuid)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	user := &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	trial := exec.Command(program) // ends with its input
	trial.SysProcAttr = user
	if err := trial.Run(); err != nil {
		t.Skipf("NOT CHECKED: a setuid program (%v)", err)
	}
	k := startAs(t, exec.Command(program), user)
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", k.pid()))
	if !bytes.Contains(status, []byte(fmt.Sprintf("Uid:\t%d\t%d", nobody, owner))) {
		t.Skipf("NOT CHECKED: a setuid program (the folder for temporary files does not allow them)\n%s", status)
	}
	s := open(t, runtimeOf(t, k.pid()), Options{}, optrace.LevelTensor)
	k.decode(t, 2, 5, 1, 0)
	if got := threadZero(s, drained(t, s)); !slices.Equal(got, slices.Repeat(sequence, 2)) {
		t.Errorf("%q", got)
	}
	if gaps := s.Gaps(); slices.ContainsFunc(gaps, func(g optrace.Gap) bool { return strings.Contains(g.Why, "cannot be read") }) {
		t.Errorf("%+v", gaps)
	}
}

// whole is a receiver that keeps graphs.
type whole []*optrace.Graph

func (w *whole) Graph(g *optrace.Graph) { *w = append(*w, g) }
func (w *whole) Call(*optrace.Call)     {}

// With a ring that is far too small, no graph without all of its operators is passed on.
func TestE2ELossesTearGraphs(t *testing.T) {
	b := build(t)
	for _, threads := range []int{1, 3} {
		k := start(t, b.program)
		s := open(t, runtimeOf(t, k.pid()), Options{Ring: minRing}, optrace.LevelTensor)
		var got whole
		a := optrace.New(s.Tables(), &got)
		var wait sync.WaitGroup
		ctx, cancel := context.WithCancel(context.Background())
		wait.Go(func() {
			defer cancel()
			for range 10 {
				k.decode(t, 60, 5, threads, 0)
				time.Sleep(30 * time.Millisecond)
			}
			time.Sleep(2 * checkEvery)
		})
		for {
			events, err := s.Next(ctx)
			for _, e := range events {
				a.Push(e)
			}
			if err != nil {
				break
			}
		}
		wait.Wait()
		a.Flush(monotonic())
		partial, reported := a.Dropped()
		t.Logf("%d threads: %d graphs whole, %d partial, %d records lost", threads, len(got), partial, s.Dropped())
		if s.Dropped() == 0 || reported != s.Dropped() {
			t.Errorf("%d threads: %d losses are reported, %d occurred", threads, reported, s.Dropped())
		}
		for _, g := range got {
			for i, lane := range g.Threads {
				if len(lane.Spans) != len(sequence) {
					t.Errorf("%d threads: lane %d of graph %d has %d operators, %d were computed", threads, i, g.Index, len(lane.Spans), len(sequence))
				}
			}
			if len(g.Threads) != threads {
				t.Errorf("%d lanes of %d", len(g.Threads), threads)
			}
		}
	}
}
