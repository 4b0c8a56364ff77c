package proberun

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/cli"
	"github.com/rooftop-dev/rooftop/engine/capture"
)

// requestWatch shows the progress of requests: completed ones, chunks, and elapsed time. It only
// counts chunks, so as not to disturb their times.
type requestWatch struct {
	show  *cli.Progress
	total int
	ended atomic.Int64
	came  atomic.Int64
}

func newRequestWatch(show *cli.Progress, total int) *requestWatch {
	return &requestWatch{show: show, total: total}
}

// chunk and done count events from any goroutine.
func (r *requestWatch) chunk(time.Duration)   { r.came.Add(1) }
func (r *requestWatch) done(*capture.Request) { r.ended.Add(1) }

// start shows the line twice a second until stop is called. Without a terminal it does nothing.
func (r *requestWatch) start() (stop func()) {
	if !r.show.Shown() {
		return func() {}
	}
	done := make(chan struct{})
	var told sync.WaitGroup
	told.Go(func() {
		began := time.Now()
		beat := time.NewTicker(500 * time.Millisecond)
		defer beat.Stop()
		for {
			r.show.Show(r.text(time.Since(began)))
			select {
			case <-done:
				return
			case <-beat.C:
			}
		}
	})
	return func() {
		close(done)
		told.Wait()
	}
}

func (r *requestWatch) text(elapsed time.Duration) string {
	return fmt.Sprintf("%.0f s  %d of %d requests  %d chunks", elapsed.Seconds(), r.ended.Load(), r.total, r.came.Load())
}
