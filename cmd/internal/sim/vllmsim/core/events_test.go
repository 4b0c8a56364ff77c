package core

import (
	"io"
	"strconv"
)

// eventLog writes events as lines of JSON, byte for byte the same for the same events.
type eventLog struct {
	w   io.Writer
	buf []byte
	err error
}

// newLog returns a log that writes to w; its event method is for [Engine.Observe].
func newLog(w io.Writer) *eventLog { return &eventLog{w: w} }

// event appends one line; flush has to follow the last.
func (l *eventLog) event(e Event) {
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

// flush writes what is buffered and returns the first error of writing.
func (l *eventLog) flush() error {
	l.write()
	return l.err
}

func (l *eventLog) write() {
	if l.err == nil && len(l.buf) > 0 {
		_, l.err = l.w.Write(l.buf)
	}
	l.buf = l.buf[:0]
}
