package session

import (
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
)

// Recorder writes a recording. A nil Recorder records nothing. It is not safe for
// concurrent use.
type Recorder struct {
	zip     *gzip.Writer
	enc     *json.Encoder
	flushed time.Duration // time of the last line that was flushed to the file
	err     error
}

// NewRecorder returns a recorder that writes to w. The caller closes w after Close.
func NewRecorder(w io.Writer) *Recorder {
	z := gzip.NewWriter(w)
	return &Recorder{zip: z, enc: json.NewEncoder(z)}
}

// write adds a line. It flushes once per window: a run that is killed loses at most the polls of its
// last window.
func (r *Recorder) write(l line) {
	if r == nil || r.err != nil {
		return
	}
	if r.err = r.enc.Encode(l); r.err != nil {
		return
	}
	if now := l.time(); l.Header != nil || now >= r.flushed+engine.WindowLength {
		r.flushed = now
		r.err = r.zip.Flush()
	}
}

// Close finishes the file and returns the first error of all writes.
func (r *Recorder) Close() error {
	if r == nil {
		return nil
	}
	return errors.Join(r.err, r.zip.Close())
}
