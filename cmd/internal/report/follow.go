package report

import "github.com/rooftop-dev/rooftop/engine"

// Follower tells a run as it happens: to a person in lines, or to a script as
// events. The first write error ends the telling and is kept.
type Follower interface {
	Event(e engine.Event)
	Err() error
}
