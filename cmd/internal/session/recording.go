package session

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
)

// RecordingSchema names the format of a recording: gzip, one JSON object a
// line. The first is a Header, then one Poll a tick, the last an End. That of a
// live session has, between the polls, a line for everything else that its loop
// was told, each with the time at which it was.
const RecordingSchema = "rooftop.recording/v1"

// maxLine bounds one line of a recording: a page is at most 16 MiB, and JSON
// escapes it.
const maxLine = 64 << 20

// ErrRecording marks a file that is not a recording, or a damaged one.
var ErrRecording = errors.New("not a rooftop recording")

// Header is what a recording begins with: everything a diagnosis needs beside
// the polls. It holds no secret.
type Header struct {
	Schema  string           `json:"schema"`
	Version string           `json:"version"` // of the rooftop that recorded
	Started time.Time        `json:"started"`
	Target  engine.Target    `json:"target"`
	Inputs  engine.Inputs    `json:"inputs"`
	Missing []engine.Missing `json:"missing"`
	Notes   []string         `json:"notes"` // about the launch, before measuring
	GPUWhy  string           `json:"gpu_why"`
	Model   string           `json:"model"` // model_name asked for, "" the page's own
	// Catalog is the text of the user's catalog file, "" where none was given.
	Catalog     string `json:"catalog,omitempty"`
	CatalogName string `json:"catalog_name,omitempty"`
	Ceiling     string `json:"ceiling"` // classic or physical
	// Session is what the loop of a live session was started with; nil for a
	// single measurement. What is known of the server stands in the lines that
	// follow then.
	Session *SessionPlan `json:"session,omitempty"`
}

// Poll is one tick as it was read: the raw page, or why there is none, and the
// GPUs.
type Poll struct {
	T       time.Duration      `json:"t"`      // tick, ns since the start
	PageT   time.Duration      `json:"page_t"` // completion of the page
	Took    time.Duration      `json:"took"`
	Body    string             `json:"body,omitempty"`
	PageErr string             `json:"page_err,omitempty"`
	GPU     *engine.GPUReading `json:"gpu,omitempty"`
	GPUErr  string             `json:"gpu_err,omitempty"`
	Missed  int                `json:"missed,omitempty"`
}

// End closes a recording.
type End struct {
	Duration time.Duration    `json:"duration"`
	Notes    []string         `json:"notes"`
	Missing  []engine.Missing `json:"missing"` // what the GPUs could not tell
}

// Recording is a recording read back, line by line.
type Recording struct {
	Header Header
	lines  *bufio.Reader
}

// OpenRecording reads the header. Errors wrap ErrRecording and say what to do.
func OpenRecording(r io.Reader) (*Recording, error) {
	z, err := gzip.NewReader(r)
	if err != nil {
		return nil, fmt.Errorf("%w: %w; rooftop diagnose --record FILE makes one", ErrRecording, err)
	}
	rec := &Recording{lines: bufio.NewReaderSize(z, 1<<16)}
	l, err := rec.next()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRecording, err)
	}
	if l.Header == nil || l.Header.Schema != RecordingSchema {
		return nil, fmt.Errorf("%w: its first line is no %s header", ErrRecording, RecordingSchema)
	}
	rec.Header = *l.Header
	return rec, nil
}

func (r *Recording) next() (line, error) {
	var text []byte
	for {
		part, err := r.lines.ReadSlice('\n')
		text = append(text, part...)
		if len(text) > maxLine {
			return line{}, fmt.Errorf("a line is longer than %d MiB", maxLine>>20)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err != nil && len(text) == 0 {
			return line{}, err
		}
		if err != nil {
			return line{}, io.ErrUnexpectedEOF
		}
		var l line
		if err := json.Unmarshal(text, &l); err != nil {
			return line{}, err
		}
		return l, nil
	}
}

// Replay diagnoses a recording again: the same polls give the same diagnosis.
// A recording that was cut off is diagnosed as far as it goes, and says so.
func Replay(rec *Recording, version string) (engine.Diagnosis, error) {
	a, err := NewAnalysis(rec.Header)
	if err != nil {
		return engine.Diagnosis{}, err
	}
	for {
		l, err := rec.next()
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return a.Diagnose(End{Duration: a.Seen(), Notes: []string{"the recording was cut off"}}, version), nil
		case err != nil:
			return engine.Diagnosis{}, fmt.Errorf("%w: after %v: %w", ErrRecording, a.Seen(), err)
		case l.Poll != nil:
			a.Add(l.Poll)
		case l.End != nil:
			return a.Diagnose(*l.End, version), nil
		}
	}
}
