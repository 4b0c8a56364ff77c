package apply

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

	"github.com/rooftop-dev/rooftop/cmd/internal/wholefile"
)

// StateError says that a run cannot be written down in the directory of a server,
// so nothing may be touched.
type StateError struct {
	Dir string
	Err error
}

func (e *StateError) Error() string {
	why := e.Err.Error()
	switch {
	case errors.Is(e.Err, syscall.ENOSPC), errors.Is(e.Err, syscall.EDQUOT):
		why = fmt.Sprintf("less than %d MiB are free there", reserved>>20)
	case errors.Is(e.Err, syscall.EROFS):
		why = "the file system is read-only"
	case errors.Is(e.Err, fs.ErrPermission):
		why = "this user may not write there"
	case errors.Is(e.Err, syscall.ENOTDIR):
		why = "a part of that path is no directory"
	}
	return fmt.Sprintf("the journal cannot be written in %s: %s; nothing was touched; XDG_STATE_HOME may name another place", e.Dir, why)
}

func (e *StateError) Unwrap() error { return e.Err }

// Keep stores an exact launch, for its owner alone to read, and returns the name of
// its file. Equal launches have one file.
func (s *Store) Keep(l *Launch) (string, error) {
	data, err := json.Marshal(l)
	if err != nil {
		return "", fmt.Errorf("launch: %w", err)
	}
	sum := sha256.Sum256(data)
	name := launchPrefix + hex.EncodeToString(sum[:8]) + ".json"
	path := filepath.Join(s.dir, name)
	if have, err := os.ReadFile(path); err == nil && string(have) == string(data) {
		return name, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.roomy(func() error { return writeAtomic(path, data, 0o600) }); err != nil {
		return "", &StateError{Dir: s.dir, Err: err}
	}
	return name, nil
}

// roomy does something that needs room on the disk. Where there is none left, what
// was held for that is given up for it.
func (s *Store) roomy(do func() error) error {
	err := do()
	if !errors.Is(err, syscall.ENOSPC) && !errors.Is(err, syscall.EDQUOT) {
		return err
	}
	if release(filepath.Join(s.dir, reserveName)) != nil {
		return err
	}
	return do()
}

// Launch reads an exact launch back.
func (s *Store) Launch(name string) (*Launch, error) { return readLaunch(s.dir, name) }

func readLaunch(dir, name string) (*Launch, error) {
	if !isLaunch(name) || filepath.Base(name) != name {
		return nil, fmt.Errorf("%q is no launch file of a journal", name)
	}
	data, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		return nil, fmt.Errorf("launch: %w", err)
	}
	l := &Launch{}
	if err := json.Unmarshal(data, l); err != nil {
		return nil, fmt.Errorf("launch %s: %w", filepath.Join(dir, name), err)
	}
	return l, nil
}

func isLaunch(name string) bool {
	return strings.HasPrefix(name, launchPrefix) && strings.HasSuffix(name, ".json")
}

// temporarySuffix ends the names of files that are being written.
const temporarySuffix = wholefile.Suffix

func temporary(name string) bool { return strings.HasSuffix(name, temporarySuffix) }

// writeAtomic writes a file whole or not at all: whoever reads it, also after a
// crash at any instant, sees the old bytes or the new.
func writeAtomic(path string, data []byte, mode fs.FileMode) error {
	return wholefile.Write(path, mode, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// makeDirs makes a directory and its parents for their owner alone, with their
// names on the disk.
func makeDirs(dir string) error {
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
	return wholefile.SyncDir(filepath.Dir(dir))
}

// appendSync adds to a file that its owner alone reads.
func appendSync(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Sync(), f.Close())
}

// reserve has a file hold room on the disk. The bytes are written: a file system
// gives no room for what is only announced.
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

// release gives reserved room back.
func release(path string) error { return os.Remove(path) }

// missing says that there is no such file.
func missing(err error) bool { return errors.Is(err, fs.ErrNotExist) }

// serverDirs are the directories of servers, by name.
func serverDirs(root string) ([]string, error) {
	list, err := os.ReadDir(root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
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
