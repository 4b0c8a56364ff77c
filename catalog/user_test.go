package catalog

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

const userCatalog = `# what we run
gpus:
  - name: Build host
    aliases: [epyc]
    vendor: cpu
    mem_bandwidth_gb_s: 19.5
    bf16_tflops: 1.2
    achieved: {gemm_bandwidth: 0.8, attn_bandwidth: 0.5, gemm_compute: 0.6, prefill_attn: 0.3, layer_seconds: 20e-6, step_seconds: 1e-3}
    price: {on_demand_usd: 0.4, as_of: 2026-09, source: invoice}
  - name: nvidia h200
    vendor: nvidia
    arch: Hopper sm90
    vram_gib: 140.4
    mem_bandwidth_gb_s: 4700
    nvlink_gb_s: 0
  - name: Our H100
    aliases: [H100]
    vendor: nvidia
    mem_bandwidth_gb_s: 3000
models:
  - id: acme/support-bot
    total_params: 8.03e9
    layers: 32
    hidden: 4096
    heads: 32
    kv_heads: 8
    head_dim: 128
    intermediate: 14336
    vocab: 128256
    attention: gqa
    native_dtype: bf16
`

func TestWith(t *testing.T) {
	c, err := Default().With(strings.NewReader(userCatalog), "ours.yaml")
	if err != nil {
		t.Fatal(err)
	}
	zero := 0.0
	got, err := c.FindGPU("EPYC", 0)
	want := GPU{Name: "Build host", Aliases: []string{"epyc"}, Vendor: "cpu", MemBandwidthGBs: 19.5, BF16TFLOPS: 1.2,
		Achieved: &Achieved{GEMMBandwidth: 0.8, AttnBandwidth: 0.5, GEMMCompute: 0.6, PrefillAttn: 0.3, LayerSeconds: 20e-6, StepSeconds: 1e-3},
		Price:    &Price{OnDemandUSD: 0.4, AsOf: "2026-09", Source: "invoice"}, Source: "ours.yaml"}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("a CPU (-want +got), %v:\n%s", err, diff)
	}
	// The user's entry replaces one of the same name, and 0 is valid.
	got, err = c.FindGPU("NVIDIA H200", 0)
	want = GPU{Name: "nvidia h200", Vendor: "nvidia", Arch: "Hopper sm90", VRAMGiB: 140.4, MemBandwidthGBs: 4700, NVLinkGBs: &zero, Source: "ours.yaml"}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("a replaced GPU (-want +got), %v:\n%s", err, diff)
	}
	if got, want := len(c.GPUs()), len(Default().GPUs())+2; got != want {
		t.Errorf("%d GPUs, want %d", got, want)
	}
	if got, err := c.FindGPU("H100", 0); err != nil || got.Name != "Our H100" {
		t.Errorf("a user's alias: %q, %v", got.Name, err)
	}
	model, err := c.FindModel("acme/support-bot")
	if err != nil || model.ActiveParams != 8.03e9 || model.Source != "ours.yaml" {
		t.Errorf("a user's model: %+v, %v", model, err)
	}
	if model, err := c.FindModel("Qwen/Qwen3-8B"); err != nil || model.ID != "Qwen/Qwen3-8B" {
		t.Errorf("an embedded model beside a user's: %q, %v", model.ID, err)
	}
	if _, err := Default().FindGPU("epyc", 0); !errors.Is(err, ErrUnknown) {
		t.Errorf("With changed the catalog it was called on: %v", err)
	}
	if _, note, ok := EngineOf(VLLM).FlagDefault("kv_cache_dtype", "0.11.0", Hardware{}); !ok {
		t.Errorf("flags are lost: %s", note)
	}
	// A second file takes precedence over the first.
	again, err := c.With(strings.NewReader("gpus: [{name: Build host, vendor: cpu, mem_bandwidth_gb_s: 40}]"), "newer.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := again.FindGPU("build host", 0); err != nil || got.MemBandwidthGBs != 40 {
		t.Errorf("the second file: %+v, %v", got, err)
	}
}

