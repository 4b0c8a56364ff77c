package session

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/loop"
)

// ErrStarting is wrapped by the error of an attach to a server that is starting.
var ErrStarting = errors.New("the server is starting")

// Server is a server that answered, with everything learned about it before measuring, and the
// functions to read and change it.
type Server struct {
	Header Header
	Pages  Pages
	// Health reads whether the server's engine lives; nil if that cannot be known. It runs
	// between pages, about once a window.
	Health func(context.Context) engine.Health
	GPUs   GPUs // nil if none is readable
	// Clock is the monotonic clock whose times GPU readings carry.
	Clock func() time.Duration
	// Identity changes when the server is restarted; "" if its process is not readable.
	Identity string
	// Processes reads the server's processes; nil if they cannot be read. It may take some
	// milliseconds and is called about every two seconds.
	Processes func() (loop.Observed, error)
	// Around returns what happened around the server since its last call, in one sentence, and "" if nothing did;
	// nil if that cannot be known. It is called every ten seconds.
	Around func(context.Context) string
	// Apply restarts the server with changes and returns when it is ready; nil if rooftop cannot
	// restart it, for the reason in CannotApply. Its ctx ends when the change takes too long, and
	// unless it is a revert also with a quit; Apply then puts the server back. Err of the result is
	// why the change failed, "" if it succeeded.
	Apply       func(ctx context.Context, a loop.Apply) loop.Applied
	CannotApply string
	// Canary starts one more copy of the server with changes, beside others under the same traffic; nil if
	// rooftop cannot. Its ctx ends when the start takes too long, or when the canary is to end.
	Canary func(ctx context.Context, a loop.StartCanary) (Canary, error)
	// Steps returns the steps that Apply would take, as sentences and commands; nil if rooftop
	// cannot restart the server.
	Steps func(a loop.Apply) []string
	// Closing returns notes about the server's processes at the end of a measurement; may be nil.
	Closing func() []string
	Close   func() // nil if there is nothing to close
}

// LivePlan configures a live session.
type LivePlan struct {
	Loop loop.Plan
	// Attach finds the server, checks that it is one and reads its facts. It is called again
	// after every restart of the server.
	Attach func(ctx context.Context) (*Server, error)
	// Clock is monotonic. The session begins at the value it has at the start, and GPU readings
	// carry its times.
	Clock  func() time.Duration
	Record *Recorder // nil records nothing
	// Tell is called with every event, on the session's goroutine; may be nil.
	Tell func(loop.Event)
	// Export writes a report of a snapshot and returns the paths of its files; nil if reports
	// cannot be written. It is called on a separate goroutine.
	Export func(*loop.Snapshot) (files []string, err error)
	// ApplyWithin bounds one change of the server, from stopping it to the first answer after
	// the restart; 0 means 15 minutes.
	ApplyWithin time.Duration
	// Grace is how long a session that ends waits for a change in progress; 0 means one minute.
	Grace time.Duration
}

// Defaults of a LivePlan, and fixed limits.
const (
	applyWithin  = 15 * time.Minute
	quitGrace    = time.Minute
	attachWithin = 30 * time.Second
	// pageWithin is a little more than the HTTP client's own timeout, whose error is more
	// specific.
	pageWithin = 6 * time.Second
	// endWithin bounds the wait for the session's goroutines to end.
	endWithin = 5 * time.Second
	// maxQueuedCommands bounds the commands that the loop has not handled yet; there is always
	// room for a quit in addition.
	maxQueuedCommands = 8
)

// Live runs the loop on a server: it polls the sources, performs the actions of the loop, and
// publishes a snapshot after each step. The goroutine of Run owns the loop; the other methods may
// be called from any goroutine.
type Live struct {
	plan   LivePlan
	loop   machine
	latest atomic.Pointer[loop.Snapshot]

	mu       sync.Mutex // protects sends on commands and exports, and ended
	commands chan loop.Command
	ended    bool
	exports  chan struct{}
	writing  atomic.Bool // a report was requested and is not written yet
}

// NewLive returns a session that has not started; Run starts it.
func NewLive(p LivePlan) *Live {
	if p.ApplyWithin <= 0 {
		p.ApplyWithin = applyWithin
	}
	if p.Grace <= 0 {
		p.Grace = quitGrace
	}
	return &Live{
		plan: p, loop: loop.New(p.Loop), commands: make(chan loop.Command, maxQueuedCommands+1), exports: make(chan struct{}, 1),
	}
}

// Latest returns the latest snapshot, nil before the first.
func (l *Live) Latest() *loop.Snapshot { return l.latest.Load() }

// Do sends a command and reports whether it was accepted: false if too many commands wait, or if
// the session has ended. A quit is always accepted.
func (l *Live) Do(c loop.Command) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended && c == loop.CommandQuit {
		return true
	}
	if l.ended || c >= loop.NumCommands {
		return false
	}
	if c != loop.CommandQuit && len(l.commands) >= maxQueuedCommands {
		return false
	}
	select {
	case l.commands <- c:
		return true
	default:
		return c == loop.CommandQuit // one is queued already
	}
}

// Export requests a report of the current snapshot; false if one is being written or none can be
// written.
func (l *Live) Export() bool {
	if l.plan.Export == nil || !l.writing.CompareAndSwap(false, true) {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return false
	}
	l.exports <- struct{}{} // never blocks: writing admits one at a time
	return true
}

// Run returns when the loop has finished. When ctx ends, the loop gets a quit. Run waits for
// everything that it started; the error names what did not end in time and what was not completed.
// The last snapshot shows the final state.
func (l *Live) Run(ctx context.Context) (err error) {
	c := newConductor(l)
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("internal error: %v\n%s", v, debug.Stack())
		}
		err = errors.Join(err, c.end())
	}()
	c.run(ctx)
	return nil
}

// close refuses further commands.
func (l *Live) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
}
