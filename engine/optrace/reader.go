package optrace

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"
)

// Reader reads a recording event by event, without keeping the events.
type Reader struct {
	in      *bufio.Reader
	long    []byte // a line that exceeds the buffer of in
	line    int
	rec     Recording
	entries int
	bytes   int
	events  int
	at      time.Duration
	done    bool
}

// NewReader returns a Reader after reading the head of a recording. It fails if the schema is
// not [Schema].
func NewReader(r io.Reader) (*Reader, error) {
	rr := &Reader{in: bufio.NewReaderSize(r, 1<<16)}
	rr.rec.Tables = &Tables{}
	line, err := rr.next()
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	var schema struct {
		Schema string `json:"schema"`
	}
	if json.Unmarshal(line, &schema) != nil || !strings.HasPrefix(schema.Schema, recordingFamily) {
		return nil, fmt.Errorf("line 1: not a trace recording (%s): create one with rooftop trace --save FILE", Schema)
	}
	if schema.Schema != Schema {
		return nil, fmt.Errorf("line 1: the recording has the format %s, and this program reads %s: read it with the rooftop that wrote it", schema.Schema, Schema)
	}
	var head recordingHead
	if err := decodeStrict(line, &head); err != nil {
		return nil, rr.lineError(err)
	}
	rr.rec.Target, rr.rec.Begin, rr.rec.Origin, rr.rec.Detail, rr.rec.Reader = head.Target, head.Begin, head.Origin, head.Detail, head.Reader
	return rr, nil
}

// Recording returns what was read so far: the target and the start at once, entries of tables
// before events that refer to them, and everything else when Next has returned io.EOF. It has
// no events.
func (rr *Reader) Recording() *Recording { return &rr.rec }

// Next returns the next event, io.EOF after the last. A file without its last line ends like
// [Cut].
func (rr *Reader) Next() (Event, error) {
	for !rr.done {
		line, err := rr.next()
		if errors.Is(err, io.EOF) {
			rr.Cut()
			return Event{}, io.EOF
		}
		if err != nil {
			return Event{}, err
		}
		if len(line) > 0 && line[0] == '[' {
			e, err := rr.event(line)
			if err != nil {
				return Event{}, rr.lineError(err)
			}
			return e, nil
		}
		if err := rr.entry(line); err != nil {
			return Event{}, rr.lineError(err)
		}
	}
	if _, err := rr.next(); !errors.Is(err, io.EOF) {
		if err == nil {
			err = rr.lineError(errors.New("there is data after the end of the recording"))
		}
		return Event{}, err
	}
	return Event{}, io.EOF
}

// lineError adds the number of the line to an error.
func (rr *Reader) lineError(err error) error {
	return fmt.Errorf("line %d: %w", rr.line, err)
}

// next returns the next line without its newline, io.EOF after the last complete line. The line
// is valid until the next call.
func (rr *Reader) next() ([]byte, error) {
	rr.line++
	rr.long = rr.long[:0]
	for {
		part, err := rr.in.ReadSlice('\n')
		if len(rr.long)+len(part) > maxRecordingLine+1 {
			return nil, fmt.Errorf("line %d: it has more than %d bytes", rr.line, maxRecordingLine)
		}
		switch {
		case err == nil && len(rr.long) == 0:
			return part[:len(part)-1], nil
		case err == nil:
			rr.long = append(rr.long, part...)
			return rr.long[:len(rr.long)-1], nil
		case errors.Is(err, bufio.ErrBufferFull):
			rr.long = append(rr.long, part...)
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF): // a line without a newline was cut off
			return nil, io.EOF
		default:
			return nil, fmt.Errorf("line %d: %w", rr.line, err)
		}
	}
}

// event parses an event and checks it against what was read before.
func (rr *Reader) event(line []byte) (Event, error) {
	e, err := parseEvent(line)
	if err != nil {
		return e, err
	}
	if e.At < rr.at {
		return e, errEarlier
	}
	if rr.events >= maxRecordedEvents {
		return e, errTooManyEvents
	}
	rr.events++
	rr.at = e.At
	return e, nil
}

