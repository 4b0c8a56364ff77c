package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rooftop-dev/rooftop/engine/optrace"
)

// BenchmarkSaving is what saving costs where events are taken in; what packs them is not
// waited for.
func BenchmarkSaving(b *testing.B) {
	tables := newDecoder(time.Millisecond, 1).tables
	s, err := newSaving(filepath.Join(b.TempDir(), "run"+recordingSuffix), nil)
	if err != nil {
		b.Fatal(err)
	}
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
		s.flush(0, func() *optrace.Recording { return r })
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
		s, err := newSaving(path, nil)
		if err != nil || (s != nil) != want || s != nil && s.file.Name() != filepath.Join(dir, "new.partial"+recordingSuffix) {
			t.Errorf("%q: %+v, %v", path, s, err)
		}
		s.unused()
	}
}

// What a kill left of an earlier trace may be all that there is of it: the next one says
// so before it attaches, and touches neither it nor what is behind a link in its place.
func TestWhatAKillLeftIsNotOverwritten(t *testing.T) {
	const theirs = "theirs"
	for name, c := range map[string]struct {
		leave func(partial, other string) error
		want  string
	}{
		"a recording": {func(partial, _ string) error { return os.WriteFile(partial, []byte(theirs), 0o600) }, "--save: %[1]s is what a trace left that was killed or failed, and is not overwritten: 'rooftop trace %[1]s' shows it; move or remove it, or name another file"},
		"a link":      {func(partial, other string) error { return os.Symlink(other, partial) }, "--save: %s is no file"},
		"a directory": {func(partial, _ string) error { return os.Mkdir(partial, 0o700) }, "--save: %s is no file"},
	} {
		dir, other := t.TempDir(), filepath.Join(t.TempDir(), "other")
		partial := filepath.Join(dir, "run.partial"+recordingSuffix)
		if err := errors.Join(os.WriteFile(other, []byte(theirs), 0o600), c.leave(partial, other)); err != nil {
			t.Fatal(err)
		}
		before, err := os.Lstat(partial)
		if err != nil {
			t.Fatal(err)
		}
		d := newDecoder(time.Millisecond, 500)
		d.closed = true // is not opened
		_, errs, code := trace(t, d, "--save", filepath.Join(dir, "run"+recordingSuffix))
		if want := fmt.Sprintf(c.want, partial); code != exitUsage || !strings.Contains(errs, want) || d.left != 500 {
			t.Errorf("%s: exit code %d, %d calls are left: said %q, want %q", name, code, d.left, errs, want)
		}
		after, err := os.Lstat(partial)
		if err != nil || !os.SameFile(before, after) || before.Size() != after.Size() {
			t.Errorf("%s was changed: %v", name, err)
		}
		if text, err := os.ReadFile(other); string(text) != theirs || err != nil {
			t.Errorf("%s: the other file has %q, %v", name, text, err)
		}
	}
}

// Two traces at the same time do not write one recording.
func TestTwoTracesToOneRecording(t *testing.T) {
	file := filepath.Join(t.TempDir(), "run"+recordingSuffix)
	first := newDecoder(time.Millisecond, 500)
	first.lasts = func() {
		for _, name := range []string{file, partialOf(file)} {
			second := newDecoder(time.Millisecond, 500)
			second.closed = true // is not opened
			_, errs, code := trace(t, second, "--save", name)
			if want := "another trace is writing " + partialOf(file); code != exitUsage || !strings.Contains(errs, want) {
				t.Errorf("to %s: exit code %d: said %q, want %q", name, code, errs, want)
			}
		}
	}
	if _, errs, code := trace(t, first, "--save", file); code != exitDone {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	if r, err := readRecording(file); err != nil || len(r.Events) < 1000 {
		t.Error(err)
	}
}

// A trace that is refused or comes to nothing leaves no file that is in the next one's way,
// and neither does one that is killed before its first event.
func TestTracesThatRecordNothingAreInNobodysWay(t *testing.T) {
	file := filepath.Join(t.TempDir(), "run"+recordingSuffix)
	gone := newDecoder(time.Millisecond, 30)
	gone.ended = true
	if _, errs, code := trace(t, gone, "--force", "--save", file); code != exitNothing {
		t.Errorf("exit code %d: %s", code, errs)
	}
	if _, err := os.Lstat(partialOf(file)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it left a file: %v", err)
	}
	if err := os.WriteFile(partialOf(file), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, errs, code := trace(t, newDecoder(time.Millisecond, 500), "--save", file); code != exitDone {
		t.Errorf("exit code %d: %s", code, errs)
	}
	if _, err := readRecording(file); err != nil {
		t.Error(err)
	}
}

// A kill leaves the names of processes, which nobody can read any more once they have
// ended, and the PID of the one that was killed.
func TestNamesThatAKillLeaves(t *testing.T) {
	file := filepath.Join(t.TempDir(), "run"+recordingSuffix)
	synctest.Test(t, func(t *testing.T) {
		s, err := newSaving(file, nil)
		if err != nil {
			t.Fatal(err)
		}
		r := &optrace.Recording{Tables: &optrace.Tables{}, Begin: time.Hour, Detail: optrace.LevelSched, Reader: 77}
		met := *r
		met.Processes = map[int32]string{7: "stress"}
		for _, step := range []struct {
			after time.Duration
			names int
			want  string
		}{{0, 1, ""}, {saveEvery, 1, "stress"}, {knownEvery - 1, 1, "stress"}} {
			time.Sleep(step.after)
			s.take(r, []optrace.Event{{At: 2 * time.Hour, Kind: optrace.Lost, N: 1}})
			s.flush(step.names, func() *optrace.Recording { return &met })
			time.Sleep(saveEvery) // the goroutine writes what came
			synctest.Wait()
			killed, err := readRecording(s.file.Name())
			if err != nil {
				t.Fatal(err)
			}
			if killed.Processes[7] != step.want || killed.Reader != 77 {
				t.Errorf("after %v of PID %d it knows %v, want %q", step.after, killed.Reader, killed.Processes, step.want)
			}
		}
		if err := s.close(r); err != nil {
			t.Error(err)
		}
	})
}

// A trace of nothing takes the place of no recording, and says so.
func TestATraceOfNothingSparesARecording(t *testing.T) {
	dir := t.TempDir()
	file, fresh := filepath.Join(dir, "run"+recordingSuffix), filepath.Join(dir, "fresh"+recordingSuffix)
	if _, errs, code := trace(t, newDecoder(time.Millisecond, 500), "--save", file); code != exitDone {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		out, errs, code := trace(t, &decoder{idle: true}, "--save", file)
		if want := file + " is left as it was"; code != exitNothing || !strings.Contains(errs, "rooftop: "+want) || !strings.Contains(strings.Join(strings.Fields(out), " "), "left as it was") {
			t.Errorf("exit code %d: said %q, want %q:\n%s", code, errs, want, out)
		}
		if _, errs, code := trace(t, &decoder{idle: true}, "--save", fresh); code != exitNothing {
			t.Errorf("exit code %d: %s", code, errs)
		}
	})
	if after, err := os.ReadFile(file); err != nil || !bytes.Equal(before, after) {
		t.Errorf("of %d bytes %d are left, %v", len(before), len(after), err)
	}
	if r, err := readRecording(fresh); err != nil || len(r.Events) > 1 {
		t.Errorf("where none was it has %+v, %v", r, err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 2 {
		t.Errorf("there are %v, %v", entries, err)
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
