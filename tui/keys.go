package tui

import "charm.land/bubbles/v2/key"

// keyMap is every key of the screen. The table of the README is made from it.
type keyMap struct {
	Help, Quit key.Binding
}