// entry reads a line that is not an event.
func (rr *Reader) entry(line []byte) error {
	var l recordingLine
	if err := decodeStrict(line, &l); err != nil {
		return err
	}
	if l.entries() != 1 {
		return errors.New("it is neither an event nor one entry of a table")
	}
	switch {
	case l.SoFar != nil:
		return rr.applyState(l.SoFar)
	case l.End != nil:
		rr.done = true
		return rr.applyState(l.End)
	}
	rr.entries += l.weight()
	rr.bytes += len(line) + 1
	if rr.entries > maxTableEntries || rr.bytes > maxTableBytes {
		return errTablesTooLarge
	}
	t := rr.rec.Tables
	switch {
	case l.Tensor != nil:
		t.Tensors = append(t.Tensors, *l.Tensor)
	case l.Operator != nil:
		t.Operators = append(t.Operators, *l.Operator)
	case l.Experts != nil:
		t.Experts = append(t.Experts, *l.Experts)
	case l.Counters != nil:
		t.Counters = append(t.Counters, *l.Counters)
	case l.DAG != nil:
		t.DAGs = append(t.DAGs, *l.DAG)
	case l.Name != nil:
		t.Names = append(t.Names, *l.Name)
	}
	return nil
}

// applyState applies the state of the recording from a "so_far" or "end" line.
func (rr *Reader) applyState(end *recordingEnd) error {
	if end.Events != rr.events {
		return fmt.Errorf("it declares %d events, but %d were read: the recording was changed, record it again", end.Events, rr.events)
	}
	r := &rr.rec
	if end.Target != nil {
		r.Target = *end.Target
	}
	r.End, r.Detail, r.Dropped, r.LeftOut = end.End, end.Detail, end.Dropped, end.LeftOut
	r.Peak, r.Gaps, r.Observer, r.HostLoad = end.Roof, end.Gaps, end.Observer, end.HostLoad
	return nil
}

// Cut ends a recording with what was read so far, because the remainder of the file is invalid:
// Next returns io.EOF, and a [optrace.GapEnd] says so. Next calls it if the last line is
// missing.
func (rr *Reader) Cut() {
	if rr.done {
		return
	}
	r := &rr.rec
	r.End = max(r.End, rr.at, r.Begin)
	r.Gaps = append(r.Gaps, Gap{
		What: GapEnd,
		Why:  fmt.Sprintf("the file is cut short after %d events: the recording process was killed, or its disk was full", rr.events),
		Next: "the recorded part is valid; record again for the remainder",
	})
	rr.done = true
}

// decodeStrict decodes exactly one JSON value and rejects unknown fields.
func decodeStrict(line []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	err := d.Decode(into)
	if errors.Is(err, io.EOF) {
		return errors.New("it is empty")
	}
	if err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("unexpected text after the value of the line")
	}
	return nil
}

// eventLimits are the ranges of the numbers of an event.
var eventLimits = [9]struct{ low, high int64 }{
	{0, math.MaxInt64},             // at
	{math.MinInt32, math.MaxInt32}, // pid
	{math.MinInt32, math.MaxInt32}, // tid
	{0, math.MaxUint16},            // cpu
	{math.MinInt64, math.MaxInt64}, // addr: any 64 bits
	{math.MinInt64, math.MaxInt64}, // n
	{0, math.MaxUint32},            // ref
	{0, math.MaxUint16},            // thread
	{0, math.MaxUint16},            // threads
}

// parseEvent parses the line of an event.
func parseEvent(line []byte) (e Event, err error) {
	begun, opened := bytes.CutPrefix(line, []byte(`["`))
	begun, closed := bytes.CutSuffix(begun, []byte{']'})
	word, rest, quoted := bytes.Cut(begun, []byte{'"'})
	if !opened || !closed || !quoted {
		return e, errors.New("it is not an event that begins with a kind")
	}
	var known bool
	if e.Kind, known = ParseKind(string(word)); !known {
		return e, fmt.Errorf("part 1 of the event is %.20q, an unknown kind", word)
	}
	const addr = 4 // the only unsigned number
	var n [len(eventLimits)]int64
	for i := 0; len(rest) > 0; i++ {
		if rest[0] != ',' || i == len(n) {
			return e, fmt.Errorf("after part %d of the event there is %.20q", i+1, rest)
		}
		text := rest[1:]
		if end := bytes.IndexByte(text, ','); end >= 0 {
			text = text[:end]
		}
		rest = rest[1+len(text):]
		if i == addr {
			e.Addr, err = strconv.ParseUint(string(text), 10, 64)
		} else {
			n[i], err = strconv.ParseInt(string(text), 10, 64)
		}
		if err != nil {
			return e, fmt.Errorf("part %d of the event is not a whole number of 64 bits", i+2)
		}
		if n[i] < eventLimits[i].low || n[i] > eventLimits[i].high {
			return e, fmt.Errorf("part %d of the event is out of its range", i+2)
		}
	}
	e.At, e.PID, e.TID, e.CPU = time.Duration(n[0]), int32(n[1]), int32(n[2]), uint16(n[3])
	e.N, e.Ref, e.Thread, e.Threads = n[5], uint32(n[6]), uint16(n[7]), uint16(n[8])
	return e, nil
}
