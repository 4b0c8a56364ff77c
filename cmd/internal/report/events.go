package report

import (
	"io"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
)

// EventSchema names the lines that Events writes.
const EventSchema = "rooftop.event/v1"

// Events writes a run as it happens, one rooftop.event/v1 object a line. Its
// methods are not safe for concurrent use. The first write error ends the
// writing and is kept.
type Events struct {
	// Simulated marks every event from the first on as one of a simulated server;
	// otherwise the mark begins with the first that is found.
	Simulated bool

	w   io.Writer
	seq int
	err error
}

// NewEvents returns a writer that has written nothing.
func NewEvents(w io.Writer) *Events { return &Events{w: w} }

// Err implements Follower.
func (e *Events) Err() error { return e.err }

// Event implements Follower: it writes one line, at the event's own time.
func (e *Events) Event(v engine.Event) {
	if e.err != nil {
		return
	}
	e.Simulated = e.Simulated || v.Target.Simulated
	e.seq++
	o := object{{"schema", EventSchema}, {"seq", e.seq}, {"t", v.T.Round(time.Millisecond).Seconds()}, {"type", v.Kind}, {"simulated", e.Simulated}}
	o = append(o, eventPayload(&v)...)
	switch v.Kind {
	case engine.EventServerDown, engine.EventPaused, engine.EventError: // it is their reason or message
	default:
		if v.Text != "" {
			o = append(o, member{"text", v.Text})
		}
	}
	e.err = encode(e.w, o, "")
}
