package apply

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/launcher"
	"github.com/rooftop-dev/rooftop/cmd/internal/programtest"
	"github.com/rooftop-dev/rooftop/cmd/internal/serverdir"
	"github.com/rooftop-dev/rooftop/engine/journal"
)

const nobodyUser = 65534

// theirs is what nobody has for a server: a program, a directory with a config file, and a file of root.
type theirs struct {
	program, home, config, log string
	launch                     *launcher.Launch
	secret                     string
}

func newTheirs(t *testing.T) *theirs {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("NOT CHECKED: that root is led nowhere by a server of another user; only root can start one")
	}
	s := &theirs{program: openProgram(t)}
	s.home = filepath.Join(filepath.Dir(s.program), "home")
	s.config, s.log, s.secret = filepath.Join(s.home, "c.yaml"), filepath.Join(s.home, "log"), filepath.Join(filepath.Dir(s.program), "secret")
	old := time.Now().Add(-time.Hour)
	must(t, errors.Join(
		os.WriteFile(s.secret, []byte("of root\n"), 0o600), os.Mkdir(s.home, 0o755), os.WriteFile(s.log, nil, 0o644),
		os.WriteFile(s.config, []byte(configText), 0o640), os.Chtimes(s.config, old, old),
		os.Chown(s.config, nobodyUser, nobodyUser), os.Chown(s.log, nobodyUser, nobodyUser), os.Chown(s.home, nobodyUser, nobodyUser)))
	s.launch = &launcher.Launch{
		Argv: []string{"--config", s.config}, Env: []string{"FAKE_LEADS=" + s.secret}, Cwd: s.home, Umask: 0o022,
		Owner: launcher.Owner{UID: nobodyUser, GID: nobodyUser, Groups: []int{nobodyUser}},
	}
	return s
}

// belongs checks whose a file is and what it has.
func belongs(t *testing.T, path string, uid uint32, text string) {
	t.Helper()
	info, err := os.Lstat(path)
	must(t, err)
	have, err := os.ReadFile(path)
	must(t, err)
	if owner := info.Sys().(*syscall.Stat_t).Uid; owner != uid || !info.Mode().IsRegular() || string(have) != text {
		t.Errorf("%s (%v) belongs to user %d and has %q, want %q of user %d", path, info.Mode(), owner, have, text, uid)
	}
}

// A server of another user leads its config file to a file of root in a trial, and ends.
func TestAServerOfAnotherUserLeadsNoRevert(t *testing.T) {
	t.Parallel()
	s := newTheirs(t)
	at := begunBy(t, s.launch, s.program).at
	a := attached(t, at, newNotebook(t))
	if got := a.Apply(t.Context(), slots(4, slotsSilent)); got.Err == "" || !got.Back {
		t.Errorf("a trial that ends: %+v", got)
	}
	belongs(t, s.secret, 0, "of root\n")
	belongs(t, s.config, nobodyUser, configText)
	if got := a.Apply(t.Context(), slots(4, 8)); got.Err != "" || !strings.Contains(stateOf(t, at).Config, "max-num-seqs: 8") {
		t.Errorf("a change afterwards: %+v, the server read %q", got, stateOf(t, at).Config)
	}
	if got := a.Apply(t.Context(), back()); got.Err != "" {
		t.Error(got.Err)
	}
	belongs(t, s.config, nobodyUser, configText)
}

// A config file that the server's user cannot replace is read and never written, also if it differs later.
func TestAConfigFileThatIsNotTheUsersStays(t *testing.T) {
	t.Parallel()
	s := newTheirs(t)
	must(t, errors.Join(os.Chown(s.config, 0, 0), os.Chmod(s.config, 0o644)))
	at := begunBy(t, s.launch, s.program).at
	a := attached(t, at, newNotebook(t))
	if got := a.Apply(t.Context(), slots(4, 8)); got.Err != "" || slotsOf(stateOf(t, at)) != "8" {
		t.Errorf("%+v, and it was given %q", got, stateOf(t, at).Args)
	}
	theirs := strings.Replace(configText, "2048", "1024", 1)
	must(t, os.WriteFile(s.config, []byte(theirs), 0o644))
	a.restore() // the revert of a trial that fails
	belongs(t, s.config, 0, theirs)
	if state := stateOf(t, at); slotsOf(state) != "" {
		t.Errorf("put back with %q", state.Args)
	}
}

// Root opened the output of a server of nobody: what a restart writes goes elsewhere.
func TestTheOutputOfAnotherUsersServerIsTheirs(t *testing.T) {
	t.Parallel()
	s := newTheirs(t)
	e := begunBy(t, s.launch, s.program) // its log is of root
	before, err := os.ReadFile(e.log)
	must(t, err)
	n := newNotebook(t)
	a := attached(t, e.at, n)
	said(t, a.Notes(), "which cannot be reopened (permission denied): after a restart it leads to "+serverLog)
	mustApply(t, a, slots(4, 8))
	belongs(t, e.log, 0, string(before))
	if text, err := os.ReadFile(filepath.Join(n.dir, serverLog)); err != nil || !strings.Contains(string(text), "API server version") {
		t.Errorf("rooftop's log of it has %q, %v", text, err)
	}
}

