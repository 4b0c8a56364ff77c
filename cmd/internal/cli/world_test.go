package cli

import "testing"

func TestPrintable(t *testing.T) {
	for text, want := range map[string]string{
		"a \x1b[2J\u009b1m\x07b\r":      "a \ufffd[2J\ufffd1m\ufffdb ",
		"first\nsecond\tthird":          "first\nsecond\tthird",
		"99 % of \u202e12\u00a0ms \xff": "99 % of \ufffd12 ms \ufffd",
		"naïve 模型":                      "naïve 模型",
	} {
		if got := Printable(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
