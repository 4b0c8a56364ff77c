package session

import (
	"context"
	"fmt"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/rules"
)

// tape lets a loop take a recording's lines, one by one. It waits for nothing: the
// time of each is in the recording.
type tape struct {
	rec    *Recording
	loop   machine
	parser *parser
	// single is the server of a recording of one measurement: what every Attach of
	// the loop is answered with. A live session's recording has its own answers.
	single *attachedLine
	ahead  line // the next line, where there is one
	input  engine.Input
	over   bool
	cut    bool // without an end
	at     time.Duration
}

// A recording shorter than the usual measurement of a loop is played with a
// shorter one, of at least as many windows as a rule needs, so that it comes to a
// result.
const (
	usualMeasure = 20 * time.Second
	leastMeasure = 4 * engine.WindowLength
)

// newTape lets the loop begin.
func newTape(rec *Recording, version string) (*tape, error) {
	t := &tape{rec: rec, parser: newParser(rec.Header.Model)}
	plan := engine.LoopPlan{Started: rec.Header.Started, Version: version, Rules: rules.All()}
	if s := rec.Header.Session; s != nil {
		s.plan(&plan)
	} else {
		plan.Watch, plan.NoHands = rec.Header.Target.URL, noHandsRecording
		t.single = &attachedLine{Header: rec.Header, NoHands: noHandsRecording}
		if _, err := t.single.input(); err != nil {
			return nil, err
		}
		if length := rec.length(context.Background()); length > 0 && length < usualMeasure+engine.WindowLength {
			plan.Measure = max(leastMeasure, length-engine.WindowLength)
		}
	}
	t.loop = engine.NewLoop(plan)
	t.take(rec.began, engine.Begin{})
	return t, t.read()
}

const noHandsRecording = "A recording cannot be changed."

// next is the time of the next line; false at the end.
func (t *tape) next() (time.Duration, bool) { return t.ahead.time(), !t.over }

// step lets the loop take the next line. The error is of a damaged recording, as
// far as it was read.
func (t *tape) step() error {
	if t.over {
		return nil
	}
	t.take(max(t.at, t.ahead.time()), t.input)
	return t.read()
}

// take lets the loop take an input. Where the recording has no answers to what it
// asks for, the server is the one that there is.
func (t *tape) take(now time.Duration, in engine.Input) {
	t.at = now
	for _, a := range t.loop.Step(now, in) {
		if _, ok := a.(engine.Attach); ok && t.single != nil {
			again, err := t.single.input()
			if err == nil { // it was none before
				t.take(now, again)
			}
		}
	}
}

// read reads up to the next line that tells the loop something.
func (t *tape) read() error {
	for {
		l, err := t.rec.next()
		switch {
		case cutOff(err):
			t.over, t.cut = true, true
			return nil
		case err != nil:
			t.over = true
			return fmt.Errorf("%w: after %v: %w", ErrRecording, t.at, err)
		case l.End != nil:
			t.over = true
			return nil
		}
		if t.input, err = t.told(&l); err != nil {
			t.over = true
			return fmt.Errorf("%w: after %v: %w", ErrRecording, t.at, err)
		}
		if t.input != nil {
			t.ahead = l
			return nil
		}
	}
}

// told is what a line tells the loop, nil where that is nothing.
func (t *tape) told(l *line) (engine.Input, error) {
	if l.Poll == nil {
		if l.Attached != nil {
			t.parser = newParser(l.Attached.Header.Model)
		}
		return l.input()
	}
	s := t.parser.sample(l.Poll)
	l.Poll.Body = "" // a page is large, and was read
	return engine.Sampled{Sample: s}, nil
}

// Snapshots plays a recording through the loop without waiting, and hands over the
// snapshot after each of its lines, until each returns false.
func Snapshots(rec *Recording, version string, each func(*engine.Snapshot) bool) error {
	t, err := newTape(rec, version)
	for err == nil {
		if !each(t.loop.Snapshot()) || t.over {
			return nil
		}
		err = t.step()
	}
	return err
}
