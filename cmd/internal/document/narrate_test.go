package document_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/render"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/effect"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/loop"
	"github.com/rooftop-dev/rooftop/engine/page/tuning"
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
	e := NewEvents(&b)
	s := schema(t, "event.v1.schema.json")
	events := story()
	for _, kind := range []loop.EventKind{
		loop.EventWindow, loop.EventMeasured, loop.EventServerDown, loop.EventServerUp, loop.EventVerdict,
		loop.EventPaused, loop.EventError, loop.EventFinished, loop.EventKept, loop.EventUnhealthy, loop.EventRecovered,
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
	e := NewEvents(&b)
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

func TestNarratorGoldens(t *testing.T) {
	for _, c := range []struct {
		name      string
		simulated bool
		o         Options
	}{
		{"narrated-80", false, Options{Options: render.Options{Width: 80}}},
		{"narrated-simulated-60-ascii", true, Options{Options: render.Options{Width: 60, ASCII: true}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var b bytes.Buffer
			n := NewNarrator(&b, c.o)
			n.Simulated = c.simulated
			n.Intro("a run is about to be told", "32 clients")
			for _, e := range story() {
				n.Event(e)
			}
			if n.Err() != nil {
				t.Fatal(n.Err())
			}
			checkWidth(t, b.String(), c.o.Width)
			golden(t, c.name+".txt", b.Bytes())
			for l := range strings.Lines(b.String()) {
				if c.simulated && l != "\n" && !strings.HasPrefix(l, " ") && !strings.HasPrefix(l, Simulated) {
					t.Errorf("not marked: %q", l)
				}
				if strings.ContainsAny(l, "\r\x1b\b") {
					t.Errorf("moves the cursor: %q", l)
				}
			}
		})
	}
}

func TestFollowersKeepTheFirstError(t *testing.T) {
	for name, f := range map[string]Follower{"events": NewEvents(brokenPipe{}), "lines": NewNarrator(brokenPipe{}, Options{Options: render.Options{}})} {
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
	n := NewNarrator(&b, Options{Options: render.Options{Width: 80}})
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
			t.Fatalf("%q was told:\n%q", r, b.String())
		}
	}
}

func TestLasted(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0 s", 400 * time.Millisecond: "0 s", 59600 * time.Millisecond: "1 min", 252 * time.Second: "4 min 12 s",
		time.Hour: "1 h", 7499 * time.Second: "2 h 4 min", -time.Second: "0 s",
	} {
		if got := strings.ReplaceAll(figure.Elapsed(d), nbsp, " "); got != want {
			t.Errorf("%v is %q, want %q", d, got, want)
		}
	}
}

func TestSpelled(t *testing.T) {
	for want, list := range map[string][]engine.Change{
		"--max-num-seqs 4 → 32":                {{Flag: "--max-num-seqs", From: "4", To: "32"}},
		"--max-num-seqs unset → 32, --x a → b": {{Flag: "--max-num-seqs", To: "32"}, {Flag: "--x", From: "a", To: "b"}},
		"settings that cannot be read":         {{}},
	} {
		if got := strings.ReplaceAll(tuning.Changes(list...), nbsp, " "); got != want {
			t.Errorf("%+v is %q, want %q", list, got, want)
		}
	}
}
