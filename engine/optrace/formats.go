package optrace

import "math"

// Format is a number format of GGML: a block of Block elements takes Bytes.
type Format struct {
	Block int
	Bytes int
}

// formats are GGML's number formats by the name that ggml_type_name returns. Sources: ggml.c
// (type_traits) and ggml-common.h (the structures block_*), checked with ggml_blck_size and
// ggml_type_size in the builds of node-llama-cpp 3.6.0 (ggml of February 2025) and 3.22.1 (ggml
// 0.25.1), which agree. The interleaved formats, which later builds replaced by repacking, are
// from ggml-common.h of 2024-08.
var formats = map[string]Format{
	"f64": {1, 8}, "f32": {1, 4}, "f16": {1, 2}, "bf16": {1, 2},
	"i8": {1, 1}, "i16": {1, 2}, "i32": {1, 4}, "i64": {1, 8},
	"q4_0": {32, 18}, "q4_1": {32, 20}, "q5_0": {32, 22}, "q5_1": {32, 24}, "q8_0": {32, 34}, "q8_1": {32, 36},
	"q2_K": {256, 84}, "q3_K": {256, 110}, "q4_K": {256, 144}, "q5_K": {256, 176}, "q6_K": {256, 210}, "q8_K": {256, 292},
	"iq1_s": {256, 50}, "iq1_m": {256, 56}, "iq2_xxs": {256, 66}, "iq2_xs": {256, 74}, "iq2_s": {256, 82},
	"iq3_xxs": {256, 98}, "iq3_s": {256, 110}, "iq4_nl": {32, 18}, "iq4_xs": {256, 136},
	"tq1_0": {256, 54}, "tq2_0": {256, 66}, "mxfp4": {32, 17}, "nvfp4": {64, 36}, "q1_0": {128, 18}, "q2_0": {64, 18},
	"q4_0_4x4": {32, 18}, "q4_0_4x8": {32, 18}, "q4_0_8x8": {32, 18},
	"iq4_nl_4x4": {32, 18}, "iq4_nl_4x8": {32, 18}, "iq4_nl_8x8": {32, 18},
}

// Elements returns the number of elements of a tensor, 0 if a dimension is not positive.
func (t Tensor) Elements() float64 {
	n := 1.0
	for _, d := range t.NE {
		if d <= 0 {
			return 0
		}
		n *= float64(d)
	}
	return n
}

// Bytes returns what the elements of a tensor take in memory, without what lies between them in
// a view, and whether that is exact. For an unknown type it is estimated from the strides, and
// 0 if these are unknown too.
func (t Tensor) Bytes() (bytes float64, exact bool) {
	return t.bytesOf(t.Elements())
}

// bytesOf returns what some elements of the tensor's type take, and whether that is exact.
func (t Tensor) bytesOf(elements float64) (bytes float64, exact bool) {
	if f, ok := formats[t.Type]; ok {
		return elements / float64(f.Block) * float64(f.Bytes), true
	}
	// A row of an unknown type takes the distance to the next row, unless the tensor's
	// dimensions were permuted.
	if t.NE[0] > 0 && t.NB[0] > 0 && t.NB[0] <= t.NB[1] && t.NB[1] <= t.NB[2] {
		return elements * math.Min(float64(t.NB[1])/float64(t.NE[0]), float64(t.NB[0])), false
	}
	return 0, false
}
