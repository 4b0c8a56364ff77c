package optrace

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"
)

// WriteRecording writes a recording as lines of JSON; [RecordingSchema] has the format.
// What [ReadRecording] would not take is an error; of tables that are too large for it,
// what no event needs is left out. Text that is not UTF-8 loses what is not.
func WriteRecording(w io.Writer, r *Recording) error {
	rw, err := NewRecordingWriter(w, r)
	if err != nil {
		return err
	}
	if r.Tables != nil {
		if err := rw.Tables(fitting(r.Tables, r.Events)); err != nil {
			return err
		}
	}
	if err := rw.Events(r.Events); err != nil {
		return err
	}
	return rw.Close(r)
}

// RecordingWriter writes a recording while it is made.
type RecordingWriter struct {
	w       *bufio.Writer
	wrote   Tables // as they were when they were written last
	entries int
	bytes   int
	events  int
	at      time.Duration
	line    []byte
}

// NewRecordingWriter writes the head of a recording: its target, begin, detail and reader.
func NewRecordingWriter(w io.Writer, head *Recording) (*RecordingWriter, error) {
	rw := &RecordingWriter{w: bufio.NewWriterSize(w, 1<<16)}
	line, err := json.Marshal(recordingHead{
		Schema: RecordingSchema, Target: head.Target, Begin: head.Begin,
		Origin: head.Origin.UTC(), Detail: head.Detail, Words: head.Detail.String(), Reader: head.Reader,
	})
	if err != nil {
		return nil, fmt.Errorf("the head of the recording cannot be written: %w", err)
	}
	return rw, rw.put(line)
}

func (rw *RecordingWriter) put(line []byte) error {
	if len(line) > maxRecordingLine {
		return fmt.Errorf("a line of the recording has %d bytes, more than %d", len(line), maxRecordingLine)
	}
	if _, err := rw.w.Write(line); err != nil {
		return err
	}
	return rw.w.WriteByte('\n')
}

// Tables writes the entries that t has got since the last time. They must be written
// before events that refer to them.
func (rw *RecordingWriter) Tables(t *Tables) error {
	w := &rw.wrote
	for i := len(w.Tensors); i < len(t.Tensors); i++ {
		if err := rw.entry(&recordingLine{Tensor: &t.Tensors[i]}, t); err != nil {
			return err
		}
	}
	for i := len(w.Operators); i < len(t.Operators); i++ {
		if err := rw.entry(&recordingLine{Operator: &t.Operators[i]}, t); err != nil {
			return err
		}
	}
	for i := len(w.Experts); i < len(t.Experts); i++ {
		if err := rw.entry(&recordingLine{Experts: &t.Experts[i]}, t); err != nil {
			return err
		}
	}
	for i := len(w.Counters); i < len(t.Counters); i++ {
		if err := rw.entry(&recordingLine{Counters: &t.Counters[i]}, t); err != nil {
			return err
		}
	}
	for i := len(w.DAGs); i < len(t.DAGs); i++ {
		if err := rw.entry(&recordingLine{DAG: &t.DAGs[i]}, t); err != nil {
			return err
		}
	}
	for i := len(w.Names); i < len(t.Names); i++ {
		if err := rw.entry(&recordingLine{Name: &t.Names[i]}, t); err != nil {
			return err
		}
	}
	*w = *t
	return nil
}

// entry writes one entry.
func (rw *RecordingWriter) entry(l *recordingLine, t *Tables) error {
	if err := l.check(t); err != nil {
		return fmt.Errorf("an entry of the tables cannot be recorded: %w", err)
	}
	line, err := json.Marshal(l)
	if err != nil {
		return fmt.Errorf("an entry of the tables cannot be recorded: %w", err)
	}
	rw.entries += l.weight()
	rw.bytes += len(line) + 1
	if err := fitTables(rw.entries, rw.bytes); err != nil {
		return err
	}
	return rw.put(line)
}

// Events writes events; their order is that of time, over all calls.
func (rw *RecordingWriter) Events(events []Event) error {
	for i := range events {
		e := &events[i]
		if err := rw.check(e); err != nil {
			return fmt.Errorf("event %d (%v) cannot be recorded: %w", rw.events+1, e.Kind, err)
		}
		rw.line = appendEvent(rw.line[:0], e)
		if _, err := rw.w.Write(rw.line); err != nil {
			return err
		}
		rw.events++
		rw.at = e.At
	}
	return nil
}

func (rw *RecordingWriter) check(e *Event) error {
	switch {
	case e.Kind >= kinds || kindNames[e.Kind] == "":
		return errors.New("its kind is not known")
	case e.At < rw.at:
		return errEarlier
	case rw.events >= maxRecordedEvents:
		return errTooManyEvents
	}
	return checkEvent(e, &rw.wrote)
}

var (
	errEarlier       = errors.New("it is earlier than the one before it")
	errTooManyEvents = fmt.Errorf("there are more than %d: record less detail, or a shorter time", maxRecordedEvents)
)

// fitTables says what is too much of tables.
func fitTables(entries, bytes int) error {
	if entries > maxTableEntries || bytes > maxTableBytes {
		return fmt.Errorf("the tables have more than %d entries or %d bytes: record less detail, or a shorter time", maxTableEntries, maxTableBytes)
	}
	return nil
}

// SoFar writes what is known at this moment, for a recording that is cut short later.
func (rw *RecordingWriter) SoFar(now *Recording) error {
	return rw.known(recordingLine{SoFar: rw.endOf(now)})
}

// Flush hands on all that was written so far.
func (rw *RecordingWriter) Flush() error { return rw.w.Flush() }

// Close writes what is known at the end alone. The recording is whole then; what is
// below is not closed.
func (rw *RecordingWriter) Close(end *Recording) error {
	if err := rw.known(recordingLine{End: rw.endOf(end)}); err != nil {
		return err
	}
	return rw.w.Flush()
}

func (rw *RecordingWriter) endOf(r *Recording) *recordingEnd {
	return &recordingEnd{
		Target: &r.Target, End: r.End, Detail: r.Detail, Events: rw.events, Dropped: r.Dropped, LeftOut: r.LeftOut,
		Roof: r.Roof, Gaps: r.Gaps, Observer: r.Observer, Processes: r.Processes, HostLoad: r.HostLoad,
	}
}

func (rw *RecordingWriter) known(l recordingLine) error {
	line, err := json.Marshal(l)
	if err != nil {
		return fmt.Errorf("the end of the recording cannot be written: %w", err)
	}
	return rw.put(line)
}

// appendEvent writes the line of an event.
func appendEvent(b []byte, e *Event) []byte {
	b = append(b, '[', '"')
	b = append(b, kindNames[e.Kind]...)
	b = append(b, '"')
	end := len(b)
	number := func(v int64) {
		b = strconv.AppendInt(append(b, ','), v, 10)
		if v != 0 {
			end = len(b)
		}
	}
	number(int64(e.At))
	number(int64(e.PID))
	number(int64(e.TID))
	number(int64(e.CPU))
	b = strconv.AppendUint(append(b, ','), e.Addr, 10)
	if e.Addr != 0 {
		end = len(b)
	}
	number(e.N)
	number(int64(e.Ref))
	number(int64(e.Lane))
	number(int64(e.Lanes))
	return append(b[:end], ']', '\n')
}
