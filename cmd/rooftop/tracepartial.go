package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"github.com/rooftop-dev/rooftop/cmd/internal/wholefile"
)

// partialOf is what the file of a recording is called until it is whole.
func partialOf(path string) string {
	return strings.TrimSuffix(path, recordingSuffix) + ".partial" + recordingSuffix
}

// claimed is a file that this process alone writes: it made it, and holds a lock on it for
// as long as it is open.
type claimed struct {
	*os.File
	made fs.FileInfo
}

// claim makes a file that is to become a recording. What has its name already is left as
// it is, for it may be all that there is of a trace that was killed, or another trace may
// be writing it: the error says which. Only what is empty, and nobody writes, is replaced.
func claim(path string) (*claimed, error) {
	const tries = 3 // others may come and go meanwhile
	for range tries {
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if errors.Is(err, fs.ErrExist) {
			if err := makeWay(path); err != nil {
				return nil, err
			}
			continue
		}
		if err != nil {
			return nil, &wholefile.Error{Path: path, Err: err}
		}
		// Until it has the lock, another trace may take the file for an empty one that was
		// left, and remove it.
		made, err := f.Stat()
		if c := (&claimed{f, made}); err == nil && lock(f) && c.there() {
			return c, nil
		}
		if err := errors.Join(err, f.Close()); err != nil {
			return nil, &wholefile.Error{Path: path, Err: err}
		}
	}
	return nil, writtenNow(path)
}

// makeWay removes a file that is in the way where nothing is in it, and says what it is
// where that is not so.
func makeWay(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return &wholefile.Error{Path: path, Err: err}
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is no file, and a recording has that name until it is whole: move it, or name another file", path)
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return leftThere(path)
	}
	defer f.Close()
	if !lock(f) {
		return writtenNow(path)
	}
	// It may have been written since it was looked at first.
	if now, err := f.Stat(); err != nil || now.Size() > 0 {
		return leftThere(path)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return &wholefile.Error{Path: path, Err: err}
	}
	return nil
}

func leftThere(path string) error {
	return fmt.Errorf("%[1]s is what a trace left that was killed or failed, and is not overwritten: 'rooftop trace %[1]s' shows it; move or remove it, or name another file", path)
}

// free says that no other trace writes a file, whoever named it so.
func free(path string) error {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil // what cannot be read is no affair of ours, and is said where it is replaced
	}
	defer f.Close()
	if !lock(f) {
		return writtenNow(path)
	}
	return nil
}

func writtenNow(path string) error {
	return fmt.Errorf("another trace is writing %s at this moment: name another file", path)
}

// lock says that no other process holds the lock of a file; this one does then, until it
// closes it, where the file system knows locks.
func lock(f *os.File) bool {
	return !errors.Is(syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB), syscall.EWOULDBLOCK)
}

// there says that the file still has its name.
func (c *claimed) there() bool {
	named, err := os.Lstat(c.Name())
	return err == nil && os.SameFile(c.made, named)
}
