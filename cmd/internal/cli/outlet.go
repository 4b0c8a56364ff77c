package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// Parameters of an outlet.
const (
	// stallAfter is how long a write waits for the reader.
	stallAfter = 100 * time.Millisecond
	// drainWithin is how long the end of a run waits for the reader after a signal.
	drainWithin = 5 * time.Second
	// maxUnread is how many bytes wait for a reader that has read nothing for unreadFor. One that
	// is slow, or a document that is larger, has no limit.
	maxUnread = 64 << 20
	unreadFor = 10 * time.Second
	// drainChunk is the most that is written at once, so that progress of a slow reader shows.
	drainChunk = 64 << 10
)

// errUnread is the error of output that no one reads.
var errUnread = fmt.Errorf("%d MiB wait for a reader that does not read", maxUnread>>20)

// Outlet writes to stdout or stderr, and never waits long for its reader: a pipe that no one reads or
// a terminal that was stopped with Ctrl-S must not hold up a restart of a server, its revert or the
// end of a run. Output that the reader does not take is kept in memory. It is safe for concurrent use.
type Outlet struct {
	to   io.Writer
	most int // maxUnread except in tests

	mu      sync.Mutex
	queue   []byte
	writing int           // bytes that left the queue and may not be written yet
	idle    chan struct{} // closed when all is written or a write failed; nil while nothing waits
	stalled bool
	since   time.Time // when the reader last took something, or something began to wait
	err     error     // of the first write that failed
	told    bool      // a call of Write has returned err
}

// NewOutlet returns an outlet to a file.
func NewOutlet(to io.Writer) *Outlet { return &Outlet{to: to, most: maxUnread} }

// Write returns when p is written, or after a moment if the reader stalls. Its error may be that of an
// earlier write.
func (o *Outlet) Write(p []byte) (int, error) {
	idle, err := o.enqueue(p)
	if err != nil {
		return 0, err
	}
	if idle == nil {
		return len(p), nil
	}
	limit := time.NewTimer(stallAfter)
	defer limit.Stop()
	late := false
	select {
	case <-idle:
	case <-limit.C:
		late = true
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.stalled = late && o.idle != nil
	if o.err != nil {
		o.told = true
		return 0, o.err
	}
	return len(p), nil
}

// enqueue adds p to what waits. It returns a channel to wait for, nil while the reader stalls.
func (o *Outlet) enqueue(p []byte) (idle <-chan struct{}, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err == nil && o.idle != nil && len(o.queue)+o.writing+len(p) > o.most && time.Since(o.since) > unreadFor {
		o.err = errUnread // nothing is left out in the middle
	}
	if o.err != nil {
		o.told = true
		return nil, o.err
	}
	o.queue = append(o.queue, p...)
	if o.idle == nil {
		o.idle, o.since = make(chan struct{}), time.Now()
		go o.drain()
	}
	if o.stalled {
		return nil, nil
	}
	return o.idle, nil
}

// drain writes until nothing waits or a write fails.
func (o *Outlet) drain() {
	for {
		chunk := o.next()
		if chunk == nil {
			return
		}
		_, err := o.to.Write(chunk)
		o.mu.Lock()
		if o.writing, o.since = 0, time.Now(); err != nil {
			o.err, o.queue = err, nil
		}
		o.mu.Unlock()
	}
}

// next returns the next bytes to write, nil after the last.
func (o *Outlet) next() []byte {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.queue) == 0 {
		close(o.idle)
		o.idle, o.queue, o.stalled = nil, nil, false
		return nil
	}
	chunk := o.queue[:min(len(o.queue), drainChunk)]
	o.queue, o.writing = o.queue[len(chunk):], len(chunk)
	return chunk
}

// Drain waits at the end of a run until everything is written. It waits for a reader as long as that
// takes, as other programs do, but after a signal only some seconds. waits, unless nil, is called
// once if the reader stalls, with what is left. The error says what was not written, and why, unless
// a call of Write has returned it.
func (o *Outlet) Drain(ctx context.Context, waits func(left int)) error {
	news := time.NewTimer(drainWithin)
	defer news.Stop()
	var limit <-chan time.Time
	signalled := ctx.Done()
	for {
		o.mu.Lock()
		idle, left, err := o.idle, len(o.queue)+o.writing, o.err
		if o.told {
			err = nil
		}
		o.mu.Unlock()
		if idle == nil {
			return err
		}
		select {
		case <-idle:
		case <-signalled:
			signalled, limit = nil, time.After(drainWithin)
		case <-news.C:
			if waits != nil && signalled != nil {
				waits(left)
			}
		case <-limit:
			return fmt.Errorf("the last %d bytes of the output were not read within %v, and are lost", left, drainWithin)
		}
	}
}

// File returns the file that w writes to. ok is false if it writes to none.
func File(w io.Writer) (f *os.File, ok bool) {
	if o, is := w.(*Outlet); is {
		w = o.to
	}
	f, ok = w.(*os.File)
	return f, ok
}
