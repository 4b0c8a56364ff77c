package figure

import (
	"strings"
	"unicode"
)

// ASCII spells text in seven bits, for terminals and fonts that have no other: a
// minus is "-", an arrow "->", a micro "u". What has no such spelling becomes "?".
// A no-break space stays, for whoever breaks the lines.
func ASCII(s string) string {
	if sevenBit(s) {
		return s
	}
	return strings.Map(func(r rune) rune {
		if r > unicode.MaxASCII && r != '\u00a0' {
			return '?'
		}
		return r
	}, spelled.Replace(s))
}

func sevenBit(s string) bool {
	for i := range len(s) {
		if s[i] > unicode.MaxASCII {
			return false
		}
	}
	return true
}

// spelled has what rooftop itself writes and draws, and the commonest other signs.
var spelled = strings.NewReplacer(
	"●", "*", "▲", "!", "✖", "x", "–", "-", "—", "-", "−", "-", "→", "->", "←", "<-", "×", "x", "·", "|",
	"█", "#", "░", "=", "╌", ".", "▏", "|", "…", "...", "≥", ">=", "≤", "<=", "≈", "~", "±", "+-", "µ", "u", "μ", "u", "°", "", "∞", "inf",
	"“", `"`, "”", `"`, "‘", "'", "’", "'", "²", "2", "³", "3", "¹", "1", "½", "1/2", "Δ", "delta", "†", "^", "÷", "/", "é", "e", "ü", "u", "ö", "o", "ä", "a",
	"↑", "^", "↓", "v", "─", "-", "│", "|", "◆", "O", "◇", "o", "▼", "v",
)
