package serverdir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/atomicfile"
	"github.com/rooftop-dev/rooftop/cmd/internal/launcher"
	"github.com/rooftop-dev/rooftop/engine/journal"
)

// Names within the directory of a server.
const (
	journalName  = "journal.jsonl"
	earlierName  = "journal.1.jsonl" // the rotated journal
	tornName     = "journal.torn"    // incomplete records, moved out of the journal
	lockName     = "lock"
	identityName = "server.json"
	ReserveName  = "reserve"
	launchPrefix = "launch-"
)

const (
	// reserved is the disk space that is reserved for a run: fewer than a hundred records of
	// about 1 KB and one exact launch for each change, usually a few KB. The largest parts
	// of a launch are the environment (at most 2 MiB on Linux) and the configuration files
	// (4 MiB).
	reserved = 4 << 20
	// rotateAt is the size in bytes at which the journal is rotated before a run: about two
	// hundred runs.
	rotateAt = 2 << 20
)

// Store is the directory of a server during a run: the lock, the journal and the exact
// launches. It implements apply.Journal and is safe for concurrent use.
type Store struct {
	dir     string
	id      Identity
	run     string
	version string
	now     func() time.Time
	lock    *lock

	mu    sync.Mutex
	file  *os.File
	size  int64 // size of the complete records in the journal, in bytes
	state journal.State
	doubt *UnreadError // why it is unknown what should run, nil if it is known
	err   error        // why nothing more can be written
	// actual is the state with the records that could not be written, nil without any. lost is why.
	actual *journal.State
	lost   error
	// launches has what Keep stored, by file name.
	launches map[string][]byte
}

// UnfinishedError means that a run on this server was interrupted and must be repaired
// before another run begins.
type UnfinishedError struct {
	Dir   string
	State journal.State
}

func (e *UnfinishedError) Error() string {
	return fmt.Sprintf("the run of %s on this server was interrupted; run 'rooftop recover' to see what it left and to restore the server", e.State.Begun.Local().Format("2006-01-02 15:04"))
}

// OpenStore opens the directory of a server below root for one run, and creates it if
// necessary. version is rooftop's. A server must not be touched before OpenStore has
// succeeded. It fails if another rooftop tunes the server (*HeldError), an earlier run was
// interrupted (*UnfinishedError) or cannot be read (*UnreadError), or a run could not be
// recorded to its end (*StateError). Each error is one sentence.
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
		return nil, errors.Join(s.doubt, s.Release())
	}
	if s.state.Open {
		return nil, errors.Join(&UnfinishedError{Dir: dir, State: s.state}, s.Release())
	}
	if err := s.unfinishedBeside(root); err != nil {
		return nil, errors.Join(err, s.Release())
	}
	if err := s.prepare(); err != nil {
		return nil, errors.Join(&StateError{Dir: dir, Err: err}, s.Release())
	}
	return s, nil
}

// Claim takes the lock of what the run changes too: two servers of different addresses may be
// one container. The names are the same for all who change it. Nothing may be touched before
// Claim has succeeded; its errors are those of OpenStore.
func (s *Store) Claim(objects []string) error {
	held := s.id.places()
	s.id.Objects = objects
	if err := s.lock.take(slices.DeleteFunc(s.id.places(), func(place string) bool { return slices.Contains(held, place) })); err != nil {
		return err
	}
	if err := s.unfinishedBeside(filepath.Dir(s.dir)); err != nil {
		return err
	}
	if err := writeIdentity(s.dir, s.id); err != nil {
		return &StateError{Dir: s.dir, Err: err}
	}
	return nil
}

