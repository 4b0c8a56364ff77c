package catalog

import (
	"errors"
	"math"
	"slices"
	"testing"
)

var none = math.NaN()

// seedGPUs lists the rows of the table in PROFILE; none means that it has no number.
var seedGPUs = []struct {
	row                         string
	fp32, bandwidth             float64
	onDemand, spot              float64
	entries                     []string
	fp32Reason, bandwidthReason map[string]string // by entry: why ours differs
}{
	{"H100 PCIe", 60, 2000, 2.20, 0.90, []string{"NVIDIA H100 PCIe"},
		map[string]string{"NVIDIA H100 PCIe": "60 is the H100 NVL; the PCIe card has 51.2"},
		map[string]string{"NVIDIA H100 PCIe": "2000 is the rounded figure of the data sheet's headline"}},
	{"H100 SXM", 67, 3350, 3.45, 1.85, []string{"NVIDIA H100 80GB HBM3"},
		map[string]string{"NVIDIA H100 80GB HBM3": "rounding of 66.9"}, nil},
	{"H200", 67, 4800, 3.50, 2.00, []string{"NVIDIA H200"},
		map[string]string{"NVIDIA H200": "rounding of 66.9"}, nil},
	{"A100 80GB", 19.5, 2039, 1.50, 0.60, []string{"NVIDIA A100-SXM4-80GB", "NVIDIA A100 80GB PCIe"},
		nil, map[string]string{"NVIDIA A100 80GB PCIe": "2039 is the SXM module; the card has 1935"}},
	{"A100 40GB", 19.5, 1555, 1.50, 0.60, []string{"NVIDIA A100-SXM4-40GB", "NVIDIA A100-PCIE-40GB"}, nil, nil},
	{"A10G", none, none, 1.00, 0.40, []string{"NVIDIA A10G"},
		map[string]string{"NVIDIA A10G": "a price only there"}, map[string]string{"NVIDIA A10G": "a price only there"}},
	{"L40S", 91.6, 864, 1.80, 0.80, []string{"NVIDIA L40S"}, nil, nil},
	{"RTX 4090", 82.6, 1008, none, none, []string{"NVIDIA GeForce RTX 4090"}, nil, nil},
	{"RTX Pro 6000 Blackwell", 125, 960, none, none, []string{
		"NVIDIA RTX PRO 6000 Blackwell Server Edition", "NVIDIA RTX PRO 6000 Blackwell Workstation Edition", "NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition"},
		map[string]string{
			"NVIDIA RTX PRO 6000 Blackwell Server Edition":            "125 is the workstation card; this one clocks lower",
			"NVIDIA RTX PRO 6000 Blackwell Workstation Edition":       "rounding of 126",
			"NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition": "125 is the 600 W card; no figure at 300 W is published",
		},
		map[string]string{
			"NVIDIA RTX PRO 6000 Blackwell Server Edition":            "960 is the RTX 6000 Ada",
			"NVIDIA RTX PRO 6000 Blackwell Workstation Edition":       "960 is the RTX 6000 Ada",
			"NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition": "960 is the RTX 6000 Ada",
		}},
	{"B200", 20, 8000, 6.00, 3.50, []string{"NVIDIA B200"},
		map[string]string{"NVIDIA B200": "20 is no figure of this GPU; the HGX board has 600 for 8"}, nil},
	{"GB200", none, none, 8.50, 4.00, []string{"NVIDIA GB200"},
		map[string]string{"NVIDIA GB200": "a price only there"}, map[string]string{"NVIDIA GB200": "a price only there"}},
	{"GB10 (DGX Spark)", 20, 273, none, none, []string{"NVIDIA GB10"},
		map[string]string{"NVIDIA GB10": "20 has no source; NVIDIA publishes FP4 only"}, nil},
}

// TestSeedGPUs checks that each difference from that table is listed with its reason, and that each
// listed difference exists.
func TestSeedGPUs(t *testing.T) {
	priced := map[string]bool{"NVIDIA L4": true} // inferscope's author states the price that he paid
	for _, row := range seedGPUs {
		for _, name := range row.entries {
			g, err := Default().FindGPU(name, 0)
			if err != nil {
				t.Errorf("%s: %v", row.row, err)
				continue
			}
			same := func(what string, ours, theirs float64, reason string) {
				equal := ours == theirs || ours == 0 && math.IsNaN(theirs)
				if equal == (reason != "") {
					t.Errorf("%s, %s: %s is %v here and %v there; listed reason %q", row.row, name, what, ours, theirs, reason)
				}
			}
			same("FP32", g.FP32TFLOPS, row.fp32, row.fp32Reason[name])
			same("bandwidth", g.MemBandwidthGBs, row.bandwidth, row.bandwidthReason[name])
			var price Price
			if g.Price != nil {
				price = *g.Price
				priced[name] = true
				if price.AsOf != "2026-06" {
					t.Errorf("%s: price as of %q", name, price.AsOf)
				}
			}
			same("on-demand price", price.OnDemandUSD, row.onDemand, "")
			same("spot price", price.SpotUSD, row.spot, "")
		}
	}
	for _, g := range Default().GPUs() {
		if g.Price != nil && !priced[g.Name] {
			t.Errorf("%s has a price that no row gives it", g.Name)
		}
	}
}

// TestSeedGPURowsResolve checks that a row's name matches its entries and no other.
func TestSeedGPURowsResolve(t *testing.T) {
	for _, row := range seedGPUs {
		got := resolve(t, row.row)
		if !slices.Equal(got, row.entries) {
			t.Errorf("%q leads to %q, want %q", row.row, got, row.entries)
		}
	}
}

func resolve(t *testing.T, name string) []string {
	t.Helper()
	g, err := Default().FindGPU(name, 0)
	var ambiguous *AmbiguousError
	if errors.As(err, &ambiguous) {
		return ambiguous.Candidates
	}
	if err != nil {
		t.Errorf("%v", err)
		return nil
	}
	return []string{g.Name}
}

// TestParametersMatchDimensions recounts every model from its dimensions.
func TestParametersMatchDimensions(t *testing.T) {
	exceptions := map[string]string{
		"nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-NVFP4": "no dimensions known",
		"Qwen/Qwen3-Next-80B-A3B-Instruct":               "linear layers: counted from config.json, not from the entry",
		"Qwen/Qwen3.5-27B":                               "linear layers and a vision tower",
		"Qwen/Qwen3.5-35B-A3B":                           "linear layers and a vision tower",
		"Qwen/Qwen3.5-122B-A10B":                         "linear layers and a vision tower",
		"Qwen/Qwen3.5-397B-A17B":                         "linear layers and a vision tower",
		"facebook/opt-125m":                              "two matrices in its FFN",
	}
	counted := 0
	for _, m := range Default().Models() {
		got := m.shape().count()
		ok := within(got.total, m.TotalParams-m.VisionParams, 0.015)
		// Publishers count active parameters with or without embedding tables, and truncate
		// to whole billions.
		okActive := within(got.active, m.ActiveParams-pick(m.Experts == 0, m.VisionParams, 0), pick(m.Experts == 0, 0.015, 0.2))
		if _, listed := exceptions[m.ID]; listed {
			if ok && okActive {
				t.Errorf("%s: listed as an exception, but its dimensions make %.4g", m.ID, got.total)
			}
			continue
		}
		if !ok || !okActive {
			t.Errorf("%s: %.4g parameters (%.4g active), its dimensions make %.4g (%.4g)", m.ID, m.TotalParams, m.ActiveParams, got.total, got.active)
		}
		counted++
	}
	if counted < 120 {
		t.Errorf("only %d models counted", counted)
	}
}
