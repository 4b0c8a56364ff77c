package apply

import (
	"context"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/launcher"
	"github.com/rooftop-dev/rooftop/engine/journal"
	"github.com/rooftop-dev/rooftop/engine/loop"
)

// Applier is one way to change a server. It is not safe for concurrent use.
type Applier interface {
	// Mode returns the name of the way: "exec", "attach", "hook", "unit", "container" or "workload".
	Mode() string
	// Apply restarts the server with changes made to the kept launch or, for a revert,
	// with exactly the kept launch. It returns when the server is ready or has failed. If
	// a change fails, Apply restores the kept launch before it returns.
	Apply(ctx context.Context, a loop.Apply) loop.Applied
	// Steps returns the steps that Apply would take, secrets redacted.
	Steps(a loop.Apply) []string
	// Kept records that later reverts return to the launch that runs now.
	Kept() error
	// Close releases the server and leaves it running.
	Close() error
}

// Readiness defines when a server counts as started.
type Readiness struct {
	URL    string        // base URL
	Within time.Duration // from its start to /health; 0 is ReadyWithin
	// Answer limits the short completion that follows; 0 is AnswerWithin.
	Answer time.Duration
	Model  string // model of the completion; "" is the first that the server lists
	APIKey string // "" is the key that the server was launched with
	CAFile string // PEM certificates trusted instead of the system's
	// refusals is true if a refused completion shows that a server is back: what is restored may need a
	// key that only the interrupted run had, or have a model without completions.
	refusals bool
}

// Defaults of Readiness.Within and Readiness.Answer.
const (
	ReadyWithin  = 15 * time.Minute
	AnswerWithin = time.Minute
)

// Journal records each act before it is done, and its result afterwards. A record is on
// the disk when Write returns; after an error nothing may be touched.
type Journal interface {
	Write(r journal.Record) error
	// Keep stores an exact launch beside the journal and returns its file name.
	Keep(l *launcher.Launch) (name string, err error)
	// KeepFound copies a configuration file as it is now beside the journal and returns the copy's path.
	KeepFound(f *launcher.File) (path string, err error)
	// Dir returns the directory of the server, where log files go.
	Dir() string
}
