package bench

import (
	"strings"
	"testing"

	"github.com/rooftop-dev/rooftop/engine"
)

// TestOverloadedServersSaySo checks that a server is not called healthy if requests queue and no change helps.
func TestOverloadedServersSaySo(t *testing.T) {
	for name, want := range map[string]string{
		"prefill-saturated/32b-h100-crowd": "requests wait: steps use 100", "healthy/8b-a100": "", "low-batch/8b-l4": "", "burst/8b-a100": "",
	} {
		sc := scenarioNamed(t, name)
		out, err := Run(&sc, nil, Options{Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		d := &out.Diagnosis
		if want == "" && d.Overload != "" || !strings.Contains(d.Overload, want) || want != "" && d.Outcome != engine.OutcomeHealthy {
			t.Errorf("%s: outcome %s, overload %q, want %q", name, d.Outcome, d.Overload, want)
		}
	}
}
