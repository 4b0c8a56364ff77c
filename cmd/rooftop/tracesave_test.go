package main

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/engine/optrace"
)

// BenchmarkSaving is what saving costs where events are taken in; what packs them is not
// waited for.
func BenchmarkSaving(b *testing.B) {
	tables := newDecoder(time.Millisecond, 1).tables
	s := newSaving(filepath.Join(b.TempDir(), "run"+recordingSuffix), nil)
	s.most = 1 << 62
	r := &optrace.Recording{Tables: &tables}
	events := make([]optrace.Event, 1000)
	at := time.Hour
	for b.Loop() {
		for i := range events {
			at += 5 * time.Microsecond
			events[i] = optrace.Event{At: at, Kind: optrace.OpBegin, PID: 4242, TID: 4243, CPU: 1, Addr: 0x7f0000001000 + uint64(i)<<8, Ref: 1, Lanes: 2}
		}
		s.take(r, events)
		s.flush(func() *optrace.Recording { return r })
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(events)), "ns/event")
	if err := s.close(r); err != nil {
		b.Error(err)
	}
}

// Pipes and devices get a recording when it is whole.
func TestWhatIsSavedWhileItIsMade(t *testing.T) {
	dir := t.TempDir()
	for path, want := range map[string]bool{
		"": false, "/dev/stdout": false, "/proc/self/fd/1": false, dir: false,
		filepath.Join(dir, "new"): true, filepath.Join(dir, "new"+recordingSuffix): true,
	} {
		s := newSaving(path, nil)
		if (s != nil) != want || s != nil && s.partial != filepath.Join(dir, "new.partial"+recordingSuffix) {
			t.Errorf("%q: %+v", path, s)
		}
	}
}

// What a kill left is replaced, and what lies behind a link in its place is left alone.
func TestSavingBesideALink(t *testing.T) {
	dir, other := t.TempDir(), filepath.Join(t.TempDir(), "other")
	partial := filepath.Join(dir, "run.partial"+recordingSuffix)
	if err := errors.Join(os.WriteFile(other, []byte("theirs"), 0o600), os.Symlink(other, partial)); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "run"+recordingSuffix)
	if _, errs, code := trace(t, newDecoder(time.Millisecond, 500), "--save", file); code != exitDone {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	if text, err := os.ReadFile(other); string(text) != "theirs" || err != nil {
		t.Errorf("the other file has %d bytes, %v", len(text), err)
	}
	if _, err := readRecording(file); err != nil {
		t.Error(err)
	}
}

// Through sudo every file of a trace belongs to who ran it, also that of a kill.
func TestFilesOfATraceThroughSudo(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("NOT CHECKED: files that belong to who ran sudo; it needs root")
	}
	run := func(d *decoder, args ...string) (string, string, exitCode) {
		return traceOn(t, steady("Example CPU 1000", "0-3"), variables("SUDO_UID", "12345", "SUDO_GID", "12346"), d, args...)
	}
	dir := t.TempDir()
	if err := os.Chown(dir, 12345, 12346); err != nil {
		t.Fatal(err)
	}
	owned := func(name string) {
		t.Helper()
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if s := info.Sys().(*syscall.Stat_t); s.Uid != 12345 || s.Gid != 12346 || info.Mode() != 0o600 {
			t.Errorf("%s is of %d:%d with mode %v", name, s.Uid, s.Gid, info.Mode())
		}
	}
	torn := newDecoder(time.Millisecond, 500)
	torn.fails = errors.New("the ring is torn")
	run(torn, "--save", filepath.Join(dir, "torn"+recordingSuffix))
	owned("torn.partial" + recordingSuffix)
	if _, errs, code := run(newDecoder(time.Millisecond, 500), "--save", filepath.Join(dir, "run"+recordingSuffix),
		"--trace", filepath.Join(dir, "run.trace.json"), "--html", filepath.Join(dir, "run.html")); code != exitDone {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	for _, name := range []string{"run" + recordingSuffix, "run.trace.json", "run.html"} {
		owned(name)
	}
}
