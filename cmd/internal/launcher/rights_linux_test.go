package launcher

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

const (
	secret = "max-num-seqs: 4 # SECRET\n"
	nobody = 65534
)

// yard is a directory of nobody with a config file, beside a directory of root with a secret.
type yard struct {
	home, path, temp string // of nobody
	root             string
	cwd              string // of rooftop, open to all below a closed directory
}

func newYard(t *testing.T) *yard {
	t.Helper()
	base, err := os.MkdirTemp("", "rooftop-rights-") // every user reaches it
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(base) })
	y := &yard{home: filepath.Join(base, "home"), root: filepath.Join(base, "root")}
	y.path = filepath.Join(y.home, "sub", "c.yaml")
	y.temp = StagedPath(y.path)
	const zero = 1<<8 | 5
	y.cwd = filepath.Join(y.root, "closed", "open")
	for _, dir := range []string{y.cwd, filepath.Join(y.root, "tmp"), filepath.Join(y.root, "sub")} {
		must(t, os.MkdirAll(dir, 0o755))
	}
	must(t, errors.Join(
		os.WriteFile(filepath.Join(y.root, "private"), []byte(secret), 0o600),
		os.WriteFile(filepath.Join(y.root, "public"), []byte("max-num-seqs: 4\n"), 0o644),
		os.WriteFile(filepath.Join(y.root, "c.yaml"), []byte(secret), 0o600),
		os.WriteFile(filepath.Join(y.root, "sub", "c.yaml"), []byte(secret), 0o600),
		os.WriteFile(filepath.Join(y.root, "tmp", "private"), []byte(secret), 0o600),
		os.WriteFile(filepath.Join(y.cwd, "c.yaml"), []byte(secret), 0o600),
		os.Chmod(base, 0o755), os.Chmod(filepath.Join(y.root, "tmp"), 0o777|os.ModeSticky),
		os.Chmod(filepath.Join(y.cwd, "c.yaml"), 0o666), os.Chmod(y.cwd, 0o777), os.Chmod(filepath.Dir(y.cwd), 0o700)))
	_ = syscall.Mknod(filepath.Join(y.root, "zero"), syscall.S_IFCHR|0o666, zero) // not in every container
	must(t, errors.Join(os.MkdirAll(filepath.Dir(y.path), 0o755), os.WriteFile(y.path, []byte("max-num-seqs: 2\n"), 0o640)))
	for _, path := range []string{y.home, filepath.Dir(y.path), y.path} {
		must(t, os.Chown(path, nobody, nobody))
	}
	return y
}

// belongings are root's files, with all that a write, a gift or a new name would change.
func (y *yard) belongings(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	must(t, filepath.WalkDir(y.root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		var text []byte
		if info.Mode().IsRegular() {
			if text, err = os.ReadFile(path); err != nil {
				return err
			}
		}
		st := info.Sys().(*syscall.Stat_t)
		all[path] = fmt.Sprint(info.Mode(), st.Uid, st.Gid, info.ModTime(), string(text))
		return nil
	}))
	return all
}

// spoils are what nobody has that it could not have made: root's files and root's secret.
func (y *yard) spoils(t *testing.T) (list []string) {
	t.Helper()
	must(t, filepath.WalkDir(y.home, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil || !info.Mode().IsRegular() {
			return err
		}
		if st := info.Sys().(*syscall.Stat_t); st.Nlink > 1 {
			return nil // a second name of root's
		} else if st.Uid != nobody {
			list = append(list, path+" belongs to root")
		}
		if text, err := os.ReadFile(path); err == nil && info.Size() < 1<<20 && strings.Contains(string(text), "SECRET") {
			list = append(list, path+" has the secret")
		}
		return nil
	}))
	return list
}

// swaps are what a user may do to the file, its directory and the temporary name.
func swaps(t *testing.T, y *yard) map[string]func() error {
	dir, in := filepath.Dir(y.path), func(name string) string { return filepath.Join(y.root, name) }
	link := func(at, to string) func() error {
		return func() error { return errors.Join(os.RemoveAll(at), os.Symlink(to, at)) }
	}
	held, err := os.OpenFile(in("private"), os.O_RDWR, 0) // as rooftop holds its journal
	must(t, err)
	t.Cleanup(func() { _ = held.Close() })
	return map[string]func() error{
		"nothing":                  func() error { return nil },
		"a link to a private file": link(y.path, in("private")),
		"a link to a public file":  link(y.path, in("public")),
		"a relative link":          link(y.path, "../../root/private"),
		"a chain of links": func() error {
			return errors.Join(link(filepath.Join(y.home, "next"), in("private"))(), link(y.path, "../next")())
		},
		"a link to a directory":       link(y.path, y.root),
		"a link to a new name":        link(y.path, in("new")),
		"a link into a shared folder": link(y.path, in("tmp/private")),
		"a link to a new shared name": link(y.path, in("tmp/new")),
		"a link to itself":            link(y.path, y.path),
		"a link to a device":          link(y.path, in("zero")),
		"a link to a descriptor":      link(y.path, fmt.Sprintf("/proc/self/fd/%d", held.Fd())),
		"a link to where rooftop is":  link(y.path, "/proc/self/cwd/c.yaml"),
		"a link to its environment":   link(y.path, "/proc/self/environ"),
		"a FIFO":                      func() error { return errors.Join(os.Remove(y.path), syscall.Mkfifo(y.path, 0o666)) },
		"a link to a FIFO": func() error {
			return errors.Join(syscall.Mkfifo(filepath.Join(y.home, "f"), 0o666), link(y.path, "../f")())
		},
		"a directory":                 func() error { return errors.Join(os.Remove(y.path), os.Mkdir(y.path, 0o777)) },
		"a second name":               func() error { return errors.Join(os.Remove(y.path), os.Link(in("private"), y.path)) },
		"an endless file":             func() error { return os.Truncate(y.path, 1<<40) },
		"no file":                     func() error { return os.Remove(y.path) },
		"a linked directory":          link(dir, y.root),
		"a linked shared directory":   link(dir, in("tmp")),
		"a directory of rooftop's":    link(dir, "/proc/self/cwd"),
		"a linked parent":             link(y.home, y.root),
		"a FIFO for a directory":      func() error { return errors.Join(os.RemoveAll(dir), syscall.Mkfifo(dir, 0o666)) },
		"no directory":                func() error { return os.RemoveAll(dir) },
		"a closed directory":          func() error { return os.Chmod(dir, 0o500) },
		"a linked temporary file":     link(y.temp, in("private")),
		"a linked new temporary file": link(y.temp, in("new")),
		"a temporary FIFO":            func() error { return errors.Join(os.RemoveAll(y.temp), syscall.Mkfifo(y.temp, 0o666)) },
		"a temporary directory":       func() error { return errors.Join(os.RemoveAll(y.temp), os.Mkdir(y.temp, 0o777)) },
		"a second temporary name":     func() error { return errors.Join(os.RemoveAll(y.temp), os.Link(in("private"), y.temp)) },
	}
}

