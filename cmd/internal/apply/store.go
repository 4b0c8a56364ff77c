package apply

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/wholefile"
	"github.com/rooftop-dev/rooftop/engine/journal"
)

// Names within the directory of a server.
const (
	journalName  = "journal.jsonl"
	earlierName  = "journal.1.jsonl" // what journal.jsonl was before it grew too large
	tornName     = "journal.torn"    // records whose writing was cut short, set aside
	lockName     = "lock"
	identityName = "server.json"
	reserveName  = "reserve"
	launchPrefix = "launch-"
)

const (
	// reserved is the room on the disk that a run is sure to have: records of about
	// 1 KB, fewer than a hundred a run, and one exact launch a change, of which the
	// environment (at most 2 MiB on Linux) and the configuration files (4 MiB) are the
	// most. Usual ones have a few KB.
	reserved = 4 << 20
	// rotateAt is the size at which a journal is set aside before a run begins: about
	// two hundred runs.
	rotateAt = 2 << 20
)

// Store is the directory of a server while a run is on it: the lock, the journal
// and the exact launches. It is safe for concurrent use. It implements Journal.
type Store struct {
	dir     string
	id      Identity
	run     string
	version string
	now     func() time.Time
	lock    *lock

	mu    sync.Mutex
	file  *os.File
	size  int64 // of the journal, whole records
	state journal.State
	doubt *UnreadError // why it is not known what is to run
	err   error        // why nothing can be written any more
}

// UnfinishedError says that a run on this server was cut off: what it left has to
// be put right before another begins.
type UnfinishedError struct {
	Dir   string
	State journal.State
}

func (e *UnfinishedError) Error() string {
	return fmt.Sprintf("the run of %s on this server was cut off before it was over; 'rooftop recover' says what it left and puts it right", e.State.Begun.Local().Format("2006-01-02 15:04"))
}

// OpenStore takes the directory of a server below root, which is made where there
// is none, for one run of a rooftop of this version. Nothing of a server may be
// touched before it has succeeded: it makes sure that nobody else tunes the server,
// that no earlier run was cut off (*UnfinishedError) or cannot be read
// (*UnreadError), and that a run can be written down to its end (*HeldError,
// *StateError). Each error is one sentence.
func OpenStore(root string, id Identity, version string) (*Store, error) {
	return openStore(root, id, version, time.Now)
}

func openStore(root string, id Identity, version string, now func() time.Time) (*Store, error) {
	id = id.normal()
	dir := filepath.Join(root, id.Name())
	if err := makeDirs(dir); err != nil {
		return nil, &StateError{Dir: dir, Err: err}
	}
	s := &Store{dir: dir, id: id, version: version, now: now}
	if err := s.open(); err != nil {
		return nil, err
	}
	if s.doubt != nil {
		return nil, errors.Join(s.doubt, s.release())
	}
	if s.state.Open {
		return nil, errors.Join(&UnfinishedError{Dir: dir, State: s.state}, s.release())
	}
	if err := s.unfinishedBeside(root); err != nil {
		return nil, errors.Join(err, s.release())
	}
	if err := s.prepare(); err != nil {
		return nil, errors.Join(err, s.release())
	}
	return s, nil
}

// unfinishedBeside finds a run on this server's address that was cut off when less,
// or more, was known of the server: its directory has another name.
func (s *Store) unfinishedBeside(root string) error {
	dirs, err := serverDirs(root)
	if err != nil {
		return &StateError{Dir: root, Err: err}
	}
	for _, dir := range dirs {
		id, err := readIdentity(dir)
		if err != nil || dir == s.dir || !meet(id.places(), s.id.places()) || id.Machine != s.id.Machine {
			continue
		}
		state, doubt, err := readJournal(dir)
		switch {
		case err != nil:
			return &StateError{Dir: dir, Err: err}
		case doubt != nil:
			return doubt
		case state.Open:
			return &UnfinishedError{Dir: dir, State: state}
		}
	}
	return nil
}

