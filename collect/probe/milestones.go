package probe

import (
	"context"
	"io"
	"net/http/httptrace"
	"sync/atomic"
	"time"

	"github.com/rooftop-dev/rooftop/engine/capture"
)

// stamped is a body that notes when bytes came from it, before anything else is
// done with them.
type stamped struct {
	in  io.Reader
	now func() time.Duration
	at  time.Duration // of the last read that gave any
	// head is the begin of the answer, up to maxErrorBytes: what to tell of one that
	// is no stream. It is kept while keep holds.
	head []byte
	keep bool
}

// Read reads and notes the time.
func (s *stamped) Read(p []byte) (int, error) {
	n, err := s.in.Read(p)
	if n > 0 {
		s.at = s.now()
		if s.keep {
			s.head = append(s.head, p[:min(n, maxErrorBytes-len(s.head))]...)
		}
	}
	return n, err
}

// milestones are what net/http tells of one request while it is under way. They come
// from several goroutines, some after the request has been given up.
type milestones struct {
	asked, got, written, answered atomic.Int64 // offsets in nanoseconds
	reused                        atomic.Bool
}

// traced returns a context whose request fills m, and that limits how long a
// connection may take.
func (m *milestones) traced(ctx context.Context, now func() time.Duration, p *patience) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn: func(string) {
			m.asked.Store(int64(now()))
			p.connecting()
		},
		GotConn: func(info httptrace.GotConnInfo) {
			m.got.Store(int64(now()))
			m.reused.Store(info.Reused)
			p.connected()
		},
		WroteRequest:         func(httptrace.WroteRequestInfo) { m.written.Store(int64(now())) },
		GotFirstResponseByte: func() { m.answered.Store(int64(now())) },
	})
}

// into puts what came so far into the record.
func (m *milestones) into(r *capture.Request) {
	if got := m.got.Load(); got > 0 {
		if r.Reused = m.reused.Load(); !r.Reused {
			r.Connect = time.Duration(got - m.asked.Load())
		}
	}
	r.Written, r.Answered = time.Duration(m.written.Load()), time.Duration(m.answered.Load())
}
