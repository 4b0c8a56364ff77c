package tracing

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

	"github.com/rooftop-dev/rooftop/cmd/internal/cli"
	"github.com/rooftop-dev/rooftop/engine/optrace"
)

// A recording may end before the goroutine that writes it has run, and must not wait for it without end.
func TestARecordingThatEndsAtOnce(t *testing.T) {
	file := filepath.Join(t.TempDir(), "run"+Suffix)
	for range 50 {
		s, err := newSaving(file, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.close(&optrace.Recording{Tables: &optrace.Tables{}}); err != nil {
			t.Error(err)
		}
	}
}

// Pipes and devices get a recording when it is complete.
func TestWhatIsSavedWhileItIsMade(t *testing.T) {
	dir := t.TempDir()
	for path, want := range map[string]bool{
		"/dev/stdout": false, "/proc/self/fd/1": false, dir: false, filepath.Join(dir, "new"): true, filepath.Join(dir, "new"+Suffix): true,
	} {
		s, err := newSaving(path, nil)
		if err != nil || (s.file != nil) != want || want && s.file.Name() != filepath.Join(dir, "new.partial"+Suffix) {
			t.Errorf("%q: %+v, %v", path, s, err)
		}
		s.unused()
	}
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	read := make(chan error)
	go func() {
		_, err := readRecording(pipe)
		read <- err
	}()
	if _, errs, code := runTrace(t, newDecoder(time.Millisecond, 500), "--save", pipe); code != cli.ExitDone {
		t.Errorf("exit code %d: %s", code, errs)
	}
	if err := <-read; err != nil {
		t.Error(err)
	}
}

// The partial recording of a killed trace may be its only data: the next trace reports it before
// attaching, and changes neither it nor the target of a link in its place.
func TestWhatAKillLeftIsNotOverwritten(t *testing.T) {
	const theirs = "theirs"
	for name, c := range map[string]struct {
		leave func(partial, other string) error
		want  string
	}{
		"a recording": {func(partial, _ string) error { return os.WriteFile(partial, []byte(theirs), 0o600) }, "--save: %[1]s was left by a trace that was killed or failed, and is not overwritten: 'rooftop trace %[1]s' shows it; move or remove it, or name another file"},
		"a link":      {func(partial, other string) error { return os.Symlink(other, partial) }, "--save: %s is not a regular file"},
		"a directory": {func(partial, _ string) error { return os.Mkdir(partial, 0o700) }, "--save: %s is not a regular file"},
	} {
		dir, other := t.TempDir(), filepath.Join(t.TempDir(), "other")
		partial := filepath.Join(dir, "run.partial"+Suffix)
		if err := errors.Join(os.WriteFile(other, []byte(theirs), 0o600), c.leave(partial, other)); err != nil {
			t.Fatal(err)
		}
		before, err := os.Lstat(partial)
		if err != nil {
			t.Fatal(err)
		}
		d := newDecoder(time.Millisecond, 500)
		d.closed = true // it is not opened
		_, errs, code := runTrace(t, d, "--save", filepath.Join(dir, "run"+Suffix))
		if want := fmt.Sprintf(c.want, partial); code != cli.ExitUsage || !strings.Contains(errs, want) || d.left != 500 {
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

// Two simultaneous traces cannot write the same recording.
func TestTwoTracesToOneRecording(t *testing.T) {
	file := filepath.Join(t.TempDir(), "run"+Suffix)
	first := newDecoder(time.Millisecond, 500)
	first.lasts = func() {
		for _, name := range []string{file, partialPath(file)} {
			second := newDecoder(time.Millisecond, 500)
			second.closed = true // it is not opened
			_, errs, code := runTrace(t, second, "--save", name)
			if want := "another trace is writing " + partialPath(file); code != cli.ExitUsage || !strings.Contains(errs, want) {
				t.Errorf("to %s: exit code %d: said %q, want %q", name, code, errs, want)
			}
		}
	}
	if _, errs, code := runTrace(t, first, "--save", file); code != cli.ExitDone {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	if r, err := readRecording(file); err != nil || len(r.Events) < 1000 {
		t.Error(err)
	}
}

// A trace that is refused or records nothing leaves no file that blocks the next one, nor does one
// that is killed before its first event.
func TestTracesThatRecordNothingBlockNoOther(t *testing.T) {
	file := filepath.Join(t.TempDir(), "run"+Suffix)
	gone := newDecoder(time.Millisecond, 30)
	gone.ended = true
	if _, errs, code := runTrace(t, gone, "--force", "--save", file); code != cli.ExitNothing {
		t.Errorf("exit code %d: %s", code, errs)
	}
	if _, err := os.Lstat(partialPath(file)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it left a file: %v", err)
	}
	if err := os.WriteFile(partialPath(file), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, errs, code := runTrace(t, newDecoder(time.Millisecond, 500), "--save", file); code != cli.ExitDone {
		t.Errorf("exit code %d: %s", code, errs)
	}
	if _, err := readRecording(file); err != nil {
		t.Error(err)
	}
}

// A trace without events does not replace a recording, and says so.
func TestATraceOfNothingSparesARecording(t *testing.T) {
	dir := t.TempDir()
	file, fresh := filepath.Join(dir, "run"+Suffix), filepath.Join(dir, "fresh"+Suffix)
	if _, errs, code := runTrace(t, newDecoder(time.Millisecond, 500), "--save", file); code != cli.ExitDone {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		out, errs, code := runTrace(t, &decoder{idle: true}, "--save", file)
		if want := file + " is left as it was"; code != cli.ExitNothing || !strings.Contains(errs, "rooftop: "+want) || !strings.Contains(strings.Join(strings.Fields(out), " "), "left as it was") {
			t.Errorf("exit code %d: said %q, want %q:\n%s", code, errs, want, out)
		}
		if _, errs, code := runTrace(t, &decoder{idle: true}, "--save", fresh); code != cli.ExitNothing {
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

// With sudo, every file of a trace belongs to the user who ran it, also after a kill.
func TestFilesOfATraceThroughSudo(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("NOT CHECKED: files that belong to who ran sudo; it needs root")
	}
	run := func(d *decoder, args ...string) (string, string, cli.ExitCode) {
		return traceOn(t, machineOf("Example CPU 1000"), variables("SUDO_UID", "12345", "SUDO_GID", "12346"), d, args...)
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
	run(torn, "--save", filepath.Join(dir, "torn"+Suffix))
	owned("torn.partial" + Suffix)
	if _, errs, code := run(newDecoder(time.Millisecond, 500), "--save", filepath.Join(dir, "run"+Suffix),
		"--trace", filepath.Join(dir, "run.trace.json"), "--html", filepath.Join(dir, "run.html")); code != cli.ExitDone {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	for _, name := range []string{"run" + Suffix, "run.trace.json", "run.html"} {
		owned(name)
	}
}
