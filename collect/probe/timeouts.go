package probe

import (
	"context"
	"time"
)

// Timeouts limit the phases of a request. Zero is no limit, except for Connect.
type Timeouts struct {
	Connect    time.Duration // to connect, TLS included; 0 is 5 s
	FirstToken time.Duration // from the send to the first chunk
	Idle       time.Duration // from one chunk to the next, and to the end of the stream
	Whole      time.Duration // from the send to the end
}

// timeoutPhase is the phase of a request that took too long.
type timeoutPhase uint8

const (
	connectPhase timeoutPhase = iota
	firstTokenPhase
	idlePhase
	wholePhase
)

// timeoutError reports that a phase took too long.
type timeoutError struct {
	phase timeoutPhase
	after time.Duration
}

// Error names the limit; the request's record has the details.
func (e *timeoutError) Error() string { return "no response within " + e.after.String() }

// Timeout makes the error a net.Error.
func (e *timeoutError) Timeout() bool { return true }

// Temporary makes the error a net.Error.
func (e *timeoutError) Temporary() bool { return true }

// timeouts ends a request when a limit is reached.
type timeouts struct {
	limits  Timeouts
	cancel  context.CancelCauseFunc
	connect *time.Timer
	token   *time.Timer // for the first or next chunk
	whole   *time.Timer
}

// start starts the timers at the moment of sending.
func (t *timeouts) start() {
	t.token = t.timer(t.limits.FirstToken, firstTokenPhase)
	t.whole = t.timer(t.limits.Whole, wholePhase)
}

// timer starts a timer and returns nil if there is no limit.
func (t *timeouts) timer(limit time.Duration, phase timeoutPhase) *time.Timer {
	if limit <= 0 {
		return nil
	}
	return time.AfterFunc(limit, func() { t.cancel(&timeoutError{phase, limit}) })
}

// connecting starts the timer for a new connection, and connected stops it.
func (t *timeouts) connecting() {
	stopTimer(t.connect)
	t.connect = t.timer(t.limits.Connect, connectPhase)
}

func (t *timeouts) connected() { stopTimer(t.connect) }

// chunk restarts the idle timer. count is the number of chunks so far.
func (t *timeouts) chunk(count int) {
	switch {
	case count == 1:
		stopTimer(t.token)
		t.token = t.timer(t.limits.Idle, idlePhase)
	case t.token != nil:
		t.token.Reset(t.limits.Idle)
	}
}

// stop stops all timers.
func (t *timeouts) stop() {
	stopTimer(t.connect)
	stopTimer(t.token)
	stopTimer(t.whole)
}

func stopTimer(t *time.Timer) {
	if t != nil {
		t.Stop()
	}
}
