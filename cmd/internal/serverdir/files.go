package serverdir

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/rooftop-dev/rooftop/cmd/internal/atomicfile"
	"github.com/rooftop-dev/rooftop/cmd/internal/launcher"
)

// StateError means that a run cannot be recorded in the directory of a server, so nothing
// may be touched.
type StateError struct {
	Dir string
	Err error
	// Underway is true for a run that has begun, whose caller says what was done so far.
	Underway bool
}

func (e *StateError) Error() string {
	why := e.Err.Error()
	switch {
	case errors.Is(e.Err, syscall.ENOSPC), errors.Is(e.Err, syscall.EDQUOT):
		why = fmt.Sprintf("less than %d MiB is free there", reserved>>20)
	case errors.Is(e.Err, syscall.EROFS):
		why = "the file system is read-only"
	case errors.Is(e.Err, fs.ErrPermission):
		why = "no permission to write there"
	case errors.Is(e.Err, syscall.ENOTDIR):
		why = "a part of that path is not a directory"
	}
	text := fmt.Sprintf("the journal cannot be written in %s: %s", e.Dir, why)
	if e.Underway {
		return text
	}
	return text + "; nothing was touched; set XDG_STATE_HOME to another place"
}

func (e *StateError) Unwrap() error { return e.Err }

// Keep stores an exact launch in a file that only its owner can read, and returns the name
// of the file. Equal launches share one file. The error is a *StateError if the disk
// cannot be written.
func (s *Store) Keep(l *launcher.Launch) (string, error) {
	data, err := json.Marshal(l)
	if err != nil {
		return "", fmt.Errorf("launch: %w", err)
	}
	sum := sha256.Sum256(data)
	name := launchPrefix + hex.EncodeToString(sum[:8]) + ".json"
	path := filepath.Join(s.dir, name)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.renew(); err != nil {
		return "", s.unwritten(err)
	}
	if s.launches == nil {
		s.launches = map[string][]byte{}
	}
	s.launches[name] = data
	if have, err := read(path); err == nil && string(have) == string(data) {
		return name, nil
	}
	if err := s.withReserve(func() error { return WriteFile(path, data, 0o600) }); err != nil {
		return "", s.unwritten(err)
	}
	return name, nil
}

// renew writes the directory again if someone removed its journal: from the open file, which has all
// records, and the launches of this run.
func (s *Store) renew() error {
	if s.file == nil {
		return nil // closed
	}
	path := filepath.Join(s.dir, journalName)
	open, err := s.file.Stat()
	if err != nil {
		return err
	}
	if info, err := os.Stat(path); err == nil && os.SameFile(info, open) {
		return nil
	}
	data := make([]byte, s.size)
	if _, err := s.file.ReadAt(data, 0); err != nil {
		return err
	}
	if err := makeDirs(s.dir); err != nil {
		return err
	}
	for _, dir := range []string{s.dir, filepath.Dir(s.dir)} {
		if err := atomicfile.OwnDir(dir); err != nil {
			return err
		}
	}
	for name, launch := range s.launches {
		if err := WriteFile(filepath.Join(s.dir, name), launch, 0o600); err != nil {
			return err
		}
	}
	if s.state.Run != s.run {
		if err := WriteFile(filepath.Join(s.dir, unbegunName), nil, 0o600); err != nil {
			return err
		}
	}
	if err := errors.Join(writeIdentity(s.dir, s.id), WriteFile(path, data, 0o600)); err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_ = s.file.Close()
	s.file = file
	return nil
}

// withReserve calls do, which writes to the disk. If the disk is full, it releases the
// reserved space and calls do again.
func (s *Store) withReserve(do func() error) error {
	err := do()
	if !errors.Is(err, syscall.ENOSPC) && !errors.Is(err, syscall.EDQUOT) {
		return err
	}
	if os.Remove(filepath.Join(s.dir, ReserveName)) != nil {
		return err
	}
	return do()
}

// ReadLaunch reads an exact launch from a directory.
func ReadLaunch(dir, name string) (*launcher.Launch, error) {
	if !IsLaunch(name) || filepath.Base(name) != name {
		return nil, fmt.Errorf("%q is not a launch file of a journal", name)
	}
	data, err := read(filepath.Join(dir, name))
	if err != nil {
		return nil, fmt.Errorf("launch: %w", err)
	}
	l := &launcher.Launch{}
	if err := json.Unmarshal(data, l); err != nil {
		return nil, fmt.Errorf("launch %s: %w", filepath.Join(dir, name), err)
	}
	return l, nil
}

// IsLaunch reports whether a file name is that of an exact launch.
func IsLaunch(name string) bool {
	return strings.HasPrefix(name, launchPrefix) && strings.HasSuffix(name, ".json")
}

// temporarySuffix is the suffix of this package's temporary files.
const temporarySuffix = ".tmp"

// IsTemporary reports whether a file name is that of an unfinished write.
func IsTemporary(name string) bool {
	return strings.HasSuffix(name, temporarySuffix) || atomicfile.Unfinished(name)
}

// WriteFile replaces a file atomically: a reader sees the old content or the new, even
// after a crash.
func WriteFile(path string, data []byte, mode fs.FileMode) error {
	return atomicfile.Write(path, mode, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// makeDirs creates a directory and its parents, accessible only to their owner, and syncs
// their names to the disk. Root creates none in a directory of another user.
func makeDirs(dir string) error {
	if os.Geteuid() == 0 {
		if err := atomicfile.OwnDir(dir); err != nil {
			return err
		}
	}
	if info, err := os.Stat(dir); err == nil {
		if !info.IsDir() {
			return &fs.PathError{Op: "mkdir", Path: dir, Err: syscall.ENOTDIR}
		}
		return nil
	}
	if err := makeDirs(filepath.Dir(dir)); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return atomicfile.SyncDir(filepath.Dir(dir))
}

// appendSync appends to a file that only its owner can read, and syncs it.
func appendSync(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Sync(), f.Close())
}

// reserve creates a file that reserves space on the disk. It writes all bytes, because file
// systems allocate no space for a sparse file.
func reserve(path string, size int64) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	block := make([]byte, 1<<16)
	for written := int64(0); err == nil && written < size; written += int64(len(block)) {
		_, err = f.Write(block)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(path))
	}
	return nil
}

// Dirs returns the directories of servers below root, ordered by name; none if root does
// not exist.
func Dirs(root string) ([]string, error) {
	list, err := os.ReadDir(root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if errors.Is(err, syscall.ENOTDIR) {
		err = fmt.Errorf("%w: move what lies there away, or set XDG_STATE_HOME to another place", err)
	}
	if err == nil {
		err = atomicfile.OwnDir(root)
	}
	if err != nil {
		return nil, err
	}
	var dirs []string
	for _, e := range list {
		if e.IsDir() {
			dirs = append(dirs, filepath.Join(root, e.Name()))
		}
	}
	return dirs, nil
}
