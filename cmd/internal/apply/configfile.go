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

// put has a file on the disk with its bytes, mode and owner, whole or not at all;
// links are followed. Its time is set only where it is one to go back to.
func (f *File) put() error {
	target, err := filepath.EvalSymlinks(f.Path)
	if errors.Is(err, fs.ErrNotExist) {
		target, err = f.Path, nil
	}
	if err != nil {
		return err
	}
	temp := scratch(target)
	if have, err := readConfig(target); err == nil && f.is(&have) {
		if err := os.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	if err := f.writeTo(temp); err != nil {
		return errors.Join(err, os.Remove(temp))
	}
	if err := os.Rename(temp, target); err != nil {
		return errors.Join(err, os.Remove(temp))
	}
	return syncDir(filepath.Dir(target))
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
// where it can.
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
	temp := scratch(target)
	probe, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(probe.Close(), os.Remove(temp))
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
