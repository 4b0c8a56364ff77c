package settings

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/core"
)

// files is a reader of the named texts.
func files(texts map[string]string) func(string) ([]byte, error) {
	return func(path string) ([]byte, error) {
		if text, ok := texts[path]; ok {
			return []byte(text), nil
		}
		return nil, fmt.Errorf("open %s: %w", path, os.ErrNotExist)
	}
}

func TestDefaultsByHardware(t *testing.T) {
	tests := []struct {
		name, argv    string
		seqs, budget  int
		util          float64
		block, length int
		async, isl    bool
		capture       int
	}{
		{"nothing given", "", 256, 2048, 0.92, 16, 8192, true, true, 512},
		{"H100", "--model Qwen/Qwen3-32B --sim-gpu H100-SXM5-80GB", 1024, 8192, 0.92, 16, 40960, true, true, 512},
		{"A100 80 GB", "--model Qwen/Qwen3-8B --sim-gpu NVIDIA_A100-SXM4-80GB", 256, 2048, 0.92, 16, 40960, true, true, 512},
		{"before 0.20", "--model Qwen/Qwen3-8B --sim-gpu L40S --sim-dialect 0.11", 256, 2048, 0.9, 16, 40960, false, false, 512},
		{"B200", "--model Qwen/Qwen3-8B --sim-gpu B200", 1024, 16384, 0.92, 16, 40960, true, true, 1024},
		{"B200 before 0.28", "--model Qwen/Qwen3-8B --sim-gpu B200 --sim-dialect v0.20.1", 1024, 8192, 0.92, 16, 40960, true, true, 1024},
		{"AMD", "--model Qwen/Qwen3-8B --sim-gpu MI300X", 1024, 16384, 0.92, 16, 40960, true, true, 512},
		{"throughput mode", "--model Qwen/Qwen3-8B --sim-gpu L4 --performance-mode throughput", 512, 4096, 0.92, 16, 40960, true, true, 512},
		{"throughput mode leaves what is given", "--performance-mode throughput --max-num-seqs 100", 100, 4096, 0.92, 16, 8192, true, true, 200},
		{"budget capped by slots", "--max-num-seqs 4 --max-model-len 100", 4, 400, 0.92, 16, 100, true, true, 8},
		{"slots capped by the budget", "--max-num-batched-tokens 100", 100, 100, 0.92, 16, 8192, true, true, 100},
		{"without chunking the budget holds a whole prompt", "--no-enable-chunked-prefill", 256, 8192, 0.92, 16, 8192, true, true, 512},
		{"latent attention on Hopper", "--model deepseek-ai/DeepSeek-V3 --sim-gpu H200-SXM -tp 8", 1024, 8192, 0.92, 64, 163840, true, true, 512},
		{"eager", "--enforce-eager", 256, 2048, 0.92, 16, 8192, true, true, 0},
		{"level 0", "-O0", 256, 2048, 0.92, 16, 8192, true, true, 0},
		{"a CPU", "--sim-perf-file cpu.yaml", 128, 2048, 0.92, 128, 8192, false, true, 0},
	}
	read := files(map[string]string{"cpu.yaml": "gpu: {name: Laptop, vendor: cpu, vram_gib: 24, mem_bandwidth_gb_s: 20, fp32_tflops: 0.2}"})
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, err := Parse(strings.Fields(tt.argv), read)
			if err != nil {
				t.Fatal(err)
			}
			got := []any{s.MaxNumSeqs, s.MaxNumBatchedTokens, s.GPUMemoryUtilization, s.BlockSize, s.MaxModelLen, s.AsyncScheduling, s.ReserveFullISL, s.MaxCaptureSize}
			want := []any{tt.seqs, tt.budget, tt.util, tt.block, tt.length, tt.async, tt.isl, tt.capture}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("slots, budget, utilization, block, length, async, whole admission, largest graph (-want +got):\n%s", diff)
			}
		})
	}
}

