package bench

import (
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/session"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/launch"
)

// Header returns what attaching to the current server would find now, given the command that it was
// started with. There must be a server.
func (w *World) Header(command *launch.Config) session.Header {
	return header(w.live, command, w.now)
}

// GPUs returns a reading of the devices now, with t as its time; nil without a server.
func (w *World) GPUs(t time.Duration) *engine.GPUReading {
	if w.server == nil {
		return nil
	}
	return reading(w.server.GPUs(w.now), t)
}
