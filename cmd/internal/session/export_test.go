package session

import (
	"time"

	"github.com/rooftop-dev/rooftop/engine/loop"
)

// Observe calls each with the snapshot after every step of a session's loop, on the session's
// goroutine.
func Observe(l *Live, each func(*loop.Snapshot)) { l.loop = observed{l.loop, each} }

type observed struct {
	machine
	each func(*loop.Snapshot)
}

func (o observed) Step(now time.Duration, in loop.Input) []loop.Action {
	out := o.machine.Step(now, in)
	o.each(o.Snapshot())
	return out
}

// Snapshots plays a recording through the loop without waiting, and calls each with the snapshot
// after every line, until each returns false.
func Snapshots(rec *Recording, version string, each func(*loop.Snapshot) bool) error {
	t, err := newPlayback(rec, version)
	for err == nil {
		if !each(t.loop.Snapshot()) || t.finished {
			return nil
		}
		err = t.step()
	}
	return err
}
