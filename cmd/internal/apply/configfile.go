package apply

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rooftop-dev/rooftop/cmd/internal/wholefile"
	"github.com/rooftop-dev/rooftop/engine/launch"
)

// readConfig reads a configuration file as it is to be put back.
func readConfig(path string) (File, error) {
	info, err := os.Stat(path)
	if err != nil {
		return File{}, err
	}
	if !info.Mode().IsRegular() {
		return File{}, fmt.Errorf("%s is no regular file", path)
	}
	if info.Size() > launch.MaxConfigBytes {
		return File{}, fmt.Errorf("%s has %d bytes, more than the %d of any real one", path, info.Size(), launch.MaxConfigBytes)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return File{}, err
	}
	f := File{Path: path, Mode: uint32(info.Mode().Perm()), Data: data, Time: info.ModTime(), UID: -1, GID: -1}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		f.UID, f.GID = int(st.Uid), int(st.Gid)
	}
	return f, nil
}

// same says that a file on the disk has these bytes.
func (f *File) same() (bool, error) {
	data, err := os.ReadFile(f.Path)
	if err != nil {
		return false, err
	}
	return bytes.Equal(data, f.Data), nil
}

// scratch is the name that a file is written under before it takes its place. It is
// always the same, so that a crash leaves one at most and the next write or way
// back removes it.
func scratch(target string) string {
	return filepath.Join(filepath.Dir(target), "."+filepath.Base(target)+".rooftop"+temporarySuffix)
}

// target is where a file lies, links followed, and the name that it is written under
// first.
func (f *File) target() (target, temp string, err error) {
	target, err = filepath.EvalSymlinks(f.Path)
	if errors.Is(err, fs.ErrNotExist) {
		target, err = f.Path, nil
	}
	return target, scratch(target), err
}

// stage has the bytes, mode, owner and time of a file on the disk beside it, so that
// all that is left to do is to rename it: a disk that is full is seen before anything
// is touched.
func (f *File) stage() error {
	target, temp, err := f.target()
	if err != nil {
		return err
	}
	if have, err := readConfig(target); err == nil && f.is(&have) {
		return nil
	}
	return f.writeTo(temp)
}

// unstage removes what was written beside a file and not put in its place.
func (f *File) unstage() {
	if _, temp, err := f.target(); err == nil {
		_ = os.Remove(temp)
	}
}

// stage has the files of a launch beside their places.
func (l *Launch) stage() error {
	for i := range l.Files {
		if err := l.Files[i].stage(); err != nil {
			return fmt.Errorf("write %s: %w", l.Files[i].Path, err)
		}
	}
	return nil
}

// unstage removes what of that was not used.
func (l *Launch) unstage() {
	for i := range l.Files {
		l.Files[i].unstage()
	}
}

// put has a file on the disk with its bytes, mode and owner, whole or not at all;
// links are followed. Its time is set only where it is one to go back to.
func (f *File) put() error {
	target, temp, err := f.target()
	if err != nil {
		return err
	}
	if have, err := readConfig(target); err == nil && f.is(&have) {
		if err := os.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	if !f.staged(temp) {
		if err := f.writeTo(temp); err != nil {
			return errors.Join(err, os.Remove(temp))
		}
	}
	if err := os.Rename(temp, target); err != nil {
		return errors.Join(err, os.Remove(temp))
	}
	return wholefile.SyncDir(filepath.Dir(target))
}

// staged says that what was written beside a file is all that it is to be, on the disk.
func (f *File) staged(temp string) bool {
	if info, err := os.Lstat(temp); err != nil || !info.Mode().IsRegular() {
		return false
	}
	have, err := readConfig(temp)
	if err != nil || !f.is(&have) || f.UID >= 0 && (f.UID != have.UID || f.GID != have.GID) {
		return false
	}
	file, err := os.Open(temp)
	if err != nil {
		return false
	}
	return errors.Join(file.Sync(), file.Close()) == nil
}

// is says that a file on the disk needs nothing.
func (f *File) is(have *File) bool {
	return bytes.Equal(f.Data, have.Data) && f.Mode == have.Mode && (f.Time.IsZero() || f.Time.Equal(have.Time))
}

func (f *File) writeTo(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(f.Data)
	if err == nil && f.UID >= 0 && (f.UID != os.Geteuid() || f.GID != os.Getegid()) {
		err = file.Chown(f.UID, f.GID)
	}
	if err == nil {
		err = file.Chmod(fs.FileMode(f.Mode).Perm())
	}
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	if f.Time.IsZero() {
		return nil
	}
	return os.Chtimes(path, time.Time{}, f.Time)
}

// replaceable says why a configuration file cannot be replaced in one step; nil
// where it can. It touches nothing.
func replaceable(path string) error {
	target, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	info, err := os.Stat(target)
	if err != nil {
		return err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !ok:
	case st.Nlink > 1:
		return fmt.Errorf("%s has several names", target)
	case int(st.Uid) != os.Geteuid() && os.Geteuid() != 0:
		return fmt.Errorf("%s belongs to user %d", target, st.Uid)
	}
	if mounted(target) {
		return fmt.Errorf("%s is mounted from elsewhere", target)
	}
	return unix.Faccessat(unix.AT_FDCWD, filepath.Dir(target), unix.W_OK|unix.X_OK, unix.AT_EACCESS)
}

// mounted says that a path is a mount point by itself, as a container's files are.
func mounted(path string) bool {
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(text)) {
		// The fifth field is the mount point, with octal escapes for blanks.
		if fields := strings.Fields(line); len(fields) > 4 && strings.ReplaceAll(fields[4], `\040`, " ") == path {
			return true
		}
	}
	return false
}
