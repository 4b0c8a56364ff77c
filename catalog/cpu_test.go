package catalog

import (
	"errors"
	"strings"
	"testing"
)

func TestFindCPU(t *testing.T) {
	for name, want := range map[string]string{
		// As the kernel reports them.
		"AMD EPYC 9654 96-Core Processor":                "AMD EPYC 9004",
		"AMD EPYC 9654P 96-Core Processor":               "AMD EPYC 9004",
		"AMD EPYC 7763 64-Core Processor":                "AMD EPYC 7003",
		"AMD EPYC 7H12 64-Core Processor":                "AMD EPYC 7002",
		"Intel(R) Xeon(R) Platinum 8480+":                "Intel Xeon Scalable 4th Gen (Sapphire Rapids), Platinum",
		"Intel(R) Xeon(R) Gold 6338 CPU @ 2.00GHz":       "Intel Xeon Scalable 3rd Gen (Ice Lake)",
		"INTEL(R) XEON(R) PLATINUM 8592+":                "Intel Xeon Scalable 5th Gen (Emerald Rapids), Platinum",
		"13th Gen Intel(R) Core(TM) i9-13900K":           "Intel Core 13th and 14th Gen desktop",
		"Intel(R) Core(TM) i9-14900K":                    "Intel Core 13th and 14th Gen desktop",
		"12th Gen Intel(R) Core(TM) i7-12700K":           "Intel Core 12th Gen desktop",
		"AMD Ryzen 9 7950X3D 16-Core Processor":          "AMD Ryzen 7000 desktop",
		"AMD Ryzen 5 5600 6-Core Processor":              "AMD Ryzen 5000 desktop",
		"Raspberry Pi 5 Model B Rev 1.0":                 "Raspberry Pi 5",
		"NVIDIA Jetson AGX Orin Developer Kit":           "NVIDIA Jetson AGX Orin",
		"NVIDIA Jetson Orin Nano Engineering Reference ": "NVIDIA Jetson Orin Nano Super",
		// As people write them.
		"epyc 9654": "AMD EPYC 9004", "ryzen 9 9950x": "AMD Ryzen 9000 desktop",
	} {
		if got, err := Default().FindCPU(name); err != nil || got.Name != want {
			t.Errorf("%q: %q, %v, want %q", name, got.Name, err, want)
		}
	}
	// Names of other products, and names without a model.
	for _, name := range []string{
		"AMD EPYC", "AMD EPYC Processor", "AMD EPYC 7R13 Processor", "Intel(R) Xeon(R) Processor @ 2.90GHz", "Intel(R) Xeon(R) Platinum 8370C CPU @ 2.80GHz", "Intel Xeon Gold 6338N",
		"AMD Ryzen 7 5800H with Radeon Graphics", "AMD Ryzen 7 7840U w/ Radeon 780M Graphics", "Raspberry Pi 4 Model B Rev 1.5", "arm64 0x41 0xd0c", "QEMU Virtual CPU version 2.5+", "9654", "",
	} {
		_, err := Default().FindCPU(name)
		if !errors.Is(err, ErrUnknown) || errors.Is(err, ErrNoModel) != !strings.ContainsAny(name, "0123456789") {
			t.Errorf("%q: %v", name, err)
		}
	}
	if _, err := Default().FindCPU("EPYC 9654 and Ryzen 9 7950X"); !errors.As(err, new(*AmbiguousError)) || strings.Contains(err.Error(), "--cpu") {
		t.Errorf("two: %v", err)
	}
}

// TestEveryCPUFindsItself checks that each model matches its own entry and no other.
func TestEveryCPUFindsItself(t *testing.T) {
	models := 0
	for _, c := range Default().CPUs() {
		for _, name := range append([]string{c.Name}, c.Models...) {
			if got, err := Default().FindCPU(name); err != nil || got.Name != c.Name {
				t.Errorf("%q leads to %q, %v, want %q", name, got.Name, err, c.Name)
			}
		}
		models += len(c.Models)
	}
	if models < 100 {
		t.Errorf("%d models", models)
	}
}

// TestMemBandwidth compares bandwidths with those that vendors and reviews publish, in GB/s.
func TestMemBandwidth(t *testing.T) {
	for name, want := range map[string]float64{
		"EPYC 7763": 204.8, "EPYC 9654": 460.8, "i9-13900K": 89.6, "Platinum 8380": 204.8, "Jetson AGX Orin": 204.8, "Jetson Orin Nano": 102.4, "Raspberry Pi 5": 17.068,
	} {
		if c, err := Default().FindCPU(name); err != nil || !within(c.MemBandwidth()/1e9, want, 1e-9) {
			t.Errorf("%s: %v GB/s, %v, want %v", name, c.MemBandwidth()/1e9, err, want)
		}
	}
}

func TestUsersCPU(t *testing.T) {
	c, err := Default().With(strings.NewReader("cpus:\n  - {name: Our VM, models: [AMD EPYC], vendor: amd, mem_channels: 1, transfer_mt_s: 4800}\n"), "ours.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"AMD EPYC", "AMD EPYC 9654 96-Core Processor"} { // the user's entry takes precedence
		if got, err := c.FindCPU(name); err != nil || got.Name != "Our VM" || got.Source != "ours.yaml" || got.MemBandwidth() != 38.4e9 {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	for in, want := range map[string]string{
		"cpus:\n  - {name: A, vendor: amd, mem_channels: 2}\n":                                                "f.yaml:2: transfer_mt_s: missing",
		"cpus:\n  - {name: A, vendor: amd, mem_channels: 2, transfer_mt_s: 3200, max_ghz: 3200}\n":            "f.yaml:2: max_ghz: must be at most 20 (1e9 cycles per second)",
		"cpus:\n  - {name: A, vendor: amd, mem_channels: 2, transfer_mt_s: 3200, channels: 2}\n":              "f.yaml:2: channels: unknown field",
		"cpus:\n  - {name: A, models: x, vendor: amd, mem_channels: 2, transfer_mt_s: 3200}\n":                "f.yaml:2: models: must be a list",
		"cpus:\n  - {name: A, vendor: amd, mem_channels: 0, transfer_mt_s: 3200, fp32_flops_per_cycle: 32}\n": "f.yaml:2: mem_channels: must be > 0",
	} {
		problems := Default().Check(strings.NewReader(in), "f.yaml")
		if len(problems) != 1 || !strings.HasPrefix(problems[0].Error(), want) {
			t.Errorf("%s: %v, want %s", in, problems, want)
		}
	}
}
