package tui

import (
	"strings"
	"testing"
)

// TestKeysAreOneEach finds a key that two bindings share outside of a recording,
// and a binding that the help leaves out.
func TestKeysAreOneEach(t *testing.T) {
	k := keys()
	owner := map[string]string{}
	bound := 0
	for _, g := range k.groups() {
		for _, b := range g.keys {
			bound++
			if b.Help().Key == "" || b.Help().Desc == "" {
				t.Errorf("%v has no help", b.Keys())
			}
			for _, name := range b.Keys() {
				if other, ok := owner[name]; ok && !strings.HasPrefix(g.title, "Recording") {
					t.Errorf("%s is %q and %q", name, other, b.Help().Desc)
				}
				owner[name] = b.Help().Desc
			}
		}
	}
	m, _, _ := testModel(waitingSnapshot(), Options{Playback: &fakeTape{}})
	if got := len(m.actions()) - 1 + 2; got != bound { // halting a recording shares the key of pausing; two are looked at before
		t.Errorf("%d keys do something, the help has %d", got, bound)
	}
}
