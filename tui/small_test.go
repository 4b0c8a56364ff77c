package tui

import (
	"strings"
	"testing"

	"github.com/rooftop-dev/rooftop/tui/frame"
)

// TestSmallAsksWithItsKeys checks that a question on a small terminal includes the keys that answer
// it.
func TestSmallAsksWithItsKeys(t *testing.T) {
	for _, size := range [][2]int{{20, 6}, {30, 10}, {59, 15}, {200, 8}} {
		for _, c := range []struct{ state, keys, want string }{
			{"waiting", "a", "y yes, n no"}, {"measuring", "q", "y yes, n no"}, {"worse", "1", "r revert, c continue"}, {"waiting", "y", "esc closes"},
		} {
			s := *snapshotNamed(t, c.state)
			m, _, _ := testModel(withHands(&s), frame.Options{})
			press(m, c.keys)
			if text := plainFrame(m.shown, &m.Settings, size[0], size[1]); !strings.Contains(text, c.want) {
				t.Errorf("%s at %dx%d: no %q in\n%s", c.state, size[0], size[1], c.want, text)
			}
		}
	}
}
