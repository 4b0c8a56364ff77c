package document_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/autopilot"
	"github.com/rooftop-dev/rooftop/cmd/internal/document"
	"github.com/rooftop-dev/rooftop/cmd/internal/render"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/effect"
	"github.com/rooftop-dev/rooftop/engine/loop"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// story is a run with every kind of event, as emitted by the loop.
func story() []loop.Event {
	before, after := slotsRaised()
	change := engine.Change{Flag: "--max-num-seqs", From: "128", To: "256"}
	delta, worse := effect.Compare(before, after), effect.Compare(after, before)
	command, changed := launchWith(128), launchWith(256)
	first, second := iteration(1, 128, 256, before, nil, loop.IterationOpen), iteration(2, 256, 128, after, nil, loop.IterationOpen)
	return []loop.Event{
		{T: 1 * time.Second, Kind: loop.EventAttached, Target: before.Target, Command: command},
		{T: 3 * time.Second, Kind: loop.EventWindow, Window: &engine.Window{Duration: 2 * time.Second, Evaluable: true, Running: stat.Some(3)}},
		{T: 21 * time.Second, Kind: loop.EventMeasured, Diagnosis: before},
		{T: 21 * time.Second, Kind: loop.EventDiagnosis, Diagnosis: before},
		{T: 21 * time.Second, Kind: loop.EventRecommendation, Iteration: 1, Advice: before.Recommendation},
		{T: 50 * time.Second, Kind: loop.EventApplying, Iteration: 1, Change: change, Command: changed},
		{T: 51 * time.Second, Kind: loop.EventServerDown, Iteration: 1, Text: "connection refused"},
		{T: 60 * time.Second, Kind: loop.EventServerUp, Iteration: 1, Command: changed, Took: 9 * time.Second, Text: "the server answers again after 9.0 s, restarted"},
		{T: 60 * time.Second, Kind: loop.EventAttached, Iteration: 1, Target: before.Target, Command: changed},
		{T: 60 * time.Second, Kind: loop.EventSettling, Iteration: 1, Opened: &first},
		{T: 90 * time.Second, Kind: loop.EventMeasured, Iteration: 1, Diagnosis: after},
		{T: 90 * time.Second, Kind: loop.EventDiagnosis, Iteration: 1, Diagnosis: after},
		{T: 90 * time.Second, Kind: loop.EventVerdict, Iteration: 1, Delta: &delta, Advice: before.Recommendation},
		{T: 90 * time.Second, Kind: loop.EventKept, Iteration: 1, Change: change, Command: changed},
		{T: 90 * time.Second, Kind: loop.EventRecommendation, Iteration: 2, Text: "no rule fired"},
		{T: 300 * time.Second, Kind: loop.EventServerDown, Text: "connection refused"},
		{T: 310 * time.Second, Kind: loop.EventServerUp, Iteration: 1, Text: "the server answers again after 10 s, restarted"},
		{T: 310 * time.Second, Kind: loop.EventSettling, Iteration: 2, Opened: &second, Text: "settling: measuring starts once the load is steady"},
		{T: 342 * time.Second, Kind: loop.EventVerdict, Iteration: 2, Delta: &worse},
		{T: 342 * time.Second, Kind: loop.EventPaused, Iteration: 2, Text: "worse: revert or continue?"},
		{T: 350 * time.Second, Kind: loop.EventContinued, Iteration: 2},
		{T: 360 * time.Second, Kind: loop.EventReverted, Iteration: 2, Change: engine.Change{Flag: "--enforce-eager", From: "off", To: "on"}},
		{T: 3700 * time.Second, Kind: loop.EventUnhealthy, Condition: engine.Condition{State: engine.Dead, Lasted: 4 * time.Second, Reason: "/health answers 503"}, Text: "the engine is dead: /health answers 503"},
		{T: 3720 * time.Second, Kind: loop.EventRecovered, Condition: engine.Condition{State: engine.Hung, Reason: "no tokens"}, Took: 24 * time.Second, Text: "the server works again: it was hung for 24 s"},
		{T: 3900 * time.Second, Kind: loop.EventError, Text: "no answer"},
		{T: 3901 * time.Second, Kind: loop.EventFinished, Finished: &loop.Finished{Reason: "nothing is left to recommend", Command: changed, Gain: delta.Throughput, Restarts: 1}},
	}
}

