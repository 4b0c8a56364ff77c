package lever

import (
	"slices"
	"testing"
)

// TestWhatAnAgentMayChange lists the settings by name, so that a new lever does not become one of them unnoticed.
func TestWhatAnAgentMayChange(t *testing.T) {
	want := []string{
		"--api-server-count", "--async-scheduling", "--enable-chunked-prefill", "--enable-prefix-caching", "--enforce-eager",
		"--gpu-memory-utilization", "--max-loras", "--max-num-batched-tokens", "--max-num-seqs", "--num-gpu-blocks-override",
	}
	var got []string
	for _, l := range All() {
		if l.Applicable() {
			got = append(got, l.Flag)
		}
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("an agent may change %q, want %q", got, want)
	}
}