// TestEveryFlagArrives sets each simulated flag to something else than its default.
func TestEveryFlagArrives(t *testing.T) {
	tests := []struct {
		argv string
		get  func(*Settings) any
		want any
	}{
		{"Qwen/Qwen3-8B", func(s *Settings) any { return s.Model.ID }, "Qwen/Qwen3-8B"},
		{"--model Qwen/Qwen3-8B", func(s *Settings) any { return s.Served }, []string{"Qwen/Qwen3-8B"}},
		{"--served-model-name a b --port 1", func(s *Settings) any { return s.Served }, []string{"a", "b"}},
		{"", func(s *Settings) any { return s.Host }, "127.0.0.1"},
		{"--host 0.0.0.0", func(s *Settings) any { return s.Host }, "0.0.0.0"},
		{"--port 8111", func(s *Settings) any { return s.Port }, 8111},
		{"--api-key secret-1", func(s *Settings) any { return s.APIKey }, "secret-1"},
		{"--api_key=secret-2", func(s *Settings) any { return s.APIKey }, "secret-2"},
		{"--max_model_len=4k", func(s *Settings) any { return s.MaxModelLen }, 4000},
		{"--max-num-seqs 7", func(s *Settings) any { return s.MaxNumSeqs }, 7},
		{"--max-num-batched-tokens 4K", func(s *Settings) any { return s.MaxNumBatchedTokens }, 4096},
		{"--gpu-memory-utilization .5", func(s *Settings) any { return s.GPUMemoryUtilization }, 0.5},
		{"--kv-cache-memory-bytes 4G", func(s *Settings) any { return s.KVCacheMemoryBytes }, 4.0 * (1 << 30)},
		{"--num-gpu-blocks-override 99", func(s *Settings) any { return s.NumGPUBlocksOverride }, 99},
		{"--block-size 32", func(s *Settings) any { return s.BlockSize }, 32},
		{"--kv-cache-dtype fp8_e4m3", func(s *Settings) any { return s.KVDType }, catalog.FP8},
		{"--dtype half", func(s *Settings) any { return []any{s.ComputeDType, s.WeightDType, s.KVDType} }, []any{catalog.FP16, catalog.FP16, catalog.FP16}},
		{"--quantization fp8", func(s *Settings) any { return []any{s.WeightDType, s.LinearDType, s.ComputeDType, s.Quantization} }, []any{catalog.FP8, catalog.FP8, catalog.BF16, "fp8"}},
		{"-q fp8 --sim-gpu A100-SXM4-80GB", func(s *Settings) any { return []any{s.WeightDType, s.LinearDType} }, []any{catalog.FP8, catalog.BF16}},
		{"neuralmagic/Meta-Llama-3.1-8B-Instruct-quantized.w8a8", func(s *Settings) any { return []any{s.WeightDType, s.LinearDType, s.Quantization} }, []any{catalog.INT8, catalog.INT8, "compressed-tensors"}},
		{"hugging-quants/Meta-Llama-3.1-8B-Instruct-AWQ-INT4", func(s *Settings) any { return []any{s.WeightDType, s.LinearDType, s.Quantization} }, []any{catalog.INT4, catalog.BF16, "awq"}},
		{"-tp 2", func(s *Settings) any { return s.TensorParallel }, 2},
		{"-dp 2", func(s *Settings) any { return []int{s.DataParallel, s.APIServers} }, []int{2, 2}},
		{"-dp 2 --api-server-count 1", func(s *Settings) any { return s.APIServers }, 1},
		{"--no-enable-prefix-caching", func(s *Settings) any { return s.PrefixCaching }, false},
		{"--no-enable-chunked-prefill", func(s *Settings) any { return s.ChunkedPrefill }, false},
		{"--long-prefill-token-threshold 512", func(s *Settings) any { return s.LongPrefillTokenThreshold }, 512},
		{"--scheduling-policy priority", func(s *Settings) any { return s.Core(9, 0).Policy }, core.Priority},
		{"--no-scheduler-reserve-full-isl", func(s *Settings) any { return s.ReserveFullISL }, false},
		{"--watermark 0.05", func(s *Settings) any { return s.Watermark }, 0.05},
		{"--no-async-scheduling", func(s *Settings) any { return s.AsyncScheduling }, false},
		{"--enforce-eager", func(s *Settings) any { return s.EnforceEager }, true},
		{"--max-cudagraph-capture-size 64", func(s *Settings) any { return s.MaxCaptureSize }, 64},
		{"--stream-interval 4", func(s *Settings) any { return s.StreamInterval }, 4},
		{`--enable-lora --max-loras 3 --lora-modules a=/x {"name":"b","path":"/y"}`, func(s *Settings) any { return []any{s.Core(9, 0).MaxLoras, s.LoRAModules} }, []any{3, []string{"a", "b"}}},
		{"--max-loras 3", func(s *Settings) any { return s.Core(9, 0).MaxLoras }, 0},
		{"--disable-log-stats", func(s *Settings) any { return s.LogStats }, false},
		{"--sim-gpu B200", func(s *Settings) any { return s.GPU.Name }, "NVIDIA B200"},
		{"--sim-seed 17", func(s *Settings) any { return s.Seed }, uint64(17)},
		{"--sim-scale=20", func(s *Settings) any { return s.Scale }, 20.0},
		{"--sim-dialect 0.11", func(s *Settings) any { return []any{s.Release, s.Core(9, 0).Generation} }, []any{"0.11", core.Old}},
		{"--sim-scenario slot-capped", func(s *Settings) any { return s.Scenario }, "slot-capped"},
		{"--sim-startup-time 2.5", func(s *Settings) any { return s.StartupTime }, 2500 * time.Millisecond},
		{"-dp 2 --sim-fault die@9s --sim_fault stall@1m+10s,slow@5x1.5#1", func(s *Settings) any { return s.Faults }, []Fault{
			{Kind: "die", At: 9 * time.Second, Factor: 1, Rank: -1},
			{Kind: "stall", At: time.Minute, For: 10 * time.Second, Factor: 1, Rank: -1},
			{Kind: "slow", At: 5 * time.Second, Factor: 1.5, Rank: 1},
		}},
		{"--sim-fault network@0+30x200ms", func(s *Settings) any { return s.Faults }, []Fault{{Kind: "network", For: 30 * time.Second, Factor: 1, Rank: -1, Delay: 200 * time.Millisecond}}},
	}
	for _, tt := range tests {
		s, err := Parse(strings.Fields(tt.argv), nil)
		if err != nil {
			t.Errorf("%s: %v", tt.argv, err)
			continue
		}
		if diff := cmp.Diff(tt.want, tt.get(s)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.argv, diff)
		}
		if !slices.Equal(s.Argv, strings.Fields(tt.argv)) {
			t.Errorf("%s: the arguments are kept as %q", tt.argv, s.Argv)
		}
	}
}

