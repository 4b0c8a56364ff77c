package attach

import (
	"context"

	"github.com/rooftop-dev/rooftop/collect/proc"
	"github.com/rooftop-dev/rooftop/engine"
)

// Health returns a function that reads whether the server's engine lives: from /health and, on
// the server's machine, from the states of its processes. It must not be called concurrently.
func (a *Server) Health() func(context.Context) engine.Health {
	return func(ctx context.Context) engine.Health {
		h := a.Pages.Health(ctx)
		if a.Process == nil || h.State == engine.HealthFailed {
			return h
		}
		for _, p := range a.Process.Health() {
			switch {
			case p.Process.Role != proc.EngineCore && p.Process.Role != proc.Worker:
			case p.Ended():
				return engine.Health{State: engine.HealthFailed, Why: p.String()}
			default:
				h.Why = p.String()
			}
		}
		return h
	}
}
