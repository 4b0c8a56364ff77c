package tracing

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/atomicfile"
	"github.com/rooftop-dev/rooftop/cmd/internal/cli"
	"github.com/rooftop-dev/rooftop/engine/optrace"
)

const (
	// maxSaved limits the events of a recording: reading it takes 800 MB of memory.
	maxSaved = 1 << 24
	// saveChunks is the number of parts of the file, of at most 64 KB each, that wait for
	// compression: 16 MB.
	saveChunks = 256
	// saveEvery is how much of a trace a kill may lose; knownEvery is the maximum age of the other
	// data in that case.
	saveEvery  = time.Second
	knownEvery = 5 * time.Second
)

// saving writes a recording while it is made, into a file beside the requested one, which is
// renamed when it is complete. Lines are formatted when events are added, because they refer to
// growing tables. A goroutine compresses and writes them, so that a slow disk does not delay
// events. It is not safe for concurrent use.
type saving struct {
	path   string   // as requested, with links resolved
	file   *claimed // nil for a pipe or a device
	sink   func(chunks <-chan []byte) error
	writer *optrace.Writer // nil before the first event
	chunks chan []byte
	ended  chan error // result of the goroutine
	most   int64
	count  int64
	left   int64     // events beyond the limit
	err    error     // why writing stopped
	known  time.Time // when the other data was written
}

// newSaving returns the saving of a recording into a file of an owner, nil without a path. Errors
// are errors of the command line.
func newSaving(path string, owner *atomicfile.Owner) (*saving, error) {
	if path == "" {
		return nil, nil
	}
	there, err := filepath.EvalSymlinks(path)
	if err != nil {
		there = path
	}
	info, err := os.Lstat(there)
	known := strings.HasPrefix(filepath.Clean(path), "/dev/") || strings.HasPrefix(filepath.Clean(path), "/proc/")
	if known || err == nil && !info.Mode().IsRegular() || err != nil && !errors.Is(err, fs.ErrNotExist) {
		return streamSaving(path, owner), nil
	}
	path = there
	if err := checkUnwritten(path); err != nil { // path is the partial file of another recording
		return nil, cli.Usagef("--save: %w", err)
	}
	f, err := claim(partialPath(path))
	if err != nil {
		return nil, cli.Usagef("--save: %w", err)
	}
	s := &saving{path: path, file: f, most: maxSaved, sink: func(chunks <-chan []byte) error {
		return errors.Join(pack(f, chunks), f.Sync(), f.Close())
	}}
	if err := f.Chmod(atomicfile.Mode(path, 0o600)); err != nil {
		s.discard()
		return nil, cli.Usagef("--save: %w", &atomicfile.Error{Path: f.Name(), Err: err})
	}
	owner.Take(f.File, path)
	return s, nil
}

// streamSaving returns the saving into a pipe or a device, which gets the recording when it is
// complete.
func streamSaving(path string, owner *atomicfile.Owner) *saving {
	return &saving{path: path, most: maxSaved, sink: func(chunks <-chan []byte) error {
		var packed bytes.Buffer
		if err := pack(&packed, chunks); err != nil {
			return err
		}
		return owner.Write(path, 0o600, func(w io.Writer) error { _, err := packed.WriteTo(w); return err })
	}}
}

// begin writes the head of the recording.
func (s *saving) begin(head *optrace.Recording) error {
	chunks := make(chan []byte, saveChunks)
	s.chunks, s.ended, s.known = chunks, make(chan error, 1), time.Now()
	go func() { s.ended <- s.sink(chunks) }() // stop clears s.chunks, perhaps before this runs
	var err error
	s.writer, err = optrace.NewWriter(chunker(chunks), head)
	return err
}

// addEvents writes events of a recording. r also becomes the head with the first events.
func (s *saving) addEvents(r *optrace.Recording, events []optrace.Event) {
	if s.writer == nil && s.err == nil {
		s.err = s.begin(r)
	}
	fit := events[:min(int64(len(events)), max(s.most-s.count, 0))]
	if s.err == nil {
		s.err = errors.Join(s.writer.Tables(r.Tables), s.writer.Events(fit))
	}
	if s.err != nil { // some of them may have been written, but count as left out
		fit = nil
	}
	s.count += int64(len(fit))
	s.left += int64(len(events) - len(fit))
}

// flush makes sure that the added data is written within saveEvery. It adds the other data if that
// is too old.
func (s *saving) flush(now func() *optrace.Recording) {
	if s.writer == nil || s.err != nil {
		return
	}
	if time.Since(s.known) >= knownEvery {
		s.known = time.Now()
		s.err = s.writer.SoFar(now())
	}
	s.err = errors.Join(s.err, s.writer.Flush())
}

// close ends the recording and renames its file. An incomplete recording keeps its partial name.
func (s *saving) close(r *optrace.Recording) error {
	if s.writer == nil && s.err == nil {
		s.err = s.begin(r)
	}
	if s.writer == nil {
		return s.err
	}
	end := *r
	end.LeftOut = s.left
	err := errors.Join(s.err, s.writer.Close(&end), s.stop())
	switch {
	case s.file == nil:
		return err
	case err != nil:
		return fmt.Errorf("%w; the data recorded so far can be read", &atomicfile.Error{Path: s.file.Name(), Err: err})
	case !s.file.stillNamed():
		return fmt.Errorf("%s was removed while it was written, and the recording is lost: choose a file that no other program moves or removes", s.file.Name())
	}
	if err := errors.Join(os.Rename(s.file.Name(), s.path), atomicfile.SyncDir(filepath.Dir(s.path))); err != nil {
		return fmt.Errorf("%w; the recording is whole in %s", &atomicfile.Error{Path: s.path, Err: err}, s.file.Name())
	}
	return nil
}

// discard removes everything that was written.
func (s *saving) discard() {
	if s.file != nil && s.file.stillNamed() {
		_ = os.Remove(s.file.Name())
	}
	if s.file != nil && s.chunks == nil {
		_ = s.file.Close()
		return
	}
	_ = s.stop() // the error of a removed file
}

// stop ends the goroutine, which completes the file.
func (s *saving) stop() error {
	if s.chunks == nil {
		return nil
	}
	close(s.chunks)
	s.chunks = nil
	return <-s.ended
}

// unused removes the file of a recording that was never begun.
func (s *saving) unused() {
	if s != nil && s.writer == nil {
		s.discard()
	}
}

// abandon keeps what a failed trace has written, and returns where that is, "" if nothing was
// written.
func (s *saving) abandon() string {
	if s == nil || s.writer == nil {
		return ""
	}
	if err := errors.Join(s.writer.Flush(), s.stop()); err != nil || s.file == nil {
		return ""
	}
	return s.file.Name()
}

// chunker passes on copies of its data, and blocks if too many are waiting.
type chunker chan<- []byte

func (c chunker) Write(b []byte) (int, error) {
	c <- slices.Clone(b)
	return len(b), nil
}

// pack compresses chunks until the channel is closed, and flushes within saveEvery. After an
// error it discards the remaining chunks.
func pack(w io.Writer, chunks <-chan []byte) error {
	buffered := bufio.NewWriterSize(w, 64<<10)
	z, err := gzip.NewWriterLevel(buffered, gzip.BestSpeed)
	tick := time.NewTicker(saveEvery)
	defer tick.Stop()
	fresh := true // the head of the file
	for {
		select {
		case chunk, more := <-chunks:
			switch {
			case !more && err == nil:
				return errors.Join(z.Close(), buffered.Flush())
			case !more:
				return err
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
