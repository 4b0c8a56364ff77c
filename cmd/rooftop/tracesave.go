package main

import (
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/wholefile"
	"github.com/rooftop-dev/rooftop/engine/optrace"
)

const (
	// maxSaved bounds the events of a recording: 800 MB of memory for who reads it.
	maxSaved = 1 << 24
	// saveChunks are the parts of the file, of 64 KB at most, that wait to be compressed and
	// written: 16 MB.
	saveChunks = 256
	// saveEvery is how much of a trace a kill may lose, and knownEvery how old what is
	// known beside the events and the names of processes may be then.
	saveEvery  = time.Second
	knownEvery = 5 * time.Second
)

// saving writes a recording while it is made, into a file beside the one that was named,
// whose name it takes when it is whole. Lines are made where events are taken in, since
// they refer to tables that grow; they are compressed and written by a goroutine, so that
// a slow disk holds nobody up. It is not safe for concurrent use.
type saving struct {
	path   string // that was named, links followed
	file   *claimed
	writer *optrace.RecordingWriter // nil before the first event
	chunks chan []byte
	ended  chan error // of the goroutine
	most   int64
	count  int64
	left   int64     // events beyond what fits
	err    error     // why nothing is written any more
	known  time.Time // when what is known was told
	names  int       // of processes, that were told
}

// newSaving saves into a file of an owner, beside which it makes the one that is written;
// nil where that is none, but a pipe or a device: those get the recording when it is
// whole. Errors are of a command line that is off.
func newSaving(path string, owner *wholefile.Owner) (*saving, error) {
	if path == "" || strings.HasPrefix(filepath.Clean(path), "/dev/") || strings.HasPrefix(filepath.Clean(path), "/proc/") {
		return nil, nil
	}
	if there, err := filepath.EvalSymlinks(path); err == nil {
		path = there
	}
	if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() || err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err := free(path); err != nil { // named like the part of another recording
		return nil, usage("--save: %w", err)
	}
	f, err := claim(partialOf(path))
	if err != nil {
		return nil, usage("--save: %w", err)
	}
	s := &saving{path: path, file: f, most: maxSaved}
	if err := f.Chmod(wholefile.Mode(path, 0o600)); err != nil {
		s.discard()
		return nil, usage("--save: %w", &wholefile.Error{Path: f.Name(), Err: err})
	}
	owner.Take(f.File, path)
	return s, nil
}

// begin writes the head of the recording.
func (s *saving) begin(head *optrace.Recording) error {
	s.chunks, s.ended, s.known = make(chan []byte, saveChunks), make(chan error, 1), time.Now()
	go func() { s.ended <- pack(s.file.File, s.chunks) }()
	var err error
	s.writer, err = optrace.NewRecordingWriter(chunker(s.chunks), head)
	return err
}

// take writes events of a recording, which is its head as well where they are the first.
func (s *saving) take(r *optrace.Recording, events []optrace.Event) {
	if s.writer == nil && s.err == nil {
		s.err = s.begin(r)
	}
	fit := events[:min(int64(len(events)), max(s.most-s.count, 0))]
	if s.err == nil {
		s.err = errors.Join(s.writer.Tables(r.Tables), s.writer.Events(fit))
	}
	if s.err != nil { // some of them may have been written, and count as left out
		fit = nil
	}
	s.count += int64(len(fit))
	s.left += int64(len(events) - len(fit))
}

// flush has what was taken written within saveEvery, with what is known now where that
// was told long ago, or without processes whose names are known now: nobody can read the
// name of one that has ended.
func (s *saving) flush(names int, now func() *optrace.Recording) {
	if s.writer == nil || s.err != nil {
		return
	}
	if age := time.Since(s.known); age >= knownEvery || age >= saveEvery && names > s.names {
		s.known, s.names = time.Now(), names
		s.err = s.writer.SoFar(now())
	}
	s.err = errors.Join(s.err, s.writer.Flush())
}

// close ends the recording, whose file has its own name then. One that could not take all
// keeps its other name.
func (s *saving) close(r *optrace.Recording) error {
	if s.writer == nil && s.err == nil {
		s.err = s.begin(r)
	}
	if s.writer == nil {
		return s.err
	}
	end := *r
	end.LeftOut = s.left
	if err := errors.Join(s.err, s.writer.Close(&end), s.stop()); err != nil {
		return fmt.Errorf("%w; what was recorded until then can be read", &wholefile.Error{Path: s.file.Name(), Err: err})
	}
	if !s.file.there() {
		return fmt.Errorf("%s was taken away while it was written, and with it the recording: name a file that nobody else moves or removes", s.file.Name())
	}
	if err := errors.Join(os.Rename(s.file.Name(), s.path), wholefile.SyncDir(filepath.Dir(s.path))); err != nil {
		return fmt.Errorf("%w; the recording is whole in %s", &wholefile.Error{Path: s.path, Err: err}, s.file.Name())
	}
	return nil
}

// discard leaves nothing of what was written.
func (s *saving) discard() {
	if s.file.there() {
		_ = os.Remove(s.file.Name())
	}
	if s.chunks == nil {
		_ = s.file.Close()
		return
	}
	_ = s.stop() // of what is not there any more
}

// stop ends the goroutine, and with it what is there of the file.
func (s *saving) stop() error {
	if s.chunks == nil {
		return nil
	}
	close(s.chunks)
	s.chunks = nil
	return <-s.ended
}

// unused leaves nothing of a recording that was not begun.
func (s *saving) unused() {
	if s != nil && s.writer == nil {
		s.discard()
	}
}

// abandon leaves a trace that failed with what was written so far, and says where; ""
// nothing was.
func (s *saving) abandon() string {
	if s == nil || s.writer == nil {
		return ""
	}
	if err := errors.Join(s.writer.Flush(), s.stop()); err != nil {
		return ""
	}
	return s.file.Name()
}

// chunker hands on copies of what is written, and waits where too much is on its way.
type chunker chan<- []byte

func (c chunker) Write(b []byte) (int, error) {
	c <- slices.Clone(b)
	return len(b), nil
}

// pack compresses chunks into a file until there are no more, and has what came on the
// file within saveEvery. After an error it takes the rest in and drops it.
func pack(f *os.File, chunks <-chan []byte) error {
	buffered := bufio.NewWriterSize(f, 64<<10)
	z, err := gzip.NewWriterLevel(buffered, gzip.BestSpeed)
	if err != nil {
		return errors.Join(err, f.Close())
	}
	tick := time.NewTicker(saveEvery)
	defer tick.Stop()
	fresh := true // the head
	for {
		select {
		case chunk, more := <-chunks:
			switch {
			case !more && err == nil:
				return errors.Join(z.Close(), buffered.Flush(), f.Sync(), f.Close())
			case !more:
				return errors.Join(err, f.Close())
			case err == nil:
				_, err = z.Write(chunk)
				fresh = true
			}
		case <-tick.C:
			if fresh && err == nil {
				err = errors.Join(z.Flush(), buffered.Flush())
				fresh = false
			}
		}
	}
}
