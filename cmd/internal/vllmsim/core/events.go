package core

import (
	"io"
	"strconv"
	"time"
)

// EventKind is what an [Event] tells of.
type EventKind uint8

// Kinds of events.
const (
	Queued     EventKind = iota // a request was taken into the queue
	Scheduled                   // it was admitted for the first time
	Resumed                     // it was admitted again after a preemption
	Preempted                   // it lost its blocks and is queued again
	FirstToken                  // its first token was sampled
	Finished                    // it ended, for the reason given
	StepBegan                   // a step was handed out
	StepEnded                   // its tokens were sampled and finished requests removed
)

// String returns the kind as event logs spell it.
func (k EventKind) String() string {
	names := [...]string{"queued", "scheduled", "resumed", "preempted", "first_token", "finished", "step_began", "step_ended"}
	if int(k) < len(names) {
		return names[k]
	}
	return "unknown"
}

// String returns the reason as vLLM labels it; "" before the end.
func (r Reason) String() string {
	names := [...]string{"", "stop", "length", "abort", "error"}
	if int(r) < len(names) {
		return names[r]
	}
	return "unknown"
}

// Event is one thing that happened in an engine.
type Event struct {
	At      time.Duration
	Kind    EventKind
	Request ID     // of events of a request
	Step    uint64 // that it belongs to; of what happens between steps, the one before
	// Batch is the requests in the step (StepBegan) or running after it (StepEnded).
	Batch int
	// Tokens are the request's own: known ones (Queued, Preempted), those to be
	// computed (Scheduled, Resumed), of the prompt (FirstToken), generated ones
	// (Finished); of a step those scheduled (StepBegan) or sampled (StepEnded).
	Tokens int
	// Blocks are the request's (Scheduled, Resumed, FirstToken, Finished), else those
	// that all requests hold.
	Blocks int
	Reason Reason // of Finished
}

// Observe has every event told to f from now on, nil ends that. Times never go
// back; f must not call the engine.
func (e *Engine) Observe(f func(Event)) { e.observe = f }

// Log writes events as lines of JSON, byte for byte the same for the same events.
type Log struct {
	w   io.Writer
	buf []byte
	err error
}

// NewLog returns a log that writes to w; its Event method is for [Engine.Observe].
func NewLog(w io.Writer) *Log { return &Log{w: w} }

// Event appends one line; [Log.Flush] has to follow the last.
func (l *Log) Event(e Event) {
	b := l.buf
	b = append(b, `{"t":`...)
	b = strconv.AppendInt(b, int64(e.At), 10)
	b = append(b, `,"kind":"`...)
	b = append(b, e.Kind.String()...)
	b = append(b, '"')
	if e.Kind < StepBegan {
		b = append(b, `,"request":`...)
		b = strconv.AppendUint(b, uint64(e.Request), 10)
	}
	b = append(b, `,"step":`...)
	b = strconv.AppendUint(b, e.Step, 10)
	if e.Kind >= StepBegan {
		b = append(b, `,"batch":`...)
		b = strconv.AppendInt(b, int64(e.Batch), 10)
	}
	b = append(b, `,"tokens":`...)
	b = strconv.AppendInt(b, int64(e.Tokens), 10)
	b = append(b, `,"blocks":`...)
	b = strconv.AppendInt(b, int64(e.Blocks), 10)
	if e.Kind == Finished {
		b = append(b, `,"reason":"`...)
		b = append(b, e.Reason.String()...)
		b = append(b, '"')
	}
	b = append(b, '}', '\n')
	l.buf = b
	if len(l.buf) >= 1<<16 {
		l.write()
	}
}

// Flush writes what is buffered and returns the first error of writing.
func (l *Log) Flush() error {
	l.write()
	return l.err
}

func (l *Log) write() {
	if l.err == nil && len(l.buf) > 0 {
		_, l.err = l.w.Write(l.buf)
	}
	l.buf = l.buf[:0]
}
