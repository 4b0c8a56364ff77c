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
	"github.com/rooftop-dev/rooftop/engine/facts"
	"github.com/rooftop-dev/rooftop/engine/loop"
	"github.com/rooftop-dev/rooftop/engine/verdict"
)

// RecordingSchema is the name of the format of a recording: a gzip file with one JSON object per
// line. The first line is a Header, then follows one Poll per tick, and the last line is an End. A
// recording of a live session also has a line for every other input of its loop, with its time.
const RecordingSchema = "rooftop.recording/v1"

// maxLine bounds one line of a recording, in bytes: a page is at most 16 MiB before JSON escapes
// it.
const maxLine = 64 << 20

// ErrRecording is wrapped by the errors of a file that is not a recording, or a damaged one.
var ErrRecording = errors.New("not a rooftop recording")

// Header is the first part of a recording: everything that a diagnosis needs in addition to the
// polls. It contains no secrets.
type Header struct {
	Schema  string           `json:"schema"`
	Version string           `json:"version"` // of the rooftop that recorded
	Started time.Time        `json:"started"`
	Target  engine.Target    `json:"target"`
	Inputs  facts.Inputs     `json:"inputs"`
	Missing []engine.Missing `json:"missing"`
	Notes   []string         `json:"notes"` // about the launch, before measuring
	GPUWhy  string           `json:"gpu_why"`
	Model   string           `json:"model"` // model_name to select, "" for the one with the most series
	// Catalog is the text of the user's catalog file, "" without one.
	Catalog     string `json:"catalog,omitempty"`
	CatalogName string `json:"catalog_name,omitempty"`
	Ceiling     string `json:"ceiling"` // classic or physical
	// Objectives are limits on latencies that bound the headroom.
	Objectives []verdict.Objective `json:"objectives,omitempty"`
	// Session is the plan that the loop of a live session was started with, nil for a single
	// measurement. The facts about the server of a live session are in the lines that follow.
	Session *loop.Plan `json:"session,omitempty"`
}

// Poll is what one tick read: the raw page, or why there is none, and the GPUs. Times are in
// nanoseconds since the start of the run.
type Poll struct {
	T       time.Duration      `json:"t"`      // start of the tick
	PageT   time.Duration      `json:"page_t"` // completion of the page
	Took    time.Duration      `json:"took"`   // duration of the request
	Body    string             `json:"body,omitempty"`
	PageErr string             `json:"page_err,omitempty"`
	GPU     *engine.GPUReading `json:"gpu,omitempty"`
	GPUErr  string             `json:"gpu_err,omitempty"`
	Health  *engine.Health     `json:"health,omitempty"` // nil if it was not read at this tick
	Missed  int                `json:"missed,omitempty"` // ticks missed before this one
}

// End is the last part of a recording.
type End struct {
	Duration time.Duration    `json:"duration"`
	Notes    []string         `json:"notes"`
	Missing  []engine.Missing `json:"missing"` // what the GPUs did not report
}

// Recording reads a recording line by line.
type Recording struct {
	Header Header
	began  time.Duration // when the loop of a live session began
	lines  *bufio.Reader
	source io.ReaderAt // the whole file, nil if it cannot be read twice
	alter  func(*Header)
}

// OpenRecording reads the header. Errors wrap ErrRecording. If r is an io.ReaderAt, as a file is, it
// must be at its beginning.
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
		return nil, fmt.Errorf("%w: its first line is not a %s header", ErrRecording, RecordingSchema)
	}
	rec.Header, rec.began = *l.Header, l.At
	return rec, nil
}

// Alter changes what the recording says about its server, also after each attach of a live session.
func (r *Recording) Alter(change func(*Header)) {
	r.alter = change
	change(&r.Header)
}

func unzip(r io.Reader) (*bufio.Reader, error) {
	z, err := gzip.NewReader(r)
	if err != nil {
		return nil, err
	}
	return bufio.NewReaderSize(z, 1<<16), nil
}

// live reports whether the recording is of a live session, not of a single measurement.
func (r *Recording) live() bool { return r.Header.Session != nil }

// next returns the next line; io.EOF at the end of the file, io.ErrUnexpectedEOF if the last line is
// incomplete.
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
		if r.alter != nil && l.Attached != nil {
			r.alter(&l.Attached.Header)
		}
		return l, nil
	}
}

// length returns the time of the last line, 0 if the file cannot be read twice or ctx ends. It reads
// the file independently of next, and parses only the beginning of each line.
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

// lineStart is the number of bytes at the beginning of a line that contain its time.
const lineStart = 48

// timeOf returns the time at the beginning of a line's text, 0 if there is none.
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