func TestCheck(t *testing.T) {
	for _, tt := range []struct {
		name, in string
		want     []string
	}{
		{"good", userCatalog, nil},
		{"empty", "", []string{`f.yaml: empty: expected a list "gpus", "cpus" or "models"`}},
		{"only a comment", "# nothing\n", []string{`f.yaml: empty: expected a list "gpus", "cpus" or "models"`}},
		{"null", "---\n", []string{`f.yaml:2: must be a block of "field: value"`}},
		{"a list", "- a\n", []string{`f.yaml:1: must be a block of "field: value"`}},
		{"no list", "{}", []string{`f.yaml:1: no list "gpus", "cpus" or "models"`}},
		{"unknown list", "gpu: []\n", []string{"f.yaml:1: gpu: unknown field (gpus?)"}},
		{"list is a block", "gpus: {name: x}\n", []string{"f.yaml:1: gpus: must be a list"}},
		{"list given twice", "gpus: []\nmodels: []\ngpus: []\n", []string{"f.yaml:3: gpus: given twice"}},
		{"syntax", "gpus:\n  - name: [\n", []string{"f.yaml:2: did not find expected node content"}},
		{"two documents", "gpus: []\n---\ngpus: []\n", []string{"f.yaml:2: a second document: expected one"}},
		{"tab", "gpus:\n\t- name: x\n", []string{"f.yaml:2: found character that cannot start any token"}},
		{
			"every number wrong", `gpus:
  - name: A
    vendor: nvidia
    mem_bandwidth_gb_s: 0
    vram_gib: -1
    fp32_tflops: .nan
    bf16_tflops: .inf
    fp8_tflops: 1e30
    int8_tops: fast
    pcie_gen: 4.5
    tdp_w: "400"
    nvlink_gb_s: -2
`, []string{
				"f.yaml:4: mem_bandwidth_gb_s: must be > 0",
				"f.yaml:5: vram_gib: must be > 0",
				"f.yaml:6: fp32_tflops: must be a number",
				"f.yaml:7: bf16_tflops: must be a number",
				"f.yaml:8: fp8_tflops: must be at most 1e+06 (1e12 operations per second)",
				"f.yaml:9: int8_tops: must be a number",
				"f.yaml:10: pcie_gen: must be a whole number",
				"f.yaml:11: tdp_w: must be a number",
				"f.yaml:12: nvlink_gb_s: must be >= 0",
			},
		},
		{"missing", "gpus:\n  - aliases: [x]\n  - name: B\n", []string{
			"f.yaml:2: name: missing", "f.yaml:3: vendor: missing", "f.yaml:3: mem_bandwidth_gb_s: missing"}},
		{"entry is text", "gpus:\n  - H100\n", []string{`f.yaml:2: must be a block of "field: value"`}},
		{"unknown fields", "gpus:\n  - name: A\n    vendor: nvidia\n    mem_bandwidth_gbs: 1\n    mem_bandwidth_gb_s: 1\n    xyzzyplugh: 1\n", []string{
			"f.yaml:4: mem_bandwidth_gbs: unknown field (mem_bandwidth_gb_s?)", "f.yaml:6: xyzzyplugh: unknown field"}},
		{"field twice", "gpus:\n  - name: A\n    vendor: cpu\n    mem_bandwidth_gb_s: 1\n    vendor: cpu\n", []string{"f.yaml:5: vendor: given twice"}},
		{"name twice", "gpus:\n  - {name: A, vendor: cpu, mem_bandwidth_gb_s: 1}\n  - {name: a, vendor: cpu, mem_bandwidth_gb_s: 1}\n", []string{
			`f.yaml:3: name: "a" is already in line 2`}},
		{"vendor", "gpus:\n  - {name: A, vendor: NVIDIA Corp, mem_bandwidth_gb_s: 1}\n", []string{
			`f.yaml:2: vendor: must be one of nvidia, amd, intel, cpu, other, not "NVIDIA Corp"`}},
		{"names that are not text", "gpus:\n  - name: 4090\n    vendor: true\n    mem_bandwidth_gb_s: 1\n    aliases: [x, 1]\n    arch:\n    source: ' '\n", []string{
			"f.yaml:2: name: must be text (in quotes)", "f.yaml:3: vendor: must be text (in quotes)", "f.yaml:5: aliases: must be text (in quotes)",
			"f.yaml:6: arch: has no value", "f.yaml:7: source: is empty"}},
		{"escape codes", "gpus:\n  - {name: \"A\\e[2J\", vendor: cpu, mem_bandwidth_gb_s: 1}\n", []string{"f.yaml:2: name: has control characters"}},
		{"blocks", "gpus:\n  - name: A\n    vendor: cpu\n    mem_bandwidth_gb_s: 1\n    achieved: {gemm_bandwidth: 1.2, attn_bandwidth: 0, layer_seconds: -1}\n    price: 3\n", []string{
			"f.yaml:5: achieved.gemm_bandwidth: must be at most 1 (share of the peak, 0 to 1)",
			"f.yaml:5: achieved.attn_bandwidth: must be > 0",
			"f.yaml:5: achieved.layer_seconds: must be >= 0",
			"f.yaml:5: achieved.gemm_compute: missing",
			"f.yaml:5: achieved.prefill_attn: missing",
			`f.yaml:6: price: must be a block of "field: value"`,
		}},
		{"price without a date", "gpus:\n  - {name: A, vendor: cpu, mem_bandwidth_gb_s: 1, price: {on_demand_usd: 1}}\n", []string{"f.yaml:2: price.as_of: missing"}},
		{"billions", "models:\n  - {id: a/b, total_params: 8.03}\n", []string{"f.yaml:2: total_params: must be at least 10000 (parameters: 8 billion is 8e9)"}},
		{"model without size", "models:\n  - {id: a/b}\n", []string{"f.yaml:2: total_params: missing"}},
		{"a model at odds with itself, of a wrong type", "models:\n  - {id: a/b, total_params: 1e9, active_params: 2e9, native_dtype: fp7}\n", []string{
			`f.yaml:2: native_dtype: must be one of fp32, bf16, fp16, fp8, int8, int4, mxfp4, nvfp4, not "fp7"`}},
		{"model at odds with itself, types right", `models:
  - id: a/b
    total_params: 1e9
    active_params: 2e9
    vision_params: 3e9
    layers: 10
    heads: 4
    kv_heads: 8
    experts: 4
    experts_per_token: 5
    dense_layers: 11
    full_layers: 2
    window_layers: 3
    attention: mla
`, []string{
			"f.yaml:2: sliding_window: missing for a model with window_layers",
			"f.yaml:2: kv_lora_rank: missing for latent attention",
			"f.yaml:4: active_params: more than total_params",
			"f.yaml:5: vision_params: not less than total_params",
			"f.yaml:8: kv_heads: more than heads",
			"f.yaml:10: experts_per_token: more than experts",
			"f.yaml:11: dense_layers: more than layers",
			"f.yaml:12: full_layers: full, window and linear layers do not add up to layers",
		}},
		{"parameters against dimensions", "models:\n  - {id: a/b, total_params: 70e9, layers: 32, hidden: 4096, heads: 32, kv_heads: 8, head_dim: 128, intermediate: 14336, vocab: 128256}\n", []string{
			"f.yaml:2: total_params: 7e+10, but the dimensions make 8.03e+09"}},
		{"whole numbers", "models:\n  - {id: a/b, total_params: 8e9, layers: 32.5, heads: 99999999999999999999}\n", []string{
			"f.yaml:2: layers: must be a whole number", "f.yaml:2: heads: must be a whole number"}},
		{"anchors", "gpus:\n  - &a {name: A, vendor: cpu, mem_bandwidth_gb_s: 1}\n  - *a\n", []string{"f.yaml:2: anchors and aliases are not supported", "f.yaml:3: anchors and aliases are not supported"}},
		{"merge key", "gpus:\n  - {name: A, vendor: cpu, mem_bandwidth_gb_s: 1, <<: {arch: x}}\n", []string{"f.yaml:2: <<: unknown field"}},
		{"foreign tag", "gpus:\n  - {name: !!binary QQ==, vendor: cpu, mem_bandwidth_gb_s: 1}\n", []string{"f.yaml:2: name: must be text (in quotes)"}},
		{"too large", "# " + strings.Repeat("x", maxUserFile), []string{"f.yaml: larger than 1048576 bytes"}},
		{"long name", "gpus:\n  - {name: " + strings.Repeat("x", maxText+1) + ", vendor: cpu, mem_bandwidth_gb_s: 1}\n", []string{"f.yaml:2: name: longer than 4096 bytes"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for _, err := range Default().Check(strings.NewReader(tt.in), "f.yaml") {
				got = append(got, err.Error())
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			_, err := Default().With(strings.NewReader(tt.in), "f.yaml")
			if joined := strings.Join(tt.want, "\n"); (err == nil) != (len(tt.want) == 0) || err != nil && err.Error() != joined {
				t.Errorf("With: %v, want the problems of Check", err)
			}
		})
	}
}

func TestCheckReadsTheReadersError(t *testing.T) {
	broken := errors.New("disk gone")
	problems := Default().Check(iotest.ErrReader(broken), "f.yaml")
	if len(problems) != 1 || !errors.Is(problems[0], broken) || !strings.HasPrefix(problems[0].Error(), "f.yaml: read: ") {
		t.Errorf("%v", problems)
	}
}

// TestEmbeddedFilesPassTheCheck checks that the embedded files pass the checks for users' files, and
// that each entry has its source.
func TestEmbeddedFilesPassTheCheck(t *testing.T) {
	for _, name := range []string{"gpus.yaml", "cpus.yaml", "models.yaml"} {
		f, err := os.Open(filepath.Join("data", name))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		for _, err := range Default().Check(f, name) {
			t.Error(err)
		}
	}
	for _, g := range Default().GPUs() {
		if g.Source == "" || g.Price != nil && g.Price.Source == "" || g.Arch == "" {
			t.Errorf("%s: no source or architecture", g.Name)
		}
	}
	for _, c := range Default().CPUs() {
		if c.Source == "" || c.Arch == "" || len(c.Models) == 0 {
			t.Errorf("%s: no source, architecture or models", c.Name)
		}
	}
	for _, m := range Default().Models() {
		if m.Source == "" || m.Family == "" || m.NativeDType == "" || m.ActiveParams == 0 {
			t.Errorf("%s: no source, family, type or active parameters", m.ID)
		}
	}
}

func FuzzUserFile(f *testing.F) {
	f.Add([]byte(userCatalog))
	f.Add([]byte("gpus:\n  - &a [*a]\n"))
	f.Add([]byte("models:\n  - {id: a/b, total_params: 8.03}\n"))
	f.Add([]byte("gpus: {name: x}\n---\n{}"))
	f.Add([]byte("cpus:\n  - {name: x 1, vendor: cpu, mem_channels: 2, transfer_mt_s: 3200}\n"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		problems := Default().Check(strings.NewReader(string(raw)), "f")
		c, err := Default().With(strings.NewReader(string(raw)), "f")
		if (err == nil) != (len(problems) == 0) {
			t.Fatalf("With says %v, Check %v", err, problems)
		}
		for _, p := range problems {
			if !strings.HasPrefix(p.Error(), "f:") {
				t.Errorf("no file in %q", p)
			}
		}
		if err != nil {
			return
		}
		for _, g := range c.gpus().entries[:c.gpus().users] {
			if !(g.MemBandwidthGBs > 0) || g.Name == "" {
				t.Errorf("accepted %+v", g)
			}
			if found, err := c.FindGPU(g.Name, 0); err != nil && !errors.Is(err, ErrUnknown) && !errors.As(err, new(*AmbiguousError)) {
				t.Errorf("FindGPU(%q) = %+v, %v", g.Name, found, err)
			}
		}
		for _, p := range c.cpus().entries[:c.cpus().users] {
			if !(p.MemBandwidth() > 0) || p.Name == "" {
				t.Errorf("accepted %+v", p)
			}
		}
		for _, m := range c.models().entries[:c.models().users] {
			if !(m.TotalParams > 0) || m.ActiveParams > m.TotalParams || m.ID == "" {
				t.Errorf("accepted %+v", m)
			}
		}
	})
}
