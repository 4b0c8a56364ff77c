package figure

import (
	"strings"
	"unicode"
)

// ASCII returns the text in seven bits, for terminals and fonts without other characters: a minus becomes
// "-", an arrow "->", a micro "u". Characters without an equivalent become "?". A no-break space is
// kept for line breaking.
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

// spelled maps the characters that rooftop itself writes and draws, and the most common others.
var spelled = strings.NewReplacer(
	"●", "*", "▲", "!", "✖", "x", "–", "-", "—", "-", "−", "-", "→", "->", "←", "<-", "×", "x", "·", "|",
	"█", "#", "░", "=", "╌", ".", "▏", "|", "…", "...", "≥", ">=", "≤", "<=", "≈", "~", "±", "+-", "µ", "u", "μ", "u", "°", "", "∞", "inf",
	"“", `"`, "”", `"`, "‘", "'", "’", "'", "²", "2", "³", "3", "¹", "1", "½", "1/2", "Δ", "delta", "†", "^", "÷", "/", "é", "e", "ü", "u", "ö", "o", "ä", "a",
	"↑", "^", "↓", "v", "─", "-", "│", "|", "◆", "O", "◇", "o", "▼", "v",
)
