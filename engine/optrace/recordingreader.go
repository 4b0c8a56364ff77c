package optrace

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"time"
)

// ReadRecording reads what [WriteRecording] wrote. One that was cut short is read as far
// as it goes, with a gap that says so. Errors name the line.
func ReadRecording(r io.Reader) (*Recording, error) {
	rr, err := NewRecordingReader(r)
	if err != nil {
		return nil, err
	}
	for {
		e, err := rr.Next()
		if errors.Is(err, io.EOF) {
			return rr.Recording(), nil
		}
		if err != nil {
			return nil, err
		}
		rr.rec.Events = append(rr.rec.Events, e)
	}
}

// RecordingReader reads a recording event by event, for those that need not be kept.
type RecordingReader struct {
	in      *bufio.Reader
	long    []byte // a line that is longer than in's buffer
	line    int
	rec     Recording
	entries int
	bytes   int
	events  int
	at      time.Duration
	done    bool
}

// NewRecordingReader reads the head of a recording.
func NewRecordingReader(r io.Reader) (*RecordingReader, error) {
	rr := &RecordingReader{in: bufio.NewReaderSize(r, 1<<16)}
	rr.rec.Tables = &Tables{}
	line, err := rr.next()
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	var schema struct {
		Schema string `json:"schema"`
	}
	if json.Unmarshal(line, &schema) != nil || !strings.HasPrefix(schema.Schema, recordingFamily) {
		return nil, fmt.Errorf("line 1: this is no recording of a trace (%s): rooftop trace --save FILE makes one", RecordingSchema)
	}
	if schema.Schema != RecordingSchema {
		return nil, fmt.Errorf("line 1: the recording has the format %s, and this program reads %s: read it with the rooftop that wrote it", schema.Schema, RecordingSchema)
	}
	var head recordingHead
	if err := strict(line, &head); err != nil {
		return nil, rr.wrong(err)
	}
	rr.rec.Target, rr.rec.Begin, rr.rec.Origin, rr.rec.Detail, rr.rec.Reader = head.Target, head.Begin, head.Origin, head.Detail, head.Reader
	return rr, nil
}

// Recording is what was read so far: the target and begin at once, entries of the
// tables before events that refer to them, everything when Next has returned io.EOF.
// It has no events unless [ReadRecording] read it.
func (rr *RecordingReader) Recording() *Recording { return &rr.rec }

// Next is the next event, io.EOF after the last.
func (rr *RecordingReader) Next() (Event, error) {
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
				return Event{}, rr.wrong(err)
			}
			return e, nil
		}
		if err := rr.entry(line); err != nil {
			return Event{}, rr.wrong(err)
		}
	}
	if _, err := rr.next(); !errors.Is(err, io.EOF) {
		if err == nil {
			err = rr.wrong(errors.New("something follows the end of the recording"))
		}
		return Event{}, err
	}
	return Event{}, io.EOF
}

// wrong says where something is wrong.
func (rr *RecordingReader) wrong(err error) error {
	return fmt.Errorf("line %d: %w", rr.line, err)
}

// next is the next line without its end, which it must have; io.EOF after the last. It
// is valid until the one after it.
func (rr *RecordingReader) next() ([]byte, error) {
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
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF): // what has no end of its line was cut
			return nil, io.EOF
		default:
			return nil, fmt.Errorf("line %d: %w", rr.line, err)
		}
	}
}

// event reads an event and holds it against what was read.
func (rr *RecordingReader) event(line []byte) (Event, error) {
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
	return e, checkEvent(&e, rr.rec.Tables)
}