// unfinishedBeside returns an error for an interrupted run on this server in another directory:
// its name differs if less or more was known of the server, or if it was reached elsewhere.
func (s *Store) unfinishedBeside(root string) error {
	dirs, err := Dirs(root)
	if err != nil {
		return &StateError{Dir: root, Err: err}
	}
	for _, dir := range dirs {
		id, err := ReadIdentity(dir)
		if err != nil || dir == s.dir || !meet(id.places(), s.id.places()) || id.Machine != s.id.Machine {
			continue
		}
		state, doubt, err := ReadState(dir)
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

// meet reports whether two servers share an address or an object.
func meet(a, b []string) bool {
	return slices.ContainsFunc(a, func(place string) bool { return slices.Contains(b, place) })
}

// OpenUnfinished opens the directory of a server to repair its interrupted run. The error is
// a *HeldError, a *StateError, or that of [ReadIdentity].
func OpenUnfinished(dir, version string) (*Store, error) {
	id, err := ReadIdentity(dir)
	if err != nil {
		return nil, err
	}
	s := &Store{dir: dir, id: id, version: version, now: time.Now}
	if err := s.open(); err != nil {
		return nil, err
	}
	s.run = s.state.Run
	if err := reserve(filepath.Join(dir, ReserveName), reserved); err != nil {
		return nil, errors.Join(&StateError{Dir: dir, Err: err}, s.Release())
	}
	return s, nil
}

// open takes the lock and reads the journal. It repairs the end of a journal that is
// otherwise readable.
func (s *Store) open() error {
	for _, dir := range []string{s.dir, filepath.Dir(s.dir)} {
		if err := atomicfile.OwnDir(dir); err != nil {
			return &StateError{Dir: s.dir, Err: err}
		}
	}
	l, err := takeLock(s.dir, s.id, s.now())
	if err != nil {
		return err
	}
	s.lock = l
	if err := s.load(); err != nil {
		return errors.Join(&StateError{Dir: s.dir, Err: err}, s.Release())
	}
	return nil
}

func (s *Store) load() error {
	path := filepath.Join(s.dir, journalName)
	file, err := launcher.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	s.file = file
	data, err := read(path)
	if err != nil {
		return err
	}
	f := journal.Decode(data)
	if s.doubt = doubt(s.dir, &f); s.doubt == nil {
		if err := s.mend(&f); err != nil {
			return err
		}
	}
	s.size = int64(f.WholeBytes)
	s.state = journal.Reduce(f.Records)
	if len(f.Records) == 0 {
		// Sequence numbers continue after a rotation.
		earlier, err := readFile(s.dir, earlierName)
		if err != nil {
			return err
		}
		s.state = journal.Reduce(earlier.Records)
	}
	return nil
}

// mend repairs the end of a journal. It copies an incomplete record to another file before
// removing it, so that a crash in between loses nothing.
func (s *Store) mend(f *journal.File) error {
	if len(f.Torn) > 0 {
		if err := appendSync(filepath.Join(s.dir, tornName), append(f.Torn, '\n')); err != nil {
			return err
		}
		if err := s.file.Truncate(int64(f.WholeBytes)); err != nil {
			return err
		}
		return s.file.Sync()
	}
	if f.Unended {
		if _, err := s.file.Write([]byte{'\n'}); err != nil {
			return err
		}
		f.WholeBytes++
		return s.file.Sync()
	}
	return nil
}

// prepare prepares the directory for a run: it removes leftovers of crashed runs, rotates a
// large journal and reserves disk space.
func (s *Store) prepare() error {
	if err := s.Tidy(); err != nil {
		return err
	}
	if s.size > rotateAt {
		if err := s.rotate(); err != nil {
			return err
		}
	}
	if err := writeIdentity(s.dir, s.id); err != nil {
		return err
	}
	if err := reserve(filepath.Join(s.dir, ReserveName), reserved); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(s.dir, unbegunName), nil, 0o600); err != nil {
		return err
	}
	if err := atomicfile.SyncDir(s.dir); err != nil { // the journal's name, where it is new
		return err
	}
	s.run = s.newRun()
	return nil
}

// newRun returns the name of a run that begins now.
func (s *Store) newRun() string {
	return fmt.Sprintf("%s-%d", s.now().UTC().Format("20060102T150405.000Z"), s.state.Seq+1)
}

// rotate renames the journal, which replaces the previously rotated one, and starts a new
// one.
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
	return atomicfile.SyncDir(s.dir)
}

