package advice

import (
	"testing"
)

// TestEveryFindingIsExplained checks that exactly the ids of the checks have a condition, a
// meaning and a next step.
func TestEveryFindingIsExplained(t *testing.T) {
	found := map[string]bool{}
	for _, check := range checks {
		found[check.id] = false
	}
	for _, e := range Explanations() {
		if _, is := found[e.ID]; !is {
			t.Errorf("%s is explained and never found", e.ID)
		}
		found[e.ID] = true
		if e.Condition == "" || e.Meaning == "" || e.Next == "" {
			t.Errorf("%s is not explained in full: %+v", e.ID, e)
		}
	}
	for name, explained := range found {
		if !explained {
			t.Errorf("%s is not explained", name)
		}
	}
}
