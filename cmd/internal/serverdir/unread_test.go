package serverdir

import (
	"testing"

	"github.com/rooftop-dev/rooftop/cmd/internal/launcher"
)

// A run that took a server and did not begin leaves nothing when it lets go of it.
func TestARunThatDidNotBeginLeavesNothing(t *testing.T) {
	s := open(t, t.TempDir(), server(t))
	_, err := s.Keep(&launcher.Launch{Argv: []string{"a"}})
	must(t, err)
	must(t, s.Close())
	if got := names(t, s.dir); len(got) != 3 {
		t.Errorf("left behind: %v", got)
	}
}

func TestLinesOf(t *testing.T) {
	for want, lines := range map[string][]int{
		"line 3": {3}, "lines 1 to 3": {1, 2, 3}, "lines 1, 3 to 4": {1, 3, 4}, "lines 1, 3, 5, 7, 9, …": {1, 3, 5, 7, 9, 11},
	} {
		if got := linesOf(lines); got != want {
			t.Errorf("%v: %q, want %q", lines, got, want)
		}
	}
}
