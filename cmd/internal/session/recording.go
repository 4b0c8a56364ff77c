package session

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
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
	Session *LoopSettings `json:"session,omitempty"`
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
	began  time.Duration // when the loop of a live session began
	lines  *bufio.Reader
	source io.ReaderAt // the whole file, nil where it cannot be read twice
}

// OpenRecording reads the header. Errors wrap ErrRecording and say what to do. An
// r that is an io.ReaderAt, as a file is, must be at its beginning.
func OpenRecording(r io.Reader) (*Recording, error) {
	lines, err := unzip(r)
	if err != nil {
		return nil, fmt.Errorf("%w: %w; rooftop diagnose --record FILE makes one", ErrRecording, err)
	}
	rec := &Recording{lines: lines}
	rec.source, _ = r.(io.ReaderAt)
	l, err := rec.next()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRecording, err)
	}
	if l.Header == nil || l.Header.Schema != RecordingSchema {
		return nil, fmt.Errorf("%w: its first line is no %s header", ErrRecording, RecordingSchema)
	}
	rec.Header, rec.began = *l.Header, l.At
	return rec, nil
}

func unzip(r io.Reader) (*bufio.Reader, error) {
	z, err := gzip.NewReader(r)
	if err != nil {
		return nil, err
	}
	return bufio.NewReaderSize(z, 1<<16), nil
}

// live says whether it is of a live session, not of a single measurement.
func (r *Recording) live() bool { return r.Header.Session != nil }

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

// length is the time of the last line, read from the file beside what next reads;
// 0 where that is not possible or ctx ended. No line is parsed for it.
func (r *Recording) length(ctx context.Context) time.Duration {
	if r.source == nil {
		return 0
	}
	lines, err := unzip(io.NewSectionReader(r.source, 0, 1<<62))
	if err != nil {
		return 0
	}
	last := time.Duration(0)
	for ctx.Err() == nil {
		start, err := lines.Peek(lineStart)
		if len(start) == 0 || err != nil && !errors.Is(err, io.EOF) {
			return last
		}
		last = max(last, timeOf(start))
		for {
			if _, err = lines.ReadSlice('\n'); !errors.Is(err, bufio.ErrBufferFull) {
				break
			}
		}
		if err != nil {
			return last
		}
	}
	return 0
}

// lineStart is how much of a line tells its time.
const lineStart = 48

// timeOf reads the time at the beginning of a line's text, 0 where there is none.
func timeOf(start []byte) time.Duration {
	for _, key := range [...]string{`{"at":`, `{"poll":{"t":`, `{"end":{"duration":`} {
		rest, ok := bytes.CutPrefix(start, []byte(key))
		if !ok {
			continue
		}
		if end := bytes.IndexAny(rest, ",}"); end > 0 {
			t, _ := strconv.ParseInt(string(rest[:end]), 10, 64)
			return time.Duration(t)
		}
	}
	return 0
}
