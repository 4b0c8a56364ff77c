package session

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Replay diagnoses a recording again: the same polls give the same diagnosis. A truncated recording
// is diagnosed up to its end, with a note. Of a live session, Replay diagnoses the polls after the
// last attach, as if a measurement had started there.
func Replay(rec *Recording, version string) (engine.Diagnosis, error) {
	a, end, err := analyze(rec, func(*Analysis, *engine.Sample) {})
	if err != nil {
		return engine.Diagnosis{}, err
	}
	return a.Diagnose(end, version), nil
}

// analyze reads a recording to its end and calls a function for each poll. Each attach of a live session
// begins another analysis; the last one is returned.
func analyze(rec *Recording, polled func(*Analysis, *engine.Sample)) (a *Analysis, end End, err error) {
	var began time.Duration
	runs := 0
	if !rec.live() {
		if a, err = NewAnalysis(rec.Header); err != nil {
			return nil, End{}, err
		}
	}
	for {
		l, err := rec.next()
		end := l.End
		switch {
		case cutOff(err):
			end = &End{Notes: []string{noteCutOff}}
			if a != nil {
				end.Duration = began + a.LastTick()
			}
		case err != nil && rec.live():
			return nil, End{}, fmt.Errorf("%w: run %d: %w", ErrRecording, runs, err)
		case err != nil:
			return nil, End{}, fmt.Errorf("%w: after %v: %w", ErrRecording, a.LastTick(), err)
		case l.Attached != nil && rec.live():
			if a, err = NewAnalysis(l.Attached.Header); err != nil {
				return nil, End{}, err
			}
			began = l.At
			runs++
		case l.Poll != nil && a != nil:
			s, _ := a.Add(l.Poll.relativeTo(began))
			polled(a, s)
		}
		if end == nil {
			continue
		}
		if a == nil {
			return nil, End{}, fmt.Errorf("%w: the session never found a server, so there is nothing to diagnose", ErrRecording)
		}
		if rec.live() {
			end.Duration -= began
			end.Notes = append(end.Notes, lastRunNote(runs, began))
		}
		return a, *end, nil
	}
}

const noteCutOff = "the recording was cut off"

// cutOff reports whether an error means that the recording has no End, because the process that
// wrote it was killed.
func cutOff(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) }

func lastRunNote(runs int, began time.Duration) string {
	if runs == 1 {
		return "the recording is of a live session; it is diagnosed as a whole"
	}
	return fmt.Sprintf("the recording is of a live session that read the server's settings %d times; the diagnosis covers the part after the last time, %s after its start; rooftop replay --tui shows all of it",
		runs, figure.Show(stat.Some(began.Seconds()), "s"))
}

// relativeTo returns a copy of the poll with times since began.
func (p *Poll) relativeTo(began time.Duration) *Poll {
	q := *p
	q.T -= began
	q.PageT -= began
	if p.GPU != nil {
		gpu := *p.GPU
		gpu.T -= began
		q.GPU = &gpu
	}
	return &q
}
