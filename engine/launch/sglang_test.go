package launch

import (
	"errors"
	"testing"
)

func TestSGLangCommands(t *testing.T) {
	for _, tt := range []struct {
		line, model, slots string
		direct             bool
	}{
		{"python -m sglang.launch_server --model-path m --max-running-requests 4", "m", "4", true},
		{"/venv/bin/python3.11 -B -m sglang.launch_server --model m --tp 2 --max-running-requests=8", "m", "8", true},
		{"sglang serve --model-path m", "m", "", true},
		{"numactl -N 0 python -m sglang.launch_server --model-path m", "m", "", false},
		{"sh -c \"exec python -m sglang.launch_server --model-path m --max-running-requests 2\"", "m", "2", false},
		{"--model-path m --host 0.0.0.0", "m", "", false},
	} {
		c, err := ParseCommand(tt.line, nil, nil)
		if err != nil {
			t.Errorf("%s: %v", tt.line, err)
			continue
		}
		model, _, _ := c.Model()
		slots, _, _ := c.Value("--max-running-requests")
		if c.Engine() != "sglang" || model != tt.model || slots != tt.slots || c.DefaultPort() != 30000 {
			t.Errorf("%s: engine %s, model %q, slots %q", tt.line, c.Engine(), model, slots)
		}
	}
	if _, err := Parse([]string{"grep", "-m", "sglang.launch_server"}, nil, nil); !errors.Is(err, ErrNotServer) {
		t.Errorf("a bystander: %v", err)
	}
	if c, err := Parse([]string{"vllm", "serve", "m"}, nil, nil); err != nil || c.Engine() != "vllm" {
		t.Errorf("vLLM: %v", err)
	}
}

func TestSGLangEdits(t *testing.T) {
	const line = "python -m sglang.launch_server --model-path m --max-running-requests 4 --disable-radix-cache"
	c, err := ParseCommand(line, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		change func(*Config) *Config
		want   string
	}{
		{func(c *Config) *Config { return c.With("--max-running-requests", "32") }, "python -m sglang.launch_server --model-path m --max-running-requests 32 --disable-radix-cache"},
		{func(c *Config) *Config { return c.Without("--disable-radix-cache") }, "python -m sglang.launch_server --model-path m --max-running-requests 4"},
		{func(c *Config) *Config { return c.With("--max-total-tokens", "4096") }, line + " --max-total-tokens 4096"},
		{func(c *Config) *Config { return c.With("--disable-cuda-graph", "true") }, line + " --disable-cuda-graph"},
		{func(c *Config) *Config { return c.With("model", "other") }, "python -m sglang.launch_server --model-path other --max-running-requests 4 --disable-radix-cache"},
	} {
		if got := tt.change(c).Shell(); got != tt.want {
			t.Errorf("got  %s\nwant %s", got, tt.want)
		}
	}
	if v, _, ok := c.Value("--api-key"); ok {
		t.Errorf("api key %q", v)
	}
	if secret, err := ParseCommand(line+" --api-key s3cr3t", nil, nil); err != nil || secret.String() != line+" --api-key "+Redacted {
		t.Errorf("%v, %v", secret, err)
	}
}
