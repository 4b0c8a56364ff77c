package main

import (
	"strings"
	"testing"

	"github.com/rooftop-dev/rooftop/engine/loop"
)

// TestARunWithoutMeasurementsSaysThatNothingIsKept ends a run before its first window.
func TestARunWithoutMeasurementsSaysThatNothingIsKept(t *testing.T) {
	state := t.TempDir()
	env := func(name string) (string, bool) { return state, name == "XDG_STATE_HOME" }
	if got := (&fileOptions{}).keep(env, &loop.Snapshot{Attached: true}, ""); !strings.Contains(got.note, "nothing was measured") || len(got.files) > 0 {
		t.Errorf("%+v", got)
	}
	if got := (&fileOptions{}).keep(env, &loop.Snapshot{}, ""); got.note != "" {
		t.Errorf("no server was found, which is said elsewhere: %q", got.note)
	}
	if got := (&fileOptions{none: true}).keep(env, &loop.Snapshot{Attached: true}, ""); got.note != "" {
		t.Errorf("with --no-report: %q", got.note)
	}
}
