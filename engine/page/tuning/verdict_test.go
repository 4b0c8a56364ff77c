package tuning_test

import (
	"strings"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/effect"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/page/tuning"
	"github.com/rooftop-dev/rooftop/engine/verdict"
)

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
