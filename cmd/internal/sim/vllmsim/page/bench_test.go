package page_test

import (
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/core"
	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/page"
	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/settings"
)

// BenchmarkAppend writes a page of a server that has worked.
func BenchmarkAppend(b *testing.B) {
	for name, engines := range map[string]int{"1 engine": 1, "8 engines": 8} {
		b.Run(name, func(b *testing.B) {
			book := page.NewBook(tiny(func(s *settings.Settings) { s.DataParallel = engines }), page.Cache{NumBlocks: 1024}, start)
			for e := range engines {
				w := newWorld(uint64(e), 937_531*time.Nanosecond)
				for range 500 {
					book.Observe(e, w.next())
				}
			}
			buf := book.Append(nil, time.Second)
			b.SetBytes(int64(len(buf)))
			b.ReportAllocs()
			for b.Loop() {
				buf = book.Append(buf[:0], time.Second)
			}
		})
	}
}

// BenchmarkObserve counts a step of 256 outputs: all of them with the same gap, as
// most steps are, and all with their own, of which every eighth finishes.
func BenchmarkObserve(b *testing.B) {
	for _, mixed := range []bool{false, true} {
		name := "equal gaps"
		if mixed {
			name = "own gaps, finishes"
		}
		b.Run(name, func(b *testing.B) {
			book := page.NewBook(tiny(nil), page.Cache{}, start)
			r := &core.Report{Ended: time.Minute, State: core.State{Running: 256}}
			for i := range 256 {
				o := core.Output{HasToken: true, Gap: 25 * time.Millisecond}
				o.History = &core.History{
					Arrival: time.Second, Queued: time.Second, Scheduled: 2 * time.Second, FirstToken: 3 * time.Second,
					LastToken: time.Minute, PromptTokens: 500 + i, OutputTokens: 300 + i, MaxTokens: 1024,
				}
				if mixed {
					o.Gap = time.Duration(i) * 1_234_567
					if i%8 == 0 {
						o.Finish = core.Length
					}
				}
				r.Outputs = append(r.Outputs, o)
			}
			b.ReportAllocs()
			for b.Loop() {
				book.Observe(0, r)
			}
		})
	}
}
