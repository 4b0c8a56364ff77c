package probe

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"time"
)

const (
	eventBufferBytes = 4 << 10
	// maxEventBytes limits one event. A chunk of a completion is a few hundred bytes; one with many
	// log probabilities some ten thousand.
	maxEventBytes = 1 << 20
)

var errEventTooLong = errors.New("event of the stream is longer than 1 MiB")

// eventReader splits a server-sent event stream (WHATWG HTML, 9.2) into events. Lines may end in
// LF, CRLF or CR, data may span lines, comments and unknown fields are skipped. It never waits for
// a byte beyond the event's end, and buffers at most one event. Unlike the standard, it begins a
// new event at a data line that follows a complete JSON value, because both together would not be
// JSON.
type eventReader struct {
	in     *bufio.Reader
	skipLF bool // the last line ended in CR, so a following LF belongs to it
	begun  bool // a byte order mark was looked for
	line   []byte
	name   []byte
	data   []byte
	lines  int // data lines of the event
	// held is a data line that was read beyond the event: some servers omit the empty line between
	// events.
	held []byte
	// at is when the last byte of the event that next returned arrived. The buffer is used up
	// before each read, so the last read is the one that completed the event.
	times      *timedReader
	at, heldAt time.Duration
}

func newEventReader(r *timedReader) *eventReader {
	return &eventReader{in: bufio.NewReaderSize(r, eventBufferBytes), times: r}
}

// next returns the name and data of the next event that has data; both are valid until the next
// call. At the end of the stream it returns io.EOF. An event cut off by the end of the stream
// counts if its lines are complete, because servers omit the last empty line.
func (e *eventReader) next() (name, data []byte, err error) {
	e.name, e.data, e.lines = e.name[:0], e.data[:0], 0
	if e.held != nil {
		e.data, e.lines, e.held = append(e.data, e.held...), 1, nil
		e.at = e.heldAt
	}
	for {
		line, err := e.readLine()
		if errors.Is(err, io.EOF) {
			// [DONE] is complete without the end of its line.
			if value, ok := dataOf(line); ok && bytes.Equal(value, streamEnd) {
				err = nil
			} else if len(line) == 0 && e.lines > 0 {
				return e.name, e.data, nil
			}
		}
		if err != nil {
			return nil, nil, err
		}
		if value, ok := dataOf(line); ok && e.lines == 1 && json.Valid(e.data) {
			e.held = append(make([]byte, 0, len(value)), value...)
			e.heldAt = e.times.at
			return e.name, e.data, nil
		}
		if len(line) == 0 {
			if e.lines > 0 {
				e.at = e.times.at
				return e.name, e.data, nil
			}
			e.name = e.name[:0]
			continue
		}
		if err := e.field(line); err != nil {
			return nil, nil, err
		}
	}
}

// dataOf returns the value of a data line.
func dataOf(line []byte) (value []byte, ok bool) {
	value, ok = bytes.CutPrefix(line, []byte("data:"))
	return bytes.TrimPrefix(value, []byte(" ")), ok
}

func (e *eventReader) field(line []byte) error {
	field, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(field) {
	case "data":
		if len(e.data)+len(value) >= maxEventBytes {
			return errEventTooLong
		}
		if e.lines > 0 {
			e.data = append(e.data, '\n')
		}
		e.data = append(e.data, value...)
		e.lines++
		e.at = e.times.at
	case "event":
		e.name = append(e.name[:0], value...)
	}
	return nil
}

// readLine returns the next line without its end. An unterminated last line comes with io.EOF, and
// a broken connection with its error.
func (e *eventReader) readLine() ([]byte, error) {
	e.line = e.line[:0]
	for {
		if e.in.Buffered() == 0 {
			if _, err := e.in.Peek(1); err != nil {
				return e.line, err
			}
		}
		have, _ := e.in.Peek(e.in.Buffered())
		if e.skipLF {
			e.skipLF = false
			if have[0] == '\n' {
				e.discard(1)
				continue
			}
		}
		end := lineEnd(have)
		if len(e.line)+end > maxEventBytes {
			return nil, errEventTooLong
		}
		e.line = append(e.line, have[:end]...)
		if end == len(have) {
			e.discard(end)
			continue
		}
		e.skipLF = have[end] == '\r'
		e.discard(end + 1)
		if !e.begun {
			e.begun = true
			return bytes.TrimPrefix(e.line, []byte("\ufeff")), nil
		}
		return e.line, nil
	}
}

// discard drops buffered bytes, which cannot fail.
func (e *eventReader) discard(n int) { _, _ = e.in.Discard(n) }

// lineEnd returns the index of the first CR or LF, or len(b).
func lineEnd(b []byte) int {
	end := len(b)
	if i := bytes.IndexByte(b, '\n'); i >= 0 {
		end = i
	}
	if i := bytes.IndexByte(b[:end], '\r'); i >= 0 {
		end = i
	}
	return end
}
