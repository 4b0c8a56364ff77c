package launcher

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rooftop-dev/rooftop/cmd/internal/atomicfile"
	"github.com/rooftop-dev/rooftop/collect/proc"
	"github.com/rooftop-dev/rooftop/engine/launch"
)

// OpenFile opens a regular file. It refuses anything else, such as a FIFO, whose other end may
// keep the one who opens it waiting.
func OpenFile(path string, flag int, perm fs.FileMode) (*os.File, error) {
	file, err := proc.OpenFile(path, flag|unix.O_NONBLOCK|unix.O_NOCTTY, perm)
	if errors.Is(err, unix.ENXIO) { // a FIFO that nobody reads
		return nil, fmt.Errorf("%s is not a regular file", path)
	} else if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", path)
	}
	if err == nil {
		err = unix.SetNonblock(int(file.Fd()), false) // a server inherits the flag
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// ReadFile reads a regular configuration file of at most launch.MaxConfigBytes, with the
// attributes that a restore needs.
func ReadFile(path string) (File, error) {
	file, err := OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		return File{}, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return File{}, err
	}
	data, err := io.ReadAll(io.LimitReader(file, launch.MaxConfigBytes+1))
	if err != nil {
		return File{}, err
	}
	if len(data) > launch.MaxConfigBytes {
		return File{}, fmt.Errorf("%s has %d bytes, more than the %d of any real one", path, max(info.Size(), int64(len(data))), launch.MaxConfigBytes)
	}
	f := File{Path: path, Mode: uint32(info.Mode().Perm()), Data: data, Time: info.ModTime(), UID: -1, GID: -1}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		f.UID, f.GID = int(st.Uid), int(st.Gid)
	}
	return f, nil
}

// ReadFile reads a configuration file with the rights of the owner, as all its methods do.
func (o Owner) ReadFile(path string) (f File, err error) {
	err = o.Do(func() error {
		f, err = ReadFile(path)
		return err
	})
	if o.UID > 0 {
		f.By = &o
	}
	return f, err
}

// Read reads the file on the disk.
func (f *File) Read() (File, error) { return f.user().ReadFile(f.Path) }

// user returns the user who reads and replaces the file.
func (f *File) user() Owner {
	if f.By != nil {
		return *f.By
	}
	return Owner{UID: f.UID, GID: f.GID, Groups: []int{f.GID}}
}

// Unchanged reports whether the file on the disk has these bytes.
func (f *File) Unchanged() (bool, error) {
	have, err := f.Read()
	return err == nil && bytes.Equal(have.Data, f.Data), err
}

// StagedPath returns the temporary name of a file that will replace target. It is always the
// same, so a crash leaves at most one such file, and the next write or revert removes it.
func StagedPath(target string) string {
	return filepath.Join(filepath.Dir(target), "."+filepath.Base(target)+".rooftop.tmp")
}

// target returns the path of the file with links resolved; its own path if they do not lead to a
// regular file.
func (f *File) target() string {
	target, err := filepath.EvalSymlinks(f.Path)
	if err != nil {
		return f.Path
	}
	if info, err := os.Lstat(target); err != nil || !info.Mode().IsRegular() {
		return f.Path
	}
	return target
}

// Stage writes a file with its mode, owner and time under its temporary name, so that only
// a rename remains. A full disk is detected before anything is touched.
func (f *File) Stage() error {
	if f.Fixed {
		return nil
	}
	return f.user().Do(func() error {
		target := f.target()
		if f.found(target) {
			return nil
		}
		return f.writeTo(StagedPath(target))
	})
}

// Unstage removes the temporary file if it was not used.
func (f *File) Unstage() {
	_ = f.user().Do(func() error { return os.Remove(StagedPath(f.target())) })
}

// Stage stages all files of a launch.
func (l *Launch) Stage() error {
	for i := range l.Files {
		if err := l.Files[i].Stage(); err != nil {
			return fmt.Errorf("write %s: %w", l.Files[i].Path, err)
		}
	}
	return nil
}

