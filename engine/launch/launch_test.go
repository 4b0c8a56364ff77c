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
		direct bool
		env    map[string]string
		config string
		argv   string
		want   string // flag=value@source, the source where it is not the command line; no value where absent
	}{
		{"console script", true, nil, "",
			"vllm serve Qwen/Qwen3-8B --max-num-seqs 256 --gpu-memory-utilization=0.92",
			"model=Qwen/Qwen3-8B max_num_seqs=256 --gpu-memory-utilization=0.92 max_model_len="},
		{"console script as /proc shows it", true, nil, "",
			"/opt/venv/bin/python3.12 /opt/venv/bin/vllm serve /models/llama --tensor-parallel-size 8",
			"model=/models/llama -tp=8 tensor-parallel-size=8"},
		{"module", true, nil, "",
			"python -m vllm.entrypoints.openai.api_server --model M --max_num_seqs=32 --enable-prefix-caching",
			"model=M max_num_seqs=32 enable_prefix_caching=true"},
		{"module with interpreter options", true, nil, "",
			"python3 -u -X importtime -m vllm.entrypoints.openai.api_server --model M", "model=M"},
		{"module ignores a lone word", true, nil, "",
			"python3 -m vllm.entrypoints.openai.api_server M --port 9000", "model= port=9000"},
		{"command line module", true, nil, "",
			"python -m vllm.entrypoints.cli.main serve M -tp 2 -pp=2 -dp 4 -q awq -ep",
			"model=M tensor_parallel_size=2 pipeline_parallel_size=2 data_parallel_size=4 quantization=awq enable_expert_parallel=true"},
		{"script file", true, nil, "",
			"python3 /workspace/vllm/entrypoints/openai/api_server.py --model M", "model=M"},
		{"simulated server", true, nil, "",
			"/usr/local/bin/rooftop sim Qwen/Qwen3-8B --max-num-seqs 16 --sim-gpu H100·SXM --port=8001 --sim-scale=2 -tp 2",
			"model=Qwen/Qwen3-8B max_num_seqs=16 port=8001 sim_gpu=H100·SXM sim_scale=2 tensor_parallel_size=2"},
		{"simulated server as go run builds it, the model behind the flags", true, nil, "",
			"/tmp/go-build123/b001/exe/rooftop sim --sim-seed 7 --enforce-eager Qwen/Qwen3-8B",
			"model=Qwen/Qwen3-8B sim_seed=7 enforce_eager=true"},
		{"simulated server behind go run", false, nil, "",
			"go run ./cmd/rooftop sim M --max-num-seqs 8", "model=M max_num_seqs=8"},
		{"uv", false, nil, "",
			"uv run --with vllm vllm serve M --max-num-seqs 8", "model=M max_num_seqs=8"},
		{"numactl, nice and env", false, nil, "",
			"nice -n 5 numactl --cpunodebind=0 --membind=0 env VLLM_ATTENTION_BACKEND=FLASHINFER vllm serve M --seed 3",
			"model=M seed=3 attention_backend=FLASHINFER@env membind="},
		{"shell script", false, nil, "",
			"bash -lc source·/env.sh·&&·exec·vllm·serve·'My·Model'·\\¶··--max-num-seqs·\"16\"·>·/var/log/v.log·2>&1",
			"model=My·Model max_num_seqs=16"},
		{"shell script with variables", false, map[string]string{"MODEL": "org/m", "DTYPE": "half"}, "",
			"sh -c MODEL=x·vllm·serve·$MODEL·--port·${PORT:-9000}·--max-num-seqs·$SLOTS·--dtype·\"$DTYPE\"",
			"model=org/m port=9000 max_num_seqs= dtype=half"},
		{"ray job", false, nil, "",
			"ray job submit --address http://h:8265 -- vllm serve M --distributed-executor-backend ray",
			"model=M distributed_executor_backend=ray"},
		{"docker with the image's entry point", false, nil, "",
			"docker run --gpus all --name vllm -w /vllm-workspace -v ~/.cache:/root/.cache -e HF_HUB_OFFLINE=1 -p 8000:8000 vllm/vllm-openai:v0.11.0 --model M --max-model-len 32k",
			"model=M max_model_len=32k gpus= name="},
		{"docker with a model behind the image", false, nil, "",
			"docker run --rm vllm/vllm-openai:latest Qwen/Qwen3-8B --port 8001", "model=Qwen/Qwen3-8B port=8001"},
		{"docker with a command", false, nil, "",
			"docker run nvcr.io/nvidia/vllm:25.09-py3 bash -c vllm·serve·M·-tp·2", "model=M tensor_parallel_size=2"},
		{"container arguments", false, nil, "",
			"--model=M --tensor-parallel-size=4 --enable-chunked-prefill=false",
			"model=M tensor_parallel_size=4 enable_chunked_prefill=false"},
		{"flags of old releases", true, nil, "",
			"python3 -m vllm.entrypoints.openai.api_server --model M --swap-space 16 --enable-chunked-prefill False --disable-log-requests --use-v2-block-manager --num-scheduler-steps 8",
			"swap_space=16 enable_chunked_prefill=false disable_log_requests=true num_scheduler_steps=8 model=M"},
		{"flags of releases to come", true, nil, "",
			"vllm serve --enable-new-thing M --new-size 5 --brand-new --max-num-seqs 3",
			"model=M enable_new_thing=true new_size=5 brand_new=true max_num_seqs=3"},
		{"config file", true, nil, "max-num-seqs: 16\nmax_num_batched_tokens: 8192 # budget\ngpu-memory-utilization: 0.90\nenforce-eager: true\n",
			"vllm serve M --config /etc/v.yaml --max-num-seqs 64",
			"max_num_seqs=64 max_num_batched_tokens=8192@config gpu_memory_utilization=0.90@config enforce_eager=true@config"},
		{"merge keys and anchors", true, nil, "x-base: &base\n  max-num-seqs: 16\n  port: 9000\n<<: *base\nport: 9001\n",
			"vllm serve M --config v.yaml", "max_num_seqs=16@config port=9001@config"},
		{"sub-keys of a whole object", true, nil, "",
			`vllm serve M --compilation-config {"mode":3,"pass_config":{"a":true},"sizes":[1,2]}`,
			"compilation_config.mode=3 compilation_config.pass_config.a=true -cc.sizes=[1,2] compilation_config.none="},
		{"the compilation config of 0.8 to 0.11", true, nil, "",
			`vllm serve M -O.level=3 -O.cudagraph_capture_sizes+ 1,2`,
			`compilation_config={"cudagraph_capture_sizes":["1","2"],"level":3}`},
		{"environment stands for flags", true, map[string]string{"VLLM_ATTENTION_BACKEND": "FLASH_ATTN", "VLLM_API_KEY": "sekrit"}, "",
			"vllm serve M", "attention_backend=FLASH_ATTN@env api_key=[redacted]@env"},
		{"llama.cpp, short and long spellings", true, nil, "",
			"/usr/bin/llama-server -m /models/m.gguf -np 4 -c 8192 --threads 2 --metrics -ngl 99",
			"model=/models/m.gguf --parallel=4 ctx_size=8192 -t=2 metrics=true --n-gpu-layers=99 --batch-size="},
		{"llama.cpp, opposites", true, nil, "",
			"llama-server -m m.gguf --no-cache-prompt -nocb -no-kvu --repack",
			"cache_prompt=false cont_batching=false kv_unified=false repack=true"},
		{"llama.cpp abbreviates nothing and attaches nothing", true, nil, "",
			"llama-server -m m.gguf --par 4 -c4096", "parallel= ctx_size="},
		{"llama.cpp, variables stand for flags", true, map[string]string{"LLAMA_ARG_N_PARALLEL": "2", "LLAMA_ARG_CTX_SIZE": "8192"}, "",
			"llama-server -c 4096", "parallel=2@env ctx_size=4096"},
		{"llama.cpp in a container", false, nil, "",
			"docker run -p 8080:8080 ghcr.io/ggml-org/llama.cpp:server -m /models/m.gguf --port 8080 -np 8", "parallel=8 port=8080"},
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
			for _, want := range argv(tt.want) {
				flag, _, _ := strings.Cut(want, "=")
				value, from, _ := c.Value(flag)
				if got := strings.TrimSuffix(flag+"="+value+"@"+string(from), "@cmdline"); strings.TrimSuffix(got, "@") != want {
					t.Errorf("got %s, want %s", got, want)
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
		"bash -c python·x.py", "docker run vllm/vllm-openai:latest bash", "tail -f vllm serve", "/bin/sh -c", "VLLM::EngineCore", "rooftop sim bench", "rooftop diagnose --url h", "rooftop", "grep rooftop sim", "grep llama-server log",
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
