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
)

// Server is a server that answered, with everything found out about it before
// measuring, and the ways to read it.
type Server struct {
	Header Header
	Pages  Pages
	GPUs   GPUs // nil where none is readable
	// Identity tells this run of the server from the next, "" where its process is
	// not readable.
	Identity string
	// Processes reads the server's processes; nil where there are none to read. It
	// may take some milliseconds and is called about every two seconds.
	Processes func() (list []engine.Process, problems []string, err error)
	// Apply restarts the server with changes and returns when it is ready; nil where
	// rooftop cannot, for the reason in NoHands. Its ctx ends when the change takes
	// too long, not when the session is told to end. The answer's Err says why it
	// could not.
	Apply   func(ctx context.Context, a engine.Apply) engine.Applied
	NoHands string
	// Steps says in words and commands what Apply would do, one step each; nil where
	// there are no hands.
	Steps func(a engine.Apply) []string
	Close func() // nil where there is nothing to close
}

// LivePlan is a live session.
type LivePlan struct {
	Loop engine.LoopPlan
	// Attach finds the server, makes sure that it is one and learns what can be
	// known of it. It is called again after every restart of the server.
	Attach func(ctx context.Context) (*Server, error)
	// Clock is monotonic; the session's time 0 is what it shows at the start. GPU
	// readings are stamped with it.
	Clock  func() time.Duration
	Record *Recorder // nil records nothing
	// Tell is handed every event, from the session's goroutine; nil is silent.
	Tell func(engine.Event)
	// Export writes a report of a snapshot and returns the files; nil where it is
	// not possible. It is called from a goroutine of its own.
	Export func(*engine.Snapshot) (files []string, err error)
	// ApplyWithin bounds one change of the server, from its end to the first
	// answer of the new one; 0 is 15 minutes.
	ApplyWithin time.Duration
	// Grace is how long a session that ends waits for a change that is under way;
	// 0 is a minute. A second CommandQuit cuts it short.
	Grace time.Duration
}

// Bounds where a plan leaves them zero, and those that no plan moves.
const (
	applyWithin  = 15 * time.Minute
	quitGrace    = time.Minute
	attachWithin = 30 * time.Second
	// pageWithin is a little more than the client's own deadline, whose error says
	// more.
	pageWithin = 6 * time.Second
	// endWithin is how long the session's goroutines may take to end.
	endWithin = 5 * time.Second
	// commandsWaiting bounds the commands that are not yet taken; a quit always
	// has a place beside them.
	commandsWaiting = 8
)

// Live runs the loop on a server: it polls the sources, performs what the loop
// asks for, and publishes a snapshot after each step. The goroutine of Run owns
// the loop; the other methods may be called from any.
type Live struct {
	plan   LivePlan
	loop   machine
	latest atomic.Pointer[engine.Snapshot]

	mu       sync.Mutex // of those who send commands
	commands chan engine.Command
	over     bool
	hurry    chan struct{} // a second quit, while the session ends
	exports  chan struct{}
	writing  atomic.Bool // a report was asked for and is not written yet
}

// NewLive returns a session that has not begun.
func NewLive(p LivePlan) *Live {
	if p.ApplyWithin <= 0 {
		p.ApplyWithin = applyWithin
	}
	if p.Grace <= 0 {
		p.Grace = quitGrace
	}
	return &Live{
		plan: p, loop: engine.NewLoop(p.Loop), commands: make(chan engine.Command, commandsWaiting+1),
		hurry: make(chan struct{}, 1), exports: make(chan struct{}, 1),
	}
}

// Latest returns the latest snapshot, nil before the first.
func (l *Live) Latest() *engine.Snapshot { return l.latest.Load() }

// Do hands over a command; false says that too many wait, or that the session is
// over. A quit is always taken while the session lives.
func (l *Live) Do(c engine.Command) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over && c == engine.CommandQuit {
		select {
		case l.hurry <- struct{}{}:
		default: // once is enough
		}
		return true
	}
	if l.over || c >= engine.NumCommands {
		return false
	}
	if c != engine.CommandQuit && len(l.commands) >= commandsWaiting {
		return false
	}
	select {
	case l.commands <- c:
		return true
	default:
		return c == engine.CommandQuit // one waits already
	}
}

// Export asks for a report of what is seen now; false where one is under way or
// none can be written.
func (l *Live) Export() bool {
	if l.plan.Export == nil || !l.writing.CompareAndSwap(false, true) {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		return false
	}
	l.exports <- struct{}{} // the flag leaves room for one
	return true
}

// Run goes on until the loop has finished or ctx ends, which the loop is told as
// a quit. Everything that it started has ended when it returns; the error says
// what did not, or what was left undone. The last snapshot tells how it ended.
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
	l.over = true
}
