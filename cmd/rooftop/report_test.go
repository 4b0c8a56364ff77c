package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// Reports of real servers name each figure, and claim no more than was measured or predicted.
func TestReportsOfRealServers(t *testing.T) {
	for _, c := range []struct {
		recording string
		says      []string
		omits     []string
	}{
		{
			"0.26.0-h200-healthy-full",
			[]string{
				"prefill 4.63 prompts/s", "ridge batch 27.9 by the FP32 peak", "left for KV", "not used 65 % 1 − efficiency, PROFILE's headroom", "headroom 0 to 0.971 req/s",
				"$/1M output $0.15", "energy 85.0 mJ per output token", "15.0 GiB of weights on a GPU with 140 GiB", "30 % ≥ 25 %",
			},
			[]string{"recoverable $2.27/h", "headroom 65 %", " GB ", ">="},
		},
		{"0.26.0-h200-few-clients", []string{"recoverable $1.43/h PROFILE's cost × (1 − efficiency), not a predicted saving"}, nil},
		{"0.26.0-h200-unique-prompts", []string{"server's best 221 tok/s at 64 running (est): below achievable, as a step takes 1.22 times the achievable one"}, nil},
		{
			"0.32.0-one-client", // the gain is unknown, and so are its costs; there is no price
			[]string{"expect output 50.4 tok/s unknown, at least +337 %", "costs each request gets its tokens more slowly as more requests share a step"},
			[]string{"at worst", "inter-token latency +"},
		},
		{
			"0.32.0-pool-admission", // a larger pool is the second priority, and is said in one way not to help
			[]string{
				"a larger KV pool first: prompts take nearly all of the CPU's time already (est): with a larger pool more requests run at once, each more slowly, and output hardly rises; it helps only if",
				"running 9.33 < 64 in the highest of 10 windows",
			},
			[]string{"prefill_step_share"}, // a finding's evidence does not deny its own remedy
		},
		{
			"sglang/0.5.23-slots-few-open", // no queue leaves a prompt's own time before its first token
			[]string{"TTFT mean 12.3 s → 811 ms"},
			[]string{"→ 0 s", "−100 %"},
		},
		{
			"llamacpp/b11669-slots-few", // which has a mean of ITL alone
			[]string{"– ITL: the page has no histogram of it"},
			[]string{"no request finished while"},
		},
	} {
		out, errs, _ := call(t, nil, "replay", filepath.Join("..", "..", "testdata", "recordings", "real", c.recording+".gz"), "-v")
		report := strings.Join(strings.Fields(out), " ")
		for _, want := range c.says {
			if !strings.Contains(report, want) {
				t.Errorf("%s does not say %q: %s%s", c.recording, want, errs, out)
			}
		}
		for _, never := range c.omits {
			if strings.Contains(report, never) {
				t.Errorf("%s says %q: %s", c.recording, never, out)
			}
		}
	}
}