func TestEventsOfALoopMatchSchema(t *testing.T) {
	var b bytes.Buffer
	e := document.NewEvents(&b)
	s := schema(t, "event.v1.schema.json")
	events := append(story(), pilotedStory()...)
	for _, kind := range []loop.EventKind{
		loop.EventWindow, loop.EventMeasured, loop.EventServerDown, loop.EventServerUp, loop.EventVerdict,
		loop.EventPaused, loop.EventError, loop.EventFinished, loop.EventKept, loop.EventUnhealthy, loop.EventRecovered,
		loop.EventTrial, loop.EventPending, loop.EventSpread,
	} {
		events = append(events, loop.Event{Kind: kind}) // only the kind is set
	}
	for _, v := range events {
		e.Event(v)
	}
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	if len(lines) != len(events) || e.Err() != nil {
		t.Fatalf("%d lines of %d events, %v", len(lines), len(events), e.Err())
	}
	for i, l := range lines {
		if want := fmt.Sprintf(`"seq":%d,"t":%d,`, i+1, int(events[i].T.Seconds())); !strings.Contains(l, want) {
			t.Errorf("line %d lacks %s: %s", i+1, want, l)
		}
		if err := s.Validate(decoded(t, []byte(l))); err != nil {
			t.Errorf("%s: %v\n%s", events[i].Kind, err, l)
		}
	}
}

// Events are marked from the first simulated server on.
func TestEventMarksSimulatedServers(t *testing.T) {
	var b bytes.Buffer
	e := document.NewEvents(&b)
	e.Event(loop.Event{Kind: loop.EventError, Text: "x"})
	e.Event(loop.Event{Kind: loop.EventAttached, Target: engine.Target{Simulated: true}})
	e.Event(loop.Event{Kind: loop.EventError, Text: "x"})
	lines := strings.Split(b.String(), "\n")
	for i, want := range []string{`"simulated":false`, `"simulated":true`, `"simulated":true`} {
		if !strings.Contains(lines[i], want) {
			t.Errorf("line %d lacks %s: %s", i+1, want, lines[i])
		}
	}
}

func TestFollowersKeepTheFirstError(t *testing.T) {
	for name, f := range map[string]autopilot.Follower{"events": document.NewEvents(brokenPipe{}), "lines": autopilot.NewNarrator(brokenPipe{}, render.Options{})} {
		for _, e := range story() {
			f.Event(e)
		}
		if err := f.Err(); err == nil || err.Error() != "broken pipe" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Control characters in a server's texts do not reach the terminal.
func TestNarratorIsSafe(t *testing.T) {
	const evil = "x\x1b]0;title\a\x1b[2Jy\u202ez\nw"
	var b bytes.Buffer
	n := autopilot.NewNarrator(&b, render.Options{Width: 80})
	target := engine.Target{URL: evil, Engine: evil, EngineVersion: evil, Model: evil}
	for _, kind := range []loop.EventKind{
		loop.EventAttached, loop.EventServerUp, loop.EventServerDown, loop.EventSettling, loop.EventMeasured, loop.EventRecommendation,
		loop.EventApplying, loop.EventVerdict, loop.EventKept, loop.EventPaused, loop.EventError, loop.EventFinished,
	} {
		n.Event(loop.Event{
			Kind: kind, Text: evil, Target: target, Command: evil, Change: engine.Change{Flag: evil, From: evil, To: evil},
			Advice: &engine.Recommendation{Fix: engine.Fix{Kind: engine.KindFlag, Command: evil, Why: evil}}, Finished: &loop.Finished{Reason: evil, Command: evil},
		})
	}
	for _, r := range b.String() {
		if r < ' ' && r != '\n' || r == '\u202e' {
			t.Fatalf("%q was printed:\n%q", r, b.String())
		}
	}
}
