package tui

import (
	"image/color"
	"strings"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/colorprofile"

	"github.com/rooftop-dev/rooftop/tui/cell"
)

// theme gives every token its look.
type theme struct {
	styles [cell.NumTokens]lipgloss.Style
	// before and after are what a style writes around a text.
	before, after [cell.NumTokens]string
}

func newTheme(styles [cell.NumTokens]lipgloss.Style) theme {
	t := theme{styles: styles}
	for i := range styles {
		const mark = "x"
		t.before[i], t.after[i], _ = strings.Cut(styles[i].Render(mark), mark)
	}
	return t
}

// paint writes a text in the look of its token.
func (t *theme) paint(token cell.Token, text string) string {
	if t.before[token] == "" {
		return text
	}
	return t.before[token] + text + t.after[token]
}

// themeOf returns the theme of a name on a terminal of some colours. "auto" is one
// whose background is not known (yet): it keeps to the sixteen colours that the
// person's own theme gives, which are readable on either.
func themeOf(name string, p colorprofile.Profile) theme {
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

// darkStyles are for dark backgrounds. Body and headlines have the terminal's own
// colour. Blue and orange, before and after, differ for everybody.
func darkStyles() [cell.NumTokens]lipgloss.Style {
	return [cell.NumTokens]lipgloss.Style{
		cell.Strong: lipgloss.NewStyle().Bold(true), cell.Muted: fg("#a3abb5"), cell.Title: fg("#8fd3e8").Bold(true), cell.Border: fg("#9aa2ad"),
		cell.Accent: fg("#5ed7e6").Bold(true), cell.OK: fg("#7ee08a"), cell.Warn: fg("#ffd166"), cell.Bad: fg("#ff8f87").Bold(true),
		cell.Baseline: fg("#84bfff"), cell.Trial: fg("#ffb070"), cell.Achievable: fg("#c3b3ff"), cell.Ideal: fg("#a3abb5"),
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

// ansiStyles keep to the sixteen colours, whose looks are the person's choice. What
// is muted is faint rather than bright black, which common schemes give the colour
// of their background.
func ansiStyles() [cell.NumTokens]lipgloss.Style {
	of := func(c color.Color) lipgloss.Style { return lipgloss.NewStyle().Foreground(c) }
	faint, bold := lipgloss.NewStyle().Faint(true), lipgloss.NewStyle().Bold(true)
	return [cell.NumTokens]lipgloss.Style{
		cell.Strong: bold, cell.Muted: faint, cell.Title: of(lipgloss.Cyan).Bold(true), cell.Border: faint,
		cell.Accent: of(lipgloss.Cyan).Bold(true), cell.OK: of(lipgloss.Green), cell.Warn: of(lipgloss.Yellow), cell.Bad: of(lipgloss.Red).Bold(true),
		cell.Baseline: of(lipgloss.Blue), cell.Trial: of(lipgloss.Yellow), cell.Achievable: of(lipgloss.Magenta), cell.Ideal: faint,
		cell.Key: bold, cell.Disabled: faint, cell.Selected: lipgloss.NewStyle().Reverse(true),
	}
}

// plainStyles have no colour: bold for what to read first, reverse for what is
// chosen.
func plainStyles() [cell.NumTokens]lipgloss.Style {
	bold := lipgloss.NewStyle().Bold(true)
	return [cell.NumTokens]lipgloss.Style{
		cell.Strong: bold, cell.Title: bold, cell.Accent: bold, cell.Bad: bold, cell.Key: bold,
		cell.Selected: lipgloss.NewStyle().Reverse(true),
	}
}

// profileOf is how many colours are used: what a person asked for, else what the
// environment says of the terminal. No program is run to find out.
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
