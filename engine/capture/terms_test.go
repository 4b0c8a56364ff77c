package capture

import (
	"strings"
	"testing"

	"github.com/rooftop-dev/rooftop/engine/page/tuning"
)

// TestTerms checks that each word leads to one term, including the terms of the loop, and that the
// text of a warning says when it is given and what to do.
func TestTerms(t *testing.T) {
	of := map[string]string{}
	for _, e := range append(tuning.Terms(), Terms()...) {
		for _, word := range append([]string{e.Name}, e.Also...) {
			word = strings.ToLower(word)
			if of[word] != "" {
				t.Errorf("%q leads to %q and to %q", word, of[word], e.Name)
			}
			of[word] = e.Name
		}
	}
	for _, id := range []string{"idle-pid", "wrong-tree", "part-of-server", "cpu-starved", "cpu-throttled", "server-ended"} {
		found := false
		for _, e := range Terms() {
			if text := strings.Join(e.Meaning, "\n"); e.Name == id {
				found = strings.Contains(text, "Condition: ") && strings.Contains(text, "Meaning: ") && strings.Contains(text, "Next: ")
			}
		}
		if !found {
			t.Errorf("%s is not explained with its condition, meaning and next step", id)
		}
	}
}
