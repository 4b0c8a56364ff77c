// Package wholefile writes files whole or not at all: whoever reads one, also after a
// signal or a crash at any instant, sees the old bytes or the new.
package wholefile

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// Suffix ends the names of files that are being written. One that a killed program
// left has it, and a dot in front.
const Suffix = ".tmp"

// Error says in one sentence why a file was not written. What was there before is
// there still.
type Error struct {
	Path string
	Err  error

	target string // where the links of Path lead, "" it is none
}

// Error returns the sentence, with the next step.
func (e *Error) Error() string {
	why := e.Err.Error()
	// Without the name of the file beside it, which is nobody's business.
	var inPath *fs.PathError
	var inLink *os.LinkError
	if errors.As(e.Err, &inPath) {
		why = inPath.Err.Error()
	} else if errors.As(e.Err, &inLink) {
		why = inLink.Err.Error()
	}
	switch dir := filepath.Dir(cmp.Or(e.target, e.Path)); {
	case errors.Is(e.Err, syscall.ENOSPC), errors.Is(e.Err, syscall.EDQUOT):
		why = fmt.Sprintf("no room is left in %s; free some, or name another place", dir)
	case errors.Is(e.Err, syscall.EROFS):
		why = fmt.Sprintf("the file system of %s is read-only; name another place", dir)
	case errors.Is(e.Err, fs.ErrPermission):
		why = fmt.Sprintf("this user may not write in %s; name another place", dir)
	case errors.Is(e.Err, syscall.EISDIR):
		why = "it is a directory; name a file in it"
	case errors.Is(e.Err, syscall.ENOTDIR):
		why = "a part of that path is no directory; name another place"
	case errors.Is(e.Err, fs.ErrNotExist) && isDir(dir): // /proc
		why = fmt.Sprintf("no file can be made in %s; name another place", dir)
	case errors.Is(e.Err, fs.ErrNotExist):
		why = fmt.Sprintf("there is no directory %s; make it, or name another place", dir)
	}
	return fmt.Sprintf("write %s: %s", e.Path, why)
}

// Unwrap returns what the system or the filling said.
func (e *Error) Unwrap() error { return e.Err }

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// Check says why Write could not write a file, as far as that can be known before: it
// makes the one that would take its place, and removes it. What is no file is not
// opened, for a pipe would wait for its reader. Every error is an *Error.
func Check(path string) error { return unwritten(path, check(path)) }

func check(path string) error {
	if stream(path) {
		if _, ours := descriptor(filepath.Clean(path)); ours {
			return nil
		}
		_, err := os.Stat(path)
		return err
	}
	f, _, err := beside(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// beside makes the file that takes the place of target, where the links of path lead, once
// it is whole. It has a name of its own: two programs that write one file do not mix.
func beside(path string) (f *os.File, target string, err error) {
	if target, err = behindLinks(path); err != nil {
		return nil, "", err
	}
	if isDir(target) {
		return nil, "", &fs.PathError{Op: "write", Path: path, Err: syscall.EISDIR}
	}
	f, err = os.CreateTemp(filepath.Dir(target), "."+filepath.Base(target)+".*"+Suffix)
	return f, target, err
}

// unwritten is the error of a file that is not written; nil where there is none.
func unwritten(path string, err error) error {
	if err == nil {
		return nil
	}
	target, _ := behindLinks(path)
	return &Error{Path: path, Err: err, target: target}
}

// Mode is that of the file there is, else the one given: what a file that a person
// named is written with.
func Mode(path string, otherwise fs.FileMode) fs.FileMode {
	if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
		return info.Mode().Perm()
	}
	return otherwise
}

// Write has a file hold what fill writes, with exactly this mode, or leaves what is
// there as it is: where fill or the disk fails, nothing of it stays. Links are
// followed. What is no file (a pipe, a terminal, /dev/stdout) is written to as it
// stands, for there is nothing to replace. Every error is an *Error.
func Write(path string, mode fs.FileMode, fill func(io.Writer) error) error {
	return written(path, mode, nil, fill)
}

func written(path string, mode fs.FileMode, owner *Owner, fill func(io.Writer) error) error {
	return unwritten(path, write(path, mode, owner, fill))
}

func write(path string, mode fs.FileMode, owner *Owner, fill func(io.Writer) error) error {
	if stream(path) {
		f, err := openStream(path)
		if err != nil {
			return err
		}
		return errors.Join(filled(f, fill), f.Close())
	}
	f, target, err := beside(path)
	if err != nil {
		return err
	}
	// Also where fill panics.
	renamed := false
	defer func() {
		if !renamed {
			_ = f.Close()
			_ = os.Remove(f.Name())
		}
	}()
	if err := filled(f, fill); err != nil {
		return err
	}
	if err := f.Chmod(mode); err != nil { // whatever the umask says
		return err
	}
	owner.Take(f, target)
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), target); err != nil {
		return err
	}
	renamed = true
	return SyncDir(filepath.Dir(target))
}

