package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/rooftop-dev/rooftop/cmd/internal/cli"
)

// A word is found in any spelling: as on the screen, as in --json, as a flag, or as two words.
func TestExplainFindsAWord(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"not-comparable"}, "direction"},
		{[]string{"not_comparable"}, "direction"},
		{[]string{"restart", "spread"}, "restart spread"},
		{[]string{"--", "--slo"}, "objective"},
		{[]string{"Prediction"}, "predicted"},
		{[]string{"cpu_starved"}, "cpu-starved"},
		{[]string{"TTFT", "split"}, "outside"},
		{[]string{"over-provisioned"}, "sizing"},
		{[]string{"p99"}, "nearest rank"},
		{[]string{"rss"}, "RSS"},
		{[]string{"KV", "pool"}, "KV pool"},
		{[]string{"headroom"}, "headroom"},
		{[]string{"recoverable"}, "PROFILE"},
		{[]string{"profile"}, "PROFILE"},
		{[]string{"TTFT", "p99"}, "TTFT in vLLM's page of metrics"},
	} {
		stdout, stderr, code := call(t, nil, append([]string{"explain"}, c.args...)...)
		if code != cli.ExitDone || !strings.HasPrefix(stdout, c.want) {
			t.Errorf("explain %v: exit %d: %s%.60s", c.args, code, stderr, stdout)
		}
	}
	if _, stderr, code := call(t, nil, "explain", "starve"); code != cli.ExitUsage || !strings.Contains(stderr, "did you mean cpu-starved?") {
		t.Errorf("exit %d: %s", code, stderr)
	}
	if _, stderr, code := call(t, nil, "explain", "achieveable"); code != cli.ExitUsage || !strings.Contains(stderr, "did you mean achievable?") {
		t.Errorf("exit %d: %s", code, stderr)
	}
	if _, stderr, code := call(t, nil, "explain", "R2", "R3"); code != cli.ExitUsage || !strings.Contains(stderr, `nothing is called "R2 R3"`) {
		t.Errorf("exit %d: %s", code, stderr)
	}
}

// A metric of any engine is found by its name on the page, and by rooftop's name on the engine that is asked for.
func TestExplainFindsMetricsOfEveryEngine(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"num_running_reqs"}, "sglang:num_running_reqs"},
		{[]string{"sglang:token_usage"}, "sglang:token_usage"},
		{[]string{"requests_processing"}, "llamacpp:requests_processing"},
		{[]string{"kv_usage"}, "vllm:kv_cache_usage_perc"},
		{[]string{"kv_usage", "--engine", "sglang"}, "sglang:token_usage"},
		{[]string{"ray_vllm_num_requests_waiting"}, "vllm:num_requests_waiting"},
	} {
		if stdout, stderr, code := call(t, nil, append([]string{"explain"}, c.args...)...); code != cli.ExitDone || !strings.Contains(stdout, c.want) {
			t.Errorf("explain %v: exit %d: %s%s", c.args, code, stderr, stdout)
		}
	}
}

// A word with several meanings is explained with the place of each; the primary meaning comes
// first. In a document the first one includes the others.
func TestExplainTellsMeaningsApart(t *testing.T) {
	for word, want := range map[string][]string{
		"running": {"running in vLLM's page of metrics, which rooftop diagnose and tune read:\n", "\nrunning in rooftop diagnose and tune:\nslot "},
	} {
		stdout, stderr, code := call(t, nil, "explain", word)
		if code != cli.ExitDone || !strings.HasPrefix(stdout, want[0]) {
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
		if err := json.Unmarshal([]byte(document), &first); err != nil || code != cli.ExitDone || !strings.HasPrefix(want[0], word+" in "+first.Used) || len(first.Others) != 1 {
			t.Errorf("explain %s --json: exit %d, %v:\n%s", word, code, err, document)
		}
	}
	if stdout, _, _ := call(t, nil, "explain", "TTFT"); !strings.HasPrefix(stdout, "ttft  ") || !strings.Contains(stdout, "Measured by rooftop's own client") {
		t.Errorf("a word with one meaning begins with it:\n%s", stdout)
	}
}
