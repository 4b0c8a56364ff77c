package catalog

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFindGPU(t *testing.T) {
	const (
		h100sxm, h100pcie, h100nvl = "NVIDIA H100 80GB HBM3", "NVIDIA H100 PCIe", "NVIDIA H100 NVL"
		a100s80, a100s40           = "NVIDIA A100-SXM4-80GB", "NVIDIA A100-SXM4-40GB"
		a100p80, a100p40           = "NVIDIA A100 80GB PCIe", "NVIDIA A100-PCIE-40GB"
	)
	one := func(name string) []string { return []string{name} }
	for _, tt := range []struct {
		name string
		gib  float64  // NVML memory
		want []string // none: unknown; one: found; more: ambiguous
	}{
		// As NVML reports them.
		{h100sxm, 79.65, one(h100sxm)}, {"NVIDIA A100-PCIe-40GB", 40, one(a100p40)}, {"Tesla T4", 14.75, one("Tesla T4")},
		{"NVIDIA GeForce RTX 4090", 48, one("NVIDIA GeForce RTX 4090")}, // modified with more memory, the same chip
		{"AMD Instinct MI300X VF", 191.7, one("AMD Instinct MI300X")}, {"Orin (nvgpu)", 61, one("Orin (nvgpu)")},
		// As people write them.
		{"h100_sxm5_80gb", 0, one(h100sxm)}, {"h100sxm5", 0, one(h100sxm)}, {"H100-SXM5 (80GB)", 0, one(h100sxm)}, {"A100 80GB SXM", 0, one(a100s80)},
		{"rtx4090", 0, one("NVIDIA GeForce RTX 4090")}, {"RTX 4090 24GB", 0, one("NVIDIA GeForce RTX 4090")}, {"mi300x", 0, one("AMD Instinct MI300X")},
		{"H100 PCIe", 0, one(h100pcie)}, {"H100 SXM", 0, one(h100sxm)}, {"H200", 0, one("NVIDIA H200")}, {"A100 40GB", 0, []string{a100s40, a100p40}},
		{"B200", 0, one("NVIDIA B200")}, {"GB200", 0, one("NVIDIA GB200")}, {"GB10 (DGX Spark)", 0, one("NVIDIA GB10")},
		{"RTX Pro 6000 Blackwell", 0, []string{
			"NVIDIA RTX PRO 6000 Blackwell Server Edition", "NVIDIA RTX PRO 6000 Blackwell Workstation Edition",
			"NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition"}},
		// A short name is not the beginning of a longer one.
		{"A10", 0, one("NVIDIA A10")}, {"A10G", 0, one("NVIDIA A10G")}, {"L4", 0, one("NVIDIA L4")}, {"L40", 0, one("NVIDIA L40")}, {"L40S", 0, one("NVIDIA L40S")},
		// Ambiguous, unless the memory decides.
		{"A100", 0, []string{a100s80, a100s40, a100p80, a100p40}}, {"A100", 80, []string{a100s80, a100p80}}, {"a100-80gb", 0, []string{a100s80, a100p80}},
		{"H100", 0, []string{h100sxm, h100pcie, h100nvl}}, {"H100", 93.58, one(h100nvl)},
		{"NVIDIA H20", 0, []string{"NVIDIA H20", "NVIDIA H20-3e"}}, {"H20", 95.6, one("NVIDIA H20")}, {"H20", 140.4, one("NVIDIA H20-3e")},
		// Names of other products, and names without a product.
		{"RTX 3090 Ti", 0, nil}, {"RTX 4090 D", 0, nil}, {"NVIDIA GeForce RTX 4090 Laptop GPU", 16, nil}, {"Quadro RTX 6000", 0, nil},
		{"NVIDIA A100-SXM-64GB", 64, nil}, {"H100 96GB", 0, nil}, {"NVIDIA A100-SXM4-80GB MIG 3g.40gb", 40, nil}, {"GRID A100-40C", 0, nil},
		{"MI308X", 0, nil}, {"h10", 0, nil}, {"80gb", 0, nil}, {"sxm", 0, nil}, {"NVIDIA", 0, nil}, {"", 0, nil}, {"Blackwell", 0, nil},
	} {
		got, err := Default().FindGPU(tt.name, tt.gib*gib)
		var ambiguous *AmbiguousError
		switch {
		case len(tt.want) == 1:
			if err != nil || got.Name != tt.want[0] {
				t.Errorf("FindGPU(%q, %v GiB) = %q, %v, want %q", tt.name, tt.gib, got.Name, err, tt.want[0])
			}
		case len(tt.want) > 1:
			if !errors.As(err, &ambiguous) {
				t.Errorf("FindGPU(%q, %v GiB) = %q, %v, want ambiguous", tt.name, tt.gib, got.Name, err)
			} else if diff := cmp.Diff(tt.want, ambiguous.Candidates); diff != "" {
				t.Errorf("FindGPU(%q, %v GiB): candidates (-want +got):\n%s", tt.name, tt.gib, diff)
			}
		case !errors.Is(err, ErrUnknown):
			t.Errorf("FindGPU(%q, %v GiB) = %q, %v, want unknown", tt.name, tt.gib, got.Name, err)
		}
	}
}

// TestEveryGPUFindsItself checks that a name or alias matches its own entry, or is ambiguous if
// entries share it.
func TestEveryGPUFindsItself(t *testing.T) {
	for _, g := range Default().GPUs() {
		for _, name := range append([]string{g.Name}, g.Aliases...) {
			for _, spelling := range []string{name, strings.ToLower(name), strings.ReplaceAll(name, " ", "-")} {
				got, err := Default().FindGPU(spelling, g.VRAMGiB*gib)
				var shared *AmbiguousError
				if got.Name != g.Name && !(errors.As(err, &shared) && slices.Contains(shared.Candidates, g.Name)) {
					t.Errorf("FindGPU(%q) = %q, %v, want %q", spelling, got.Name, err, g.Name)
				}
			}
		}
	}
}

func TestFindGPUErrorsSayWhatToDo(t *testing.T) {
	for _, tt := range []struct{ name, want string }{
		{"H100 80GB", `GPU "H100 80GB" fits several: NVIDIA H100 80GB HBM3, NVIDIA H100 PCIe; give one of them with --gpu`},
		{"RTX 3090 Ti", `GPU "RTX 3090 Ti" is not in the catalog (nearest: NVIDIA GeForce RTX 3090, NVIDIA GeForce RTX 4090, NVIDIA GeForce RTX 5090): give its name with --gpu, or describe it in a --catalog FILE`},
		{"abacus", "GPU \"abacus\" is not in the catalog: give one of `rooftop catalog list` with --gpu, or describe it in a --catalog FILE"},
	} {
		_, err := Default().FindGPU(tt.name, 0)
		if err == nil || err.Error() != tt.want {
			t.Errorf("FindGPU(%q):\n got %v\nwant %s", tt.name, err, tt.want)
		}
	}
}