// meet says that two servers share an address.
func meet(a, b []string) bool {
	return slices.ContainsFunc(a, func(place string) bool { return slices.Contains(b, place) })
}

// openUnfinished takes the directory of a server to go on with the run that was
// cut off in it.
func openUnfinished(dir, version string) (*Store, error) {
	id, err := readIdentity(dir)
	if err != nil {
		return nil, err
	}
	s := &Store{dir: dir, id: id, version: version, now: time.Now}
	if err := s.open(); err != nil {
		return nil, err
	}
	s.run = s.state.Run
	if err := reserve(filepath.Join(dir, reserveName), reserved); err != nil {
		return nil, errors.Join(&StateError{Dir: dir, Err: err}, s.release())
	}
	return s, nil
}

// open takes the lock and reads the journal, whose end is made whole where the rest
// can be read.
func (s *Store) open() error {
	l, err := takeLock(s.dir, s.id, s.now())
	if err != nil {
		return err
	}
	s.lock = l
	if err := s.load(); err != nil {
		return errors.Join(&StateError{Dir: s.dir, Err: err}, s.release())
	}
	return nil
}

func (s *Store) load() error {
	path := filepath.Join(s.dir, journalName)
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	s.file = file
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	f := journal.Decode(data)
	if s.doubt = doubt(s.dir, &f); s.doubt == nil {
		if err := s.mend(&f); err != nil {
			return err
		}
	}
	s.size = int64(f.Whole)
	s.state = journal.Reduce(f.Records)
	if len(f.Records) == 0 {
		// Numbers go on where the journal was set aside.
		earlier, err := readFile(s.dir, earlierName)
		if err != nil {
			return err
		}
		s.state = journal.Reduce(earlier.Records)
	}
	return nil
}

// mend makes the end of a journal whole: what was cut short is set aside first, so
// that a crash in between loses nothing.
func (s *Store) mend(f *journal.File) error {
	if len(f.Torn) > 0 {
		if err := appendSync(filepath.Join(s.dir, tornName), append(f.Torn, '\n')); err != nil {
			return err
		}
		if err := s.file.Truncate(int64(f.Whole)); err != nil {
			return err
		}
		return s.file.Sync()
	}
	if f.Unended {
		if _, err := s.file.Write([]byte{'\n'}); err != nil {
			return err
		}
		f.Whole++
		return s.file.Sync()
	}
	return nil
}

// prepare makes the directory ready for a run: leftovers of crashed ones away, the
// journal set aside where it is large, room reserved.
func (s *Store) prepare() error {
	if err := s.tidy(); err != nil {
		return &StateError{Dir: s.dir, Err: err}
	}
	if s.size > rotateAt {
		if err := s.rotate(); err != nil {
			return &StateError{Dir: s.dir, Err: err}
		}
	}
	if err := writeIdentity(s.dir, s.id); err != nil {
		return &StateError{Dir: s.dir, Err: err}
	}
	if err := reserve(filepath.Join(s.dir, reserveName), reserved); err != nil {
		return &StateError{Dir: s.dir, Err: err}
	}
	if err := os.WriteFile(filepath.Join(s.dir, unbegunName), nil, 0o600); err != nil {
		return &StateError{Dir: s.dir, Err: err}
	}
	if err := wholefile.SyncDir(s.dir); err != nil { // the journal's name, where it is new
		return &StateError{Dir: s.dir, Err: err}
	}
	s.run = s.newRun()
	return nil
}

// newRun names a run that begins now.
func (s *Store) newRun() string {
	return fmt.Sprintf("%s-%d", s.now().UTC().Format("20060102T150405.000Z"), s.state.Seq+1)
}

// rotate sets the journal aside in place of the one before it.
func (s *Store) rotate() error {
	path := filepath.Join(s.dir, journalName)
	if err := os.Rename(path, filepath.Join(s.dir, earlierName)); err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_ = s.file.Close()
	s.file, s.size = file, 0
	return wholefile.SyncDir(s.dir)
}

// sure says that the journal tells whether its last run is settled.
func (s *Store) sure() bool { return s.doubt == nil }

