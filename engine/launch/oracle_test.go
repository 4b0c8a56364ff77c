package launch

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// recorded is one command line with what vLLM's own parser made of it: the
// attributes that differ from a bare `vllm serve`, and JSON flags as given.
// testdata/vllm-0.32.0.json was recorded from the parser of vLLM 0.32.0.
type recorded struct {
	Argv   []string
	Config *string
	Want   map[string]any
	Error  bool // vLLM refuses the command line: nothing to compare
}

func TestReadsWhatVLLMReads(t *testing.T) {
	data, err := os.ReadFile("testdata/vllm-0.32.0.json")
	if err != nil {
		t.Fatal(err)
	}
	var all []recorded
	if err := json.Unmarshal(data, &all); err != nil {
		t.Fatal(err)
	}
	for _, r := range all {
		if r.Error {
			continue
		}
		name := strings.Join(r.Argv, " ")
		if r.Config != nil {
			name += " with " + *r.Config
		}
		t.Run(name, func(t *testing.T) { compare(t, r) })
	}
}

func compare(t *testing.T, r recorded) {
	argv := append([]string{"vllm"}, r.Argv...)
	if r.Argv[0] != "serve" {
		argv = append([]string{"python3", "-m", "vllm.entrypoints.openai.api_server"}, r.Argv...)
	}
	for i := range argv {
		argv[i] = strings.ReplaceAll(argv[i], "@CONFIG", "conf.yaml")
	}
	c, err := Parse(argv, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if r.Config != nil && c.ConfigPath() != "" {
		if c, err = Parse(argv, nil, []byte(*r.Config)); err != nil {
			t.Fatal(err)
		}
	}
	want := r.Want
	if tag, ok := want["model_tag"]; ok {
		// `vllm serve` copies the lone word to model; the module does not.
		delete(want, "model_tag")
		if tag != nil && r.Argv[0] == "serve" {
			want["model"] = tag
		}
	}
	for name, value := range want {
		got, from, ok := c.values(name)
		if !ok {
			t.Errorf("%s: absent, vLLM has %v", name, value)
			continue
		}
		if diff := cmp.Diff(value, typed(value, name, got, c)); diff != "" {
			t.Errorf("%s from %s (-vLLM +got):\n%s", name, from, diff)
		}
	}
	for _, name := range c.items.names() {
		got, _, ok := c.values(name)
		if _, wanted := want[name]; wanted || !ok || name == "config" {
			continue
		}
		// What vLLM has by default anyway does not show in the recording.
		if b, _, isBool := c.Bool(name); isBool && !b {
			continue
		}
		t.Errorf("%s = %q, vLLM has its default", name, got)
	}
}

// typed reads values as the type that vLLM made of them.
func typed(like any, name string, values []string, c *Config) any {
	joined := strings.Join(values, " ")
	switch like.(type) {
	case bool:
		return joined == "true"
	case float64:
		if n, _, ok := c.Int(name); ok {
			return float64(n)
		}
		f, _, _ := c.Float(name)
		return f
	case []any:
		if strings.HasPrefix(joined, "[") {
			var list []any
			_ = json.Unmarshal([]byte(joined), &list)
			return list
		}
		var list []any
		for _, v := range values {
			var number float64
			if _, err := fmt.Sscanf(v, "%f", &number); err == nil && name == "cudagraph_capture_sizes" {
				list = append(list, number)
				continue
			}
			list = append(list, v)
		}
		return list
	case map[string]any:
		var m map[string]any
		if err := json.Unmarshal([]byte(joined), &m); err != nil {
			return joined
		}
		return m
	}
	return joined
}
