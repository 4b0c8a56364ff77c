//go:build e2e && linux && (amd64 || arm64)

package ggml

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rooftop-dev/rooftop/engine/optrace"
)

// A thread that sleeps leaves its CPU blocked by a system call, is woken and gets a CPU again,
// in this order; only the target's threads are reported.
func TestE2EScheduler(t *testing.T) {
	b := build(t)
	k := start(t, b.program)
	s := open(t, runtimeOf(t, k.pid()), Options{}, optrace.LevelOperator|optrace.DetailSched|optrace.DetailSyscall)
	const graphs, micros = 5, 20_000
	k.decode(t, graphs, 5, 1, micros)
	events := drained(t, s)
	tid := of(events, optrace.OpBegin)[0].TID
	product := func(e optrace.Event) bool {
		return e.Kind == optrace.OpBegin && s.Tables().Operator(e.Ref).Op == "MUL_MAT"
	}
	naps, in, blocked := 0, false, false
	var seen []optrace.Kind
	var out time.Duration
	for _, e := range events {
		if e.PID != int32(k.pid()) {
			t.Fatalf("%+v", e)
		}
		if e.TID != tid {
			continue
		}
		switch {
		case product(e):
			in, seen = true, nil
		case e.Kind == optrace.OpBegin:
			in = false
		case in:
			seen = append(seen, e.Kind)
			if e.Kind == optrace.SwitchOut {
				out, blocked = e.At, e.N == int64(optrace.OffBlocked)
			}
			if e.Kind == optrace.SwitchIn && blocked && e.At-out > micros*time.Microsecond/2 {
				naps++
				want := []optrace.Kind{optrace.SyscallBegin, optrace.SwitchOut, optrace.WakeUp, optrace.SwitchIn}
				at := 0
				for _, kind := range seen {
					if at < len(want) && kind == want[at] {
						at++
					}
				}
				if at != len(want) {
					t.Errorf("a nap is %v, want %v in it", seen, want)
				}
			}
		}
	}
	if naps != graphs {
		t.Errorf("%d naps of %d", naps, graphs)
	}
	for _, e := range of(events, optrace.SyscallBegin) {
		if e.TID == tid && e.N == unix.SYS_CLOCK_NANOSLEEP {
			return
		}
	}
	t.Error("no clock_nanosleep among the system calls")
}

// cold returns a file whose pages are not in memory.
func cold(t *testing.T, size int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "cold")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write(make([]byte, size)); err != nil {
		t.Fatal(err)
	}
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
	if err := unix.Fadvise(int(f.Fd()), 0, int64(size), unix.FADV_DONTNEED); err != nil {
		t.Fatal(err)
	}
	var st unix.Statfs_t
	if unix.Fstatfs(int(f.Fd()), &st) == nil && st.Type == unix.TMPFS_MAGIC {
		t.Skip("NOT CHECKED: block I/O and major faults (the temporary folder is in memory)")
	}
	return path
}

// Reading a cold file causes block I/O of its size, each request with its end; touching a
// mapped one causes major faults.
func TestE2EDisk(t *testing.T) {
	b := build(t)
	k := start(t, b.program)
	s := open(t, runtimeOf(t, k.pid()), Options{}, optrace.LevelGraph|optrace.DetailIO|optrace.DetailFault)
	const size = 4 << 20
	k.order(t, "read "+cold(t, size))
	k.expect(t, "done")
	k.order(t, "map "+cold(t, size))
	k.expect(t, "done")
	events := drained(t, s)
	for range 50 { // what is read ahead may still be on its way
		if len(of(events, optrace.BlockIOBegin)) == len(of(events, optrace.BlockIOEnd)) {
			break
		}
		events = append(events, drained(t, s)...)
	}
	var bytes int64
	open := map[uint64]int{}
	for _, e := range of(events, optrace.BlockIOBegin, optrace.BlockIOEnd) {
		if e.PID != int32(k.pid()) {
			t.Errorf("%+v", e)
		}
		if e.Kind == optrace.BlockIOBegin {
			bytes += e.N
			open[e.Addr]++
		} else {
			open[e.Addr]--
		}
	}
	if len(open) == 0 {
		t.Skip("NOT CHECKED: block I/O (the temporary folder is on no block device)")
	}
	// Where memory is short, pages are read ahead and read again; a wrong unit would be off by a factor of 512.
	if bytes < size || bytes > 16*size {
		t.Errorf("%d bytes were read of two files of %d", bytes, size)
	}
	major, minor := 0, 0
	for _, e := range of(events, optrace.PageFault) {
		if e.Addr == 0 {
			t.Errorf("%+v", e)
		}
		if e.N == 1 {
			major++
		} else {
			minor++
		}
	}
	if major == 0 || minor == 0 {
		t.Errorf("%d major faults, %d minor", major, minor)
	}
	left := 0
	for _, n := range open {
		left += n
	}
	t.Logf("%d bytes, %d unfinished requests, %d major faults, %d minor", bytes, left, major, minor)
	if left != 0 {
		t.Errorf("%v", open)
	}
}
