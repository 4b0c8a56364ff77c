package frame

import (
	"testing"

	tea "charm.land/bubbletea/v2"
)

// TestNoSizeTakesAllMemory: a size that no terminal has is cut, and nothing else is.
func TestNoSizeTakesAllMemory(t *testing.T) {
	for msg, want := range map[tea.Msg]tea.Msg{
		tea.WindowSizeMsg{Width: 65535, Height: 65535}: tea.WindowSizeMsg{Width: widest, Height: tallest},
		tea.WindowSizeMsg{Width: 80, Height: 24}:       tea.WindowSizeMsg{Width: 80, Height: 24},
		tea.FocusMsg{}:                                 tea.FocusMsg{},
	} {
		if got := believed(nil, msg); got != want {
			t.Errorf("%v: %v, want %v", msg, got, want)
		}
	}
}
