package probe

import (
	"context"
	"io"
	"net/http/httptrace"
	"sync/atomic"
	"time"

	"github.com/rooftop-dev/rooftop/engine/capture"
)

// timedReader is a response body that records when bytes arrived, before they are processed.
type timedReader struct {
	in  io.Reader
	now func() time.Duration
	at  time.Duration // of the last read that returned bytes
	// head is the beginning of the response, up to maxErrorBytes, recorded while keep is true. It
	// describes a response that is not a stream.
	head []byte
	keep bool
}

// Read reads from the body and records the time.
func (r *timedReader) Read(p []byte) (int, error) {
	n, err := r.in.Read(p)
	if n > 0 {
		r.at = r.now()
		if r.keep {
			r.head = append(r.head, p[:min(n, maxErrorBytes-len(r.head))]...)
		}
	}
	return n, err
}

// connection records what net/http reports about one request. Reports come from several goroutines,
// some of them after the request was abandoned.
type connection struct {
	wanted, got, written, answered atomic.Int64 // offsets in nanoseconds
	reused                         atomic.Bool
}

// traced returns a context whose request fills n, and that limits how long connecting may take.
func (n *connection) traced(ctx context.Context, now func() time.Duration, t *timeouts) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn: func(string) {
			n.wanted.Store(int64(now()))
			t.connecting()
		},
		GotConn: func(info httptrace.GotConnInfo) {
			n.got.Store(int64(now()))
			n.reused.Store(info.Reused)
			t.connected()
		},
		WroteRequest:         func(httptrace.WroteRequestInfo) { n.written.Store(int64(now())) },
		GotFirstResponseByte: func() { n.answered.Store(int64(now())) },
	})
}

// fill copies what is known so far into the record.
func (n *connection) fill(r *capture.Request) {
	if got := n.got.Load(); got > 0 {
		if r.Reused = n.reused.Load(); !r.Reused {
			r.Connect = time.Duration(got - n.wanted.Load())
		}
	}
	r.Written, r.Answered = time.Duration(n.written.Load()), time.Duration(n.answered.Load())
}
