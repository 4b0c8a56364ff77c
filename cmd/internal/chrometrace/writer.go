// Package chrometrace writes traces in the Trace Event Format, the JSON that
// ui.perfetto.dev and chrome://tracing open, and lays a capture out in it.
//
// The format: the "Trace Event Format" document of the Chromium project. What the
// readers make of it: Perfetto's src/trace_processor/importers/json. Where these
// leave a choice, the writer takes the one that every version of both reads:
//
//   - displayTimeUnit and otherData stand before traceEvents: Perfetto stops at a
//     key it does not know, and early versions want otherData in their first piece
//     of the file. The unit is "ms": early versions took "ns" for the unit of ts.
//   - ts and dur are the first keys of an event: early versions look for ts by a
//     scanner that gives up at an escape like \u0007.
//   - No ts is negative: Perfetto drops such events.
//   - Spans of one track must be nested or disjoint: Perfetto drops others. That is
//     the caller's part; the writer keeps rounding from making it untrue.
package chrometrace

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"strconv"
	"time"
	"unicode/utf8"
)

// Arg is one named value beside an event.
type Arg struct {
	key  string
	kind argKind
	text string
	real float64
	n    int64
}

type argKind uint8

const (
	argText argKind = iota
	argInt
	argReal
)

// Text is an argument of text.
func Text(key, value string) Arg { return Arg{key: key, kind: argText, text: value} }

// Int is an argument of a whole number.
func Int(key string, value int64) Arg { return Arg{key: key, kind: argInt, n: value} }

// Real is an argument of any number. JSON has no NaN and no infinity: such a value
// is left out.
func Real(key string, value float64) Arg { return Arg{key: key, kind: argReal, real: value} }

// written says that JSON has a form for the value.
func (a Arg) written() bool {
	return a.kind != argReal || !math.IsNaN(a.real) && !math.IsInf(a.real, 0)
}

// Track is a line of the picture: a thread, in the words of the format. Numbers are
// positive. Perfetto knows a thread by its number alone in places, so no two tracks
// of a trace may share one, and none may be the number of another's process.
type Track struct{ PID, TID int }

// Writer writes one trace, event by event; it holds no more than one of them. The
// same calls give the same bytes. The first error stays and is what Close returns.
type Writer struct {
	out   *bufio.Writer
	line  []byte
	any   bool
	err   error
	ended bool
}

// NewWriter begins a trace. Moments of its events count from origin, whose wall
// time stands in otherData; other is what else to say there.
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

// Process names a group of tracks and counters. Groups are drawn by order, the
// lowest on top (Perfetto before 2024 ignores that).
func (t *Writer) Process(pid int, name string, order int) {
	t.meta(Track{PID: pid}, "process_name", Text("name", name))
	t.meta(Track{PID: pid}, "process_sort_index", Int("sort_index", int64(order)))
}

// Thread names a track and says where in its group it is drawn.
func (t *Writer) Thread(at Track, name string, order int) {
	t.meta(at, "thread_name", Text("name", name))
	t.meta(at, "thread_sort_index", Int("sort_index", int64(order)))
}

func (t *Writer) meta(at Track, name string, arg Arg) {
	t.begin("M", 0)
	t.end(at, "", name, "", []Arg{arg})
}

// Span is something that lasted. Neither its start nor its length may be negative.
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

// Instant is something that happened on a track.
func (t *Writer) Instant(on Track, category, name string, at time.Duration, args ...Arg) {
	if !t.check(name, at) {
		return
	}
	t.begin("i", at)
	t.end(on, category, name, "t", args)
}

// Counter is a reading that holds until the next of its name in the group. Readings
// that are no number are left out: they leave the one before standing, so a caller
// with a gap to show says so by other means.
func (t *Writer) Counter(pid int, name string, at time.Duration, key string, value float64) {
	series := Real(key, value)
	if !series.written() || !t.check(name, at) {
		return
	}
	t.begin("C", at)
	t.end(Track{PID: pid}, "", name, "", []Arg{series})
}

// Close ends the trace and returns the first error there was. It does not close
// what is written to.
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
		t.line = appendText(t.line, category)
	}
	t.line = append(t.line, `,"name":`...)
	t.line = appendText(t.line, name)
	if scope != "" {
		t.line = append(t.line, `,"s":`...)
		t.line = appendText(t.line, scope)
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
		if !a.written() {
			continue
		}
		if !first {
			b = append(b, ',')
		}
		first = false
		b = appendText(b, a.key)
		b = append(b, ':')
		switch a.kind {
		case argText:
			b = appendText(b, a.text)
		case argInt:
			b = strconv.AppendInt(b, a.n, 10)
		case argReal:
			b = strconv.AppendFloat(b, a.real, 'g', -1, 64)
		}
	}
	return b
}

// appendMicros writes a time in microseconds, to the nanosecond. Readers multiply
// by a thousand in floating point and cut off what is behind the point, which makes
// 1.001 a 1000 or a 1001: a fourth digit, half a nanosecond, keeps the cut away from
// the edge, so that spans that touch are not read as spans that overlap.
func appendMicros(b []byte, d time.Duration) []byte {
	b = strconv.AppendInt(b, int64(d/time.Microsecond), 10)
	n := int(d % time.Microsecond)
	if n == 0 {
		return b
	}
	return append(b, '.', byte('0'+n/100), byte('0'+n/10%10), byte('0'+n%10), '5')
}

// appendText writes a JSON string. Bytes that are no UTF-8 become U+FFFD; only what
// must be escaped is.
func appendText(b []byte, s string) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b = append(b, '\\', byte(r))
		case r == '\n':
			b = append(b, '\\', 'n')
		case r == '\r':
			b = append(b, '\\', 'r')
		case r == '\t':
			b = append(b, '\\', 't')
		case r < ' ' || r == 0x7f:
			b = append(b, '\\', 'u', '0', '0', hex[r>>4], hex[r&15])
		default:
			b = utf8.AppendRune(b, r)
		}
	}
	return append(b, '"')
}
