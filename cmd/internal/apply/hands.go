package apply

import (
	"context"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/journal"
)

// Hands are one way to change a server. They are not safe for concurrent use.
type Hands interface {
	// Mode names the way: "exec", "attach", "hook".
	Mode() string
	// Apply has the server run with changes made to the kept launch, or, of a way
	// back, with exactly that one; it returns when the server is ready, or does not
	// become it. Where a change cannot be made the server is put back first.
	Apply(ctx context.Context, a engine.Apply) engine.Applied
	// Steps says what Apply would do, one step each, secrets redacted.
	Steps(a engine.Apply) []string
	// Kept tells that what runs now is the launch to go back to from here on.
	Kept() error
	// Close lets go of the server and leaves it running.
	Close() error
}

// Readiness is when a server counts as started.
type Readiness struct {
	URL    string        // base URL
	Within time.Duration // from its start to /health; 0 is ReadyWithin
	// Answer bounds the short completion that follows; 0 is AnswerWithin.
	Answer time.Duration
	Model  string // to ask; "" is what the server lists first
	APIKey string // "" is what the server was launched with
	CAFile string // PEM certificates trusted instead of the system's
}

// Bounds of a start where Readiness leaves them zero.
const (
	ReadyWithin  = 15 * time.Minute
	AnswerWithin = time.Minute
)

// Journal is where acts are written down before they are done, and their results
// after. Each record is on the disk when Write returns; an error means that nothing
// may be touched.
type Journal interface {
	Write(r journal.Record) error
	// Keep stores an exact launch beside the journal and returns its name.
	Keep(l *Launch) (name string, err error)
	// Launch reads one back.
	Launch(name string) (*Launch, error)
	// Dir is the directory of the server, for log files.
	Dir() string
}
