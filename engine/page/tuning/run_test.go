package tuning

import (
	"strings"
	"testing"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/loop"
	"github.com/rooftop-dev/rooftop/engine/page"
)

// A run in which nothing was changed does not look well where nothing could be judged.
func TestHeadlineOfARunWithoutAChange(t *testing.T) {
	for _, c := range []struct {
		baseline engine.Diagnosis
		tone     page.Tone
		words    string
	}{
		{engine.Diagnosis{Outcome: engine.OutcomeHealthy}, page.Body, "Nothing was changed"},
		{engine.Diagnosis{Outcome: engine.OutcomeHealthy, Overload: "requests wait"}, page.Warn, "the server is overloaded"},
		{engine.Diagnosis{Outcome: engine.OutcomeNotEvaluable}, page.Warn, "Not evaluable, and nothing was changed"},
	} {
		tone, words := Run{&loop.Snapshot{Attached: true, Baseline: &c.baseline}}.Headline()
		if tone != c.tone || !strings.Contains(words, c.words) {
			t.Errorf("%s, overload %q: %q in tone %v", c.baseline.Outcome, c.baseline.Overload, words, tone)
		}
	}
}
