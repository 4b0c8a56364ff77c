package tracing

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"
)

func TestWriter(t *testing.T) {
	origin := time.Date(2026, 3, 4, 5, 6, 7, 8, time.FixedZone("", 3600))
	const head = `{"displayTimeUnit":"ms","otherData":{"origin":"2026-03-04T04:06:07.000000008Z","origin_unix_nanoseconds":"1772597167000000008"},"traceEvents":[`
	for _, c := range []struct {
		name  string
		write func(*Writer)
		want  string
	}{
		{"nothing", func(*Writer) {}, ``},
		{"process", func(w *Writer) { w.Process(1, "GPU 0", 3) },
			"\n" + `{"ph":"M","ts":0,"pid":1,"name":"process_name","args":{"name":"GPU 0"}},` +
				"\n" + `{"ph":"M","ts":0,"pid":1,"name":"process_sort_index","args":{"sort_index":3}}`},
		{"thread", func(w *Writer) { w.Thread(Track{1, 2}, "client", 0) },
			"\n" + `{"ph":"M","ts":0,"pid":1,"tid":2,"name":"thread_name","args":{"name":"client"}},` +
				"\n" + `{"ph":"M","ts":0,"pid":1,"tid":2,"name":"thread_sort_index","args":{"sort_index":0}}`},
		{"span to the nanosecond, and one in whole microseconds", func(w *Writer) {
			w.Span(Track{1, 2}, "c", "a", 1234567, 2000)
			w.Span(Track{1, 2}, "c", "b", 2*time.Second, 7, Int("n", -1), Real("r", 0.25), Text("t", "x"))
		}, "\n" + `{"ph":"X","ts":1234.5675,"dur":2,"pid":1,"tid":2,"cat":"c","name":"a","args":{}},` +
			"\n" + `{"ph":"X","ts":2000000,"dur":0.0075,"pid":1,"tid":2,"cat":"c","name":"b","args":{"n":-1,"r":0.25,"t":"x"}}`},
		{"instant", func(w *Writer) { w.Instant(Track{1, 2}, "c", "a", 0) },
			"\n" + `{"ph":"i","ts":0,"pid":1,"tid":2,"cat":"c","name":"a","s":"t","args":{}}`},
		{"counter", func(w *Writer) { w.Counter(1, "power", time.Millisecond, "W", 1e21) },
			"\n" + `{"ph":"C","ts":1000,"pid":1,"name":"power","args":{"W":1e+21}}`},
		{"not a number", func(w *Writer) {
			w.Counter(1, "power", 0, "W", math.NaN())
			w.Counter(1, "power", 0, "W", math.Inf(-1))
			w.Instant(Track{1, 2}, "", "a", 0, Real("x", math.NaN()), Int("y", 1))
		}, "\n" + `{"ph":"i","ts":0,"pid":1,"tid":2,"name":"a","s":"t","args":{"y":1}}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out bytes.Buffer
			w := NewWriter(&out, origin)
			c.write(w)
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			if want := head + c.want + "\n]}\n"; out.String() != want {
				t.Errorf("got\n%s\nwant\n%s", out.String(), want)
			}
			if !json.Valid(out.Bytes()) {
				t.Error("this is no JSON")
			}
		})
	}
}

func TestWriterSaysWhatItCannotWrite(t *testing.T) {
	for _, c := range []struct {
		name  string
		write func(*Writer)
		want  string
	}{
		{"a span that ends before it begins", func(w *Writer) { w.Span(Track{1, 2}, "", "a", 5, -1) }, `span "a" lasts -1ns`},
		{"a span before the origin", func(w *Writer) { w.Span(Track{1, 2}, "", "a", -5, 1) }, `"a" lies 5ns before the origin`},
		{"an instant before the origin", func(w *Writer) { w.Instant(Track{1, 2}, "", "b", -5) }, `"b" lies 5ns before the origin`},
		{"a reading before the origin", func(w *Writer) { w.Counter(1, "c", -5, "W", 1) }, `"c" lies 5ns before the origin`},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out bytes.Buffer
			w := NewWriter(&out, time.Time{})
			c.write(w)
			if err := w.Close(); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// full is a writer with limited room.
type full struct{ room int }

var errFull = errors.New("no room")

func (f *full) Write(b []byte) (int, error) {
	if len(b) > f.room {
		return f.room, errFull
	}
	f.room -= len(b)
	return len(b), nil
}

func TestWriterKeepsTheFirstError(t *testing.T) {
	for _, room := range []int{0, 10_000} {
		w := NewWriter(&full{room}, time.Time{})
		for range 1000 {
			w.Instant(Track{1, 2}, "", strings.Repeat("x", 100), 0)
		}
		if err := w.Close(); !errors.Is(err, errFull) {
			t.Errorf("room for %d bytes: got %v", room, err)
		}
	}
}

// Readers parse the time as a floating-point number, multiply it by a thousand and truncate.
func TestTimesSurviveTheReadersArithmetic(t *testing.T) {
	for n := range int64(300_000) {
		ns := n * 7919 * 977 % (3600 * int64(time.Second))
		var us float64
		if err := json.Unmarshal(appendMicros(nil, time.Duration(ns)), &us); err != nil {
			t.Fatal(err)
		}
		if got := int64(us * 1000); got != ns {
			t.Fatalf("%d ns are read as %d", ns, got)
		}
	}
}
