package report

import (
	"io"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// EventSchema names the lines that Events writes.
const EventSchema = "rooftop.event/v1"

// Events writes a run as it happens, one rooftop.event/v1 object a line. Its
// methods are not safe for concurrent use. The first write error ends the
// writing and is kept.
type Events struct {
	// Simulated marks every event as one of a simulated server.
	Simulated bool

	w   io.Writer
	now func() time.Duration
	seq int
	err error
}

// NewEvents returns a writer whose events carry the time that now shows, since
// the run began.
func NewEvents(w io.Writer, now func() time.Duration) *Events { return &Events{w: w, now: now} }

// Err returns the first write error.
func (e *Events) Err() error { return e.err }

func (e *Events) emit(kind string, payload ...member) { e.emitAt(e.now(), kind, payload) }

func (e *Events) emitAt(t time.Duration, kind string, payload object) {
	if e.err != nil {
		return
	}
	e.seq++
	o := object{{"schema", EventSchema}, {"seq", e.seq}, {"t", t.Round(time.Millisecond).Seconds()}, {"type", kind}, {"simulated", e.Simulated}}
	e.err = encode(e.w, append(o, payload...), "")
}

// Attached tells which server is looked at.
func (e *Events) Attached(t engine.Target) { e.emit("attached", member{"target", clean(t)}) }

// ServerUp tells that the server answers, how it was started, and how long that
// took.
func (e *Events) ServerUp(command string, took time.Duration) {
	e.emit("server-up", member{"command", command}, member{"took_s", took.Seconds()})
}

// ServerDown tells that the server does not answer, and why.
func (e *Events) ServerDown(why string) { e.emit("server-down", member{"reason", why}) }

// Settling tells that the load is given time to become steady.
func (e *Events) Settling(d time.Duration) { e.emit("settling", member{"duration_s", d.Seconds()}) }

// Window tells of about two seconds of measurement.
func (e *Events) Window(w *engine.Window) {
	e.emit("window", windowPayload(w)...)
}

// Measured tells that a measurement of an iteration ended; iteration 0 is the
// baseline.
func (e *Events) Measured(iteration int, d *engine.Diagnosis) {
	e.emit("measured", member{"iteration", iteration}, member{"duration_s", d.Duration.Seconds()}, member{"windows", clean(d.Windows)}, member{"measured", measuredObject(d)})
}

// Diagnosis gives a whole diagnosis.
func (e *Events) Diagnosis(iteration int, d *engine.Diagnosis) {
	e.emit("diagnosis", member{"iteration", iteration}, member{"diagnosis", Document(d)})
}

// Recommendation gives the one change with its prediction, before anything
// changes; nil is that nothing is to be changed.
func (e *Events) Recommendation(iteration int, r *engine.Recommendation) {
	e.emit("recommendation", member{"iteration", iteration}, member{"recommendation", clean(r)})
}

// Applying tells that a change is being made.
func (e *Events) Applying(iteration int, c Change) {
	e.emit("applying", member{"iteration", iteration}, member{"flag", c.Flag}, member{"from", c.From}, member{"to", c.To}, member{"command", c.Command})
}

// Change is one change of a launch command.
type Change struct {
	Flag, From, To string // From is "" where the flag was not given
	Command        string // the whole launch command with the change made
}

// Verdict tells where a change led. The statistical part is null with its
// reason where nothing told the change apart from noise.
func (e *Events) Verdict(iteration int, d *engine.Delta, predictions []engine.Prediction) {
	e.emit("verdict", append(object{{"iteration", iteration}}, verdictPayload(d, predictions)...)...)
}

func optional(value, known bool) any {
	if !known {
		return nil
	}
	return value
}

func percentOf(ratio stat.Opt) any { return number(ratio.Times(100)) }

// Kept tells that a change stays.
func (e *Events) Kept(iteration int, c Change) { e.settled("kept", iteration, c) }

// Reverted tells that a change was undone; the change is the one undone.
func (e *Events) Reverted(iteration int, c Change) { e.settled("reverted", iteration, c) }

func (e *Events) settled(kind string, iteration int, c Change) {
	e.emit(kind, member{"iteration", iteration}, member{"flag", c.Flag}, member{"from", c.From}, member{"to", c.To}, member{"command", c.Command})
}

// Error tells of something that went wrong.
func (e *Events) Error(err error) { e.emit("error", member{"message", err.Error()}) }

// Finish is how a run ended.
type Finish struct {
	ExitCode int
	Reason   string // in a sentence
	Command  string // the best configuration
	// Gain is the change of output tokens per second from the baseline to the
	// best configuration, a ratio.
	Gain     stat.Opt
	Restarts int
	Remains  []engine.FindingID // significant findings of the last diagnosis
}

// Finished ends a run.
func (e *Events) Finished(f Finish) {
	e.emit("finished", finishedPayload(&engine.Finished{ExitCode: f.ExitCode, Reason: f.Reason, Command: f.Command, Gain: f.Gain, Restarts: f.Restarts, Remains: f.Remains})...)
}
