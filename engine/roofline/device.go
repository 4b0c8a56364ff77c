package roofline

import (
	"math"
	"strings"

	"github.com/rooftop-dev/rooftop/catalog"
)

// fractions are the efficiencies of good kernels on an architecture: fractions of the datasheet's
// peaks for transfers and products too large to be launch-bound, and the fixed times of launches.
// They are fitted for each kernel from published timings, never on an end-to-end result.
type fractions struct {
	gemmBW, gemmBWq float64    // of memory bandwidth, weight-bound GEMM: 16 bit, quantized weights
	attnBW, attnBWq float64    // of memory bandwidth, decode attention: 16-bit, 8-bit KV
	gemm, gemmq     float64    // of the dense peak, GEMMs of 1024 rows and more: 16 bit, 8 and 4 bit
	prefill         [3]float64 // of the 16-bit peak, causal attention of 2k, 8k and 16k prompts
	layer           float64    // s per layer: launch tails of four GEMMs, attention, norms
	layerq          float64    // additional s per layer with quantized GEMMs: four times the difference of their fitted t0
}

// Fixed costs of the host and of mixture-of-experts layers, in seconds.
// Step and request are BLIS's fit on end-to-end vLLM traces, moe is the router,
// permutation and grouped-GEMM tail.
const (
	stepSeconds    = 126e-6
	requestSeconds = 4.4e-6
	moeSeconds     = 50e-6
	// eagerLayer is the host time to launch a layer's kernels without a CUDA graph. Launches run
	// ahead of the device, so it is a lower bound, not an addition.
	eagerLayer = 62e-6
	// captured is the largest batch that vLLM replays from a CUDA graph by default.
	captured = 512
)

// Measured fractions. A measured range is represented by its middle.
var (
	h100 = fractions{0.86, 0.79, 0.87, 0.78, 0.80, 0.60, [3]float64{0.44, 0.58, 0.61}, 32e-6, 11e-6}
	h200 = fractions{0.82, 0.73, 0.84, 0.60, 0.78, 0.65, [3]float64{0.44, 0.58, 0.59}, 32e-6, 12e-6}
	a100 = fractions{0.72, 0.65, 0.71, 0.65, 0.88, 0.80, [3]float64{0.47, 0.55, 0.57}, 45e-6, 0}
	l40s = fractions{0.80, 0.68, 0.82, 0.77, 0.64, 0.51, [3]float64{0.43, 0.48, 0.50}, 30e-6, 2e-6}
	pro6 = fractions{0.86, 0.82, 0.83, 0.83, 0.85, 0.75, [3]float64{0.51, 0.62, 0.64}, 29e-6, 11e-6}
	// Fitted against 7.7 TB/s; the catalog lists 8.0.
	b200 = fractions{0.80 * 7.7 / 8, 0.69 * 7.7 / 8, 0.905 * 7.7 / 8, 0.88 * 7.7 / 8, 0.685, 0.47, [3]float64{0.34, 0.51, 0.55}, 29e-6, 16e-6}
)

// Estimated rows, without kernel timings of their own.
var (
	// GDDR6 Ampere (A10, A40, RTX 3090): the bandwidth of the L40S's GDDR6, the
	// GEMM efficiency and launch tails of the A100's kernels.
	ampereGDDR = fractions{0.80, 0.68, 0.78, 0.72, 0.80, 0.70, [3]float64{0.43, 0.48, 0.50}, 45e-6, 0}
	// Turing and Volta lack asynchronous copies: slightly below the A100.
	preAmpere = fractions{0.70, 0.60, 0.62, 0.55, 0.70, 0.60, [3]float64{0.30, 0.38, 0.40}, 50e-6, 0}
	// Measured maximal matmul of MI300X 51 % of its 16-bit peak and MI355X 68 %
	// (stas00/ml-engineering, MAMF); device copies reach about 80 % of HBM peak,
	// decode attention less; HIP launches are slower than CUDA's.
	cdna3 = fractions{0.72, 0.62, 0.68, 0.58, 0.50, 0.42, [3]float64{0.25, 0.33, 0.36}, 45e-6, 10e-6}
	cdna4 = fractions{0.72, 0.62, 0.70, 0.60, 0.62, 0.48, [3]float64{0.28, 0.38, 0.42}, 45e-6, 10e-6}
	cdna2 = fractions{0.65, 0.55, 0.60, 0.50, 0.45, 0.40, [3]float64{0.22, 0.28, 0.30}, 50e-6, 10e-6}
	// A CPU: GEMV like STREAM at 70 % of the memory's peak; AMX or AVX products at half of
	// their peak; thread barriers instead of launches.
	cpu = fractions{0.70, 0.60, 0.60, 0.50, 0.45, 0.40, [3]float64{0.25, 0.30, 0.30}, 60e-6, 0}
	// Any other device: AIConfigurator's default of 0.8 of bandwidth, minus a margin.
	unknown = fractions{0.75, 0.65, 0.70, 0.60, 0.60, 0.45, [3]float64{0.35, 0.45, 0.48}, 40e-6, 10e-6}
)

