package perf_test

import (
	"strings"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/perf"
)

func TestRefusalsToStart(t *testing.T) {
	tests := []struct{ name, argv, want string }{
		{"weights do not fit", "meta-llama/Llama-3.3-70B-Instruct --sim-gpu H100-SXM5-80GB",
			"torch.OutOfMemoryError: CUDA out of memory. Loading the weights of meta-llama/Llama-3.3-70B-Instruct takes memory to 132.42 GiB"},
		{"no room for a block", "Qwen/Qwen3-32B --sim-gpu H100-SXM5-80GB --gpu-memory-utilization 0.8",
			"No available memory for the cache blocks. Try increasing `gpu_memory_utilization`"},
		{"one request does not fit", "Qwen/Qwen3-32B --sim-gpu H100-SXM5-80GB --gpu-memory-utilization 0.9",
			"To serve at least one request with the model's max seq len (40960), (10.00 GiB KV cache is needed, which is larger than the available KV cache memory (5.80 GiB). Based on the available memory, the estimated maximum model length is 237"},
		{"all of the memory", "--sim-gpu L4 --gpu-memory-utilization 1",
			"Free memory on device cuda:0 (21.99/22.49 GiB) on startup is less than desired GPU memory utilization (1, 22.49 GiB)."},
		{"a pool given in bytes that does not fit", "--sim-gpu L4 --kv-cache-memory-bytes 10g", "torch.OutOfMemoryError"},
		{"a pool given in blocks that does not fit", "--sim-gpu L4 --num-gpu-blocks-override 100000", "torch.OutOfMemoryError"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m, _ := machine(t, tt.argv)
			_, err := m.Size()
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

// TestNamedLengthStarts tries the length that a refusal names: the server must start with it, and must not with one
// block more.
func TestNamedLengthStarts(t *testing.T) {
	const argv = "Qwen/Qwen3-32B --sim-gpu H100-SXM5-80GB --gpu-memory-utilization 0.9 --max-num-seqs 256 --max-num-batched-tokens 8192 --max-model-len "
	m, _ := machine(t, argv+"40960")
	_, err := m.Size()
	if err == nil {
		t.Fatal("40960 tokens fit")
	}
	_, rest, _ := strings.Cut(err.Error(), "maximum model length is ")
	length, _, _ := strings.Cut(rest, ".")
	fits, s := machine(t, argv+length)
	if _, err := fits.Size(); err != nil {
		t.Errorf("the named length %s does not start: %v", length, err)
	}
	s.MaxModelLen += s.BlockSize
	longer, err := perf.New(s)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := longer.Size(); err == nil {
		t.Errorf("%d tokens start, although %s are named as the most", s.MaxModelLen, length)
	}
}

// TestWhatShrinksThePool changes one flag at a time.
func TestWhatShrinksThePool(t *testing.T) {
	const base = "meta-llama/Llama-3.1-8B-Instruct --sim-gpu H100-SXM5-80GB --max-model-len 16384 "
	blocks := func(argv string) int {
		t.Helper()
		m, _ := machine(t, argv)
		z, err := m.Size()
		if err != nil {
			t.Fatal(err)
		}
		return z.NumBlocks
	}
	now := blocks(base)
	tests := []struct {
		name, argv string
		low, high  float64 // blocks over the base's
	}{
		{"a larger token budget", base + "--max-num-batched-tokens 32768", 0.5, 0.97},
		{"more slots", base + "--max-num-seqs 2048", 0.5, 0.99},
		{"less utilization", base + "--gpu-memory-utilization 0.5", 0.3, 0.5},
		{"fp8 KV", base + "--kv-cache-dtype fp8", 1.99, 2.01},
		{"fp8 weights", base + "--quantization fp8", 1.08, 1.3},
		{"blocks of 32 tokens", base + "--block-size 32", 0.49, 0.51},
		{"before the graphs were counted, at the same utilization", base + "--gpu-memory-utilization 0.92 --sim-dialect 0.20", 1.001, 1.05},
		{"eager, without graphs", base + "--enforce-eager", 1.001, 1.05},
		{"a shorter length frees nothing", base + "--max-model-len 1024", 1, 1},
		{"two ranks", base + "-tp 2", 2.2, 2.6},
		{"a fixed number of blocks", base + "--num-gpu-blocks-override " + "77", 77.0 / float64(now), 77.0 / float64(now)},
		{"a fixed number of bytes", base + "--kv-cache-memory-bytes 4G", 2048.0 / float64(now), 2048.0 / float64(now)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := float64(blocks(tt.argv)) / float64(now); got < tt.low || got > tt.high {
				t.Errorf("%.3f times the %d blocks, want %v to %v", got, now, tt.low, tt.high)
			}
		})
	}
}

func TestStartup(t *testing.T) {
	start := func(argv string) time.Duration { m, _ := machine(t, argv); return m.Startup() }
	if got := start("--sim-startup-time 3s"); got != 3*time.Second {
		t.Errorf("a given start-up time is %v", got)
	}
	small, eager := start("Qwen/Qwen3-0.6B --sim-gpu L4"), start("Qwen/Qwen3-0.6B --sim-gpu L4 --enforce-eager")
	large := start("meta-llama/Llama-3.3-70B-Instruct --sim-gpu H100-SXM5-80GB -tp 4")
	if !(10*time.Second < eager && eager < small && small < large && large < 10*time.Minute) {
		t.Errorf("start-up takes %v eager, %v, and %v with 140 GB of weights", eager, small, large)
	}
}
