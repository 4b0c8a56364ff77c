package frame

import (
	"image/color"
	"strings"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/colorprofile"

	"github.com/rooftop-dev/rooftop/tui/cell"
)

// Theme holds the style of every token: the escape sequences around its texts.
type Theme struct{ before, after [cell.NumTokens]string }

func newTheme(styles [cell.NumTokens]lipgloss.Style) Theme {
	var t Theme
	for i := range styles {
		const mark = "x"
		t.before[i], t.after[i], _ = strings.Cut(styles[i].Render(mark), mark)
	}
	return t
}

// Paint returns a text with the escape sequences of its token.
func (t *Theme) Paint(token cell.Token, text string) string {
	if t.before[token] == "" {
		return text
	}
	return t.before[token] + text + t.after[token]
}

// ThemeOf returns the theme with the given name for a terminal's colour profile. With "auto" the
// background is not known (yet): it uses the sixteen colours of the user's own theme, which are
// readable on any background. Values after a change are bold there, because yellow warns.
func ThemeOf(name string, p colorprofile.Profile) Theme {
	switch {
	case p <= colorprofile.ASCII:
		return newTheme(plainStyles())
	case p == colorprofile.ANSI:
		return newTheme(ansiStyles())
	case name == "dark":
		return newTheme(darkStyles())
	case name == "light":
		return newTheme(lightStyles())
	}
	return newTheme(ansiStyles())
}

func fg(hex string) lipgloss.Style { return lipgloss.NewStyle().Foreground(lipgloss.Color(hex)) }

// darkStyles are for dark backgrounds. Body and headlines have the terminal's own colour. Blue and
// orange, for before and after, can be distinguished with any colour vision.
func darkStyles() [cell.NumTokens]lipgloss.Style {
	return [cell.NumTokens]lipgloss.Style{
		cell.Strong: lipgloss.NewStyle().Bold(true), cell.Muted: fg("#a3abb5"), cell.Title: fg("#8fd3e8").Bold(true), cell.Border: fg("#9aa2ad"),
		cell.Accent: fg("#5ed7e6").Bold(true), cell.OK: fg("#7ee08a"), cell.Warn: fg("#ffe169"), cell.Bad: fg("#ff8f87").Bold(true),
		cell.Baseline: fg("#84bfff"), cell.Trial: fg("#ffa05c"), cell.Achievable: fg("#c3b3ff"), cell.Ideal: fg("#a3abb5"),
		cell.Key: lipgloss.NewStyle().Bold(true), cell.Disabled: fg("#9aa2ad"),
		cell.Selected: fg("#0b1220").Background(lipgloss.Color("#84bfff")).Bold(true),
	}
}

// lightStyles are for light backgrounds.
func lightStyles() [cell.NumTokens]lipgloss.Style {
	return [cell.NumTokens]lipgloss.Style{
		cell.Strong: lipgloss.NewStyle().Bold(true), cell.Muted: fg("#545c66"), cell.Title: fg("#0a5568").Bold(true), cell.Border: fg("#5a626c"),
		cell.Accent: fg("#00626f").Bold(true), cell.OK: fg("#146327"), cell.Warn: fg("#7d5000"), cell.Bad: fg("#a81c14").Bold(true),
		cell.Baseline: fg("#0a4fa8"), cell.Trial: fg("#97380a"), cell.Achievable: fg("#5a3cab"), cell.Ideal: fg("#545c66"),
		cell.Key: lipgloss.NewStyle().Bold(true), cell.Disabled: fg("#5a626c"),
		cell.Selected: fg("#ffffff").Background(lipgloss.Color("#0a4fa8")).Bold(true),
	}
}

// ansiStyles use only the sixteen colours, whose appearance the user chooses. Muted text is faint
// rather than bright black, which common schemes set to the background colour.
func ansiStyles() [cell.NumTokens]lipgloss.Style {
	foreground := func(c color.Color) lipgloss.Style { return lipgloss.NewStyle().Foreground(c) }
	faint, bold := lipgloss.NewStyle().Faint(true), lipgloss.NewStyle().Bold(true)
	return [cell.NumTokens]lipgloss.Style{
		cell.Strong: bold, cell.Muted: faint, cell.Title: foreground(lipgloss.Cyan).Bold(true), cell.Border: faint,
		cell.Accent: foreground(lipgloss.Cyan).Bold(true), cell.OK: foreground(lipgloss.Green), cell.Warn: foreground(lipgloss.Yellow), cell.Bad: foreground(lipgloss.Red).Bold(true),
		cell.Baseline: foreground(lipgloss.Blue), cell.Trial: bold, cell.Achievable: foreground(lipgloss.Magenta), cell.Ideal: faint,
		cell.Key: bold, cell.Disabled: faint, cell.Selected: lipgloss.NewStyle().Reverse(true),
	}
}

// plainStyles have no colour: bold for what to read first, reverse for the selection.
func plainStyles() [cell.NumTokens]lipgloss.Style {
	bold := lipgloss.NewStyle().Bold(true)
	return [cell.NumTokens]lipgloss.Style{
		cell.Strong: bold, cell.Title: bold, cell.Accent: bold, cell.Bad: bold, cell.Key: bold,
		cell.Selected: lipgloss.NewStyle().Reverse(true),
	}
}

// profileOf returns the colour profile: what the user asked for, or else what the environment
// variables suggest. It runs no program to find out.
func profileOf(o Options) colorprofile.Profile {
	lookup := o.Env
	if lookup == nil {
		lookup = func(string) (string, bool) { return "", false }
	}
	var env []string
	for _, name := range []string{"TERM", "COLORTERM", "WT_SESSION", "GOOGLE_CLOUD_SHELL"} {
		if v, ok := lookup(name); ok {
			env = append(env, name+"="+v)
		}
	}
	terminal := colorprofile.Env(env)
	switch o.Color {
	case "never":
		return colorprofile.ASCII
	case "always":
		return max(terminal, colorprofile.ANSI)
	}
	if v, ok := lookup("NO_COLOR"); ok && v != "" {
		return colorprofile.ASCII
	}
	return max(terminal, colorprofile.ASCII)
}
