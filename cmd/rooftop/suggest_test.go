package main

import (
	"strings"
	"testing"
)

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
