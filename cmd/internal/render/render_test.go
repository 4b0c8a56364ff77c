package render

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

func TestEscaped(t *testing.T) {
	for in, want := range map[string]string{
		"max_num_seqs":              "max_num_seqs",
		"_a_ __b__ c_":              `\_a\_ \_\_b\_\_ c\_`,
		"a|b":                       `a\|b`,
		"--max-num-seqs 4":          "--max-num-seqs 4",
		"![x](http://h) [y](z)":     `!\[x\](http://h) \[y\](z)`,
		"<b>&lt;":                   "&lt;b>&amp;lt;",
		"`rm` **now** $x$ ~~z~~ \\": "\\`rm\\` \\*\\*now\\*\\* \\$x\\$ \\~\\~z\\~\\~ \\\\",
		"a\nb\x1b[2J":               "a b\ufffd\\[2J",
	} {
		if got := escapeMarkdown(in); got != want {
			t.Errorf("%q is %q, want %q", in, got, want)
		}
	}
}

func TestParagraph(t *testing.T) {
	for in, want := range map[string]string{"# title": `\# title`, "- item": `\- item`, "+1 %": `\+1 %`, "one - two": "one - two", "": "", "  # x": `\# x`, "_a_": `\_a\_`} {
		if got := escapeParagraph(in); got != want {
			t.Errorf("%q is %q, want %q", in, got, want)
		}
	}
}

// luminance is the relative luminance of a colour #rrggbb or #rgb (WCAG 2.2).
func luminance(t *testing.T, colour string) float64 {
	t.Helper()
	if len(colour) == 4 {
		colour = "#" + strings.Repeat(colour[1:2], 2) + strings.Repeat(colour[2:3], 2) + strings.Repeat(colour[3:4], 2)
	}
	sum := 0.0
	for i, weight := range []float64{.2126, .7152, .0722} {
		n, err := strconv.ParseUint(colour[1+2*i:3+2*i], 16, 8)
		if err != nil {
			t.Fatal(err)
		}
		c := float64(n) / 255
		if c <= .04045 {
			c /= 12.92
		} else {
			c = math.Pow((c+.055)/1.055, 2.4)
		}
		sum += weight * c
	}
	return sum
}

// Texts must have a contrast of at least 4.5 to their background, lines of a plot 3, in light and dark mode (WCAG 2.2, 1.4.3
// and 1.4.11).
func TestContrast(t *testing.T) {
	themes := regexp.MustCompile(`(?s):root \{(.*?)\}`).FindAllStringSubmatch(pageHTML, -1)
	if len(themes) != 2 {
		t.Fatalf("%d themes", len(themes))
	}
	for i, theme := range themes {
		colours := map[string]string{}
		for _, m := range regexp.MustCompile(`--(\w+): (#\w+)`).FindAllStringSubmatch(theme[1], -1) {
			colours[m[1]] = m[2]
		}
		for name, least := range map[string]float64{"ink": 4.5, "muted": 4.5, "ok": 4.5, "warn": 4.5, "bad": 4.5, "baseline": 4.5, "trial": 4.5, "ideal": 3, "achievable": 3} {
			for _, ground := range []string{"paper", "panel"} {
				a, b := luminance(t, colours[name]), luminance(t, colours[ground])
				if ratio := (max(a, b) + .05) / (min(a, b) + .05); ratio < least {
					t.Errorf("theme %d: %s on %s: contrast %.2f, want %.1f", i, name, ground, ratio, least)
				}
			}
		}
	}
}
