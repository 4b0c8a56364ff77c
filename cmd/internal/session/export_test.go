package session

import (
	"time"

	"github.com/rooftop-dev/rooftop/engine"
)

// Observe hands over the snapshot after every step of a session's loop, from the
// session's goroutine.
func Observe(l *Live, each func(*engine.Snapshot)) { l.loop = observed{l.loop, each} }

type observed struct {
	machine
	each func(*engine.Snapshot)
}

func (o observed) Step(now time.Duration, in engine.Input) []engine.Action {
	out := o.machine.Step(now, in)
	o.each(o.Snapshot())
	return out
}
