package apply

import (
	"time"

	"github.com/rooftop-dev/rooftop/engine/launch"
)

// Plan configures an applier.
type Plan struct {
	Journal Journal
	Ready   Readiness     // URL may be empty for Exec, which takes it from the command
	Grace   time.Duration // from SIGTERM to SIGKILL; 0 is Grace
	Server  string        // description of the server, for the journal
	// Launch is the running launch of the server, nil if unknown. Only Hook uses it, which
	// cannot read it otherwise.
	Launch *launch.Config
	// Progress is called at the start of each step with a short sentence without secrets;
	// it may be nil.
	Progress func(string)
}

func (p *Plan) report(text string) {
	if p.Progress != nil {
		p.Progress(text)
	}
}
