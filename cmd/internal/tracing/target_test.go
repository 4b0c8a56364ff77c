package tracing

import (
	"slices"
	"testing"
)

// Processes of one program often differ only at the ends of long command lines.
func TestDistinguish(t *testing.T) {
	for _, c := range []struct {
		name           string
		commands, want []string
	}{
		{"one", []string{"llama-server -m /models/a.gguf --port 8080 --jinja"}, []string{"llama-server -m /models/a.gguf --port 8…"}},
		{"short ones", []string{"ollama runner --port 1", "ollama runner --port 2"}, []string{"ollama runner --port 1", "ollama runner --port 2"}},
		{
			"the same program", []string{"python /opt/serve/here.py /very/long/path/of/models/tiny.gguf 8411", "python /opt/serve/here.py /very/long/path/of/models/tiny.gguf 8412 -v"},
			[]string{"python … of/models/tiny.gguf 8411", "python … of/models/tiny.gguf 8412 -v"},
		},
		{
			"others", []string{"ollama runner --model /var/lib/blobs/sha256-0", "llama-server -m /models/a.gguf --port 8080"},
			[]string{"ollama runner --model /var/lib/blobs/sh…", "llama-server -m /models/a.gguf --port 8080"},
		},
		{
			"one that goes on where another ends", []string{"llama-server -m /models/a-long-name.gguf", "llama-server -m /models/a-long-name.gguf --port 8080"},
			[]string{"llama-server … a-long-name.gguf", "llama-server … a-long-name.gguf --por…"},
		},
		{"no arguments", []string{"ollama ", "ollama "}, []string{"ollama ", "ollama "}},
	} {
		if got := distinguish(c.commands, 42); !slices.Equal(got, c.want) {
			t.Errorf("%s:\ngot  %q\nwant %q", c.name, got, c.want)
		}
	}
}