// TestNothingOfRootIsReachedThroughAUsersFile swaps what a config file of nobody is, before it is read, before
// it is staged and before it is replaced, while root restores it.
func TestNothingOfRootIsReachedThroughAUsersFile(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("NOT CHECKED: that root reaches nothing through a user's links; only root can be led")
	}
	user := Owner{UID: nobody, GID: nobody}
	for name := range swaps(t, newYard(t)) {
		for _, when := range []string{"read", "staged", "replaced", "read of an earlier version", "replaced of an earlier version"} {
			t.Run(name+" before it is "+when, func(t *testing.T) {
				when, earlier := strings.CutSuffix(when, " of an earlier version")
				y := newYard(t)
				t.Chdir(y.cwd)
				meddle := func(step string) {
					if step == when {
						must(t, swaps(t, y)[name]())
					}
				}
				before := y.belongings(t)
				f, err := user.ReadFile(y.path)
				must(t, err)
				if earlier { // whose launches do not name the user
					f.By = nil
				}
				meddle("read")
				if have, err := f.Read(); err == nil && strings.Contains(string(have.Data), "SECRET") {
					t.Errorf("read %q", have.Data)
				}
				if first, err := user.ReadFile(y.path); err == nil { // as a server that is found like this
					_ = first.Replace()
				}
				f.Data, f.Time = []byte("max-num-seqs: 8\n"), time.Now().Add(-time.Hour)
				meddle("staged")
				_ = f.Replaceable()
				_ = f.Stage()
				meddle("replaced")
				err = f.Replace()
				f.Unstage()
				_, _ = f.Unchanged()
				after := y.belongings(t)
				delete(after, filepath.Join(y.root, "tmp", "new"))
				delete(before, filepath.Join(y.root, "tmp")) // its user's files come and go there
				delete(after, filepath.Join(y.root, "tmp"))
				delete(after, filepath.Join(y.root, "tmp", "c.yaml"))
				if d := cmp.Diff(before, after); d != "" {
					t.Errorf("root's files (-before +after):\n%s", d)
				}
				if list := y.spoils(t); len(list) > 0 {
					t.Errorf("%v", list)
				}
				if have, read := ReadFile(y.path); err == nil && (read != nil || string(have.Data) != string(f.Data)) {
					t.Errorf("replaced without an error, and it is %q, %v", have.Data, read)
				}
			})
		}
	}
}

// TestRootReplacesOnlyWhereNobodyElseLeads: a file of root whose name another user may change is fixed.
func TestRootReplacesOnlyWhereNobodyElseLeads(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("NOT CHECKED: files of root in directories of others; only root replaces them")
	}
	y := newYard(t)
	in := filepath.Dir(y.path)
	must(t, errors.Join(os.Symlink(filepath.Join(y.root, "private"), filepath.Join(in, "link")), os.WriteFile(filepath.Join(in, "root's"), nil, 0o600)))
	for path, want := range map[string]bool{
		filepath.Join(y.root, "private"): true, filepath.Join(in, "link"): false, filepath.Join(in, "root's"): false, y.path: true, // as its owner
	} {
		for _, by := range []func(string) (File, error){ReadFile, Owner{}.ReadFile} { // of a command, of a server of root
			f, err := by(path)
			must(t, err)
			if err := f.Replaceable(); (err == nil) != want {
				t.Errorf("%s: %v", path, err)
			}
		}
	}
}

// TestRightsEndWithTheThread: nobody's rights are those of one call, also from the first thread.
func TestRightsEndWithTheThread(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("NOT CHECKED: rights of another user; only root has them")
	}
	private := filepath.Join(t.TempDir(), "private")
	must(t, os.WriteFile(private, nil, 0o600))
	for range 100 {
		err := Owner{UID: nobody, GID: nobody, Groups: []int{nobody, 4242}}.Do(func() error {
			now, _ := unix.SetfsuidRetUid(-1)
			groups, err := unix.Getgroups()
			if err != nil || len(groups) != 2 || now != nobody {
				t.Errorf("groups %v, user %d, %v", groups, now, err)
			}
			_, err = os.ReadFile(private)
			return err
		})
		if !errors.Is(err, fs.ErrPermission) {
			t.Errorf("nobody reads root's file: %v", err)
		}
		if _, err := os.ReadFile(private); err != nil {
			t.Errorf("root does not: %v", err)
		}
	}
}
