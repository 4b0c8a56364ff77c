package atomicfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
)

func text(s string) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := io.WriteString(w, s)
		return err
	}
}

// holds checks a file, and that nothing else lies beside it.
func holds(t *testing.T, path, want string, beside ...string) {
	t.Helper()
	got, err := os.ReadFile(path)
	if err != nil || string(got) != want {
		t.Errorf("%s holds %q (%v), want %q", path, got, err, want)
	}
	list, err := os.ReadDir(filepath.Dir(path))
	must(t, err)
	for _, e := range list {
		if e.Name() != filepath.Base(path) && !slices.Contains(beside, e.Name()) {
			t.Errorf("%s was left", e.Name())
		}
	}
}

func TestWrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.json")
	for _, c := range []struct {
		text string
		mode fs.FileMode
	}{{"one", 0o600}, {"two, which is longer", 0o644}, {"", 0o600}, {strings.Repeat("x", 1<<20), 0o666}} {
		must(t, Write(path, c.mode, text(c.text)))
		holds(t, path, c.text)
		if got := Mode(path, 0); got != c.mode {
			t.Errorf("mode %o, want %o", got, c.mode)
		}
	}
	if got := Mode(path+"x", 0o640); got != 0o640 {
		t.Errorf("a file that is not there has mode %o", got)
	}
}

// A write that is cut short, by an error or by a signal that ends a context, leaves the old content.
func TestWhatFailsLeavesTheOld(t *testing.T) {
	cut := errors.New("interrupted")
	for _, c := range []struct {
		name string
		fill func(io.Writer) error
	}{
		{"before a byte", func(io.Writer) error { return cut }},
		{"in the middle", func(w io.Writer) error { return errors.Join(text(strings.Repeat("x", 1<<20))(w), cut) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "a")
			if err := Write(path, 0o600, c.fill); !errors.Is(err, cut) {
				t.Errorf("got %v", err)
			}
			if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("a new file is there: %v", err)
			}
			must(t, Write(path, 0o600, text("old")))
			if err := Write(path, 0o600, c.fill); !errors.Is(err, cut) {
				t.Errorf("got %v", err)
			}
			holds(t, path, "old")
		})
	}
	t.Run("a panic", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "a")
		must(t, Write(path, 0o600, text("old")))
		func() {
			defer func() { _ = recover() }()
			_ = Write(path, 0o600, func(io.Writer) error { panic("x") })
		}()
		holds(t, path, "old")
	})
}

