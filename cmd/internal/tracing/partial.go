package tracing

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"github.com/rooftop-dev/rooftop/cmd/internal/atomicfile"
)

// partialPath returns the path of a recording until it is complete.
func partialPath(path string) string {
	return strings.TrimSuffix(path, Suffix) + ".partial" + Suffix
}

// claimed is a file that only this process writes: it created the file, and holds a lock on it
// while it is open.
type claimed struct {
	*os.File
	made fs.FileInfo
}

// claim creates a file for a recording. It does not replace an existing file, which may be the only
// data of a killed trace, or be written by another trace: the error says which. Only an empty file
// that no other trace writes is replaced.
func claim(path string) (*claimed, error) {
	if err := removeEmpty(path); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	switch {
	case errors.Is(err, fs.ErrExist): // created since
		return nil, errBeingWritten(path)
	case err != nil:
		return nil, &atomicfile.Error{Path: path, Err: err}
	}
	// Until the file is locked, another trace may consider it an empty leftover and remove it.
	made, err := f.Stat()
	if c := (&claimed{f, made}); err == nil && lock(f) && c.stillNamed() {
		return c, nil
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, &atomicfile.Error{Path: path, Err: err}
	}
	return nil, errBeingWritten(path)
}

// removeEmpty removes an empty file that no other trace writes. For any other file the error
// describes the file.
func removeEmpty(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return &atomicfile.Error{Path: path, Err: err}
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is not a regular file, and a recording has that name until it is complete: move it, or name another file", path)
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return errLeftover(path)
	}
	defer f.Close()
	if !lock(f) {
		return errBeingWritten(path)
	}
	// It may have been written since the first check.
	if now, err := f.Stat(); err != nil || now.Size() > 0 {
		return errLeftover(path)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return &atomicfile.Error{Path: path, Err: err}
	}
	return nil
}

func errLeftover(path string) error {
	return fmt.Errorf("%s was left by a trace that was killed or failed, and is not overwritten: '%s' shows it; move or remove it, or name another file", path, traceCommand(path))
}

// checkUnwritten fails if another trace is writing a file.
func checkUnwritten(path string) error {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil // an unreadable file is reported when it is replaced
	}
	defer f.Close()
	if !lock(f) {
		return errBeingWritten(path)
	}
	return nil
}

func errBeingWritten(path string) error {
	return fmt.Errorf("another trace is writing %s: name another file", path)
}

// lock locks a file until it is closed and reports success, which includes file systems without
// locks.
func lock(f *os.File) bool {
	return !errors.Is(syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB), syscall.EWOULDBLOCK)
}

// stillNamed reports whether the file still has its name.
func (c *claimed) stillNamed() bool {
	named, err := os.Lstat(c.Name())
	return err == nil && os.SameFile(c.made, named)
}