// Unstage removes the temporary files of a launch that were not used.
func (l *Launch) Unstage() {
	for i := range l.Files {
		l.Files[i].Unstage()
	}
}

// found reports whether the file on the disk is f. rooftop never changes a mode, so that of the file on the
// disk is what its owner wants, and f takes it.
func (f *File) found(path string) bool {
	have, err := ReadFile(path)
	if err == nil && have.UID == f.UID {
		f.Mode = have.Mode
	}
	return err == nil && f.Equal(&have)
}

// Replace replaces the file on the disk atomically, with its bytes, mode and owner. It
// follows links, and replaces a link to where nothing can be written. It sets the modification
// time only if that is not zero. It leaves a fixed file alone.
func (f *File) Replace() error {
	if f.Fixed {
		return nil
	}
	return f.user().Do(func() error {
		target := f.target()
		err := f.replaceAt(target)
		if err != nil && target != f.Path {
			err = f.replaceAt(f.Path)
		}
		return err
	})
}

func (f *File) replaceAt(path string) error {
	temp := StagedPath(path)
	if f.found(path) {
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
	if err := os.Rename(temp, path); err != nil {
		return errors.Join(err, os.Remove(temp))
	}
	return atomicfile.SyncDir(filepath.Dir(path))
}

// staged reports whether the temporary file is complete and on the disk.
func (f *File) staged(temp string) bool {
	if info, err := os.Lstat(temp); err != nil || !info.Mode().IsRegular() {
		return false
	}
	have, err := ReadFile(temp)
	if err != nil || !f.Equal(&have) || f.UID >= 0 && (f.UID != have.UID || f.GID != have.GID) {
		return false
	}
	file, err := OpenFile(temp, os.O_RDONLY, 0)
	if err != nil {
		return false
	}
	return errors.Join(file.Sync(), file.Close()) == nil
}

// Equal reports whether a file on the disk has the content, mode and, unless that is zero,
// the time of f.
func (f *File) Equal(have *File) bool {
	return bytes.Equal(f.Data, have.Data) && f.Mode == have.Mode && (f.Time.IsZero() || f.Time.Equal(have.Time))
}

func (f *File) writeTo(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	file, err := proc.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(f.Data)
	if info, failed := file.Stat(); err == nil && f.UID >= 0 {
		st, ok := info.Sys().(*syscall.Stat_t)
		if err = failed; err == nil && ok && (f.UID != int(st.Uid) || f.GID != int(st.Gid)) {
			err = file.Chown(f.UID, f.GID)
		}
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

// Replaceable returns why the file cannot be replaced atomically; nil if it can. It touches
// nothing.
func (f *File) Replaceable() error {
	if f.Fixed {
		return fmt.Errorf("%s could not be replaced when it was read", f.Path)
	}
	by := f.user()
	if f.By == nil && by.UID == 0 && os.Geteuid() == 0 {
		if err := atomicfile.OwnDir(f.Path); err != nil { // someone else may lead the name elsewhere
			return err
		}
	}
	return by.Do(func() error {
		target, err := filepath.EvalSymlinks(f.Path)
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
		case int(st.Uid) != by.UID && by.UID > 0, int(st.Uid) != os.Geteuid() && os.Geteuid() != 0:
			return fmt.Errorf("%s belongs to user %d", target, st.Uid)
		case by.UID > 0 && int(st.Gid) != by.GID && !slices.Contains(by.Groups, int(st.Gid)):
			return fmt.Errorf("%s belongs to group %d", target, st.Gid)
		}
		if mounted(target) {
			return fmt.Errorf("%s is mounted from elsewhere", target)
		}
		if n, err := unix.Getxattr(target, "system.posix_acl_access", nil); err == nil && n > 0 { // its mode alone permits others
			return fmt.Errorf("%s has an access control list", target)
		}
		return unix.Faccessat(unix.AT_FDCWD, filepath.Dir(target), unix.W_OK|unix.X_OK, unix.AT_EACCESS)
	})
}

// mounted reports whether a path is itself a mount point, as files of a container may be.
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