func TestRefusals(t *testing.T) {
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "file"), nil, 0o600))
	must(t, os.Symlink(filepath.Join("none", "a"), filepath.Join(dir, "link")))
	for _, c := range []struct{ name, path, want string }{
		{"a link to no directory", filepath.Join(dir, "link"), "directory " + filepath.Join(dir, "none") + " does not exist; create it, or choose another place"},
		{"no directory", filepath.Join(dir, "none", "a"), "directory " + filepath.Join(dir, "none") + " does not exist; create it, or choose another place"},
		{"a directory", dir, "it is a directory; name a file in it"},
		{"below a file", filepath.Join(dir, "file", "a"), "a part of that path is not a directory; choose another place"},
		{"where the kernel makes the files", "/proc/x", "files cannot be created in /proc; choose another place"},
	} {
		want := fmt.Sprintf("write %s: %s", c.path, c.want)
		if err := Write(c.path, 0o600, text("x")); err == nil || err.Error() != want {
			t.Errorf("%s: got  %v\nwant %s", c.name, err, want)
		}
		if err := Check(c.path); err == nil || err.Error() != want {
			t.Errorf("%s, asked before: got  %v\nwant %s", c.name, err, want)
		}
	}
	for err, want := range map[error]string{
		syscall.ENOSPC:  "write /d/f: no space left in /d; free some, or choose another place",
		syscall.EDQUOT:  "write /d/f: no space left in /d; free some, or choose another place",
		syscall.EROFS:   "write /d/f: the file system of /d is read-only; choose another place",
		syscall.EACCES:  "write /d/f: no permission to write in /d; choose another place",
		errors.New("x"): "write /d/f: x",
	} {
		if got := (&Error{Path: "/d/f", Err: &fs.PathError{Op: "write", Path: "/d/.f.1.tmp", Err: err}}).Error(); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

// TestCheckLeavesNothing asks for files that could be written.
func TestCheckLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	there, pipe := filepath.Join(dir, "there"), filepath.Join(dir, "pipe")
	must(t, Write(there, 0o600, text("old")))
	must(t, syscall.Mkfifo(pipe, 0o600))
	for _, path := range []string{there, filepath.Join(dir, "new"), pipe, os.DevNull, "/dev/stdout"} {
		if err := Check(path); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
	must(t, os.Remove(pipe))
	holds(t, there, "old")
}

func TestLinksAreFollowed(t *testing.T) {
	dir := t.TempDir()
	real := filepath.Join(dir, "real")
	must(t, os.WriteFile(real, []byte("old"), 0o600))
	link := filepath.Join(dir, "link")
	must(t, os.Symlink("real", link))
	must(t, Write(link, 0o600, text("new")))
	holds(t, real, "new", "link")
	if to, err := os.Readlink(link); to != "real" {
		t.Errorf("the link leads to %q (%v)", to, err)
	}
}

// A pipe has readers, and no bytes to keep.
func TestStreamsAreWrittenTo(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	must(t, syscall.Mkfifo(pipe, 0o600))
	var read sync.WaitGroup
	var got []byte
	read.Go(func() { got, _ = os.ReadFile(pipe) })
	must(t, Write(pipe, 0o600, text("through")))
	read.Wait()
	if string(got) != "through" {
		t.Errorf("read %q", got)
	}
	if err := Write("/dev/null", 0o600, text("x")); err != nil {
		t.Error(err)
	}
	if info, err := os.Stat("/dev/null"); err != nil || info.Mode().IsRegular() {
		t.Fatal("/dev/null was replaced")
	}
}

// Writers of one file do not mix, and a reader sees one of them, whole.
func TestWritersAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	whole := func(b []byte) bool { return len(b) == 200_000 && strings.Trim(string(b), string(b[:1])) == "" }
	must(t, Write(path, 0o600, text(strings.Repeat("z", 200_000))))
	var all sync.WaitGroup
	for n := range 4 {
		all.Go(func() {
			for range 10 {
				if err := Write(path, 0o600, text(strings.Repeat(string(rune('a'+n)), 200_000))); err != nil {
					t.Error(err)
				}
				if b, err := os.ReadFile(path); err != nil || !whole(b) {
					t.Errorf("a reader saw %d bytes (%v)", len(b), err)
				}
			}
		})
	}
	all.Wait()
}

// A link whose file is not there yet stays one, as with every program that opens it.
func TestALinkToNothingYet(t *testing.T) {
	dir := t.TempDir()
	elsewhere := filepath.Join(t.TempDir(), "real")
	link, chain := filepath.Join(dir, "link"), filepath.Join(dir, "chain")
	must(t, errors.Join(os.Symlink(elsewhere, link), os.Symlink("link", chain)))
	must(t, Write(chain, 0o600, text("new")))
	holds(t, elsewhere, "new")
	if to, err := os.Readlink(link); to != elsewhere {
		t.Errorf("the link leads to %q (%v)", to, err)
	}
	loop := filepath.Join(dir, "loop")
	must(t, os.Symlink("loop", loop))
	if err := Write(loop, 0o600, text("x")); err == nil {
		t.Error("a link to itself was written")
	}
}

// A write to an open descriptor appends to its file and overwrites nothing.
func TestAnOpenFileIsWrittenOn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out")
	f, err := os.Create(path)
	must(t, err)
	defer f.Close()
	if _, err := f.WriteString("first "); err != nil {
		t.Fatal(err)
	}
	must(t, Write(fmt.Sprintf("/dev/fd/%d", f.Fd()), 0o600, text("second ")))
	if _, err := f.WriteString("third"); err != nil {
		t.Fatal(err)
	}
	holds(t, path, "first second third")
}

// must ends a test that got an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
