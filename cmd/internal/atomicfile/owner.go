package atomicfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// Owner is the user that files belong to when root runs this process on a user's behalf.
// A nil Owner is the user of the process.
type Owner struct{ UID, GID int }

// SudoUser returns the user who ran this process, whose effective user ID is euid, through
// sudo (SUDO_UID and SUDO_GID of sudo(8)); nil without sudo, or when root ran sudo.
func SudoUser(euid int, env func(string) (string, bool)) *Owner {
	uid, gid := parseID(env, "SUDO_UID"), parseID(env, "SUDO_GID")
	if euid != 0 || uid <= 0 || gid < 0 {
		return nil
	}
	return &Owner{UID: uid, GID: gid}
}

// parseID returns the ID in a variable, -1 if there is none. The largest number is not an
// ID, because it means "unchanged" to chown(2).
func parseID(env func(string) (string, bool), name string) int {
	text, _ := env(name)
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil || n == math.MaxUint32 {
		return -1
	}
	return int(n)
}

// Write is like the function [Write], and also gives the file to the owner as [Owner.Take]
// does.
func (o *Owner) Write(path string, mode fs.FileMode, fill func(io.Writer) error) error {
	return asError(path, write(path, mode, o, fill))
}

// Take gives the owner a file that this process created and that will be renamed to target.
// It changes only the open file itself, whatever its name now refers to, and only if the
// owner could have created it: in a directory that they may write to, and not in place of
// another user's file. It does nothing on a file system without owners.
func (o *Owner) Take(f *os.File, target string) {
	if o == nil {
		return
	}
	dir, err := os.OpenRoot(filepath.Dir(f.Name()))
	if err != nil {
		return
	}
	defer dir.Close()
	in, err := dir.Stat(".")
	if err != nil || !o.mayWrite(in) {
		return
	}
	// The checked directory must be the one that holds the file.
	there, err := dir.Lstat(filepath.Base(f.Name()))
	if err != nil {
		return
	}
	if made, err := f.Stat(); err != nil || !os.SameFile(made, there) {
		return
	}
	if old, err := dir.Lstat(filepath.Base(target)); err == nil && !os.SameFile(old, there) && !o.has(old) {
		return
	}
	_ = f.Chown(o.UID, o.GID)
}

// mayWrite reports whether the permissions of a directory let the owner create files in it.
func (o *Owner) mayWrite(dir fs.FileInfo) bool {
	stat, ok := dir.Sys().(*syscall.Stat_t)
	if !ok {
		return false
	}
	switch mode := dir.Mode().Perm(); {
	case int(stat.Uid) == o.UID:
		return mode&0o300 == 0o300
	case int(stat.Gid) == o.GID:
		return mode&0o030 == 0o030
	default:
		return mode&0o003 == 0o003
	}
}

// has reports whether a file belongs to the owner.
func (o *Owner) has(file fs.FileInfo) bool {
	stat, ok := file.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == o.UID
}

// OwnDir returns an error if a directory, or a link to it, belongs to another user than this process's and
// root: they could redirect what is written there to a file of their choice. For root, with the HOME of a user,
// the same holds for every directory above it, which others must not write to either; the directory need
// not exist.
func OwnDir(dir string) error { return ownDir(filepath.Clean(dir), maxLinks) }

// maxLinks limits the links in a path, as the kernel does.
const maxLinks = 40

func ownDir(path string, links int) error {
	for ; ; path = filepath.Dir(path) {
		info, err := os.Lstat(path)
		if above := filepath.Dir(path) != path; errors.Is(err, fs.ErrNotExist) && above && os.Geteuid() == 0 {
			continue
		} else if err != nil {
			return err
		}
		const next = "run rooftop as that user, or set XDG_STATE_HOME to a directory of your own"
		if uid, foreign := foreigner(info); foreign {
			return fmt.Errorf("%s belongs to another user (uid %d): %s", path, uid, next)
		}
		switch mode := info.Mode(); {
		case mode.Type() == fs.ModeSymlink && links == 0:
			return &fs.PathError{Op: "open", Path: path, Err: syscall.ELOOP}
		case mode.Type() == fs.ModeSymlink:
			to, err := readLink(path)
			if err == nil {
				err = ownDir(to, links-1)
			}
			if err != nil {
				return err
			}
		case os.Geteuid() == 0 && mode.Perm()&0o022 != 0 && mode&fs.ModeSticky == 0:
			return fmt.Errorf("other users write to %s (%v): close it to them, or set XDG_STATE_HOME to a directory of your own", path, mode)
		}
		if os.Geteuid() != 0 || filepath.Dir(path) == path {
			return nil
		}
	}
}

// foreigner returns the owner of a file, and whether that is another user than this process's and root. In a
// namespace of users root's own may have another number, as the root directory shows.
func foreigner(info fs.FileInfo) (uid uint32, foreign bool) {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok || s.Uid == 0 || int(s.Uid) == os.Geteuid() {
		return 0, false
	}
	top, err := os.Stat("/")
	if err != nil {
		return s.Uid, true
	}
	root, ok := top.Sys().(*syscall.Stat_t)
	return s.Uid, !ok || s.Uid != root.Uid
}

// readLink returns the absolute path that a link leads to.
func readLink(path string) (string, error) {
	to, err := os.Readlink(path)
	if err != nil || filepath.IsAbs(to) {
		return to, err
	}
	dir, err := filepath.EvalSymlinks(filepath.Dir(path))
	return filepath.Join(dir, to), err
}

// MakeOwnDir creates a directory and those above it, only for their owner, if [OwnDir] allows it.
func MakeOwnDir(dir string) error {
	if os.Geteuid() == 0 {
		if err := OwnDir(dir); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return OwnDir(dir)
}
