package tui

import (
	"strings"
	"testing"

	"github.com/rooftop-dev/rooftop/tui/frame"
)

// TestKeysAreOneEach finds keys that two bindings share outside of a recording, and bindings
// missing from the help.
func TestKeysAreOneEach(t *testing.T) {
	k := frame.Keys()
	owner := map[string]string{}
	bound := 0
	for _, g := range k.Groups() {
		for _, b := range g.Keys {
			bound++
			if b.Help().Key == "" || b.Help().Desc == "" {
				t.Errorf("%v has no help", b.Keys())
			}
			for _, name := range b.Keys() {
				if other, ok := owner[name]; ok && !strings.HasPrefix(g.Title, "Recording") {
					t.Errorf("%s is %q and %q", name, other, b.Help().Desc)
				}
				owner[name] = b.Help().Desc
			}
		}
	}
	m, _, _ := testModel(waitingSnapshot(), frame.Options{Playback: &fakeTape{}})
	if got := len(m.actions()) - 1 + 2; got != bound { // halting a recording shares the key of pausing; two are looked at before
		t.Errorf("%d keys do something, the help has %d", got, bound)
	}
}
