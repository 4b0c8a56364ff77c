package optrace

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"strconv"
	"time"
)

// Writer writes a recording in the format that [Schema] describes, while it is being made. It
// fails on what a [Reader] would refuse. Invalid UTF-8 in strings is replaced.
type Writer struct {
	w       *bufio.Writer
	written Tables // the tables as of the last call of Tables
	entries int
	bytes   int
	events  int
	at      time.Duration
	line    []byte
}

// NewWriter returns a Writer after writing the head of a recording: its target, begin, detail
// and reader.
func NewWriter(w io.Writer, head *Recording) (*Writer, error) {
	rw := &Writer{w: bufio.NewWriterSize(w, 1<<16)}
	line, err := json.Marshal(recordingHead{
		Schema: Schema, Target: head.Target, Begin: head.Begin,
		Origin: head.Origin.UTC(), Detail: head.Detail, Words: head.Detail.String(), Reader: head.Reader,
	})
	if err != nil {
		return nil, fmt.Errorf("the head of the recording cannot be written: %w", err)
	}
	return rw, rw.writeLine(line)
}

// writeLine writes one line. It fails if the line exceeds maxRecordingLine.
func (rw *Writer) writeLine(line []byte) error {
	if len(line) > maxRecordingLine {
		return fmt.Errorf("a line of the recording has %d bytes, more than %d", len(line), maxRecordingLine)
	}
	if _, err := rw.w.Write(line); err != nil {
		return err
	}
	return rw.w.WriteByte('\n')
}

// Tables writes the entries that were added to t since the last call. Entries must be written
// before events that refer to them.
func (rw *Writer) Tables(t *Tables) error {
	for l := range newEntries(&rw.written, t) {
		if err := rw.entry(&l); err != nil {
			return err
		}
	}
	rw.written = *t
	return nil
}

// newEntries iterates over the lines of the entries that t has and old, an earlier state of t,
// lacks.
func newEntries(old, t *Tables) iter.Seq[recordingLine] {
	return func(yield func(recordingLine) bool) {
		_ = each(yield, t.Tensors[len(old.Tensors):], func(v *Tensor) recordingLine { return recordingLine{Tensor: v} }) &&
			each(yield, t.Operators[len(old.Operators):], func(v *Operator) recordingLine { return recordingLine{Operator: v} }) &&
			each(yield, t.Experts[len(old.Experts):], func(v *ExpertChoice) recordingLine { return recordingLine{Experts: v} }) &&
			each(yield, t.Counters[len(old.Counters):], func(v *CounterSet) recordingLine { return recordingLine{Counters: v} }) &&
			each(yield, t.DAGs[len(old.DAGs):], func(v *DAG) recordingLine { return recordingLine{DAG: v} }) &&
			each(yield, t.Names[len(old.Names):], func(v *string) recordingLine { return recordingLine{Name: v} })
	}
}

// each yields the lines of the entries of a table, and reports whether to continue.
func each[T any](yield func(recordingLine) bool, entries []T, line func(*T) recordingLine) bool {
	for i := range entries {
		if !yield(line(&entries[i])) {
			return false
		}
	}
	return true
}

// entry writes one entry of a table.
func (rw *Writer) entry(l *recordingLine) error {
	line, err := json.Marshal(l)
	if err != nil {
		return fmt.Errorf("an entry of the tables cannot be recorded: %w", err)
	}
	rw.entries += l.weight()
	rw.bytes += len(line) + 1
	if rw.entries > maxTableEntries || rw.bytes > maxTableBytes {
		return errTablesTooLarge
	}
	return rw.writeLine(line)
}

// Events writes events, which must be in time order over all calls.
func (rw *Writer) Events(events []Event) error {
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

// check returns an error if an event cannot be read back after those written before it.
func (rw *Writer) check(e *Event) error {
	switch {
	case e.Kind.Word() == "":
		return errors.New("its kind is not known")
	case e.At < rw.at:
		return errEarlier
	case rw.events >= maxRecordedEvents:
		return errTooManyEvents
	}
	return nil
}

var (
	errEarlier        = errors.New("it is earlier than the previous one")
	errTablesTooLarge = fmt.Errorf("the tables exceed %d entries or %d bytes: record less detail, or a shorter time", maxTableEntries, maxTableBytes)
	errTooManyEvents  = fmt.Errorf("there are more than %d: record less detail, or a shorter time", maxRecordedEvents)
)

// SoFar writes the current state, in case the recording is cut short later.
func (rw *Writer) SoFar(now *Recording) error {
	return rw.writeState(recordingLine{SoFar: rw.endOf(now)})
}

// Flush writes all buffered lines to the underlying writer.
func (rw *Writer) Flush() error { return rw.w.Flush() }

// Close writes what is known only at the end, which completes the recording, and flushes. It
// does not close the underlying writer.
func (rw *Writer) Close(end *Recording) error {
	if err := rw.writeState(recordingLine{End: rw.endOf(end)}); err != nil {
		return err
	}
	return rw.w.Flush()
}

func (rw *Writer) endOf(r *Recording) *recordingEnd {
	return &recordingEnd{
		Target: &r.Target, End: r.End, Detail: r.Detail, Events: rw.events, Dropped: r.Dropped, LeftOut: r.LeftOut,
		Roof: r.Peak, Gaps: r.Gaps, Observer: r.Observer, HostLoad: r.HostLoad,
	}
}

func (rw *Writer) writeState(l recordingLine) error {
	line, err := json.Marshal(l)
	if err != nil {
		return fmt.Errorf("the end of the recording cannot be written: %w", err)
	}
	return rw.writeLine(line)
}

// appendEvent appends the line of an event to b.
func appendEvent(b []byte, e *Event) []byte {
	b = append(b, '[', '"')
	b = append(b, e.Kind.Word()...)
	b = append(b, '"')
	end := len(b)
	integer := func(v int64) {
		b = strconv.AppendInt(append(b, ','), v, 10)
		if v != 0 {
			end = len(b)
		}
	}
	integer(int64(e.At))
	integer(int64(e.PID))
	integer(int64(e.TID))
	integer(int64(e.CPU))
	b = strconv.AppendUint(append(b, ','), e.Addr, 10)
	if e.Addr != 0 {
		end = len(b)
	}
	integer(e.N)
	integer(int64(e.Ref))
	integer(int64(e.Thread))
	integer(int64(e.Threads))
	return append(b[:end], ']', '\n')
}
