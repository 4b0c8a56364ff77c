package serverdir

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/launcher"
	"github.com/rooftop-dev/rooftop/engine/journal"
)

// Tidy removes leftovers of killed runs below root: reserved space, incomplete files and
// launches of runs that had ended. It skips servers in use, and those with an unreadable
// journal.
func Tidy(root string) error {
	dirs, err := Dirs(root)
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		id, err := ReadIdentity(dir)
		if err != nil && !neverBegan(dir) || !untidy(dir) {
			continue
		}
		s := &Store{dir: dir, id: id, now: time.Now}
		if err := s.open(); err != nil {
			continue // the server's next run reports the error
		}
		if s.doubt != nil {
			if err := s.Release(); err != nil {
				return err
			}
			continue
		}
		if !s.state.Open {
			err = s.Tidy()
		}
		if err = errors.Join(err, s.Close()); err != nil {
			return err
		}
	}
	return nil
}

// untidy reports whether a directory has files that exist only during a run.
func untidy(dir string) bool {
	list, err := os.ReadDir(dir)
	return err == nil && slices.ContainsFunc(list, func(e os.DirEntry) bool {
		return IsTemporary(e.Name()) || IsLaunch(e.Name()) || e.Name() == ReserveName
	})
}

// neverBegan reports whether a run was killed before it named its server: only incomplete
// and empty files are left.
func neverBegan(dir string) bool {
	list, err := os.ReadDir(dir)
	return err == nil && !slices.ContainsFunc(list, func(e os.DirEntry) bool {
		if IsTemporary(e.Name()) || e.Name() == ReserveName || e.Name() == lockName {
			return false
		}
		info, err := e.Info()
		return err != nil || info.Size() > 0
	})
}

// Finish records r and the end of a repaired run, and removes its leftovers.
func (s *Store) Finish(r journal.Record) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.write(r); err != nil {
		return err
	}
	if err := s.write(journal.Record{Kind: journal.End, Text: r.Text}); err != nil {
		return err
	}
	s.doubt = nil // the run is over
	return s.Tidy()
}

// KeepFound copies a file as it is now into the directory of the server and returns the copy's path.
func (s *Store) KeepFound(f *launcher.File) (string, error) {
	found, err := f.Read()
	if err != nil {
		return "", err
	}
	name := "found-" + strconv.Itoa(s.State().Seq) + "-" + plain(filepath.Base(f.Path))
	path := filepath.Join(s.dir, name)
	return path, WriteFile(path, found.Data, 0o600)
}
