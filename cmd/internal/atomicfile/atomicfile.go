// Package atomicfile replaces files atomically: a reader, also after a signal or a crash
// at any instant, sees the old content or the new. It adds to renameio what a program
// needs to write where the user says: links, pipes, errors with a next step, and files
// that belong to the user of sudo.
package atomicfile

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

	"github.com/google/renameio/v2"
)

// Unfinished reports whether a file name is that of an unfinished write of a killed program:
// renameio writes the file "name" as ".name" followed by a number.
func Unfinished(name string) bool {
	return strings.HasPrefix(name, ".") && strings.TrimRight(name, "0123456789") != name
}

// Error is the reason why a file was not written. An existing file is unchanged.
type Error struct {
	Path string
	Err  error

	target string // Path with links resolved; "" if that failed
}

// Error returns one sentence with the reason and the next step.
func (e *Error) Error() string {
	why := e.Err.Error()
	// The name of the temporary file means nothing to a user.
	var inPath *fs.PathError
	var inLink *os.LinkError
	if errors.As(e.Err, &inPath) {
		why = inPath.Err.Error()
	} else if errors.As(e.Err, &inLink) {
		why = inLink.Err.Error()
	}
	switch dir := filepath.Dir(cmp.Or(e.target, e.Path)); {
	case errors.Is(e.Err, syscall.ENOSPC), errors.Is(e.Err, syscall.EDQUOT):
		why = fmt.Sprintf("no space left in %s; free some, or choose another place", dir)
	case errors.Is(e.Err, syscall.EROFS):
		why = fmt.Sprintf("the file system of %s is read-only; choose another place", dir)
	case errors.Is(e.Err, fs.ErrPermission):
		why = fmt.Sprintf("no permission to write in %s; choose another place", dir)
	case errors.Is(e.Err, syscall.EISDIR):
		why = "it is a directory; name a file in it"
	case errors.Is(e.Err, syscall.ENOTDIR):
		why = "a part of that path is not a directory; choose another place"
	case errors.Is(e.Err, fs.ErrNotExist) && isDir(dir): // /proc
		why = fmt.Sprintf("files cannot be created in %s; choose another place", dir)
	case errors.Is(e.Err, fs.ErrNotExist):
		why = fmt.Sprintf("directory %s does not exist; create it, or choose another place", dir)
	}
	return fmt.Sprintf("write %s: %s", e.Path, why)
}

// Unwrap returns the error of the system or of the content's writer.
func (e *Error) Unwrap() error { return e.Err }

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// Check returns why [Write] could not write a file, as far as that can be known in advance,
// by creating and removing the temporary file. It does not open a stream, because a pipe
// would wait for its reader. Every error is an *Error.
func Check(path string) error { return asError(path, check(path)) }

func check(path string) error {
	if isStream(path) {
		if _, ours := descriptor(filepath.Clean(path)); ours {
			return nil
		}
		_, err := os.Stat(path)
		return err
	}
	f, _, err := newPending(path)
	if err != nil {
		return err
	}
	return f.Cleanup()
}

// newPending creates the temporary file that will replace target, which is path with links
// resolved. Its name is unique, so two programs can write the same file at once.
func newPending(path string) (f *renameio.PendingFile, target string, err error) {
	if target, err = followLinks(path); err != nil {
		return nil, "", err
	}
	if isDir(target) {
		return nil, "", &fs.PathError{Op: "write", Path: path, Err: syscall.EISDIR}
	}
	f, err = renameio.NewPendingFile(target, renameio.WithTempDir(filepath.Dir(target)))
	return f, target, err
}

func asError(path string, err error) error {
	if err == nil {
		return nil
	}
	target, _ := followLinks(path)
	return &Error{Path: path, Err: err, target: target}
}

// Mode returns the permissions of an existing regular file, else otherwise. It is the mode
// with which to write a file that a user named.
func Mode(path string, otherwise fs.FileMode) fs.FileMode {
	if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
		return info.Mode().Perm()
	}
	return otherwise
}

// Write atomically replaces a file by the output of fill, with exactly the given mode. If
// fill or the disk fails, the file is unchanged. Write follows links. It writes directly to
// a stream (a pipe, a terminal, /dev/stdout). Every error is an *Error.
func Write(path string, mode fs.FileMode, fill func(io.Writer) error) error {
	return (*Owner)(nil).Write(path, mode, fill)
}

func write(path string, mode fs.FileMode, owner *Owner, fill func(io.Writer) error) error {
	if isStream(path) {
		f, err := openStream(path)
		if err != nil {
			return err
		}
		return errors.Join(fillFile(f, fill), f.Close())
	}
	f, target, err := newPending(path)
	if err != nil {
		return err
	}
	defer f.Cleanup() //nolint:errcheck // also when fill panics; the first error counts
	if err := fillFile(f.File, fill); err != nil {
		return err
	}
	if err := f.Chmod(mode); err != nil { // regardless of the umask
		return err
	}
	owner.Take(f.File, target)
	if err := f.CloseAtomicallyReplace(); err != nil {
		return err
	}
	return SyncDir(filepath.Dir(target))
}

// isStream reports whether a path cannot be replaced: it is not a regular file, or it is a
// file that is open elsewhere (under /dev/fd or /proc).
func isStream(path string) bool {
	if clean := filepath.Clean(path); strings.HasPrefix(clean, "/dev/") || strings.HasPrefix(clean, "/proc/") {
		return !strings.HasPrefix(clean, "/dev/shm/")
	}
	info, err := os.Stat(path)
	return err == nil && !info.Mode().IsRegular() && !info.IsDir()
}

// openStream opens a stream for writing. It duplicates a descriptor of this process instead
// of opening it again, which keeps the offset of a file and works for sockets.
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

// descriptor returns the number of the descriptor of this process that a path names.
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

// followLinks returns a path with links resolved. The file need not exist.
func followLinks(path string) (string, error) {
	for range 40 { // as many as Linux follows; the system reports a cycle itself
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			return filepath.EvalSymlinks(path)
		}
		to, err := os.Readlink(path)
		switch {
		case errors.Is(err, syscall.EINVAL), errors.Is(err, fs.ErrNotExist):
			return path, nil // not a link: a new file, or a missing directory
		case err != nil:
			return "", err
		}
		if !filepath.IsAbs(to) {
			dir, err := filepath.EvalSymlinks(filepath.Dir(path)) // ".." belongs to the real directory
			if err != nil {
				return "", err
			}
			to = filepath.Join(dir, to)
		}
		path = to
	}
	return path, nil
}

func fillFile(f *os.File, fill func(io.Writer) error) error {
	w := bufio.NewWriterSize(f, 64<<10)
	if err := fill(w); err != nil {
		return err
	}
	return w.Flush()
}

// SyncDir flushes the names in a directory to the disk.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = d.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOTSUP) {
		err = nil // the file system cannot sync directories
	}
	return errors.Join(err, d.Close())
}
