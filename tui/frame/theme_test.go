package frame

import (
	"image/color"
	"math"
	"testing"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/colorprofile"

	"github.com/rooftop-dev/rooftop/tui/cell"
)

// luminance returns the relative luminance of WCAG 2.2.
func luminance(c color.Color) float64 {
	r, g, b, _ := c.RGBA()
	linear := func(v uint32) float64 {
		f := float64(v) / 0xffff
		if f <= 0.04045 {
			return f / 12.92
		}
		return math.Pow((f+0.055)/1.055, 2.4)
	}
	return 0.2126*linear(r) + 0.7152*linear(g) + 0.0722*linear(b)
}

// contrast returns the contrast ratio of WCAG 2.2, 1..21.
func contrast(a, b color.Color) float64 {
	x, y := luminance(a), luminance(b)
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

// TestContrast requires a contrast of 4.5 for every token on common backgrounds: the defaults of
// terminals, and common schemes.
func TestContrast(t *testing.T) {
	for _, c := range []struct {
		name        string
		styles      [cell.NumTokens]lipgloss.Style
		backgrounds []string
	}{
		{"dark", darkStyles(), []string{"#000000", "#1e1e1e", "#0d1117", "#282c34", "#002b36", "#2e3440", "#300a24"}},
		{"light", lightStyles(), []string{"#ffffff", "#fafafa", "#fdf6e3", "#eff1f5", "#f0f0f0"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for token, style := range c.styles {
				for _, hex := range c.backgrounds {
					foreground, background := style.GetForeground(), lipgloss.Color(hex)
					if _, own := style.GetBackground().(lipgloss.NoColor); !own {
						background = style.GetBackground()
					}
					if _, none := foreground.(lipgloss.NoColor); none {
						continue // the person's own
					}
					if got := contrast(foreground, background); got < 4.5 {
						t.Errorf("token %d on %s: %.2f, want at least 4.5", token, hex, got)
					}
				}
			}
		})
	}
}

// TestBeforeAndAfterDiffer requires that blue and orange differ for users who cannot distinguish
// red from green: by blue against yellow.
func TestBeforeAndAfterDiffer(t *testing.T) {
	for name, styles := range map[string][cell.NumTokens]lipgloss.Style{"dark": darkStyles(), "light": lightStyles()} {
		bluish := func(token cell.Token) float64 {
			r, g, b, _ := styles[token].GetForeground().RGBA()
			return (float64(b) - (float64(r)+float64(g))/2) / 0xffff
		}
		if before, after := bluish(cell.Baseline), bluish(cell.Trial); before < 0.1 || after > -0.1 {
			t.Errorf("%s: before %.2f towards blue, after %.2f", name, before, after)
		}
	}
}

func TestProfile(t *testing.T) {
	for _, c := range []struct {
		name, color string
		env         map[string]string
		want        colorprofile.Profile
	}{
		{"nothing known", "auto", nil, colorprofile.ASCII},
		{"256", "auto", map[string]string{"TERM": "xterm-256color"}, colorprofile.ANSI256},
		{"true colours", "auto", map[string]string{"TERM": "xterm-256color", "COLORTERM": "truecolor"}, colorprofile.TrueColor},
		{"tmux", "auto", map[string]string{"TERM": "tmux-256color", "COLORTERM": "truecolor", "TMUX": "/x"}, colorprofile.ANSI256},
		{"console", "auto", map[string]string{"TERM": "linux"}, colorprofile.ANSI},
		{"dumb", "auto", map[string]string{"TERM": "dumb"}, colorprofile.ASCII},
		{"NO_COLOR", "auto", map[string]string{"TERM": "xterm-256color", "NO_COLOR": "1"}, colorprofile.ASCII},
		{"NO_COLOR is any text", "auto", map[string]string{"TERM": "xterm-256color", "NO_COLOR": "0"}, colorprofile.ASCII},
		{"NO_COLOR empty", "auto", map[string]string{"TERM": "xterm-256color", "NO_COLOR": ""}, colorprofile.ANSI256},
		{"a flag beats it", "always", map[string]string{"TERM": "xterm-256color", "NO_COLOR": "1"}, colorprofile.ANSI256},
		{"always", "always", nil, colorprofile.ANSI},
		{"never", "never", map[string]string{"TERM": "xterm-256color", "COLORTERM": "truecolor"}, colorprofile.ASCII},
	} {
		t.Run(c.name, func(t *testing.T) {
			lookup := func(name string) (string, bool) { v, ok := c.env[name]; return v, ok }
			if got := profileOf(Options{Color: c.color, Env: lookup}); got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

// TestWarningsHaveTheirOwnColour checks that no other meaning is drawn as a warning is.
func TestWarningsHaveTheirOwnColour(t *testing.T) {
	for _, name := range []string{"auto", "dark", "light"} {
		for _, p := range []colorprofile.Profile{colorprofile.ANSI, colorprofile.TrueColor} {
			th := ThemeOf(name, p)
			for token := range cell.NumTokens {
				if token != cell.Warn && th.Paint(token, "x") == th.Paint(cell.Warn, "x") {
					t.Errorf("%s, %v: token %d looks like a warning", name, p, token)
				}
			}
		}
	}
}
