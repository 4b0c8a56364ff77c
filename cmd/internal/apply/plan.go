package apply

import (
	"time"

	"github.com/rooftop-dev/rooftop/engine/launch"
)

// Plan is what all hands need to know of a run.
type Plan struct {
	Journal Journal
	Ready   Readiness     // URL may be empty for Exec, which takes it from the command
	Grace   time.Duration // from SIGTERM to SIGKILL; 0 is Grace
	Server  string        // the server in words, for the journal
	// Launch is that of the server as it runs, for Hook alone, which has no other way
	// to know it; nil where it is unknown.
	Launch *launch.Config
	// Say, where not nil, is told each step as it begins: one short sentence without
	// secrets.
	Say func(string)
}

func (p *Plan) say(text string) {
	if p.Say != nil {
		p.Say(text)
	}
}
