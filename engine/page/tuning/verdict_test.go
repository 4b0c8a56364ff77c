package tuning_test

import (
	"strings"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/effect"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/page/tuning"
	"github.com/rooftop-dev/rooftop/engine/stat"
	"github.com/rooftop-dev/rooftop/engine/verdict"
)

// TestLargeChanges checks that a large change is a factor, and that one from almost nothing is not written.
func TestLargeChanges(t *testing.T) {
	for _, c := range []struct {
		before, after float64
		row           string
	}{
		{0.0055, 7.1, "<0.1 → 7.1 "},
		{0, 7.1, "0 → 7.1 "},
		{0.5, 7.1, "0.5 → 7.1 ×14.2"},
		{2, 7.1, "2 → 7.1 +255 %"},
		{7.1, 0.0055, "7.1 → <0.1 −99.9 %"},
	} {
		run := func(waiting float64) *engine.Diagnosis {
			q := engine.Quantity{Value: stat.Some(waiting), Unit: "req"}
			return &engine.Diagnosis{Measured: []engine.NamedQuantity{{Name: "waiting_mean", Quantity: q}}}
		}
		d := effect.Compare(run(c.before), run(c.after))
		rows := tuning.DeltaRows(&d, nil)
		if len(rows) != 1 {
			t.Fatalf("%v → %v: %d rows", c.before, c.after, len(rows))
		}
		if got := strings.ReplaceAll(rows[0].Before+" → "+rows[0].After+" "+rows[0].ChangeText, figure.NBSP, " "); got != c.row {
			t.Errorf("%v → %v: got %q, want %q", c.before, c.after, got, c.row)
		}
	}
}

func TestTheWarmUpIsNamed(t *testing.T) {
	d := &effect.Delta{Verdict: &verdict.Result{}}
	said := func() (text string) {
		for _, r := range tuning.Remarks(d) {
			if r.Kind == tuning.AboutWarmUp {
				text += strings.ReplaceAll(r.String(), figure.NBSP, " ")
			}
		}
		return text
	}
	if got := said(); got != "" {
		t.Errorf("%q without a warm-up", got)
	}
	d.Verdict.Steady[1].Cut = int(12 * time.Second / engine.WindowLength)
	if got := said(); got != "Left out as warm-up: 12 s after the change." {
		t.Errorf("got %q", got)
	}
}
