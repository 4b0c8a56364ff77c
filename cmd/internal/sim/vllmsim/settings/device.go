package settings

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/rooftop-dev/rooftop/catalog"
)

// DeviceFile is the content of a device file. The zero DeviceFile overrides nothing.
type DeviceFile struct {
	GPU       *catalog.GPU       `yaml:"gpu"`       // nil if the file describes none
	Constants map[string]float64 `yaml:"constants"` // replacements for those of the step-time model
}

// ParseDevice parses a device file. Errors are one line that begins with the file's name.
func ParseDevice(data []byte, name string) (d DeviceFile, err error) {
	if err = strictly(data, &d); err == nil && d.GPU != nil {
		err = check(d.GPU)
	}
	if err != nil {
		return DeviceFile{}, fmt.Errorf("%s: %w", name, err)
	}
	return d, nil
}

// check completes a GPU and returns an error if a value that the model needs is missing or invalid. It rejects
// the achievable fractions that rooftop diagnoses with on purpose.
func check(g *catalog.GPU) error {
	vendors := []string{"nvidia", "amd", "cpu", "other"}
	link := 0.0
	if g.NVLinkGBs != nil {
		link = *g.NVLinkGBs
	}
	for _, v := range []struct {
		field     string
		value     float64
		low, high float64 // 0 is allowed too, unless it is needed
		need      bool
	}{
		{"vram_gib", g.VRAMGiB, 1e-6, 1e9, true}, {"mem_bandwidth_gb_s", g.MemBandwidthGBs, 1e-6, 1e9, true},
		{"bf16_tflops", g.BF16TFLOPS, 1e-6, 1e9, g.FP32TFLOPS == 0}, {"fp32_tflops", g.FP32TFLOPS, 1e-6, 1e9, false},
		{"fp8_tflops", g.FP8TFLOPS, 1e-6, 1e9, false}, {"int8_tops", g.INT8TOPS, 1e-6, 1e9, false}, {"fp4_tflops", g.FP4TFLOPS, 1e-6, 1e9, false},
		{"tdp_w", g.TDPW, 1e-6, 1e9, false}, {"nvlink_gb_s", link, 1e-6, 1e6, false}, {"pcie_gen", float64(g.PCIeGen), 1, 9, false},
	} {
		switch {
		case v.need && v.value == 0:
			return fmt.Errorf("gpu: %s is missing", v.field)
		case v.value != 0 && !(v.value >= v.low && v.value <= v.high):
			return fmt.Errorf("gpu: %s: %v is out of range", v.field, v.value)
		}
	}
	switch {
	case g.Name == "":
		return errors.New("gpu: name is missing")
	case !slices.Contains(vendors, g.Vendor):
		return fmt.Errorf("gpu: vendor: %q is none of %s", g.Vendor, strings.Join(vendors, ", "))
	case g.Achieved != nil:
		return errors.New("gpu: unknown field achieved")
	}
	g.BF16TFLOPS, g.Source = cmp.Or(g.BF16TFLOPS, g.FP32TFLOPS), "device file"
	return nil
}
