// Package manager defines what rooftop needs of a program that starts a server in its place, such as
// systemd, Docker or a program of the user's.
package manager

import (
	"context"
	"errors"

	"github.com/rooftop-dev/rooftop/cmd/internal/launcher"
	"github.com/rooftop-dev/rooftop/engine"
)

// Manager restarts a server with changes. It need not be safe for concurrent use.
type Manager interface {
	// Mode returns the mode of journal records: "hook", "unit", "container", "workload".
	Mode() string
	// Name returns what the user calls it: a path of a program, "vllm.service", the name of a container.
	Name() string
	// Launch returns what a later rooftop needs to undo changes. It may hold secrets.
	Launch() *launcher.Launch
	// Steps returns what Make would do with a change, as sentences without secrets.
	Steps(c *Change) []string
	// Make makes a change, and returns when the restart has begun or is over. It can be repeated. The
	// error is an *UntouchedError if the server runs as before, and ErrRestored if a revert found that
	// someone else had made it.
	Make(ctx context.Context, c *Change) error
	// Ended returns why the server that Make started will not answer; nil while it may, or if that is
	// not known.
	Ended(ctx context.Context) error
	// Keep makes the latest change last, without a restart. It can be repeated.
	Keep(ctx context.Context) error
	// Busy returns the PIDs of processes in which an earlier rooftop still makes a change.
	Busy() []int
	// Notes returns what the user should know before the first change, a sentence each.
	Notes() []string
	// Close ends the connection to the manager.
	Close()
}

// Copier is a Manager that can start one more copy of a server beside those that run, under the same traffic.
type Copier interface {
	Manager
	// Beside starts a copy with a change, and returns when it takes requests. The others stay as they are.
	// The error is an *UntouchedError if nothing of the copy is left.
	Beside(ctx context.Context, c *Change) (Copy, error)
}

// Copy is a copy of a server that runs beside others. It need not be safe for concurrent use.
type Copy interface {
	// Name is what the user calls the copy: "pod vllm-canary-x7k2q".
	Name() string
	// URL is the base URL of the copy, Others are those of the others that are measured; until Remove.
	URL() string
	Others() []string
	// Ended returns why the copy, or one of the others, will not answer or can no longer be compared; nil
	// while it can, or if that is not known.
	Ended(ctx context.Context) error
	// Remove ends the copy, and returns when it is gone. It can be repeated.
	Remove(ctx context.Context) error
}

// CopyFailedError means that a copy itself does not serve with its change. Other errors of a copy say nothing
// of the change.
type CopyFailedError struct{ Err error }

func (e *CopyFailedError) Error() string { return e.Err.Error() }
func (e *CopyFailedError) Unwrap() error { return e.Err }

// CopyFailed marks the error for those who do not know its type.
func (e *CopyFailedError) CopyFailed() {}

// UntouchedError means that a change was not made and the server runs as before.
type UntouchedError struct{ Err error }

func (e *UntouchedError) Error() string { return e.Err.Error() }
func (e *UntouchedError) Unwrap() error { return e.Err }

// ErrRestored means that someone else had restored the kept configuration, and the server was not restarted.
var ErrRestored = errors.New("the kept configuration was restored already")

// Change is the JSON input of the user's program on stdin, rooftop.change/v1. It holds no
// secrets.
type Change struct {
	Schema    string `json:"schema"`
	Iteration int    `json:"iteration"`
	Revert    bool   `json:"revert"` // back to the kept configuration
	URL       string `json:"url"`    // of the server
	// Changes lead from the running configuration to the requested one, each flag once.
	Changes []engine.Change `json:"changes"`
	// Command is the launch command, as far as it is known, for information. Secrets are
	// redacted, so it may not be executable.
	Command   Command             `json:"command"`
	Predicted []engine.Prediction `json:"predicted,omitempty"`

	// All lead from the kept configuration to the requested one; none for a revert.
	All []engine.Change `json:"-"`
}

// Command is a launch command before and after a change; "" if unknown.
type Command struct {
	Before string `json:"before"`
	After  string `json:"after"`
}

// ChangeSchema is the schema name of Change.
const ChangeSchema = "rooftop.change/v1"
