package settings

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/rooftop-dev/rooftop/catalog"
)

// MaxDeviceBytes is the maximum size of a device file.
const MaxDeviceBytes = 1 << 20

// DeviceFile is the content of a device file. The zero DeviceFile overrides nothing.
type DeviceFile struct {
	GPU       *catalog.GPU     // nil if the file describes none
	Constants []DeviceConstant // in the order of the file
}

// DeviceConstant is one override of a constant of the step-time model.
type DeviceConstant struct {
	Name  string
	Value float64
	Line  int
}

type file struct {
	GPU       *catalog.GPU `yaml:"gpu"`
	Constants yaml.Node    `yaml:"constants"`
}

// ParseDevice parses a device file. Errors are one line: "NAME:LINE: problem".
func ParseDevice(data []byte, name string) (DeviceFile, error) {
	d, err := parse(data)
	if err != nil {
		return DeviceFile{}, fmt.Errorf("%s:%s", name, located(err))
	}
	return d, nil
}

func parse(data []byte) (DeviceFile, error) {
	if len(data) > MaxDeviceBytes {
		return DeviceFile{}, fmt.Errorf("larger than %d bytes", MaxDeviceBytes)
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	dec.KnownFields(true)
	var f file
	if err := dec.Decode(&f); errors.Is(err, io.EOF) {
		return DeviceFile{}, errors.New(`empty: expected "gpu" or "constants"`)
	} else if err != nil {
		return DeviceFile{}, err
	}
	if err := dec.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return DeviceFile{}, errors.New("more than one document")
	}
	var d DeviceFile
	var err error
	if f.GPU != nil {
		if err = check(f.GPU); err != nil {
			return DeviceFile{}, err
		}
		d.GPU = f.GPU
	}
	if d.Constants, err = constants(&f.Constants); err != nil {
		return DeviceFile{}, err
	}
	return d, nil
}

// check completes a GPU and returns an error if a value that the model needs is missing or invalid. It rejects
// the achievable fractions that rooftop diagnoses with on purpose.
func check(g *catalog.GPU) error {
	vendors := []string{"nvidia", "amd", "cpu", "other"}
	for _, v := range []struct {
		field string
		value float64
		need  bool
	}{
		{"vram_gib", g.VRAMGiB, true}, {"mem_bandwidth_gb_s", g.MemBandwidthGBs, true},
		{"bf16_tflops", g.BF16TFLOPS, g.FP32TFLOPS == 0}, {"fp32_tflops", g.FP32TFLOPS, false},
		{"fp8_tflops", g.FP8TFLOPS, false}, {"int8_tops", g.INT8TOPS, false}, {"fp4_tflops", g.FP4TFLOPS, false},
		{"tdp_w", g.TDPW, false},
	} {
		switch {
		case math.IsNaN(v.value) || v.value < 0 || v.value > 1e9 || v.value > 0 && v.value < 1e-6:
			return fmt.Errorf("gpu: %s: %v is out of range", v.field, v.value)
		case v.need && v.value == 0:
			return fmt.Errorf("gpu: %s is missing", v.field)
		}
	}
	if g.NVLinkGBs != nil && !(*g.NVLinkGBs >= 0 && *g.NVLinkGBs < 1e6) {
		return fmt.Errorf("gpu: nvlink_gb_s: %v is out of range", *g.NVLinkGBs)
	}
	if g.PCIeGen < 0 || g.PCIeGen > 9 {
		return fmt.Errorf("gpu: pcie_gen: %d is out of range", g.PCIeGen)
	}
	if g.Name == "" {
		return errors.New("gpu: name is missing")
	}
	if !slices.Contains(vendors, g.Vendor) {
		return fmt.Errorf("gpu: vendor: %q is none of %s", g.Vendor, strings.Join(vendors, ", "))
	}
	if g.Achieved != nil {
		return errors.New("gpu: unknown field achieved")
	}
	g.BF16TFLOPS, g.Source = cmp.Or(g.BF16TFLOPS, g.FP32TFLOPS), "device file"
	return nil
}

func constants(node *yaml.Node) ([]DeviceConstant, error) {
	switch {
	case node.IsZero() || node.Tag == "!!null":
		return nil, nil
	case node.Kind != yaml.MappingNode:
		return nil, lineError{node.Line, "constants: expected names with numbers"}
	}
	var all []DeviceConstant
	for i := 0; i+1 < len(node.Content); i += 2 {
		name, value := node.Content[i], node.Content[i+1]
		c := DeviceConstant{Name: name.Value, Line: name.Line}
		if slices.ContainsFunc(all, func(o DeviceConstant) bool { return o.Name == c.Name }) {
			return nil, lineError{name.Line, fmt.Sprintf("constants: %s is given twice", c.Name)}
		}
		if err := value.Decode(&c.Value); err != nil || math.IsNaN(c.Value) || math.IsInf(c.Value, 0) {
			return nil, lineError{value.Line, fmt.Sprintf("constants: %s: %q is not a number", c.Name, value.Value)}
		}
		all = append(all, c)
	}
	return all, nil
}

type lineError struct {
	line int
	text string
}

func (e lineError) Error() string { return "line " + strconv.Itoa(e.line) + ": " + e.text }

var (
	yamlLine  = regexp.MustCompile(`(?s)^(?:yaml: )?(?:unmarshal errors:\s*)?(?:line (\d+): )?([^\n]*)`)
	goType    = regexp.MustCompile(` in type device\.(\w+)`)
	intoTypes = regexp.MustCompile(` into \S+$`)
)

// located formats the first line of an error as " problem" or "LINE: problem".
func located(err error) string {
	m := yamlLine.FindStringSubmatch(err.Error())
	what := intoTypes.ReplaceAllString(goType.ReplaceAllString(m[2], ""), "")
	what = strings.Replace(what, "field ", "unknown field ", 1)
	what = strings.Replace(what, " not found", "", 1)
	if m[1] == "" {
		return " " + what
	}
	return m[1] + ": " + what
}
