package main

import (
	"encoding/json"
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

// A word that means several things is explained with where it does each, the meaning that
// has the word as its own name first; a document has the others in the first.
func TestExplainTellsMeaningsApart(t *testing.T) {
	for word, want := range map[string][]string{
		"waiting": {"waiting in rooftop trace:\nwaiting  waits\n", "\nwaiting in vLLM's page of metrics"},
		"level":   {"level in rooftop trace:\nlevel  level of detail", "\nlevel in rooftop diagnose and tune:\ninterval "},
		"TTFT":    {"TTFT in vLLM's page of metrics, which rooftop diagnose and tune read:", "Measured by rooftop's own client", "\nTTFT in rooftop trace:\nfirst token "},
		"tokens":  {"tokens in rooftop trace:\ntokens ", "\ntokens in rooftop probe, observe and load:\nwitness "},
	} {
		stdout, stderr, code := call(t, nil, "explain", word)
		if code != exitDone || !strings.HasPrefix(stdout, want[0]) {
			t.Errorf("explain %s: exit %d: %s%.120q, want it to begin with %q", word, code, stderr, stdout, want[0])
		}
		at := 0
		for _, part := range want {
			i := strings.Index(stdout[at:], part)
			if i < 0 {
				t.Fatalf("explain %s has no %q behind the meanings before:\n%s", word, part, stdout)
			}
			at += i + 1
		}
		document, _, code := call(t, nil, "explain", word, "--json")
		var first struct {
			Used   string
			Others []struct{ Used string }
		}
		if err := json.Unmarshal([]byte(document), &first); err != nil || code != exitDone || !strings.HasPrefix(want[0], word+" in "+first.Used) || len(first.Others) != 1 {
			t.Errorf("explain %s --json: exit %d, %v:\n%s", word, code, err, document)
		}
	}
	if stdout, _, _ := call(t, nil, "explain", "roof"); !strings.HasPrefix(stdout, "roof  ") {
		t.Errorf("a word with one meaning begins with it:\n%s", stdout)
	}
}
