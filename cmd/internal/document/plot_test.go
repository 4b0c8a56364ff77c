package document_test

import (
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/engine/loop"
)

// hour is a run of an hour with everything that a loop records.
func hour() *loop.Snapshot {
	s := tuned()
	s.Points = nil
	for i := range 1800 {
		s.Points = append(s.Points, point(i))
	}
	for i := range 2000 {
		s.Journal = append(s.Journal, loop.Entry{Seq: i, T: time.Duration(i) * time.Second, Text: "a line of the journal that is about as long as they are"})
	}
	s.Now = time.Hour
	return s
}

func BenchmarkRunHTML(b *testing.B) {
	s := hour()
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		n = len(written(b, WriteRunHTML, s))
	}
	b.ReportMetric(float64(n), "bytes/file")
}

func BenchmarkRunJSON(b *testing.B) {
	s := hour()
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		n = len(written(b, WriteRunJSON, s))
	}
	b.ReportMetric(float64(n), "bytes/file")
}
