package main

import (
	"strings"
	"testing"
)

// A word is found however it is written: as the screen has it, as --json does, as a
// flag, or in two words.
func TestExplainFindsAWord(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"not-comparable"}, "direction"},
		{[]string{"not_comparable"}, "direction"},
		{[]string{"restart", "spread"}, "restart spread"},
		{[]string{"--", "--slo"}, "objective"},
		{[]string{"Foretold"}, "predicted"},
		{[]string{"cpu_starved"}, "cpu-starved"},
		{[]string{"TTFT", "split"}, "outside"},
		{[]string{"over-provisioned"}, "sizing"},
		{[]string{"p99"}, "nearest rank"},
		{[]string{"rss"}, "RSS"},
	} {
		stdout, stderr, code := call(t, nil, append([]string{"explain"}, c.args...)...)
		if code != exitDone || !strings.HasPrefix(stdout, c.want) {
			t.Errorf("explain %v: exit %d: %s%.60s", c.args, code, stderr, stdout)
		}
	}
	if _, stderr, code := call(t, nil, "explain", "starve"); code != exitUsage || !strings.Contains(stderr, "did you mean cpu-starved?") {
		t.Errorf("exit %d: %s", code, stderr)
	}
	if _, stderr, code := call(t, nil, "explain", "R2", "R3"); code != exitUsage || !strings.Contains(stderr, `nothing is called "R2 R3"`) {
		t.Errorf("exit %d: %s", code, stderr)
	}
}
