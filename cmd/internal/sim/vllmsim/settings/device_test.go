package settings

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rooftop-dev/rooftop/catalog"
)

const whole = `# a CPU, as fitted
gpu:
  name: Two cores
  vendor: cpu
  vram_gib: 24
  mem_bandwidth_gb_s: 20
  fp32_tflops: 0.3
constants:
  step_seconds: 0.002
  gemm_mfu: .4
`

func TestParse(t *testing.T) {
	got, err := ParseDevice([]byte(whole), "d.yaml")
	if err != nil {
		t.Fatal(err)
	}
	want := DeviceFile{
		GPU:       &catalog.GPU{Name: "Two cores", Vendor: "cpu", VRAMGiB: 24, MemBandwidthGBs: 20, FP32TFLOPS: 0.3, BF16TFLOPS: 0.3, Source: "device file"},
		Constants: map[string]float64{"step_seconds": 0.002, "gemm_mfu": 0.4},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestParseRefuses(t *testing.T) {
	const gpu = "gpu: {name: X, vendor: cpu, vram_gib: 1, mem_bandwidth_gb_s: 1, bf16_tflops: 1"
	tests := []struct{ name, text, want string }{
		{"nothing", "", "d.yaml: EOF"},
		{"no YAML", "gpu: [", "d.yaml: yaml: line 1: "},
		{"a typo", "gpu:\n  nome: X\n", "d.yaml: yaml: unmarshal errors: line 2: field nome not found"},
		{"a typo at the top", "constnats: {}", "d.yaml: yaml: unmarshal errors: line 1: field constnats not found"},
		{"words for a number", "gpu: {name: X, vram_gib: much}", "d.yaml: yaml: unmarshal errors: line 1: cannot unmarshal !!str `much`"},
		{"no memory", "gpu: {name: X, vendor: cpu}", "d.yaml: gpu: vram_gib is missing"},
		{"no peak", "gpu: {name: X, vendor: cpu, vram_gib: 1, mem_bandwidth_gb_s: 1}", "d.yaml: gpu: bf16_tflops is missing"},
		{"no name", "gpu: {vendor: cpu, vram_gib: 1, mem_bandwidth_gb_s: 1, bf16_tflops: 1}", "d.yaml: gpu: name is missing"},
		{"an unknown vendor", "gpu: {name: X, vendor: acme, vram_gib: 1, mem_bandwidth_gb_s: 1, bf16_tflops: 1}", `d.yaml: gpu: vendor: "acme" is none of nvidia, amd, cpu, other`},
		{"less than nothing", gpu + ", tdp_w: -1}", "d.yaml: gpu: tdp_w: -1 is out of range"},
		{"infinite", gpu + ", fp8_tflops: .inf}", "d.yaml: gpu: fp8_tflops: +Inf is out of range"},
		{"an endless link", gpu + ", nvlink_gb_s: .nan}", "d.yaml: gpu: nvlink_gb_s: NaN is out of range"},
		{"a PCIe generation of the far future", gpu + ", pcie_gen: 40}", "d.yaml: gpu: pcie_gen: 40 is out of range"},
		{"a constant in words", "constants:\n  a: b\n", "d.yaml: yaml: unmarshal errors: line 2: cannot unmarshal !!str `b`"},
		{"a constant twice", "constants:\n  a: 1\n  a: 2\n", "d.yaml: yaml: "},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d, err := ParseDevice([]byte(tt.text), "d.yaml")
			if err == nil {
				t.Fatalf("accepted as %+v", d)
			}
			if !strings.HasPrefix(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got  %s\nwant %s", err, tt.want)
			}
		})
	}
}