// stream says that a path names no file that could be replaced. What lies under
// /dev/fd or /proc is another's open file, even where it is a regular one.
func stream(path string) bool {
	if clean := filepath.Clean(path); strings.HasPrefix(clean, "/dev/") || strings.HasPrefix(clean, "/proc/") {
		return !strings.HasPrefix(clean, "/dev/shm/")
	}
	info, err := os.Stat(path)
	return err == nil && !info.Mode().IsRegular() && !info.IsDir()
}

// openStream opens what stream says to be none. A descriptor of our own is shared and
// not opened again: a file that it leads to is written on from where it stands, not
// from its begin, and a socket can be written at all.
func openStream(path string) (*os.File, error) {
	if fd, ours := descriptor(filepath.Clean(path)); ours {
		syscall.ForkLock.RLock()
		again, err := syscall.Dup(fd)
		if err == nil {
			syscall.CloseOnExec(again)
		}
		syscall.ForkLock.RUnlock()
		if err != nil {
			return nil, &fs.PathError{Op: "open", Path: path, Err: err}
		}
		return os.NewFile(uintptr(again), path), nil
	}
	return os.OpenFile(path, os.O_WRONLY, 0)
}

// descriptor is the number of the descriptor that a path names, where it is one of
// this process.
func descriptor(path string) (int, bool) {
	switch path {
	case "/dev/stdout":
		return 1, true
	case "/dev/stderr":
		return 2, true
	}
	for _, dir := range [...]string{"/dev/fd/", "/proc/self/fd/"} {
		if number, below := strings.CutPrefix(path, dir); below {
			fd, err := strconv.Atoi(number)
			return fd, err == nil && fd >= 0
		}
	}
	return 0, false
}

// behindLinks is where the links of a path lead, also to a file that is not there yet.
func behindLinks(path string) (string, error) {
	for range 40 { // as many as Linux follows; of a circle the system says so itself
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			return filepath.EvalSymlinks(path)
		}
		to, err := os.Readlink(path)
		switch {
		case errors.Is(err, syscall.EINVAL), errors.Is(err, fs.ErrNotExist):
			return path, nil // no link: a new file, or a directory that is not there
		case err != nil:
			return "", err
		}
		if !filepath.IsAbs(to) {
			dir, err := filepath.EvalSymlinks(filepath.Dir(path)) // ".." is of the real one
			if err != nil {
				return "", err
			}
			to = filepath.Join(dir, to)
		}
		path = to
	}
	return path, nil
}

func filled(f *os.File, fill func(io.Writer) error) error {
	w := bufio.NewWriterSize(f, 64<<10)
	if err := fill(w); err != nil {
		return err
	}
	return w.Flush()
}

// SyncDir has the names of a directory on the disk.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = d.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOTSUP) {
		err = nil // a file system that has no such thing
	}
	return errors.Join(err, d.Close())
}
