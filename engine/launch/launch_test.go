package launch

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// argv cuts a command line of a test at blanks; blanks and line ends within a
// word are spelled "·" and "¶".
func argv(line string) []string {
	words := strings.Fields(line)
	for i, w := range words {
		words[i] = strings.NewReplacer("·", " ", "¶", "\n").Replace(w)
	}
	return words
}

func TestParse(t *testing.T) {
	tests := []struct {
		name   string
		argv   string
		env    map[string]string
		config string
		want   map[string]string // flag to "value source"; "" where absent
		direct bool
	}{
		{
			name:   "console script",
			argv:   "vllm serve Qwen/Qwen3-8B --max-num-seqs 256 --gpu-memory-utilization=0.92",
			want:   map[string]string{"model": "Qwen/Qwen3-8B cmdline", "max_num_seqs": "256 cmdline", "--gpu-memory-utilization": "0.92 cmdline", "max_model_len": ""},
			direct: true,
		},
		{
			name:   "console script as /proc shows it",
			argv:   "/opt/venv/bin/python3.12 /opt/venv/bin/vllm serve /models/llama --tensor-parallel-size 8",
			want:   map[string]string{"model": "/models/llama cmdline", "-tp": "8 cmdline", "tensor-parallel-size": "8 cmdline"},
			direct: true,
		},
		{
			name:   "module",
			argv:   "python -m vllm.entrypoints.openai.api_server --model M --max_num_seqs=32 --enable-prefix-caching",
			want:   map[string]string{"model": "M cmdline", "max_num_seqs": "32 cmdline", "enable_prefix_caching": "true cmdline"},
			direct: true,
		},
		{
			name:   "module with interpreter options",
			argv:   "python3 -u -X importtime -m vllm.entrypoints.openai.api_server --model M",
			want:   map[string]string{"model": "M cmdline"},
			direct: true,
		},
		{
			name:   "module ignores a lone word",
			argv:   "python3 -m vllm.entrypoints.openai.api_server M --port 9000",
			want:   map[string]string{"model": "", "port": "9000 cmdline"},
			direct: true,
		},
		{
			name:   "command line module",
			argv:   "python -m vllm.entrypoints.cli.main serve M -tp 2 -pp=2 -dp 4 -q awq -ep",
			want:   map[string]string{"model": "M cmdline", "tensor_parallel_size": "2 cmdline", "pipeline_parallel_size": "2 cmdline", "data_parallel_size": "4 cmdline", "quantization": "awq cmdline", "enable_expert_parallel": "true cmdline"},
			direct: true,
		},
		{
			name:   "script file",
			argv:   "python3 /workspace/vllm/entrypoints/openai/api_server.py --model M",
			want:   map[string]string{"model": "M cmdline"},
			direct: true,
		},
		{
			name:   "simulated server",
			argv:   "/usr/local/bin/rooftop sim Qwen/Qwen3-8B --max-num-seqs 16 --sim-gpu H100·SXM --port=8001 --sim-scale=2 -tp 2",
			want:   map[string]string{"model": "Qwen/Qwen3-8B cmdline", "max_num_seqs": "16 cmdline", "port": "8001 cmdline", "sim_gpu": "H100 SXM cmdline", "sim_scale": "2 cmdline", "tensor_parallel_size": "2 cmdline"},
			direct: true,
		},
		{
			name:   "simulated server as go run builds it, the model behind the flags",
			argv:   "/tmp/go-build123/b001/exe/rooftop sim --sim-seed 7 --enforce-eager Qwen/Qwen3-8B",
			want:   map[string]string{"model": "Qwen/Qwen3-8B cmdline", "sim_seed": "7 cmdline", "enforce_eager": "true cmdline"},
			direct: true,
		},
		{
			name: "simulated server behind go run",
			argv: "go run ./cmd/rooftop sim M --max-num-seqs 8",
			want: map[string]string{"model": "M cmdline", "max_num_seqs": "8 cmdline"},
		},
		{
			name: "uv",
			argv: "uv run --with vllm vllm serve M --max-num-seqs 8",
			want: map[string]string{"model": "M cmdline", "max_num_seqs": "8 cmdline"},
		},
		{
			name: "numactl, nice and env",
			argv: "nice -n 5 numactl --cpunodebind=0 --membind=0 env VLLM_ATTENTION_BACKEND=FLASHINFER vllm serve M --seed 3",
			want: map[string]string{"model": "M cmdline", "seed": "3 cmdline", "attention_backend": "FLASHINFER env", "membind": ""},
		},
		{
			name: "shell script",
			argv: "bash -lc source·/env.sh·&&·exec·vllm·serve·'My·Model'·\\¶··--max-num-seqs·\"16\"·>·/var/log/v.log·2>&1",
			want: map[string]string{"model": "My Model cmdline", "max_num_seqs": "16 cmdline"},
		},
		{
			name: "shell script with variables",
			argv: "sh -c MODEL=x·vllm·serve·$MODEL·--port·${PORT:-9000}·--max-num-seqs·$SLOTS·--dtype·\"$DTYPE\"",
			env:  map[string]string{"MODEL": "org/m", "DTYPE": "half"},
			want: map[string]string{"model": "org/m cmdline", "port": "9000 cmdline", "max_num_seqs": "", "dtype": "half cmdline"},
		},
		{
			name: "ray job",
			argv: "ray job submit --address http://h:8265 -- vllm serve M --distributed-executor-backend ray",
			want: map[string]string{"model": "M cmdline", "distributed_executor_backend": "ray cmdline"},
		},
		{
			name: "docker with the image's entry point",
			argv: "docker run --gpus all --name vllm -w /vllm-workspace -v ~/.cache:/root/.cache -e HF_HUB_OFFLINE=1 -p 8000:8000 vllm/vllm-openai:v0.11.0 --model M --max-model-len 32k",
			want: map[string]string{"model": "M cmdline", "max_model_len": "32k cmdline", "gpus": "", "name": ""},
		},
		{
			name: "docker with a model behind the image",
			argv: "docker run --rm vllm/vllm-openai:latest Qwen/Qwen3-8B --port 8001",
			want: map[string]string{"model": "Qwen/Qwen3-8B cmdline", "port": "8001 cmdline"},
		},
		{
			name: "docker with a command",
			argv: "docker run nvcr.io/nvidia/vllm:25.09-py3 bash -c vllm·serve·M·-tp·2",
			want: map[string]string{"model": "M cmdline", "tensor_parallel_size": "2 cmdline"},
		},
		{
			name: "container arguments",
			argv: "--model=M --tensor-parallel-size=4 --enable-chunked-prefill=false",
			want: map[string]string{"model": "M cmdline", "tensor_parallel_size": "4 cmdline", "enable_chunked_prefill": "false cmdline"},
		},
		{
			name:   "flags of old releases",
			argv:   "python3 -m vllm.entrypoints.openai.api_server --model M --swap-space 16 --enable-chunked-prefill False --disable-log-requests --use-v2-block-manager --num-scheduler-steps 8",
			want:   map[string]string{"swap_space": "16 cmdline", "enable_chunked_prefill": "false cmdline", "disable_log_requests": "true cmdline", "num_scheduler_steps": "8 cmdline", "model": "M cmdline"},
			direct: true,
		},
		{
			name:   "flags of releases to come",
			argv:   "vllm serve --enable-new-thing M --new-size 5 --brand-new --max-num-seqs 3",
			want:   map[string]string{"model": "M cmdline", "enable_new_thing": "true cmdline", "new_size": "5 cmdline", "brand_new": "true cmdline", "max_num_seqs": "3 cmdline"},
			direct: true,
		},
		{
			name:   "config file",
			argv:   "vllm serve M --config /etc/v.yaml --max-num-seqs 64",
			config: "max-num-seqs: 16\nmax_num_batched_tokens: 8192 # budget\ngpu-memory-utilization: 0.90\nenforce-eager: true\n",
			want:   map[string]string{"max_num_seqs": "64 cmdline", "max_num_batched_tokens": "8192 config", "gpu_memory_utilization": "0.90 config", "enforce_eager": "true config"},
			direct: true,
		},
		{
			name:   "merge keys and anchors",
			argv:   "vllm serve M --config v.yaml",
			config: "x-base: &base\n  max-num-seqs: 16\n  port: 9000\n<<: *base\nport: 9001\n",
			want:   map[string]string{"max_num_seqs": "16 config", "port": "9001 config"},
			direct: true,
		},
		{
			name:   "sub-keys of a whole object",
			argv:   `vllm serve M --compilation-config {"mode":3,"pass_config":{"a":true},"sizes":[1,2]}`,
			want:   map[string]string{"compilation_config.mode": "3 cmdline", "compilation_config.pass_config.a": "true cmdline", "-cc.sizes": "[1,2] cmdline", "compilation_config.none": ""},
			direct: true,
		},
		{
			name:   "the compilation config of 0.8 to 0.11",
			argv:   `vllm serve M -O.level=3 -O.cudagraph_capture_sizes+ 1,2`,
			want:   map[string]string{"compilation_config": `{"cudagraph_capture_sizes":["1","2"],"level":3} cmdline`},
			direct: true,
		},
		{
			name:   "environment stands for flags",
			argv:   "vllm serve M",
			env:    map[string]string{"VLLM_ATTENTION_BACKEND": "FLASH_ATTN", "VLLM_API_KEY": "sekrit"},
			want:   map[string]string{"attention_backend": "FLASH_ATTN env", "api_key": Redacted + " env"},
			direct: true,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var config []byte
			if tt.config != "" {
				config = []byte(tt.config)
			}
			c, err := Parse(argv(tt.argv), tt.env, config)
			if err != nil {
				t.Fatal(err)
			}
			for flag, want := range tt.want {
				value, from, _ := c.Value(flag)
				if got := strings.TrimSpace(value + " " + string(from)); got != want {
					t.Errorf("%s = %q, want %q", flag, got, want)
				}
			}
			if c.Direct() != tt.direct {
				t.Errorf("Direct() = %v, want %v", c.Direct(), tt.direct)
			}
			if diff := cmp.Diff(argv(tt.argv), c.Argv()); diff != "" {
				t.Errorf("unedited argument vector differs (-in +out):\n%s", diff)
			}
			if tt.config != "" && string(c.File()) != tt.config {
				t.Errorf("unedited config file differs: %q", c.File())
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	for _, line := range []string{
		"bash -c python·x.py", "docker run vllm/vllm-openai:latest bash", "tail -f vllm serve", "/bin/sh -c", "VLLM::EngineCore", "rooftop sim bench", "rooftop diagnose --url h", "rooftop", "grep rooftop sim",
	} {
		if _, err := Parse(argv(line), nil, nil); !errors.Is(err, ErrNotServer) {
			t.Errorf("Parse(%q): error %v, want ErrNotServer", line, err)
		}
	}
	for name, config := range map[string]string{"a list": "- a\n- b\n", "no YAML": "a: b: c\n\t- x", "too long": strings.Repeat("#", MaxConfigBytes+1)} {
		if _, err := Parse(argv("vllm serve M --config c.yaml"), nil, []byte(config)); err == nil || !strings.Contains(err.Error(), "c.yaml") {
			t.Errorf("%s as config file: error %v, want one that names c.yaml", name, err)
		}
	}
}

func TestNumbers(t *testing.T) {
	tests := []struct {
		flag, value string
		want        int
		ok          bool
	}{
		{"max-num-batched-tokens", "8k", 8000, true},
		{"max-num-batched-tokens", "8K", 8192, true},
		{"max-num-batched-tokens", "25.6k", 25600, true},
		{"max-num-batched-tokens", "25.6K", 0, false},
		{"max-num-batched-tokens", "2M", 2 << 20, true},
		{"kv-cache-memory-bytes", "10G", 10 << 30, true},
		{"kv-cache-memory-bytes", "99999999T", 0, false},
		{"max-model-len", "auto", -1, true},
		{"max-model-len", "-1", -1, true},
		{"max-num-seqs", "1_024", 1024, true},
		{"max-num-seqs", "many", 0, false},
		{"max-num-seqs", "4.0", 0, false},
		{"max-num-seqs", "None", 0, false},
	}
	for _, tt := range tests {
		c, err := Parse([]string{"vllm", "serve", "M", "--" + tt.flag, tt.value}, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got, _, ok := c.Int(tt.flag); got != tt.want || ok != tt.ok {
			t.Errorf("Int of %s %q = %d, %v; want %d, %v", tt.flag, tt.value, got, ok, tt.want, tt.ok)
		}
	}
	c, err := Parse(argv("vllm serve M --gpu-memory-utilization .85 --watermark nan --swap-space inf"), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if f, _, ok := c.Float("gpu_memory_utilization"); !ok || f != 0.85 {
		t.Errorf("Float = %v, %v; want 0.85", f, ok)
	}
	for _, flag := range []string{"watermark", "swap_space"} {
		if f, _, ok := c.Float(flag); ok {
			t.Errorf("Float of %s = %v, want none: not a finite number", flag, f)
		}
	}
}

func TestNotes(t *testing.T) {
	tests := []struct{ name, argv, config, want string }{
		{"abbreviation", "vllm serve M --max-num-se 4", "", "--max-num-se read as --max-num-seqs (abbreviated)"},
		{"ambiguous abbreviation", "vllm serve M --quant fp8", "", "--quant is not a known flag, and could be short for --quantization or --quantization-config"},
		{"config file with an equals sign", "vllm serve M --config=c.yaml", "", "--config=FILE has no effect"},
		{"false in a config file", "vllm serve M --config c.yaml", "enable-prefix-caching: false\n", "give --no-enable-prefix-caching on the command line"},
		{"expansion", "sh -c vllm·serve·M·--port·$PORT", "", "the value of --port depends on a shell expansion"},
		{"lone word for the module", "python3 -m vllm.entrypoints.openai.api_server M", "", "takes its model from --model only"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var config []byte
			if tt.config != "" {
				config = []byte(tt.config)
			}
			c, err := Parse(argv(tt.argv), nil, config)
			if err != nil {
				t.Fatal(err)
			}
			if notes := strings.Join(c.Notes(), "\n"); !strings.Contains(notes, tt.want) {
				t.Errorf("notes %q do not say %q", notes, tt.want)
			}
		})
	}
	if c, _ := Parse(argv("vllm serve M --port 1 -tp 2 --compilation-config.mode=3"), nil, nil); len(c.Notes()) != 0 {
		t.Errorf("notes on a plain command line: %q", c.Notes())
	}
}

func TestServedModelNames(t *testing.T) {
	for _, tt := range []struct {
		argv, config string
		want         []string
	}{
		{"vllm serve M --served-model-name a b --port 1", "", []string{"a", "b"}},
		{"vllm serve M", "", []string{"M"}},
		{"vllm serve --config c.yaml", "model: Q\nserved-model-name: [x, y]\n", []string{"x", "y"}},
		{"vllm serve", "", nil},
	} {
		c, err := Parse(argv(tt.argv), nil, []byte(tt.config))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tt.want, c.ServedModelNames()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.argv, diff)
		}
	}
}