// TestStreamsAreReopenedAsTheUser opens what root gave a process, as nobody does.
func TestStreamsAreReopenedAsTheUser(t *testing.T) {
	s := newTheirs(t)
	made := func(name string, uid, gid int, mode os.FileMode) string {
		path := filepath.Join(s.home, name)
		must(t, errors.Join(os.WriteFile(path, nil, 0o600), os.Chown(path, uid, gid), os.Chmod(path, mode)))
		return path
	}
	user := launcher.Owner{UID: nobodyUser, GID: nobodyUser, Groups: []int{nobodyUser, 4242}}
	for name, c := range map[string]struct {
		path string
		fd   int // 0 opens it to read
		want bool
	}{
		"root's, opened for it":     {made("a", 0, 0, 0o600), 1, false},
		"root's, which all read":    {made("b", 0, 0, 0o644), 1, false},
		"root's, read":              {made("c", 0, 0, 0o644), 0, true},
		"root's, which none reads":  {made("d", 0, 0, 0o600), 0, false},
		"its own":                   {made("e", nobodyUser, nobodyUser, 0o600), 1, true},
		"its own, which it locked":  {made("f", nobodyUser, nobodyUser, 0o400), 1, false},
		"its group's":               {made("g", 0, 4242, 0o660), 1, true},
		"another group's":           {made("h", 0, 4243, 0o660), 1, false},
		"one that root only writes": {made("i", 0, 0, 0o622), 0, false},
	} {
		f, err := os.OpenFile(c.path, os.O_RDWR, 0)
		must(t, err)
		holder := exec.Command("sleep", "600")
		holder.Stdin, holder.Stdout = f, f
		must(t, holder.Start())
		got, err := openStream(holder.Process.Pid, c.fd, c.path, user)
		if (err == nil) != c.want || err != nil && !errors.Is(err, os.ErrPermission) {
			t.Errorf("%s: %v", name, err)
		}
		if got != nil {
			_ = got.Close()
		}
		_ = f.Close()
		_ = holder.Process.Kill()
		_ = holder.Wait()
	}
}

// Killed in a trial, the log led elsewhere, and recovered by root.
func TestARecoveryAsRootIsLedNowhere(t *testing.T) {
	t.Parallel()
	for name, lead := range map[string]func(s *theirs) error{
		"nowhere":        func(s *theirs) error { return os.Rename(s.log+".1", s.log) },
		"a private file": func(s *theirs) error { return os.Symlink(s.secret, s.log) },
		"a public file":  func(s *theirs) error { return errors.Join(os.Chmod(s.secret, 0o644), os.Symlink(s.secret, s.log)) },
		"a second name":  func(s *theirs) error { return os.Link(s.secret, s.log) },
		"a new file":     func(s *theirs) error { return os.Symlink(s.secret+".new", s.log) },
		"a directory":    func(s *theirs) error { return os.Mkdir(s.log, 0o755) },
		"a FIFO":         func(s *theirs) error { return syscall.Mkfifo(s.log, 0o666) },
		"a device": func(s *theirs) error {
			_ = syscall.Mknod(s.log, syscall.S_IFCHR|0o666, 1<<8|5) // not in every container
			return nil
		},
		"what rooftop has open": func(s *theirs) error {
			held, err := os.OpenFile(s.secret, os.O_RDWR, 0)
			t.Cleanup(func() { _ = held.Close() })
			return errors.Join(err, os.Chmod(s.secret, 0o666), os.Symlink(fmt.Sprintf("/proc/self/fd/%d", held.Fd()), s.log))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			recovered(t, nobodyUser, name != "nowhere", lead)
		})
		t.Run(name+", a server of root", func(t *testing.T) {
			t.Parallel()
			recovered(t, 0, true, lead)
		})
	}
}

// recovered recovers a server whose log, in a directory of nobody, was led elsewhere, and checks that nothing of
// root was written; the server writes to rooftop's log if its own is not to be trusted.
func recovered(t *testing.T, uid int, spare bool, lead func(s *theirs) error) {
	t.Helper()
	s, root := newTheirs(t), t.TempDir()
	if uid == 0 {
		s.launch.Owner = launcher.Owner{Groups: groups(t)}
	}
	at := programtest.Address(t)
	s.launch.Argv = command(s.program, at, s.launch.Argv...)
	s.launch.Std = [3]string{os.DevNull, s.log, s.log}
	file, err := launcher.ReadFile(s.config)
	must(t, err)
	s.launch.Files = []launcher.File{file}
	store := open(t, root, serverdir.Identity{Host: at.Addr().String(), Port: int(at.Port())})
	kept, err := store.Keep(s.launch)
	must(t, err)
	write(t, store, journal.Record{Kind: journal.Begin, Mode: "attach", Launch: kept}, intent(kept), journal.Record{Kind: journal.Stopped})
	must(t, store.Release()) // killed
	must(t, errors.Join(os.Rename(s.log, s.log+".1"), lead(s)))
	before, err := os.Stat(s.log)
	list, failed := Survey(root)
	must(t, failed)
	r := Repair{Version: "test", Grace: testGrace, Ready: Readiness{URL: "http://" + at.String(), Within: hang, Answer: hang}}
	must(t, r.Do(t.Context(), &list[0]))
	state := stateOf(t, at)
	t.Cleanup(func() { _ = syscall.Kill(state.PID, syscall.SIGKILL) })
	belongs(t, s.secret, 0, "of root\n")
	if _, err := os.Stat(s.secret + ".new"); err == nil {
		t.Error("a file was made where nobody cannot")
	}
	want := filepath.Join(list[0].Dir, serverLog)
	if !spare {
		want = s.log
	}
	if state.Std[1] != want || surroundings(t, state.PID).UID != uid {
		t.Errorf("user %d writes to %s, want %s", surroundings(t, state.PID).UID, state.Std[1], want)
	}
	if after, now := os.Stat(s.log); spare && err == nil && (now != nil || after.Size() != before.Size()) {
		t.Errorf("%s has %d bytes, want %d", s.log, after.Size(), before.Size())
	}
}