func TestRefusals(t *testing.T) {
	const tiny = `{"architectures":["LlamaForCausalLM"],"model_type":"llama","hidden_size":512,"num_hidden_layers":8,"num_attention_heads":8,"num_key_value_heads":4,"intermediate_size":1536,"vocab_size":512,"max_position_embeddings":2048,"torch_dtype":"bfloat16"}`
	read := files(map[string]string{
		"c.yaml": "max-num-seqs: 5\nmax-num-batched-tokens: 3\n", "bad.yaml": "gpu: {name: X}\n", "gpu.yaml": "gpu: {name: X, vendor: nvidia, vram_gib: 9, mem_bandwidth_gb_s: 9, bf16_tflops: 9}",
		"tiny/config.json": tiny, "key.yaml": "api-key: k",
	})
	tests := []struct{ argv, want string }{
		// vLLM's own words.
		{"--max-num-seqs 8 --max-num-batched-tokens 4", "max_num_batched_tokens (4) must be greater than or equal to max_num_seqs (8)."},
		{"--max-num-seqs 4096", "max_num_batched_tokens (2048) must be greater than or equal to max_num_seqs (4096)."},
		{"--config c.yaml", "max_num_batched_tokens (3) must be greater than or equal to max_num_seqs (5)."},
		{"--no-enable-chunked-prefill --max-num-batched-tokens 512", "max_num_batched_tokens (512) is smaller than max_model_len (8192)."},
		{"Qwen/Qwen3-8B --max-model-len 50000", "User-specified max_model_len (50000) is greater than the derived max_model_len (max_position_embeddings=40960"},
		{"tiny --max-model-len 4096", "User-specified max_model_len (4096) is greater than the derived max_model_len (max_position_embeddings=2048"},
		{"--long-prefill-token-threshold 9000", "long_prefill_token_threshold (9000) cannot be greater than the max_model_len (8192)."},
		{"-tp 3", "Total number of attention heads (32) must be divisible by tensor parallel size (3)."},
		{"--max-num-seqs many", "argument --max-num-seqs: invalid int value: 'many'"},
		{"--max-num-seqs 0", "max_num_seqs: Input should be greater than or equal to 1 (got 0)"},
		{"--max-num-seqs", "argument --max-num-seqs: expected one argument"},
		{"--max-model-len long", "argument --max-model-len: invalid human_readable_int_or_auto value: 'long'"},
		{"--gpu-memory-utilization 1.2", "gpu_memory_utilization: Input should be less than or equal to 1 (got 1.2)"},
		{"--gpu-memory-utilization x", "argument --gpu-memory-utilization: invalid float value: 'x'"},
		{"--kv-cache-dtype fp9", "argument --kv-cache-dtype: invalid choice: 'fp9' (choose from 'auto', 'float16'"},
		{"--scheduling-policy lifo", "argument --scheduling-policy: invalid choice: 'lifo' (choose from 'fcfs', 'priority')"},
		{"--block-size 48 --sim-dialect 0.10", "argument --block-size: invalid choice: '48' (choose from 1, 8, 16, 32, 64, 128, 256)"},
		{"--block-size 20", "No valid attention backend found for cuda with block_size=20"},
		{"--quantization zip", "Unknown quantization method: zip. Must be one of ['fp8'"},
		{"--quantization bitsandbytes", "Unknown quantization method: bitsandbytes."},
		{"--quantization awq", "Cannot find the config file for awq"},
		{"x/Llama-3.1-8B-Instruct-AWQ --quantization fp8", "Quantization method specified in the model config (awq) does not match the quantization method specified in the `quantization` argument (fp8)."},
		{"--quantization fp8 --sim-gpu V100-SXM2-32GB --dtype half", "The quantization method fp8 is not supported for the current GPU. Minimum capability: 75. Current capability: 70."},
		{"--dtype bfloat16 --sim-gpu T4", "Bfloat16 is only supported on GPUs with compute capability of at least 8.0. Your Tesla T4 GPU has compute capability 7.5."},
		{"--kv-cache-dtype fp8 --sim-gpu T4", "No valid attention backend found for cuda with kv_cache_dtype=fp8"},
		{"--watermark 1", "watermark: Input should be less than 1"},
		{"--foo 3 --bar", "unrecognized arguments: --foo 3 --bar"},
		{"a/b c", "unrecognized arguments: c"},
		{"--watermark 0.1 --sim-dialect 0.11", "unrecognized arguments: --watermark 0.1"},
		{"--swap-space 4", "unrecognized arguments: --swap-space 4"},
		{"--lora-modules a=/x", "LoRA is not enabled"},
		{"--enable-lora --lora-modules /x", "argument --lora-modules"},
		{"--port 70000", "argument --port: port must be 0-65535 (got 70000)"},
		// Limits, named.
		{"--speculative-config {\"method\":\"ngram\"}", "not simulated: --speculative-config (speculative decoding)"},
		{"--kv-transfer-config {\"kv_role\":\"kv_both\"}", "not simulated: --kv-transfer-config"},
		{"--pipeline-parallel-size 2", "not simulated: --pipeline-parallel-size (pipeline parallelism)"},
		{"--enable-expert-parallel", "not simulated: --enable-expert-parallel"},
		{"--enable-sleep-mode", "not simulated: --enable-sleep-mode"},
		{"--max-num-queued-reqs 5", "not simulated: --max-num-queued-reqs"},
		{"--cpu-offload-gb 4", "not simulated: --cpu-offload-gb"},
		{"--max-model-len auto", "not simulated: --max-model-len auto"},
		{"--kv-cache-dtype nvfp4", "not simulated: --kv-cache-dtype nvfp4"},
		{"-tp 16 --sim-gpu B200", "not simulated: --tensor-parallel-size 16"},
		{"deepseek-ai/DeepSeek-V3 -dp 2 --sim-gpu B200", "not simulated: --data-parallel-size with a mixture of experts"},
		{"google/gemma-2-9b-it", "not simulated: model google/gemma-2-9b-it: 21 layers with a sliding window"},
		{"openai/gpt-oss-20b", "not simulated: model openai/gpt-oss-20b: 12 layers with a sliding window"},
		{"Qwen/Qwen3-Next-80B-A3B-Instruct", "not simulated: model Qwen/Qwen3-Next-80B-A3B-Instruct: 36 layers of linear attention"},
		{"deepseek-ai/DeepSeek-V3.2", "not simulated: model deepseek-ai/DeepSeek-V3.2: sparse attention"},
		{"--ssl-keyfile k", "not simulated: --ssl-keyfile (TLS)"},
		// The simulator's own.
		{"someone/unheard-of-7b", "model someone/unheard-of-7b is not in the catalog; name a directory with its config.json"},
		{"--sim-gpu A100", `argument --sim-gpu: "A100" fits several: NVIDIA A100-SXM4-80GB`},
		{"--sim-gpu Voodoo2", `argument --sim-gpu: "Voodoo2" is not in the catalog`},
		{"--sim-gpu H10", `argument --sim-gpu: "H10" is not in the catalog (nearest: NVIDIA H100`},
		{"--sim-gpu", "argument --sim-gpu: expected one argument"},
		{"--sim-warp 9", "unrecognized arguments: --sim-warp (the simulator has --sim-gpu, --sim-gpus, --sim-seed"},
		{"--sim-seed -1", `argument --sim-seed: "-1": a whole number from 0 on is expected`},
		{"--sim-scale 0", `argument --sim-scale: "0"`},
		{"--sim-dialect 0.12", `argument --sim-dialect: "0.12": one of 0.10, 0.11, 0.20, 0.32 is expected`},
		{"--sim-startup-time soon", `"soon" is not a duration`},
		{"--sim-fault flood@3", "kind one of stall, slow, die, reset, network"},
		{"--sim-fault slow@3", "kind@at[+for][xfactor][#rank] is expected"},
		{"--sim-fault die@3x2", "kind@at[+for][xfactor][#rank] is expected"},
		{"-dp 2 --sim-fault skew@0s#5", "argument --sim-fault: fault skew: there is no rank 5, only 0 to 1 (--data-parallel-size 2)"},
		{"--sim-fault stall@0s,stall@0s#1", "there is no rank 1, only 0 to 0"},
		{"--sim-perf-file none.yaml", "argument --sim-perf-file: open none.yaml"},
		{"--sim-perf-file bad.yaml", "argument --sim-perf-file: bad.yaml: gpu: vram_gib is missing"},
		{"--sim-perf-file gpu.yaml --sim-gpu L4", "gpu.yaml describes a GPU too"},
		{"--config none.yaml", "argument --config: open none.yaml"},
		{"--config key.yaml", "not simulated: --api-key in a config file"},
	}
	for _, tt := range tests {
		t.Run(tt.argv, func(t *testing.T) {
			s, err := Parse(strings.Fields(tt.argv), read)
			if err == nil {
				t.Fatalf("accepted: %+v", s)
			}
			if !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got  %v\nwant %s", err, tt.want)
			}
		})
	}
}

