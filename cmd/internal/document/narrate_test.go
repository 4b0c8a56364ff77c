package document_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/rooftop-dev/rooftop/cmd/internal/autopilot"
	"github.com/rooftop-dev/rooftop/cmd/internal/document"
	"github.com/rooftop-dev/rooftop/cmd/internal/render"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/loop"
)

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
