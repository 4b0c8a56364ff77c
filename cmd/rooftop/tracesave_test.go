package main

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/engine/optrace"
)

// BenchmarkSaving is what saving costs where events are taken in; what packs them is not
// waited for.
func BenchmarkSaving(b *testing.B) {
	tables := newDecoder(time.Millisecond, 1).tables
	s := newSaving(filepath.Join(b.TempDir(), "run"+recordingSuffix))
	s.most = 1 << 62
	r := &optrace.Recording{Tables: &tables}
	events := make([]optrace.Event, 1000)
	at := time.Hour
	for b.Loop() {
		for i := range events {
			at += 5 * time.Microsecond
			events[i] = optrace.Event{At: at, Kind: optrace.OpBegin, PID: 4242, TID: 4243, CPU: 1, Addr: 0x7f0000001000 + uint64(i)<<8, Ref: 1, Lanes: 2}
		}
		s.take(r, events)
		s.flush(func() *optrace.Recording { return r })
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(events)), "ns/event")
	if err := s.close(r); err != nil {
		b.Error(err)
	}
}

// Pipes and devices get a recording when it is whole.
func TestWhatIsSavedWhileItIsMade(t *testing.T) {
	dir := t.TempDir()
	for path, want := range map[string]bool{
		"": false, "/dev/stdout": false, "/proc/self/fd/1": false, dir: false,
		filepath.Join(dir, "new"): true, filepath.Join(dir, "new"+recordingSuffix): true,
	} {
		s := newSaving(path)
		if (s != nil) != want || s != nil && s.partial != filepath.Join(dir, "new.partial"+recordingSuffix) {
			t.Errorf("%q: %+v", path, s)
		}
	}
}
