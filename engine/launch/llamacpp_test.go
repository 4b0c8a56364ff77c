package launch

import (
	"strings"
	"testing"

	"github.com/rooftop-dev/rooftop/catalog"
)

func TestLlamaServer(t *testing.T) {
	for _, tc := range []struct {
		name, argv string
		env        map[string]string
		want       map[string]string // flag to "value source"; "" where absent
		direct     bool
	}{
		{
			name: "short and long spellings", argv: "/usr/bin/llama-server -m /models/m.gguf -np 4 -c 8192 --threads 2 --metrics -ngl 99",
			want: map[string]string{"model": "/models/m.gguf cmdline", "--parallel": "4 cmdline", "ctx_size": "8192 cmdline", "-t": "2 cmdline",
				"metrics": "true cmdline", "--n-gpu-layers": "99 cmdline", "--batch-size": ""},
			direct: true,
		},
		{
			name: "opposites", argv: "llama-server -m m.gguf --no-cache-prompt -nocb -no-kvu --repack",
			want:   map[string]string{"cache_prompt": "false cmdline", "cont_batching": "false cmdline", "kv_unified": "false cmdline", "repack": "true cmdline"},
			direct: true,
		},
		{
			name: "nothing is abbreviated or attached", argv: "llama-server -m m.gguf --par 4 -c4096",
			want:   map[string]string{"parallel": "", "ctx_size": ""},
			direct: true,
		},
		{
			name: "variables stand for flags", argv: "llama-server -c 4096", env: map[string]string{"LLAMA_ARG_N_PARALLEL": "2", "LLAMA_ARG_CTX_SIZE": "8192"},
			want:   map[string]string{"parallel": "2 env", "ctx_size": "4096 cmdline"},
			direct: true,
		},
		{
			name: "a container", argv: "docker run -p 8080:8080 ghcr.io/ggml-org/llama.cpp:server -m /models/m.gguf --port 8080 -np 8",
			want: map[string]string{"parallel": "8 cmdline", "port": "8080 cmdline"},
		},
	} {
		c, err := Parse(argv(tc.argv), tc.env, nil)
		if err != nil {
			t.Errorf("%s: %v", tc.name, err)
			continue
		}
		for flag, want := range tc.want {
			value, from, ok := c.Value(flag)
			if got := strings.TrimSpace(value + " " + string(from)); got != want || ok != (want != "") {
				t.Errorf("%s: %s is %q, want %q", tc.name, flag, got, want)
			}
		}
		if c.Engine() != catalog.LlamaCPP || c.Direct() != tc.direct {
			t.Errorf("%s: engine %s, direct %v", tc.name, c.Engine(), c.Direct())
		}
	}
	if _, err := Parse(argv("grep llama-server log"), nil, nil); err == nil {
		t.Error("a search for llama-server is taken for one")
	}
}

func TestLlamaServerEdits(t *testing.T) {
	c, err := Parse(argv("llama-server -m m.gguf -np 2 -c 4096 --no-cache-prompt --api-key secret"), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	got := c.With("--parallel", "8").With("--ctx-size", "16384").With("--cache-prompt", "true").With("--kv-unified", "true").String()
	if want := "llama-server -m m.gguf -np 8 -c 16384 --cache-prompt --api-key [redacted] --kv-unified"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
