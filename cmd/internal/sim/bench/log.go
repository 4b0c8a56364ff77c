package bench

import (
	"encoding/json"
	"io"
	"time"
)

// eventLog writes the events of a world, one JSON object per line. A nil log writes nothing.
type eventLog struct {
	w   io.Writer
	err error
}

func newEventLog(w io.Writer) *eventLog {
	if w == nil {
		return nil
	}
	return &eventLog{w: w}
}

// write writes an event. fields are alternating names and values.
func (l *eventLog) write(t time.Duration, kind string, fields ...any) {
	if l == nil || l.err != nil {
		return
	}
	line := make([]byte, 0, 128)
	line = append(line, `{"t":`...)
	line = appendJSON(line, t.Seconds())
	line = append(line, `,"kind":`...)
	line = appendJSON(line, kind)
	for i := 0; i+1 < len(fields); i += 2 {
		line = append(line, ',')
		line = appendJSON(line, fields[i])
		line = append(line, ':')
		line = appendJSON(line, fields[i+1])
	}
	line = append(line, '}', '\n')
	_, l.err = l.w.Write(line)
}

func appendJSON(buf []byte, v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		b = []byte("null")
	}
	return append(buf, b...)
}

// failed returns the first write error.
func (l *eventLog) failed() error {
	if l == nil {
		return nil
	}
	return l.err
}
