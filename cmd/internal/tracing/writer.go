package tracing

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"
	"time"
)

// Recordings are also written in the Trace Event Format, the JSON that
// ui.perfetto.dev and chrome://tracing open.
//
// Format: the "Trace Event Format" document of the Chromium project. Reader: Perfetto's
// src/trace_processor/importers/json. Where these leave a choice, the writer uses what every
// version of both reads:
//
//   - displayTimeUnit and otherData precede traceEvents: Perfetto stops at a key it does not
//     know, and early versions expect otherData in their first chunk of the file. The unit is
//     "ms": early versions took "ns" as the unit of ts.
//   - ts and dur are the first keys of an event: early versions look for ts with a scanner
//     that stops at an escape like \u0007.
//   - No ts is negative: Perfetto drops such events.
//   - Spans of one track must be nested or disjoint: Perfetto drops others. The caller ensures
//     that; the writer prevents rounding from breaking it.

// Arg is a named value of an event.
type Arg struct {
	key   string
	value any // nil is left out
}

// Text returns a text argument.
func Text(key, value string) Arg { return Arg{key, value} }

// Int returns an integer argument.
func Int(key string, value int64) Arg { return Arg{key, value} }

// Real returns a floating-point argument. NaN and infinity, which JSON lacks, are left out.
func Real(key string, value float64) Arg {
	if math.IsNaN(value) || math.IsInf(value, 0) {
		return Arg{key, nil}
	}
	return Arg{key, value}
}

// Track is a line of the timeline: a thread, in the format. Numbers are positive. In places
// Perfetto identifies a thread by its number alone, so no two tracks of a trace may share one,
// and none may be the number of another track's process.
type Track struct{ PID, TID int }

// Writer writes one trace, event by event, and buffers at most one of them. The same calls give
// the same bytes. The first error is kept and returned by Close.
type Writer struct {
	out   *bufio.Writer
	line  []byte
	any   bool
	err   error
	ended bool
}

// NewWriter begins a trace. Times of its events count from origin, whose wall time is in
// otherData together with other.
func NewWriter(w io.Writer, origin time.Time, other ...Arg) *Writer {
	t := &Writer{out: bufio.NewWriter(w)}
	t.line = append(t.line, `{"displayTimeUnit":"ms","otherData":{`...)
	t.line = appendArgs(t.line, append([]Arg{
		Text("origin", origin.UTC().Format(time.RFC3339Nano)),
		Text("origin_unix_nanoseconds", strconv.FormatInt(origin.UnixNano(), 10)),
	}, other...))
	t.line = append(t.line, `},"traceEvents":[`...)
	t.flush()
	return t
}

// Process names a group of tracks and counters. Groups are sorted by order, the lowest on top
// (ignored by Perfetto before 2024).
func (t *Writer) Process(pid int, name string, order int) {
	t.meta(Track{PID: pid}, "process_name", Text("name", name))
	t.meta(Track{PID: pid}, "process_sort_index", Int("sort_index", int64(order)))
}

// Thread names a track and sets its order in its group.
func (t *Writer) Thread(at Track, name string, order int) {
	t.meta(at, "thread_name", Text("name", name))
	t.meta(at, "thread_sort_index", Int("sort_index", int64(order)))
}

func (t *Writer) meta(at Track, name string, arg Arg) {
	t.begin("M", 0)
	t.end(at, "", name, "", []Arg{arg})
}

// Span writes an interval on a track. Neither its start nor its length may be negative.
func (t *Writer) Span(on Track, category, name string, at, took time.Duration, args ...Arg) {
	if took < 0 {
		t.fail(fmt.Errorf("trace: span %q lasts %s", name, took))
		return
	}
	if !t.check(name, at) {
		return
	}
	t.begin("X", at)
	t.line = append(t.line, `,"dur":`...)
	t.line = appendMicros(t.line, took)
	t.end(on, category, name, "", args)
}

// Instant writes a moment on a track.
func (t *Writer) Instant(on Track, category, name string, at time.Duration, args ...Arg) {
	if !t.check(name, at) {
		return
	}
	t.begin("i", at)
	t.end(on, category, name, "t", args)
}

// Counter writes a reading that holds until the next one with its name in the group. NaN and
// infinity are left out, which keeps the previous reading: a caller must show a gap by other
// means.
func (t *Writer) Counter(pid int, name string, at time.Duration, key string, value float64) {
	series := Real(key, value)
	if series.value == nil || !t.check(name, at) {
		return
	}
	t.begin("C", at)
	t.end(Track{PID: pid}, "", name, "", []Arg{series})
}

// Close ends the trace and returns the first error. It does not close the underlying writer.
func (t *Writer) Close() error {
	if !t.ended {
		t.ended = true
		t.line = append(t.line, "\n]}\n"...)
		t.flush()
		t.fail(t.out.Flush())
	}
	return t.err
}

func (t *Writer) check(name string, at time.Duration) bool {
	if at < 0 {
		t.fail(fmt.Errorf("trace: %q lies %s before the origin", name, -at))
	}
	return at >= 0
}

func (t *Writer) fail(err error) {
	if t.err == nil {
		t.err = err
	}
}

func (t *Writer) begin(phase string, at time.Duration) {
	if t.any {
		t.line = append(t.line, ',')
	}
	t.any = true
	t.line = append(t.line, "\n{\"ph\":\""...)
	t.line = append(t.line, phase...)
	t.line = append(t.line, `","ts":`...)
	t.line = appendMicros(t.line, at)
}

func (t *Writer) end(on Track, category, name, scope string, args []Arg) {
	t.line = append(t.line, `,"pid":`...)
	t.line = strconv.AppendInt(t.line, int64(on.PID), 10)
	if on.TID != 0 {
		t.line = append(t.line, `,"tid":`...)
		t.line = strconv.AppendInt(t.line, int64(on.TID), 10)
	}
	if category != "" {
		t.line = append(t.line, `,"cat":`...)
		t.line = appendJSON(t.line, category)
	}
	t.line = append(t.line, `,"name":`...)
	t.line = appendJSON(t.line, name)
	if scope != "" {
		t.line = append(t.line, `,"s":`...)
		t.line = appendJSON(t.line, scope)
	}
	t.line = append(t.line, `,"args":{`...)
	t.line = appendArgs(t.line, args)
	t.line = append(t.line, "}}"...)
	t.flush()
}

func (t *Writer) flush() {
	if t.err == nil {
		_, err := t.out.Write(t.line)
		t.fail(err)
	}
	t.line = t.line[:0]
}

func appendArgs(b []byte, args []Arg) []byte {
	first := true
	for _, a := range args {
		if a.value == nil {
			continue
		}
		if !first {
			b = append(b, ',')
		}
		first = false
		b = appendJSON(append(appendJSON(b, a.key), ':'), a.value)
	}
	return b
}

// appendJSON appends a text or a number, which can always be encoded. Invalid UTF-8 becomes U+FFFD.
func appendJSON(b []byte, v any) []byte {
	text, _ := json.Marshal(v)
	return append(b, text...)
}

// appendMicros appends a time in microseconds, to the nanosecond. Readers multiply by a
// thousand in floating point and truncate, which turns 1.001 into 1000 or 1001: a fourth digit,
// half a nanosecond, avoids that, so that adjacent spans are not read as overlapping.
func appendMicros(b []byte, d time.Duration) []byte {
	b = strconv.AppendInt(b, int64(d/time.Microsecond), 10)
	n := int(d % time.Microsecond)
	if n == 0 {
		return b
	}
	return append(b, '.', byte('0'+n/100), byte('0'+n/10%10), byte('0'+n%10), '5')
}
