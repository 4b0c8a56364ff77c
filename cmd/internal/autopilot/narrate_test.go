package autopilot_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/rooftop-dev/rooftop/cmd/internal/autopilot"
	"github.com/rooftop-dev/rooftop/cmd/internal/render"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/loop"
)

// lines returns what a narrator prints of events.
func lines(events ...loop.Event) string {
	var b bytes.Buffer
	n := autopilot.NewNarrator(&b, render.Options{Width: 200})
	for _, e := range events {
		n.Event(e)
	}
	return b.String()
}

func TestAPreliminaryAnswerSaysSoFirst(t *testing.T) {
	r := &engine.Recommendation{Finding: "concurrency-saturation", Fix: engine.Fix{Kind: engine.KindFlag, Flag: "--max-num-seqs", From: "16", To: "64", Command: "restart vLLM with --max-num-seqs 64"}}
	d := &engine.Diagnosis{Outcome: engine.OutcomeRecommendation, Recommendation: r}
	got := lines(loop.Event{Kind: loop.EventDiagnosis, Diagnosis: d}, loop.Event{Kind: loop.EventRecommendation, Advice: r, Preliminary: "while the KV pool is still filling"})
	before, after, found := strings.Cut(got, "do not make this change yet")
	if !found || strings.Contains(before, "restart vLLM") || strings.Count(after, "restart vLLM") != 1 || strings.Contains(after, "do not make") {
		t.Errorf("got\n%s", got)
	}
	got = lines(loop.Event{Kind: loop.EventDiagnosis, Diagnosis: d}, loop.Event{Kind: loop.EventRecommendation, Advice: r})
	if strings.Contains(got, "preliminary") || strings.Count(got, "restart vLLM") != 1 {
		t.Errorf("a recommendation that stands:\n%s", got)
	}
}

func TestOnlyARunWithNothingLeftIsDone(t *testing.T) {
	for code, want := range map[int]string{0: "done: nothing was changed", 3: "stopped: nothing was changed", 4: "stopped: nothing was changed"} {
		if got := lines(loop.Event{Kind: loop.EventFinished, Finished: &loop.Finished{ExitCode: code, Reason: "reason"}}); !strings.Contains(got, want) {
			t.Errorf("exit code %d: %q, want %q", code, got, want)
		}
	}
}
