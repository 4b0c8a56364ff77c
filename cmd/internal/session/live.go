package session

import (
	"context"
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
	// Apply restarts the server with changes and returns when it answers; nil where
	// rooftop cannot, for the reason in NoHands.
	Apply   func(ctx context.Context, changes []engine.Change) error
	NoHands string
	Close   func()
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
}

// Live runs the loop on a server: it polls the sources, performs what the loop
// asks for, and publishes a snapshot after each step. The goroutine of Run owns
// the loop; the other methods may be called from any.
type Live struct {
	plan   LivePlan
	latest atomic.Pointer[engine.Snapshot]
}

// NewLive returns a session that has not begun.
func NewLive(p LivePlan) *Live { return &Live{plan: p} }

// Run goes on until the loop has finished or ctx ends, whose signal the loop is
// told as a quit. Everything that it started has ended when it returns. The last
// snapshot tells how it ended.
func (l *Live) Run(ctx context.Context) error { return nil }

// Latest returns the latest snapshot, nil before the first.
func (l *Live) Latest() *engine.Snapshot { return l.latest.Load() }

// Do hands over a command; false says that too many wait.
func (l *Live) Do(c engine.Command) bool { return false }

// Export asks for a report of what is seen now; false where one is under way or
// none can be written.
func (l *Live) Export() bool { return false }
