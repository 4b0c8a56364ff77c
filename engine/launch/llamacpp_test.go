package launch

import (
	"testing"

	"github.com/rooftop-dev/rooftop/catalog"
)

func TestLlamaServerEdits(t *testing.T) {
	c, err := Parse(argv("llama-server -m m.gguf -np 2 -c 4096 --no-cache-prompt --api-key secret"), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	got := c.With("--parallel", "8").With("--ctx-size", "16384").With("--cache-prompt", "true").With("--kv-unified", "true").String()
	if want := "llama-server -m m.gguf -np 8 -c 16384 --cache-prompt --api-key [redacted] --kv-unified"; got != want || c.Engine() != catalog.LlamaCPP {
		t.Errorf("%s of %s, want %s", got, c.Engine(), want)
	}
}