func TestNotes(t *testing.T) {
	tests := []struct {
		argv string
		want []string
	}{
		{"Qwen/Qwen3-8B --sim-gpu L4", nil},
		{"", []string{
			"no --sim-gpu given: one NVIDIA L4 is simulated",
			"no model given: meta-llama/Llama-3.1-8B-Instruct is simulated, with a length of 8192 unless --max-model-len says otherwise",
		}},
		{"Qwen/Qwen3-8B --sim-gpu L4 --seed 3 --trust-remote-code --seed 4", []string{"accepted, not simulated: --seed, --trust-remote-code"}},
		{"Qwen/Qwen3-8B --sim-gpu L4 --swap-space 4 --sim-dialect 0.10", []string{"accepted, not simulated: --swap-space"}},
		{"Qwen/Qwen3-8B --sim-gpu L4 --max-num-se 3", []string{"--max-num-se read as --max-num-seqs (abbreviated)"}},
		{"Qwen/Qwen3-8B --sim-gpu L4 --pipeline-parallel-size 1", nil},
	}
	for _, tt := range tests {
		s, err := Parse(strings.Fields(tt.argv), nil)
		if err != nil {
			t.Errorf("%s: %v", tt.argv, err)
			continue
		}
		if diff := cmp.Diff(tt.want, s.Notes); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.argv, diff)
		}
	}
}

