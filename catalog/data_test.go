package catalog

import (
	"errors"
	"math"
	"slices"
	"strconv"
	"testing"
)

// TestGPUsAgreeWithTheTable compares the embedded GPUs with the table of the field data; cells that
// its notes leave open are filled from the entry's source.
func TestGPUsAgreeWithTheTable(t *testing.T) {
	filled := map[string]bool{"NVIDIA B200 fp32_tflops": true, "NVIDIA L20 vram_gib": true, "NVIDIA H20-3e vram_gib": true}
	rows := fieldData(t, "gpus.csv")
	byName := make(map[string]GPU)
	for _, g := range Default().GPUs() {
		byName[g.Name] = g
	}
	if len(rows) != len(byName) {
		t.Errorf("%d GPUs, the table has %d", len(byName), len(rows))
	}
	for _, row := range rows {
		g, ok := byName[row["name_as_nvml_reports"]]
		if !ok {
			t.Errorf("%s: missing", row["name_as_nvml_reports"])
			continue
		}
		nvlink := math.NaN()
		if g.NVLinkGBs != nil {
			nvlink = *g.NVLinkGBs
		}
		for _, c := range []struct {
			column, field string
			got           float64
		}{
			{"vram_gib", "vram_gib", g.VRAMGiB}, {"mem_bw_gb_s", "mem_bandwidth_gb_s", g.MemBandwidthGBs}, {"fp32_tflops", "fp32_tflops", g.FP32TFLOPS},
			{"tf32_tflops_dense", "tf32_tflops", g.TF32TFLOPS}, {"fp16_bf16_tflops_dense", "bf16_tflops", g.BF16TFLOPS}, {"fp8_tflops_dense", "fp8_tflops", g.FP8TFLOPS},
			{"int8_tops_dense", "int8_tops", g.INT8TOPS}, {"fp4_tflops_dense", "fp4_tflops", g.FP4TFLOPS}, {"nvlink_gb_s_bidir", "nvlink_gb_s", nvlink},
			{"pcie_gen", "pcie_gen", float64(g.PCIeGen)}, {"tdp_w", "tdp_w", g.TDPW},
		} {
			cell := row[c.column]
			want, err := strconv.ParseFloat(cell, 64)
			switch {
			case cell == "" && (c.got == 0 || math.IsNaN(c.got)):
			case filled[g.Name+" "+c.field]:
				if cell != "" {
					t.Errorf("%s: the table now has %s, drop ours", g.Name, c.field)
				}
			case err != nil || c.got != want:
				t.Errorf("%s: %s is %v, the table has %q", g.Name, c.field, c.got, cell)
			}
		}
		if g.Vendor != row["vendor"] || g.Arch != row["arch"] {
			t.Errorf("%s: %s, %s; the table has %s, %s", g.Name, g.Vendor, g.Arch, row["vendor"], row["arch"])
		}
	}
}

// TestModelsAgreeWithTheTable checks that every row of the field data is an entry with the sizes and
// the shape of the table.
func TestModelsAgreeWithTheTable(t *testing.T) {
	// Recounted from the dimensions: the table truncates them to whole billions.
	recounted := map[string]bool{"google/gemma-4-26B-A4B-it": true}
	byID := make(map[string]Model)
	for _, m := range Default().Models() {
		byID[m.ID] = m
	}
	for _, row := range fieldData(t, "models.csv") {
		m, ok := byID[row["hf_id"]]
		if !ok {
			t.Errorf("%s: missing", row["hf_id"])
			continue
		}
		width := m.Intermediate
		if m.Experts > 0 {
			width = m.ExpertWidth
		}
		for _, c := range []struct {
			column string
			got    float64
		}{
			{"total_params_b", m.TotalParams / 1e9}, {"active_params_b", m.ActiveParams / 1e9}, {"num_layers", float64(m.Layers)}, {"hidden_size", float64(m.Hidden)},
			{"num_attention_heads", float64(m.Heads)}, {"num_kv_heads", float64(m.KVHeads)}, {"head_dim", float64(m.HeadDim)}, {"intermediate_size", float64(width)},
			{"vocab_size", float64(m.Vocab)}, {"num_experts", float64(m.Experts)}, {"experts_per_tok", float64(m.ExpertsPerToken)},
			{"kv_lora_rank", float64(m.KVLoraRank)}, {"qk_rope_head_dim", float64(m.QKRopeHeadDim)}, {"sliding_window", float64(m.SlidingWindow)},
			{"max_position_embeddings", float64(m.MaxPositions)},
		} {
			want, _ := strconv.ParseFloat(row[c.column], 64)
			if recounted[m.ID] && slices.Contains([]string{"total_params_b", "active_params_b", "experts_per_tok"}, c.column) {
				continue
			}
			if !within(c.got, want, 1e-9) {
				t.Errorf("%s: %s is %v, the table has %q", m.ID, c.column, c.got, row[c.column])
			}
		}
		if string(m.Attention) != row["attention"] {
			t.Errorf("%s: attention %s, the table has %s", m.ID, m.Attention, row["attention"])
		}
	}
}

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

// TestPublishedNamesResolve checks that the GPUs and models of published measurements are found or
// ambiguous.
func TestPublishedNamesResolve(t *testing.T) {
	notHere := map[string]bool{"Intel Arc Pro B60": true}
	for _, row := range fieldData(t, "published-results.csv") {
		if g := row["gpu"]; !notHere[g] {
			if got := resolve(t, g); len(got) == 0 {
				t.Errorf("GPU %q: nothing", g)
			}
		}
		if _, err := Default().FindModel(row["model"]); err != nil {
			t.Errorf("model %q: %v", row["model"], err)
		}
	}
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

// TestCacheBytes compares the bytes of cache per token with the literature on known models, at 2 bytes
// per element.
func TestCacheBytes(t *testing.T) {
	for _, tt := range []struct {
		id   string
		want float64
	}{
		{"meta-llama/Llama-3.1-8B-Instruct", 131072}, {"meta-llama/Llama-3.3-70B-Instruct", 327680}, {"Qwen/Qwen3-8B", 147456}, {"Qwen/Qwen3-32B", 262144},
		{"Qwen/Qwen3-30B-A3B", 98304}, {"deepseek-ai/DeepSeek-V3", 70272}, {"openai/gpt-oss-120b", 36864}, {"google/gemma-3-27b-it", 81920},
		{"Qwen/Qwen3-Next-80B-A3B-Instruct", 24576},
	} {
		m, err := Default().FindModel(tt.id)
		if err != nil {
			t.Fatal(err)
		}
		full, _, _ := m.CacheLayers()
		width := 2 * m.KVHeads * m.HeadDim
		if m.Attention == AttentionMLA {
			width = m.KVLoraRank + m.QKRopeHeadDim
		}
		if got := float64(full*width) * BF16.Bytes(); got != tt.want {
			t.Errorf("%s: %v bytes a token, want %v", tt.id, got, tt.want)
		}
	}
}
