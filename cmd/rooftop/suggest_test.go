package main

import (
	"strings"
	"testing"
)

func TestTypos(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"url", "url", 0}, {"ulr", "url", 2}, {"urls", "url", 1}, {"", "gpu", 3}, {"refesh", "refresh", 1}, {"kitten", "sitting", 3},
	} {
		if got := typos(c.a, c.b); got != c.want {
			t.Errorf("%q and %q are %d apart, want %d", c.a, c.b, got, c.want)
		}
	}
}

func TestAFlagThatIsMeantIsNamed(t *testing.T) {
	for _, c := range []struct{ flag, want string }{
		{"--refesh", "did you mean --refresh?"},
		{"--max-num-seq", "did you mean --max-num-seqs?"},
		{"--ulr", "did you mean --url?"},
		{"--goal", ""},
		{"-x", ""},
	} {
		_, stderr, code := call(t, nil, "tune", c.flag, "1")
		if code != exitUsage || !strings.Contains(stderr, c.want) || c.want == "" && strings.Contains(stderr, "did you mean") {
			t.Errorf("tune %s: exit code %d: %s", c.flag, code, stderr)
		}
		if strings.Count(stderr, "\n") != 1 {
			t.Errorf("not one line: %s", stderr)
		}
	}
}
