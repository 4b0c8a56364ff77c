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

// Replay diagnoses a recording again: the same polls give the same diagnosis.
// A recording that was cut off is diagnosed as far as it goes, and says so. Of a
// live session the last run of the server is diagnosed.
func Replay(rec *Recording, version string) (engine.Diagnosis, error) {
	if rec.live() {
		return replayLast(rec, version)
	}
	a, err := NewAnalysis(rec.Header)
	if err != nil {
		return engine.Diagnosis{}, err
	}
	for {
		l, err := rec.next()
		switch {
		case cutOff(err):
			return a.Diagnose(End{Duration: a.Seen(), Notes: []string{noteCutOff}}, version), nil
		case err != nil:
			return engine.Diagnosis{}, fmt.Errorf("%w: after %v: %w", ErrRecording, a.Seen(), err)
		case l.Poll != nil:
			a.Add(l.Poll)
		case l.End != nil:
			return a.Diagnose(*l.End, version), nil
		}
	}
}

const noteCutOff = "the recording was cut off"

// cutOff says whether a recording ends without an end: whoever wrote it was
// killed.
func cutOff(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) }

// replayLast diagnoses the polls behind the last server that a live session
// attached to. Their times are counted from there, as of a measurement that began
// then.
func replayLast(rec *Recording, version string) (engine.Diagnosis, error) {
	var a *Analysis
	var began time.Duration
	runs := 0
	for {
		l, err := rec.next()
		end := l.End
		switch {
		case cutOff(err):
			end = &End{Notes: []string{noteCutOff}}
			if a != nil {
				end.Duration = began + a.Seen()
			}
		case err != nil:
			return engine.Diagnosis{}, fmt.Errorf("%w: run %d: %w", ErrRecording, runs, err)
		case l.Attached != nil:
			if a, err = NewAnalysis(l.Attached.Header); err != nil {
				return engine.Diagnosis{}, err
			}
			began = l.At
			runs++
		case l.Poll != nil && a != nil:
			a.Add(l.Poll.since(began))
		}
		if end == nil {
			continue
		}
		if a == nil {
			return engine.Diagnosis{}, fmt.Errorf("%w: the session never found a server, so there is nothing to diagnose", ErrRecording)
		}
		end.Duration -= began
		end.Notes = append(end.Notes, lastRun(runs, began))
		return a.Diagnose(*end, version), nil
	}
}

func lastRun(runs int, began time.Duration) string {
	if runs == 1 {
		return "the recording is of a live session; it is diagnosed as a whole"
	}
	return fmt.Sprintf("the recording is of a live session that read the server's settings %d times; what is diagnosed is the part behind the last time, %s after its start: rooftop replay --tui shows all of it",
		runs, figure.Show(stat.Some(began.Seconds()), "s"))
}

// since returns the poll with its times counted from another beginning.
func (p *Poll) since(began time.Duration) *Poll {
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
