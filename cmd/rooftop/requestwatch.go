package main

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rooftop-dev/rooftop/engine/capture"
)

// requestWatch is what a person who waits sees of requests: how many are done, how
// many chunks came, for how long. Chunks are counted and nothing more, so that their
// times are not disturbed.
type requestWatch struct {
	show  *progress
	of    int
	ended atomic.Int64
	came  atomic.Int64
}

func newRequestWatch(show *progress, of int) *requestWatch { return &requestWatch{show: show, of: of} }

// chunk and done count what arrives, from any goroutine.
func (r *requestWatch) chunk(time.Duration)   { r.came.Add(1) }
func (r *requestWatch) done(*capture.Request) { r.ended.Add(1) }

// start shows the line twice a second until stop is called; on no terminal it does
// nothing.
func (r *requestWatch) start() (stop func()) {
	if !r.show.on {
		return func() {}
	}
	done := make(chan struct{})
	var told sync.WaitGroup
	told.Go(func() {
		began := time.Now()
		beat := time.NewTicker(500 * time.Millisecond)
		defer beat.Stop()
		for {
			r.show.say(r.text(time.Since(began)))
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
	return fmt.Sprintf("%.0f s  %d of %d requests  %d chunks", elapsed.Seconds(), r.ended.Load(), r.of, r.came.Load())
}