// Tidy removes the leftovers of a finished run: incomplete files, also those beside the
// files of its launches, and the exact launches with their environments. It removes
// nothing if it is unknown what should run.
func (s *Store) Tidy() error {
	if s.doubt != nil {
		return nil //nolint:nilerr // everything stays
	}
	list, err := os.ReadDir(s.dir)
	if err != nil {
		return err
	}
	removed := false
	for _, e := range list {
		if IsLaunch(e.Name()) && !s.state.Open {
			if l, err := ReadLaunch(s.dir, e.Name()); err == nil {
				l.Unstage()
			}
		}
		if IsTemporary(e.Name()) || IsLaunch(e.Name()) && !s.state.Open {
			if err := os.Remove(filepath.Join(s.dir, e.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			removed = true
		}
	}
	if !removed {
		return nil
	}
	return atomicfile.SyncDir(s.dir)
}

// Dir returns the directory of the server.
func (s *Store) Dir() string { return s.dir }

// Identity returns the server of the directory.
func (s *Store) Identity() Identity { return s.id }

// Doubt returns why the journal does not show what should run, as a *UnreadError; nil if it
// does.
func (s *Store) Doubt() error {
	if s.doubt == nil {
		return nil
	}
	return s.doubt
}

// Run returns the name of the run in its records.
func (s *Store) Run() string { return s.run }

// State returns the state of the run.
func (s *Store) State() journal.State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state
}

// Write appends a record, which is on the disk when Write returns. It sets the record's
// schema, sequence number, time, run and version. After an error the journal has nothing
// of the record, and nothing may be touched.
func (s *Store) Write(r journal.Record) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.write(r)
}

func (s *Store) write(r journal.Record) error {
	r.Schema, r.Seq, r.Time, r.Run = journal.Schema, s.state.Seq+1, s.now().UTC(), s.run
	err := s.record(r)
	if err != nil {
		s.lost = err
		if s.actual == nil {
			s.actual = new(s.state)
		}
	}
	if s.actual != nil {
		s.actual.Add(r)
	}
	return err
}

func (s *Store) record(r journal.Record) error {
	if s.err != nil {
		return s.err
	}
	if r.Kind == journal.Begin && r.Version == "" {
		r.Version = s.version
	}
	line, err := journal.Encode(r)
	if err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	if err := s.renew(); err != nil {
		return s.unwritten(err)
	}
	if err := s.withReserve(func() error { return s.append(line) }); err != nil {
		return s.unwritten(err)
	}
	if s.state.Run != r.Run {
		_ = os.Remove(filepath.Join(s.dir, unbegunName)) // from now on the records show the state
	}
	s.state.Add(r)
	return nil
}

// append appends a line, or leaves the journal unchanged if that fails.
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
		// The next start moves the incomplete line away; this run must write nothing after it.
		s.err = s.unwritten(errors.Join(err, undo))
	}
	return err
}

// unwritten returns the error of a write to the directory.
func (s *Store) unwritten(err error) error {
	return &StateError{Dir: s.dir, Err: err, Underway: s.state.Open && s.state.Run == s.run}
}

// End records the end of the run with its exit code and reason, and removes the exact
// launches. It fails if the server does not run its kept launch.
func (s *Store) End(exit int, why string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state.Run != s.run || !s.state.Open {
		return nil // the run never began
	}
	if !s.state.Settled() {
		if s.actual != nil && s.actual.Settled() {
			return fmt.Errorf("the server runs what is kept, and %w; 'rooftop recover' ends the run", s.lost)
		}
		return fmt.Errorf("the server does not run its kept launch: 'rooftop recover' restores it")
	}
	if err := s.write(journal.Record{Kind: journal.End, Text: why, Exit: &exit}); err != nil {
		return fmt.Errorf("the server runs what is kept, and %w; 'rooftop recover' ends the run", err)
	}
	return s.Tidy()
}

// Close releases the directory. A run that did not end stays open in the journal.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var unbegun error
	if s.file != nil && s.run != "" && s.state.Run != s.run {
		unbegun = s.Tidy() // the run never began
	}
	freed := os.Remove(filepath.Join(s.dir, ReserveName))
	if errors.Is(freed, fs.ErrNotExist) {
		freed = nil
	}
	return errors.Join(unbegun, freed, s.Release())
}

// Release releases files and locks and writes nothing.
func (s *Store) Release() error {
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

// Root returns the directory of all servers below the user's state directory.
func Root(state string) string { return filepath.Join(state, "rooftop", "servers") }
