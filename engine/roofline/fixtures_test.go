package roofline

import (
	"testing"

	"github.com/rooftop-dev/rooftop/catalog"
)

func nvlink(gbs float64) *float64 { return &gbs }

// Datasheet literals, so that the arithmetic here does not move with the
// catalog.
func h100sxm() catalog.GPU {
	return catalog.GPU{
		Name: "NVIDIA H100 80GB HBM3", Vendor: "nvidia", Arch: "Hopper sm90", VRAMGiB: 79.65, MemBandwidthGBs: 3350,
		FP32TFLOPS: 66.9, TF32TFLOPS: 494.5, BF16TFLOPS: 989, FP8TFLOPS: 1979, INT8TOPS: 1979, NVLinkGBs: nvlink(900), PCIeGen: 5,
	}
}

func a100sxm() catalog.GPU {
	return catalog.GPU{
		Name: "NVIDIA A100-SXM4-80GB", Vendor: "nvidia", Arch: "Ampere sm80", VRAMGiB: 80, MemBandwidthGBs: 2039,
		FP32TFLOPS: 19.5, TF32TFLOPS: 156, BF16TFLOPS: 312, INT8TOPS: 624, NVLinkGBs: nvlink(600), PCIeGen: 4,
	}
}

func llama8b() catalog.Model {
	return catalog.Model{
		ID: "meta-llama/Llama-3.1-8B-Instruct", Family: "Llama 3.1", TotalParams: 8.03e9, ActiveParams: 8.03e9,
		Layers: 32, Hidden: 4096, Heads: 32, KVHeads: 8, HeadDim: 128, Intermediate: 14336, Vocab: 128256,
		Attention: catalog.AttentionGQA, NativeDType: catalog.BF16,
	}
}

func bf16(g catalog.GPU, m catalog.Model, tp int) Config {
	return Config{GPU: g, Model: m, TP: tp, PP: 1, Weight: catalog.BF16, KV: catalog.BF16, Compute: catalog.BF16}
}

func mustGPU(t *testing.T, name string) catalog.GPU {
	t.Helper()
	g, err := catalog.Default().FindGPU(name, 0)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func mustModel(t *testing.T, name string) catalog.Model {
	t.Helper()
	m, err := catalog.Default().FindModel(name)
	if err != nil {
		t.Fatal(err)
	}
	return m
}
