package atomicfile

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestSudoUser(t *testing.T) {
	for name, c := range map[string]struct {
		euid     int
		uid, gid string
		want     *Owner
	}{
		"through sudo":          {0, "1000", "100", &Owner{1000, 100}},
		"root's own sudo":       {0, "0", "0", nil},
		"without":               {0, "", "", nil},
		"no group":              {0, "1000", "", nil},
		"not root":              {1000, "1001", "100", nil},
		"no number":             {0, "10x", "100", nil},
		"negative":              {0, "-1", "100", nil},
		"too large":             {0, "4294967296", "100", nil},
		"one that keeps others": {0, "4294967295", "100", nil},
	} {
		env := func(name string) (string, bool) {
			v := map[string]string{"SUDO_UID": c.uid, "SUDO_GID": c.gid}[name]
			return v, v != ""
		}
		if got := SudoUser(c.euid, env); (got == nil) != (c.want == nil) || got != nil && *got != *c.want {
			t.Errorf("%s: got %+v, want %+v", name, got, c.want)
		}
	}
}

// A file written through sudo belongs to the user if they could have written it.
func TestOwner(t *testing.T) {
	const user, group = 12345, 12346
	if os.Geteuid() != 0 {
		t.Skip("NOT CHECKED: files of the user who ran sudo; it needs root")
	}
	theirs := &Owner{user, group}
	base := t.TempDir()
	made := func(name string, uid, gid int, mode os.FileMode) string {
		path := filepath.Join(base, name)
		must(t, errors.Join(os.Mkdir(path, 0o700), os.Chown(path, uid, gid), os.Chmod(path, mode)))
		return path
	}
	home, shared, system, tmp := made("home", user, group, 0o700), made("shared", 0, group, 0o770), made("system", 0, 0, 0o755), made("tmp", 0, 0, 0o777|os.ModeSticky)
	roots := filepath.Join(home, "root")
	own := filepath.Join(home, "own")
	for path, uid := range map[string]int{roots: 0, own: user} {
		must(t, errors.Join(os.WriteFile(path, nil, 0o600), os.Chown(path, uid, 0)))
	}
	link, target := filepath.Join(home, "link"), filepath.Join(system, "passwd")
	must(t, os.Symlink(target, link))
	for _, c := range []struct {
		name, path, file string
		owner            *Owner
		want             int
	}{
		{"a new file", filepath.Join(home, "a"), "", theirs, user},
		{"in a directory of their group", filepath.Join(shared, "a"), "", theirs, user},
		{"in one of all", filepath.Join(tmp, "a"), "", theirs, user},
		{"their own", own, "", theirs, user},
		{"root's", roots, "", theirs, 0},
		{"where they may not write", filepath.Join(system, "a"), "", theirs, 0},
		{"by their link where they may not", link, target, theirs, 0},
		{"without sudo", filepath.Join(home, "b"), "", nil, 0},
	} {
		must(t, c.owner.Write(c.path, 0o600, text("x")))
		if c.file == "" {
			c.file = c.path
		}
		info, err := os.Lstat(c.file)
		must(t, err)
		if stat := info.Sys().(*syscall.Stat_t); int(stat.Uid) != c.want || info.Mode() != 0o600 || c.want == user && stat.Gid != group {
			t.Errorf("%s is of %d:%d with mode %v, want of %d", c.name, stat.Uid, stat.Gid, info.Mode(), c.want)
		}
	}
}

// If the name of a file has become another file's, the owner gets neither.
func TestOwnerOfANameThatChanged(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("NOT CHECKED: files of the user who ran sudo; it needs root")
	}
	dir, other := t.TempDir(), filepath.Join(t.TempDir(), "passwd")
	path := filepath.Join(dir, "a")
	f, err := os.Create(path)
	must(t, err)
	defer f.Close()
	must(t, errors.Join(os.Chmod(dir, 0o777), os.WriteFile(other, nil, 0o600), os.Remove(path), os.Symlink(other, path)))
	(&Owner{12345, 12345}).Take(f, path)
	for _, name := range []string{other, path} {
		info, err := os.Stat(name)
		must(t, err)
		if uid := info.Sys().(*syscall.Stat_t).Uid; uid != 0 {
			t.Errorf("%s is of %d", name, uid)
		}
	}
	if info, err := f.Stat(); err != nil || info.Sys().(*syscall.Stat_t).Uid != 0 {
		t.Errorf("the file is of %+v, %v", info, err)
	}
}

func TestOwnDir(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	for _, d := range []string{"own", "own/deep", "shared", "group", "theirs", "theirs/rooftop", "theirs/rooftop/servers", "sticky", "sticky/own"} {
		must(t, os.Mkdir(in(d), 0o700))
	}
	if err := errors.Join(os.Symlink("own", in("link")), os.Symlink(in("theirs/rooftop"), in("away")), os.Symlink("../own", in("theirs/back")), os.Symlink("theirs/back", in("detour"))); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"own", "own/deep", "link", "link/deep"} {
		if err := OwnDir(in(name)); err != nil {
			t.Error(err)
		}
		if err := MakeOwnDir(in(name + "/new/dir")); err != nil {
			t.Error(err)
		}
	}
	if os.Geteuid() != 0 {
		t.Skip("NOT CHECKED: directories of another user: that needs root")
	}
	const nobody = 65534
	if err := errors.Join(os.Chown(in("theirs"), nobody, nobody), os.Chmod(in("shared"), 0o757), os.Chmod(in("group"), 0o770), os.Chmod(in("sticky"), 0o777|os.ModeSticky)); err != nil {
		t.Fatal(err)
	}
	if err := MakeOwnDir(in("sticky/own/new")); err != nil {
		t.Error(err)
	}
	// The directories below are root's, or are not there yet, and their names are another user's.
	for _, name := range []string{
		"theirs", "theirs/rooftop/servers", "theirs/new/dir", "away", "away/servers", "away/new", "theirs/back/deep", "detour", "detour/deep", "shared", "shared/new", "group/new",
	} {
		before, _ := filepath.Glob(in("*/*"))
		for _, check := range []func(string) error{OwnDir, MakeOwnDir} {
			if err := check(in(name)); err == nil || !strings.Contains(err.Error(), "XDG_STATE_HOME") {
				t.Errorf("%s: %v", name, err)
			}
		}
		if after, _ := filepath.Glob(in("*/*")); len(after) != len(before) {
			t.Errorf("%s: made %v, there was %v", name, after, before)
		}
	}
	must(t, os.Lchown(in("link"), nobody, nobody))
	if err := OwnDir(in("link/deep")); err == nil || !strings.Contains(err.Error(), "belongs to another user") {
		t.Errorf("another user's link: %v", err)
	}
}
