package frame

import (
	"fmt"
	"image/color"
	"maps"
	"slices"
	"strconv"
	"strings"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/colorprofile"

	"github.com/rooftop-dev/rooftop/tui/cell"
)

// Colors are a user's styles, which replace those of the theme.
type Colors map[cell.Token]lipgloss.Style

// tokenNames are the names of tokens in a file of colours.
func tokenNames() map[string]cell.Token {
	return map[string]cell.Token{
		"body": cell.Body, "strong": cell.Strong, "muted": cell.Muted, "accent": cell.Accent, "ok": cell.OK, "warn": cell.Warn, "bad": cell.Bad,
		"title": cell.Title, "border": cell.Border, "baseline": cell.Baseline, "trial": cell.Trial, "achievable": cell.Achievable,
		"ideal": cell.Ideal, "key": cell.Key, "disabled": cell.Disabled, "selected": cell.Selected,
	}
}

// ParseColors reads a file of colours: lines such as "warn = #ffe169 bold" or
// "selected = 15 on #0a4fa8". A colour is #rrggbb or a number from 0 to 255 of the terminal's
// palette. Further words are bold, faint, underline and reverse; # begins a comment. Errors name
// the line.
func ParseColors(text string) (Colors, error) {
	c := Colors{}
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, value, _ := strings.Cut(line, "=")
		token, ok := tokenNames()[strings.TrimSpace(name)]
		if !ok {
			return nil, fmt.Errorf("line %d: %q is none of %s", i+1, strings.TrimSpace(name), strings.Join(slices.Sorted(maps.Keys(tokenNames())), ", "))
		}
		style, err := parseStyle(strings.Fields(value))
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", i+1, err)
		}
		c[token] = style
	}
	return c, nil
}

func parseStyle(words []string) (lipgloss.Style, error) {
	s := lipgloss.NewStyle()
	if len(words) == 0 {
		return s, fmt.Errorf("a colour is missing: give #rrggbb or 0 to 255")
	}
	behind := false
	for _, w := range words {
		switch w {
		case "bold":
			s = s.Bold(true)
		case "faint":
			s = s.Faint(true)
		case "underline":
			s = s.Underline(true)
		case "reverse":
			s = s.Reverse(true)
		case "on":
			behind = true
		default:
			shade, err := parseColor(w)
			switch {
			case err != nil:
				return s, err
			case behind:
				s = s.Background(shade)
			default:
				s = s.Foreground(shade)
			}
		}
	}
	return s, nil
}

func parseColor(w string) (color.Color, error) {
	digits, hex := strings.CutPrefix(w, "#")
	base, most := 10, 3
	if hex {
		base, most = 16, 6
	}
	n, err := strconv.ParseUint(digits, base, 32)
	if err != nil || hex && len(digits) != most || !hex && n > 255 {
		return nil, fmt.Errorf("%q is no colour: give #rrggbb or 0 to 255", w)
	}
	return lipgloss.Color(w), nil
}

// themeOf returns the named theme with the user's colours.
func (d *Display) themeOf(name string) Theme {
	t := ThemeOf(name, d.profile)
	if d.profile <= colorprofile.ASCII {
		return t
	}
	for token, style := range d.Options.Colors {
		t.styles[token] = style
	}
	return newTheme(t.styles)
}
