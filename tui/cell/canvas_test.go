package cell

import (
	"strings"
	"testing"
	"unicode"

	"github.com/charmbracelet/x/ansi"
)

func TestText(t *testing.T) {
	for _, c := range []struct {
		name, text string
		ascii      bool
		want       string
		end        int
	}{
		{"plain", "tok/s", false, "tok/s", 5},
		{"figure with a unit", "3.2\u00a0µs", false, "3.2 µs", 6},
		{"seven bits", "4 → 32 …", true, "4 -> 32 ...", 11},
		{"escape sequences", "a\x1b[2Jb", false, "a[2Jb", 5},
		{"overrides", "a\u202eb\u200bc", false, "abc", 3},
		{"white space", "a\tb\nc", false, "a b c", 5},
		{"no text", "a\xff\x9bb", false, "a\ufffdb", 3},
		{"wide", "a模型b", false, "a模型b", 6},
		{"wide in seven bits", "a模型b", true, "a??b", 4},
		{"terminals disagree", "a👩‍👧b", false, "a\ufffdb", 3},
		{"accents", "e\u0301a", false, "e\u0301a", 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := NewCanvas(12, 1)
			if c.ascii {
				s.ASCII()
			}
			end := s.Pane().Text(0, 0, Body, c.text)
			if got := strings.TrimSuffix(s.Plain(), "\n"); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if end != c.end || s.Pane().Cells(c.text) != c.end {
				t.Errorf("ends at %d and takes %d cells, want %d", end, s.Pane().Cells(c.text), c.end)
			}
		})
	}
}

func TestPanesKeepTheirText(t *testing.T) {
	s := NewCanvas(10, 3)
	s.Pane().Fill(Muted, ".")
	p := s.Pane().Sub(2, 1, 5, 1)
	p.Text(-2, 0, Body, "abcdefghijk")
	p.Text(0, -1, Body, "above")
	p.Text(0, 1, Body, "below")
	p.Text(4, 0, Body, "模")
	p.Sub(3, 0, 9, 9).Text(0, 0, Strong, "XYZ")
	if got, want := s.Plain(), "..........\n..cdeXY...\n..........\n"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestHalfOfAWideSignIsGone(t *testing.T) {
	s := NewCanvas(6, 1)
	s.Pane().Text(0, 0, Body, "模型号")
	s.Pane().Text(1, 0, Body, "x")
	s.Pane().Text(4, 0, Body, "y")
	if got, want := s.Plain(), " x型y\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	s.Pane().Sub(3, 0, 3, 1).Clear()
	if got, want := s.Plain(), " x\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// FuzzText looks for text that makes a line wider than its canvas, or sends control characters to
// the terminal.
func FuzzText(f *testing.F) {
	f.Add("模\u202e\x1b[2J\xff", 5)
	f.Fuzz(func(t *testing.T, text string, w int) {
		w = max(0, min(w, 200))
		s := NewCanvas(w, 1)
		s.Pane().Text(0, 0, Body, text)
		got := strings.TrimSuffix(s.Plain(), "\n")
		if ansi.StringWidth(got) > w || ansi.StringWidthWc(got) > w {
			t.Errorf("%q takes %d (%d) cells of %d", got, ansi.StringWidth(got), ansi.StringWidthWc(got), w)
		}
		if strings.ContainsFunc(got, func(r rune) bool { return r < ' ' || r >= 0x7f && r < 0xa0 }) {
			t.Errorf("control characters in %q", got)
		}
	})
}

// TestPlainRunesTakeOneCell compares the fast width of plain runes with the library that measures
// all others.
func TestPlainRunesTakeOneCell(t *testing.T) {
	for r := range rune(0x3000) {
		if !Plain(r) {
			continue
		}
		s := string(r)
		if g, w := ansi.FirstGraphemeCluster(s+"─", ansi.GraphemeWidth); g != s || w != 1 || ansi.StringWidthWc(s) != 1 || !unicode.IsPrint(r) {
			t.Errorf("%U: %q of %d cells", r, g, w)
		}
	}
}
