package probe

import (
	"context"
	"time"
)

// Timeouts are how long an examined request is waited for. Zero is for ever,
// except for Connect.
type Timeouts struct {
	Connect    time.Duration // for a connection, with TLS; 0 is 5 s
	FirstToken time.Duration // from the send to the first chunk
	Idle       time.Duration // from one chunk to the next, and to the end of the stream
	Whole      time.Duration // from the send to the end
}

// waited names what was waited for in vain.
type waited uint8

const (
	forConnection waited = iota
	forFirst
	forNext
	forEnd
)

// expiry is the cause of a request that took too long.
type expiry struct {
	what  waited
	after time.Duration
}

// Error says what expired; the request's record says it with its numbers.
func (e *expiry) Error() string { return "not answered within " + e.after.String() }

// patience ends a request that takes too long.
type patience struct {
	limits  Timeouts
	cancel  context.CancelCauseFunc
	connect *time.Timer
	token   *time.Timer // for the first chunk or the next
	whole   *time.Timer
}

// begin is the moment of sending.
func (p *patience) begin() {
	p.token = p.after(p.limits.FirstToken, forFirst)
	p.whole = p.after(p.limits.Whole, forEnd)
}

// after begins to wait; nil where that is for ever.
func (p *patience) after(limit time.Duration, what waited) *time.Timer {
	if limit <= 0 {
		return nil
	}
	return time.AfterFunc(limit, func() { p.cancel(&expiry{what: what, after: limit}) })
}

// connecting and connected enclose the making of a connection.
func (p *patience) connecting() {
	stop(p.connect)
	p.connect = p.after(p.limits.Connect, forConnection)
}

func (p *patience) connected() { stop(p.connect) }

// took notes the chunk numbered count, from 1.
func (p *patience) took(count int) {
	switch {
	case count == 1:
		stop(p.token)
		p.token = p.after(p.limits.Idle, forNext)
	case p.token != nil:
		p.token.Reset(p.limits.Idle)
	}
}

// end stops all waiting.
func (p *patience) end() {
	stop(p.connect)
	stop(p.token)
	stop(p.whole)
}

func stop(t *time.Timer) {
	if t != nil {
		t.Stop()
	}
}
