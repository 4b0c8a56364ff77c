package loop_test

import (
	"testing"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/loop"
)

func TestChangedLaunch(t *testing.T) {
	const serve = "vllm serve meta-llama/Llama-3.1-8B-Instruct --max-num-seqs 4 --no-enable-prefix-caching --enforce-eager"
	for _, c := range []struct{ name, command, flag, value, want string }{
		{"in place", serve, "--max-num-seqs", "32", "vllm serve meta-llama/Llama-3.1-8B-Instruct --max-num-seqs 32 --no-enable-prefix-caching --enforce-eager"},
		{"appended", "vllm serve m", "--kv-cache-dtype", "fp8", "vllm serve m --kv-cache-dtype fp8"},
		{"switched on", serve, "--enable-prefix-caching", "on", "vllm serve meta-llama/Llama-3.1-8B-Instruct --max-num-seqs 4 --enable-prefix-caching --enforce-eager"},
		{"switched off", serve, "--enforce-eager", "off", "vllm serve meta-llama/Llama-3.1-8B-Instruct --max-num-seqs 4 --no-enable-prefix-caching"},
		{"left out", serve, "--enforce-eager", "", "vllm serve meta-llama/Llama-3.1-8B-Instruct --max-num-seqs 4 --no-enable-prefix-caching"},
		{"a value left out", serve, "--max-num-seqs", "", "vllm serve meta-llama/Llama-3.1-8B-Instruct --no-enable-prefix-caching --enforce-eager"},
		{"unknown launch", "", "--max-num-seqs", "32", ""},
		{"not vLLM", "python train.py", "--max-num-seqs", "32", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := loop.CommandWithChanges(c.command, engine.Change{Flag: c.flag, To: c.value}); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}
