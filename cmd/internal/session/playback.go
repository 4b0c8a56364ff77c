package session

import (
	"context"
	"fmt"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/loop"
	"github.com/rooftop-dev/rooftop/rules"
)

// playback passes the lines of a recording to a loop, one by one. It does not wait: each line has
// its time.
type playback struct {
	rec    *Recording
	loop   machine
	parser *parser
	canary map[int]*parser // of the canary and the servers beside it, by number
	// single is the server of a recording of one measurement, the answer to every Attach of the
	// loop. It is nil for a live session, whose recording contains the answers.
	single    *attachedLine
	ahead     line       // the next line, unless finished
	input     loop.Input // of the next line
	finished  bool
	truncated bool          // the recording has no end
	at        time.Duration // of the last line that the loop handled
}

// A recording that is shorter than the loop's usual measurement is played with a shorter
// measurement, of at least as many windows as a rule needs, so that it reaches a result.
const (
	usualMeasure = 20 * time.Second
	minMeasure   = 4 * engine.WindowLength
)

// newPlayback starts a loop for a recording and reads the first line. It fails if the recording is
// damaged there or contains a catalog that does not parse.
func newPlayback(rec *Recording, version string) (*playback, error) {
	t := &playback{rec: rec, parser: newParser(rec.Header.Model)}
	var plan loop.Plan
	if rec.live() {
		plan = *rec.Header.Session
	} else {
		plan.Watch, plan.CannotApply = rec.Header.Target.URL, recordingReadOnly
		t.single = &attachedLine{Header: rec.Header, CannotApply: recordingReadOnly}
		if _, err := t.single.input(); err != nil {
			return nil, err
		}
		if length := rec.length(context.Background()); length > 0 && length < usualMeasure+engine.WindowLength {
			plan.Measure = max(minMeasure, length-engine.WindowLength)
		}
	}
	plan.Started, plan.Version, plan.Rules = rec.Header.Started, version, rules.All()
	t.loop = loop.New(plan)
	t.pass(rec.began, loop.Begin{})
	return t, t.read()
}

const recordingReadOnly = "A recording cannot be changed."

// next returns the time of the next line; false at the end.
func (t *playback) next() (time.Duration, bool) { return t.ahead.time(), !t.finished }

// step passes the next line to the loop and reads the one after it. It fails if the recording is
// damaged there; the loop then has all lines before the damage.
func (t *playback) step() error {
	if t.finished {
		return nil
	}
	t.pass(max(t.at, t.ahead.time()), t.input)
	return t.read()
}

// pass passes an input to the loop. If the recording has no answers to an Attach, the answer is
// single.
func (t *playback) pass(now time.Duration, in loop.Input) {
	t.at = now
	for _, a := range t.loop.Step(now, in) {
		if _, ok := a.(loop.Attach); ok && t.single != nil {
			attached, err := t.single.input()
			if err == nil { // newPlayback has checked it
				t.pass(now, attached)
			}
		}
	}
}

// read reads up to the next line that has an input for the loop.
func (t *playback) read() error {
	for {
		l, err := t.rec.next()
		switch {
		case cutOff(err):
			t.finished, t.truncated = true, true
			return nil
		case err != nil:
			t.finished = true
			return fmt.Errorf("%w: after %v: %w", ErrRecording, t.at, err)
		case l.End != nil:
			t.finished = true
			return nil
		}
		if t.input, err = t.inputOf(&l); err != nil {
			t.finished = true
			return fmt.Errorf("%w: after %v: %w", ErrRecording, t.at, err)
		}
		if t.input != nil {
			t.ahead = l
			return nil
		}
	}
}

// inputOf returns the input of the loop that a line stands for, nil if it stands for none.
func (t *playback) inputOf(l *line) (loop.Input, error) {
	if c := l.Canary; c != nil && c.Started != nil {
		t.canary = map[int]*parser{}
	} else if c != nil && c.Poll != nil && t.canary != nil {
		if t.canary[c.Server] == nil {
			t.canary[c.Server] = newParser(t.parser.model)
		}
		s := t.canary[c.Server].sample(c.Poll)
		c.Poll.Body = ""
		return loop.CanarySampled{Server: c.Server, Sample: s}, nil
	}
	if l.Poll == nil {
		if l.Attached != nil {
			t.parser = newParser(l.Attached.Header.Model)
		}
		return l.input()
	}
	s := t.parser.sample(l.Poll)
	l.Poll.Body = "" // frees the page, which was parsed
	return loop.Sampled{Sample: s}, nil
}
