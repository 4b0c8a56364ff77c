package mcpserver

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync"
	"time"
)

// Times in which a client must read an answer.
const (
	readWithin = time.Minute
	lastWithin = 2 * time.Second // after the session has ended
)

// errUnread is the cause of a session's end when its client does not read answers.
var errUnread = errors.New("the client reads no answers")

// unread ends the session if its client does not read answers: a call that waits for that could not be ended, nor
// the change that it made be reverted.
type unread struct {
	io.WriteCloser
	life context.Context
	end  context.CancelCauseFunc

	mu   sync.Mutex
	over bool // an answer was not read
}

// Write writes an answer whole.
func (u *unread) Write(p []byte) (int, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.over {
		return 0, errUnread
	}
	done := make(chan error, 1)
	text := bytes.Clone(p) // the write may outlast this call
	go func() {
		_, err := u.WriteCloser.Write(text)
		done <- err
	}()
	limit := time.NewTimer(readWithin)
	defer limit.Stop()
	select {
	case err := <-done:
		return len(p), err
	case <-u.life.Done():
		limit.Reset(lastWithin)
	case <-limit.C:
		limit.Reset(0)
	}
	select {
	case err := <-done:
		return len(p), err
	case <-limit.C:
		u.over = true
		u.end(errUnread)
		return 0, errUnread
	}
}
