package tui

import (
	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/colorprofile"

	"github.com/rooftop-dev/rooftop/tui/cell"
)

// theme gives every token its look.
type theme [cell.NumTokens]lipgloss.Style

// profileOf is the colour profile that a person asked for.
func profileOf(Options) colorprofile.Profile { return colorprofile.ASCII }
