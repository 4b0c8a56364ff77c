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
	// maxEventBytes bounds one event. A chunk of a completion is a few hundred
	// bytes; one with many log-probabilities some ten thousand.
	maxEventBytes = 1 << 20
)

var errEventTooLong = errors.New("event of the stream is longer than 1 MiB")

// eventReader splits a server-sent event stream (WHATWG HTML, 9.2) into events.
// Lines may end in LF, CRLF or CR, data may span lines, comments and unknown
// fields are skipped. It never waits for a byte beyond the event's end, and
// holds at most one event. Beyond the standard, a data line after one that is a
// whole JSON value begins an event: as one they would be no JSON.
type eventReader struct {
	in     *bufio.Reader
	skipLF bool // the last line ended in CR: a LF that follows belongs to it
	begun  bool // the byte order mark has been looked for
	line   []byte
	name   []byte
	data   []byte
	lines  int // of data that the event has
	// held is a data line that was read beyond the event: some servers leave out
	// the empty line between events.
	held []byte
	// times, where set, tells when the stream's bytes came; at is then when the last
	// of the event that next returned did. Each read is used up before another is
	// made, so that the last read is the one that completed the event.
	times      *stamped
	at, heldAt time.Duration
}

func newEventReader(r io.Reader) *eventReader {
	return &eventReader{in: bufio.NewReaderSize(r, eventBufferBytes)}
}

// reset begins another stream.
func (e *eventReader) reset(r io.Reader) {
	e.in.Reset(r)
	e.skipLF, e.begun, e.held, e.times = false, false, nil, nil
}

// plain returns the data of an event of a single data line that lies in the
// buffer as a whole, as servers send one for each token; false, and nothing is
// read, where the next event is of another form.
func (e *eventReader) plain() (data []byte, ok bool) {
	if !e.begun || e.skipLF {
		return nil, false
	}
	have, _ := e.in.Peek(e.in.Buffered())
	line, rest, whole := bytes.Cut(have, []byte("\n"))
	if !whole || len(rest) == 0 || rest[0] != '\n' || bytes.IndexByte(line, '\r') >= 0 {
		return nil, false
	}
	data, ok = bytes.CutPrefix(line, []byte("data: "))
	if ok {
		e.discard(len(line) + 2)
	}
	return data, ok
}

// next returns the name and data of the next event that has data; both are
// valid until the call after. At the end of the stream it returns io.EOF. An
// event that the end of the stream cuts off counts if its lines are whole,
// since servers leave out the last empty line.
func (e *eventReader) next() (name, data []byte, err error) {
	e.name, e.data, e.lines = e.name[:0], e.data[:0], 0
	if e.held != nil {
		e.data, e.lines, e.held = append(e.data, e.held...), 1, nil
		e.at = e.heldAt
		return e.rest()
	}
	if e.in.Buffered() == 0 {
		if _, err := e.in.Peek(1); err != nil {
			return nil, nil, err
		}
	}
	if data, ok := e.plain(); ok {
		e.arrived(&e.at)
		return e.name, data, nil
	}
	return e.rest()
}

// rest reads an event line by line.
func (e *eventReader) rest() (name, data []byte, err error) {
	for {
		line, err := e.readLine()
		if errors.Is(err, io.EOF) {
			// The word that ends a stream is whole without an end of its line.
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
			e.arrived(&e.heldAt)
			return e.name, e.data, nil
		}
		if len(line) == 0 {
			if e.lines > 0 {
				e.arrived(&e.at)
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

// arrived notes the time of the last read.
func (e *eventReader) arrived(at *time.Duration) {
	if e.times != nil {
		*at = e.times.at
	}
}

// dataOf returns what a data line holds.
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
		e.arrived(&e.at)
	case "event":
		e.name = append(e.name[:0], value...)
	}
	return nil
}

// readLine returns the next line without its end. A last line without one comes
// with io.EOF; a connection that breaks, with the reason.
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

// discard drops bytes that are known to be buffered, which cannot fail.
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
