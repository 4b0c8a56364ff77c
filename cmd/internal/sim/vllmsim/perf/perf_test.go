package perf_test

import (
	"strings"
	"testing"

	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/core"
	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/perf"
	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/settings"
)

func machine(t testing.TB, argv string) (*perf.Machine, *settings.Settings) {
	t.Helper()
	s, err := settings.Parse(strings.Fields(argv), nil)
	if err != nil {
		t.Fatal(err)
	}
	m, err := perf.New(s)
	if err != nil {
		t.Fatal(err)
	}
	return m, s
}

func TestPoolOfKnownServers(t *testing.T) {
	tests := []struct {
		name, argv string
		low, high  float64
		of         func(perf.Sizing) float64
	}{
		// Pool sizes of real servers.
		{"blocks of Llama 8B on 80 GB", "--model meta-llama/Llama-3.1-8B-Instruct --sim-gpu H100-SXM5-80GB --gpu-memory-utilization 0.9 --max-model-len 32768",
			26000, 28000, func(z perf.Sizing) float64 { return float64(z.NumBlocks) }},
		{"GiB of Qwen3-32B on 80 GB", "--model Qwen/Qwen3-32B --sim-gpu H100-SXM5-80GB --gpu-memory-utilization 0.9 --max-model-len 8192 --max-num-batched-tokens 8192",
			5.3, 5.9, func(z perf.Sizing) float64 { return z.KVBytes / (1 << 30) }},
		{"GiB of the weights of Llama 8B", "--model meta-llama/Llama-3.1-8B-Instruct --sim-gpu H100-SXM5-80GB", 14.9, 15.1, func(z perf.Sizing) float64 { return z.WeightBytes / (1 << 30) }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m, _ := machine(t, tt.argv)
			z, err := m.Size()
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%+v", z)
			if got := tt.of(z); got < tt.low || got > tt.high {
				t.Errorf("got %.4g, want %v to %v", got, tt.low, tt.high)
			}
		})
	}
}

func batch(n, context int) core.Batch {
	b := core.Batch{Work: make([]core.Work, n), Tokens: n}
	for i := range b.Work {
		b.Work[i] = core.Work{ID: core.ID(i), Context: context + i, New: 1, Samples: true}
	}
	return b
}