// fractionsOf returns a GPU's row, the row's name, and whether the row was measured on this
// device.
func fractionsOf(g *catalog.GPU) (f fractions, row string, own bool) {
	name := g.Name
	for _, r := range [...]struct {
		prefix string
		f      *fractions
	}{
		{"NVIDIA H100 80GB HBM3", &h100}, {"NVIDIA A100-SXM4-80GB", &a100}, {"NVIDIA L40S", &l40s},
		{"NVIDIA RTX PRO 6000 Blackwell Server", &pro6}, {"NVIDIA B200", &b200},
	} {
		if strings.HasPrefix(name, r.prefix) {
			return *r.f, name, true
		}
	}
	if name == "NVIDIA H200" {
		return h200, name, true
	}
	arch := g.Arch
	for _, r := range [...]struct {
		key, row string
		f        *fractions
	}{
		{"Hopper", "H100 SXM", &h100},
		{"sm80", "A100 SXM", &a100},
		{"Ampere", "Ampere with GDDR memory", &ampereGDDR},
		{"Ada", "L40S", &l40s},
		{"sm12", "RTX PRO 6000", &pro6}, {"sm110", "RTX PRO 6000", &pro6},
		{"Blackwell", "B200", &b200},
		{"Turing", "Turing and Volta", &preAmpere}, {"Volta", "Turing and Volta", &preAmpere},
		{"CDNA4", "MI355X", &cdna4}, {"CDNA3", "MI300X", &cdna3}, {"CDNA", "MI250X", &cdna2},
	} {
		if strings.Contains(arch, r.key) {
			// HBM3e Hopper follows the H200, not the H100.
			if r.f == &h100 && g.MemBandwidthGBs >= 4500 {
				return h200, "H200", false
			}
			return *r.f, r.row, false
		}
	}
	if g.Vendor == "cpu" {
		return cpu, "a CPU", false
	}
	return unknown, "no known architecture", false
}

// attentionFraction interpolates the causal-attention fraction for tokens that
// attend to a mean context c, in the logarithm; a prompt of n tokens has a mean
// context of n/2.
func (f *fractions) attentionFraction(c float64) float64 {
	x := math.Log2(max(c, 1)) - 10 // 1,024 tokens: the middle of a 2k prompt
	switch {
	case x <= 0:
		return f.prefill[0]
	case x < 2:
		return f.prefill[0] + (f.prefill[1]-f.prefill[0])*x/2
	case x < 3:
		return f.prefill[1] + (f.prefill[2]-f.prefill[1])*(x-2)
	}
	return f.prefill[2]
}

// sixteenBit returns the dense 16-bit peak in FLOP/s, or 0 if unknown. derived reports whether it
// was derived from a narrower type's peak, halving the rate for each doubling of the width.
func sixteenBit(g *catalog.GPU) (flops float64, derived bool) {
	switch {
	case g.BF16TFLOPS > 0:
		return g.BF16TFLOPS * 1e12, false
	case g.FP8TFLOPS > 0:
		return g.FP8TFLOPS / 2 * 1e12, true
	case g.FP4TFLOPS > 0:
		return g.FP4TFLOPS / 4 * 1e12, true
	case g.INT8TOPS > 0:
		return g.INT8TOPS / 2 * 1e12, true
	case g.FP32TFLOPS > 0 && g.Vendor == "cpu":
		return g.FP32TFLOPS * 1e12, true
	}
	return 0, false
}

// eightBit returns the dense fp8 peak in FLOP/s, or 0 if the device has no fp8 units.
func eightBit(g *catalog.GPU) float64 {
	if g.FP8TFLOPS == 0 && g.FP4TFLOPS > 0 {
		return g.FP4TFLOPS / 2 * 1e12 // every device with fp4 units has fp8 ones
	}
	return g.FP8TFLOPS * 1e12
}

// peaks are the FLOP/s of products with weights of one dtype: the highest possible rate, and the
// usual one.
type peaks struct {
	ideal, usual float64
	narrow       bool // usual is for 8 or 4 bit
}

// peaksOf returns the tensor peaks for weights of dtype w. Narrow weights run at the narrow peak
// only if the device has units for them. Otherwise, and always for int4, they are widened on the
// fly and run at the 16-bit rate.
func (c *Config) peaksOf(w catalog.DType) peaks {
	g := &c.GPU
	bf16, _ := sixteenBit(g)
	fp8, fp4, int8 := eightBit(g), g.FP4TFLOPS*1e12, g.INT8TOPS*1e12
	p := peaks{ideal: bf16, usual: bf16}
	switch w {
	case catalog.FP32:
		p.usual = g.FP32TFLOPS * 1e12
		p.ideal = max(p.usual, g.TF32TFLOPS*1e12)
		if p.usual == 0 {
			p.usual = p.ideal
		}
		if p.ideal == 0 {
			p.ideal, p.usual = bf16, bf16
		}
	case catalog.FP8:
		if fp8 > 0 {
			p = peaks{fp8, fp8, true}
		}
	case catalog.INT8:
		// W8A8 runs on int8 units, GPTQ's W8A16 does not; the dtype of activations distinguishes
		// them.
		p.ideal = max(bf16, int8)
		if c.Compute == catalog.INT8 {
			p = peaks{p.ideal, p.ideal, true}
		}
	case catalog.NVFP4:
		if fp4 > 0 {
			p = peaks{fp4, fp4, true}
		}
	case catalog.MXFP4:
		switch {
		case fp4 > 0 && c.bodyDType() == c.Weight:
			p = peaks{fp4, fp4, true}
		case fp4 > 0: // gpt-oss: mxfp4 weights with mxfp8 activations
			p = peaks{fp8, fp8, true}
		}
	}
	return p
}