// entry reads a line that is no event.
func (rr *RecordingReader) entry(line []byte) error {
	var l recordingLine
	if err := strict(line, &l); err != nil {
		return err
	}
	if l.is() != 1 {
		return errors.New("it is neither an event nor one entry of a table")
	}
	switch {
	case l.SoFar != nil:
		return rr.known(l.SoFar)
	case l.End != nil:
		rr.done = true
		return rr.known(l.End)
	}
	rr.entries += l.weight()
	rr.bytes += len(line) + 1
	if err := fitTables(rr.entries, rr.bytes); err != nil {
		return err
	}
	t := rr.rec.Tables
	if err := l.check(t); err != nil {
		return err
	}
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

// known takes what a line tells of the recording so far.
func (rr *RecordingReader) known(end *recordingEnd) error {
	if end.Events != rr.events {
		return fmt.Errorf("it says that there are %d events, and %d were read: the recording was changed, record it again", end.Events, rr.events)
	}
	r := &rr.rec
	if end.Target != nil {
		r.Target = *end.Target
	}
	r.End, r.Detail, r.Dropped, r.LeftOut = end.End, end.Detail, end.Dropped, end.LeftOut
	r.Roof, r.Gaps, r.Observer, r.Processes, r.HostLoad = end.Roof, end.Gaps, end.Observer, end.Processes, end.HostLoad
	return nil
}

// GapEnd is the What of the gap of a recording that was cut short.
const GapEnd = "the end of the recording"

// Cut ends a recording with what was read so far, since no more of its file is right: Next
// returns io.EOF, and a gap says so. Where the last line is missing, Next does it.
func (rr *RecordingReader) Cut() {
	if rr.done {
		return
	}
	r := &rr.rec
	r.End = max(r.End, rr.at, r.Begin)
	r.Gaps = append(r.Gaps, Gap{
		What: GapEnd,
		Why:  fmt.Sprintf("the file is cut short after %d events: who recorded it was killed, or its disk was full", rr.events),
		Next: "what is there is right; record it again for the rest",
	})
	rr.done = true
}

// strict reads one JSON value and takes nothing that it does not know.
func strict(line []byte, into any) error {
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
		return errors.New("something follows the value of the line")
	}
	return nil
}

// parseEvent reads the line of an event.
func parseEvent(line []byte) (Event, error) {
	var e Event
	s := eventScanner{rest: line}
	e.Kind = s.kind()
	e.At = time.Duration(s.number(0, math.MaxInt64))
	e.PID = int32(s.number(math.MinInt32, math.MaxInt32))
	e.TID = int32(s.number(math.MinInt32, math.MaxInt32))
	e.CPU = uint16(s.number(0, math.MaxUint16))
	e.Addr = s.unsigned()
	e.N = s.number(math.MinInt64, math.MaxInt64)
	e.Ref = uint32(s.number(0, math.MaxUint32))
	e.Lane = uint16(s.number(0, math.MaxUint16))
	e.Lanes = uint16(s.number(0, math.MaxUint16))
	s.close()
	return e, s.err
}

// eventScanner reads the parts of an event one by one. After its end, and after an
// error, all parts are zero.
type eventScanner struct {
	rest  []byte
	field int
	ended bool
	err   error
}

func (s *eventScanner) fail(why string) {
	if s.err == nil {
		s.err = fmt.Errorf("part %d of the event %s", s.field, why)
	}
	s.ended = true
}

func (s *eventScanner) kind() Kind {
	s.field = 1
	if len(s.rest) < 2 || s.rest[0] != '[' || s.rest[1] != '"' {
		s.fail("is no kind")
		return KindNone
	}
	s.rest = s.rest[2:]
	end := bytes.IndexByte(s.rest, '"')
	if end < 0 {
		s.fail("is no kind")
		return KindNone
	}
	k, ok := kindOf[string(s.rest[:end])]
	if !ok {
		s.fail(fmt.Sprintf("is %.20q, which is no kind that is known", s.rest[:end]))
		return KindNone
	}
	s.rest = s.rest[end+1:]
	return k
}

// more goes to the next part, and says whether there is one.
func (s *eventScanner) more() bool {
	if s.ended || len(s.rest) == 0 || s.rest[0] != ',' {
		s.ended = true
		return false
	}
	s.field++
	s.rest = s.rest[1:]
	return true
}

// unsigned is a whole number.
func (s *eventScanner) unsigned() uint64 {
	if !s.more() {
		return 0
	}
	return s.digits()
}

func (s *eventScanner) digits() uint64 {
	var v uint64
	n := 0
	for ; n < len(s.rest) && isDigit(s.rest[n]); n++ {
		d := uint64(s.rest[n] - '0')
		if v > (math.MaxUint64-d)/10 {
			s.fail("is too large")
			return 0
		}
		v = v*10 + d
	}
	if n == 0 {
		s.fail("is no whole number")
		return 0
	}
	s.rest = s.rest[n:]
	return v
}

// number is a whole number within limits.
func (s *eventScanner) number(low, high int64) int64 {
	if !s.more() {
		return 0
	}
	negative := len(s.rest) > 0 && s.rest[0] == '-'
	if negative {
		s.rest = s.rest[1:]
	}
	v := s.digits()
	switch {
	case s.err != nil:
		return 0
	case negative && v > -uint64(low), !negative && v > uint64(high):
		s.fail("is out of its range")
		return 0
	case negative:
		return -int64(v)
	}
	return int64(v)
}

// close holds that nothing is left.
func (s *eventScanner) close() {
	if s.err == nil && (len(s.rest) != 1 || s.rest[0] != ']') {
		s.err = fmt.Errorf("after part %d of the event there is %.20q", s.field, s.rest)
	}
}