func TestModelDirectory(t *testing.T) {
	read := files(map[string]string{"/m/tiny/config.json": `{"architectures":["LlamaForCausalLM"],"model_type":"llama","hidden_size":512,"num_hidden_layers":8,"num_attention_heads":8,"num_key_value_heads":4,"intermediate_size":1536,"vocab_size":512,"max_position_embeddings":2048,"torch_dtype":"float16"}`})
	s, err := Parse([]string{"--model", "/m/tiny", "--sim-gpu", "L4"}, read)
	if err != nil {
		t.Fatal(err)
	}
	if s.Model.Layers != 8 || s.Model.KVHeads != 4 || s.MaxModelLen != 2048 || s.ComputeDType != catalog.FP16 || s.Served[0] != "/m/tiny" {
		t.Errorf("the directory is read as %+v", s)
	}
	if _, err := Parse([]string{"/m/none"}, read); err == nil {
		t.Error("a directory without a config.json is accepted")
	}
}

// TestCatalogIsParsed starts every model of the catalog: it is either simulated or
// refused by name.
func TestCatalogIsParsed(t *testing.T) {
	simulated := 0
	for _, m := range catalog.Default().Models() {
		_, err := Parse([]string{m.ID, "--sim-gpu", "B200"}, nil)
		if err == nil {
			simulated++
		} else if !strings.Contains(err.Error(), m.ID) {
			t.Errorf("%s: %v", m.ID, err)
		}
	}
	if simulated < 70 {
		t.Errorf("%d models are simulated", simulated)
	}
	for _, g := range catalog.Default().GPUs() {
		s, err := Parse([]string{"Qwen/Qwen3-0.6B", "--sim-gpu", g.Name}, nil)
		incomplete := g.VRAMGiB == 0 || g.MemBandwidthGBs == 0 || g.BF16TFLOPS == 0 && g.FP32TFLOPS == 0
		switch {
		case incomplete && (err == nil || !strings.Contains(err.Error(), "is not known; describe it with --sim-perf-file")):
			t.Errorf("%s, whose data are incomplete: %v", g.Name, err)
		case !incomplete && (err != nil || s.GPU.Name != g.Name):
			t.Errorf("%s: %v", g.Name, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, argv := range []string{
		"", "Qwen/Qwen3-8B\n--max-num-seqs=4", "--sim-fault\nslow@60s+30sx1.3#0", "--config\nc.yaml", "--no-enable-prefix-caching\n-tp\n2\n-O0",
		"--compilation-config.mode=3\n--lora-modules\na=b\n{\"name\":1}", "--sim-perf-file\nc.yaml", "--api-key\nk\n--served-model-name\na\nb",
		"--max-model-len\n1e9\n--max-num-batched-tokens\n9999999999t", "--\nx\n-", "--num-gpu-blocks-override=0x10\n--block-size=-16",
	} {
		f.Add(argv, "max-num-seqs: 3\nmodel: Qwen/Qwen3-8B\n")
	}
	f.Add("m", `{"model_type":"llama","hidden_size":4096,"num_hidden_layers":9999999999,"num_attention_heads":32,"vocab_size":1,"max_position_embeddings":9223372036854775807}`)
	f.Fuzz(func(t *testing.T, argv, file string) {
		s, err := Parse(strings.Split(argv, "\n"), func(string) ([]byte, error) {
			if file == "" {
				return nil, errors.New("none")
			}
			return []byte(file), nil
		})
		if err != nil {
			if strings.TrimSpace(err.Error()) == "" {
				t.Error("a refusal without words")
			}
			return
		}
		if s.MaxNumSeqs < 1 || s.MaxNumBatchedTokens < s.MaxNumSeqs || s.MaxModelLen < 1 || s.BlockSize < 1 || s.TensorParallel < 1 ||
			s.DataParallel < 1 || s.StreamInterval < 1 || len(s.Served) == 0 || s.Scale <= 0 || s.ComputeDType == "" || s.LinearDType == "" || s.KVDType.Bytes() == 0 || s.WeightDType.Bytes() == 0 {
			t.Errorf("accepted with values that no server has: %+v", s)
		}
	})
}
