package settings

import (
	"strings"
	"testing"
)

func TestDefaultsByHardware(t *testing.T) {
	tests := []struct {
		name, argv    string
		seqs, budget  int
		util          float64
		block, length int
	}{
		{"nothing given", "", 256, 2048, 0.92, 16, 8192},
		{"H100", "--model Qwen/Qwen3-32B --sim-gpu H100-SXM5-80GB", 1024, 8192, 0.92, 16, 40960},
		{"A100 80 GB", "--model Qwen/Qwen3-8B --sim-gpu NVIDIA_A100-SXM4-80GB", 256, 2048, 0.92, 16, 40960},
		{"before 0.20", "--model Qwen/Qwen3-8B --sim-gpu L40S --sim-dialect 0.11", 256, 2048, 0.9, 16, 40960},
		{"B200", "--model Qwen/Qwen3-8B --sim-gpu B200", 1024, 16384, 0.92, 16, 40960},
		{"B200 before 0.28", "--model Qwen/Qwen3-8B --sim-gpu B200 --sim-dialect 0.20", 1024, 8192, 0.92, 16, 40960},
		{"throughput mode", "--model Qwen/Qwen3-8B --sim-gpu L4 --performance-mode throughput", 512, 4096, 0.92, 16, 40960},
		{"budget capped by seats", "--max-num-seqs 4 --max-model-len 100", 4, 400, 0.92, 16, 100},
		{"seats capped by the budget", "--max-num-batched-tokens 100", 100, 100, 0.92, 16, 8192},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, err := Parse(strings.Fields(tt.argv), nil)
			if err != nil {
				t.Fatal(err)
			}
			if s.MaxNumSeqs != tt.seqs || s.MaxNumBatchedTokens != tt.budget || s.GPUMemoryUtilization != tt.util ||
				s.BlockSize != tt.block || s.MaxModelLen != tt.length {
				t.Errorf("seqs %d, budget %d, utilisation %v, block %d, length %d; want %d, %d, %v, %d, %d", s.MaxNumSeqs, s.MaxNumBatchedTokens,
					s.GPUMemoryUtilization, s.BlockSize, s.MaxModelLen, tt.seqs, tt.budget, tt.util, tt.block, tt.length)
			}
		})
	}
}