// tidy removes what a settled run leaves: half-written files, also those beside the
// files of its launches, and the exact launches with their environments. Where it is
// in doubt whether one is settled, everything stays.
func (s *Store) tidy() error {
	if !s.sure() {
		return nil
	}
	list, err := os.ReadDir(s.dir)
	if err != nil {
		return err
	}
	removed := false
	for _, e := range list {
		if isLaunch(e.Name()) && !s.state.Open {
			if l, err := readLaunch(s.dir, e.Name()); err == nil {
				l.unstage()
			}
		}
		if temporary(e.Name()) || isLaunch(e.Name()) && !s.state.Open {
			if err := os.Remove(filepath.Join(s.dir, e.Name())); err != nil && !missing(err) {
				return err
			}
			removed = true
		}
	}
	if !removed {
		return nil
	}
	return wholefile.SyncDir(s.dir)
}

// Dir is the directory of the server.
func (s *Store) Dir() string { return s.dir }

// Run names the run as its records do.
func (s *Store) Run() string { return s.run }

// State is where the run stands.
func (s *Store) State() journal.State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state
}

// Write appends a record, which is on the disk when it returns. Its schema, number,
// time, run and version are filled in. Where it cannot be written nothing of it
// stands in the journal, and nothing may be touched.
func (s *Store) Write(r journal.Record) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.write(r)
}

func (s *Store) write(r journal.Record) error {
	if s.err != nil {
		return s.err
	}
	r.Schema, r.Seq, r.Time, r.Run = journal.Schema, s.state.Seq+1, s.now().UTC(), s.run
	if r.Kind == journal.Begin && r.Version == "" {
		r.Version = s.version
	}
	line, err := journal.Encode(r)
	if err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	if err := s.roomy(func() error { return s.append(line) }); err != nil {
		return &StateError{Dir: s.dir, Err: err}
	}
	if s.state.Run != r.Run {
		_ = os.Remove(filepath.Join(s.dir, unbegunName)) // from here on the records tell
	}
	s.state.Add(r)
	return nil
}

// append writes a line behind the others, or leaves the journal as it was.
func (s *Store) append(line []byte) error {
	_, err := s.file.Write(line)
	if err == nil {
		err = s.file.Sync()
	}
	if err == nil {
		s.size += int64(len(line))
		return nil
	}
	if undo := s.file.Truncate(s.size); undo != nil {
		// The next start sets the torn line aside; this run writes no more behind it.
		s.err = &StateError{Dir: s.dir, Err: errors.Join(err, undo)}
	}
	return err
}

// End writes down that the run is over, with the exit code that it came to and why,
// and removes the exact launches. It refuses while something is under way.
func (s *Store) End(exit int, why string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state.Run != s.run || !s.state.Open {
		return nil // nothing was begun
	}
	if !s.state.Settled() {
		return fmt.Errorf("the server does not run what is kept: 'rooftop recover' puts it back")
	}
	if err := s.write(journal.Record{Kind: journal.End, Text: why, Exit: &exit}); err != nil {
		return err
	}
	return s.tidy()
}

// Close lets go of the directory. A run that did not end stays open in the journal.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var unbegun error
	if s.file != nil && s.run != "" && s.state.Run != s.run {
		unbegun = s.tidy() // nothing was begun
	}
	freed := release(filepath.Join(s.dir, reserveName))
	if missing(freed) {
		freed = nil
	}
	return errors.Join(unbegun, freed, s.release())
}

// release gives back what is held; nothing is written.
func (s *Store) release() error {
	var errs []error
	if s.file != nil {
		errs = append(errs, s.file.Close())
		s.file = nil
	}
	if s.lock != nil {
		errs = append(errs, s.lock.release())
		s.lock = nil
	}
	if s.err == nil {
		s.err = errors.New("the journal is closed")
	}
	return errors.Join(errs...)
}

// Root is the directory of all servers below the user's state directory.
func Root(state string) string { return filepath.Join(state, "rooftop", "servers") }
