package optrace

import (
	"math"
	"testing"
)

// shape returns the tables of one operator: the first tensor is its result, the others its
// sources.
func shape(op, sub string, tensors ...Tensor) (*Tables, Operator) {
	t := &Tables{Tensors: tensors}
	o := Operator{Op: op, Sub: sub, Out: 1}
	for i := range tensors[1:] {
		o.In = append(o.In, uint32(i+2))
	}
	return t, o
}

func tensor(name, format string, ne ...int64) Tensor {
	t := Tensor{Name: name, Type: format, NE: [4]int64{1, 1, 1, 1}}
	copy(t.NE[:], ne)
	return t
}

// TestCostOf compares costs with figures worked out by hand.
func TestCostOf(t *testing.T) {
	of := func(op, sub string, tensors ...Tensor) func() (*Tables, Operator) {
		return func() (*Tables, Operator) { return shape(op, sub, tensors...) }
	}
	f32 := func(ne ...int64) Tensor { return tensor("x", "f32", ne...) }
	for _, c := range []struct {
		name    string
		make    func() (*Tables, Operator)
		experts ExpertChoice
		want    Cost
	}{
		{"one token by q4_0 weights: 2048 x 5632 / 32 blocks of 18 bytes", of("MUL_MAT", "", f32(5632), tensor("blk.0.ffn_up.weight", "q4_0", 2048, 5632), f32(2048)), ExpertChoice{},
			Cost{ReadBytes: 6488064 + 8192, WrittenBytes: 22528, WeightBytes: 6488064, Flops: 23068672, Weights: 2, Known: true, Exact: true}},
		{"24 tokens read the same weights once", of("MUL_MAT", "", f32(5632, 24), tensor("blk.0.ffn_up.weight", "q4_0", 2048, 5632), f32(2048, 24)), ExpertChoice{},
			Cost{ReadBytes: 6488064 + 196608, WrittenBytes: 540672, WeightBytes: 6488064, Flops: 553648128, Weights: 2, Known: true, Exact: true}},
		{"8 heads of keys for 32 of queries: the keys are read once", of("MUL_MAT", "", f32(256, 1, 32), tensor("cache_k_l0 (view)", "f16", 64, 256, 8), f32(64, 1, 32)), ExpertChoice{},
			Cost{ReadBytes: 262144 + 8192, WrittenBytes: 32768, Flops: 1048576, Known: true, Exact: true}},
		{"a mixture of one token reads two of eight experts", of("MUL_MAT_ID", "", f32(512, 2, 1), tensor("blk.0.ffn_up_exps.weight", "q8_0", 256, 512, 8), f32(256, 1, 1), tensor("ids", "i32", 2, 1)), ExpertChoice{},
			Cost{ReadBytes: 2*139264 + 1024 + 8, WrittenBytes: 4096, WeightBytes: 2 * 139264, Flops: 524288, Weights: 2, Known: true, Exact: true}},
		{"three tokens chose four distinct experts", of("MUL_MAT_ID", "", f32(512, 2, 3), tensor("blk.0.ffn_up_exps.weight", "q8_0", 256, 512, 8), f32(256, 1, 3), tensor("ids", "i32", 2, 3)),
			ExpertChoice{Used: 2, Tokens: 3, IDs: []int32{7, 2, 2, 7, 0, 5}},
			Cost{ReadBytes: 4*139264 + 3072 + 24, WrittenBytes: 12288, WeightBytes: 4 * 139264, Flops: 1572864, Weights: 2, Known: true, Exact: true}},
		{"without ids each expert is as likely: 8 (1 - 0.75^3) = 4.625", of("MUL_MAT_ID", "", f32(512, 2, 3), tensor("blk.0.ffn_up_exps.weight", "q8_0", 256, 512, 8), f32(256, 1, 3), tensor("ids", "i32", 2, 3)), ExpertChoice{},
			Cost{ReadBytes: 4.625*139264 + 3072 + 24, WrittenBytes: 12288, WeightBytes: 4.625 * 139264, Flops: 1572864, Weights: 2, Known: true}},
		{"attention of one token over 256: 256 x 32 scores of 2x64 + 2x64 + 6", of("FLASH_ATTN_EXT", "", f32(64, 32), f32(64, 1, 32), tensor("k", "f16", 64, 256, 8), tensor("v", "f16", 64, 256, 8)), ExpertChoice{},
			Cost{ReadBytes: 8192 + 2*262144, WrittenBytes: 8192, Flops: 2146304, Known: true, Exact: true}},
		// One token reads only the first row of a mask padded to 64 rows: 256 x 2 bytes.
		{"a mask makes that the most that it can be", of("FLASH_ATTN_EXT", "", f32(64, 32), f32(64, 1, 32), tensor("k", "f16", 64, 256, 8), tensor("v", "f16", 64, 256, 8), tensor("mask", "f16", 256, 64)), ExpertChoice{},
			Cost{ReadBytes: 8192 + 2*262144 + 512, WrittenBytes: 8192, Flops: 2146304, Known: true}},
		{"a mask of two streams, and sinks: 3 rows of 256 x 2 bytes of each, 32 x 4 bytes", of("FLASH_ATTN_EXT", "", f32(64, 32, 3, 2), f32(64, 3, 32, 2), tensor("k", "f16", 64, 256, 8, 2), tensor("v", "f16", 64, 256, 8, 2), tensor("mask", "f16", 256, 64, 1, 2), f32(32)), ExpertChoice{},
			// 64 x 3 x 32 x 2 x 4 of queries and as many written; 2 x 262144 of keys and of values;
			// 256 x 3 x 32 x 2 scores of 2x64 + 2x64 + 6.
			Cost{ReadBytes: 49152 + 4*262144 + 2*1536 + 128, WrittenBytes: 49152, Flops: 49152 * 262, Known: true}},
		// The mask has 64 rows of 256 x 4 bytes, of which one token reads one.
		{"soft max with a mask", of("SOFT_MAX", "", f32(256, 1, 32), f32(256, 1, 32), tensor("mask", "f32", 256, 64)), ExpertChoice{},
			Cost{ReadBytes: 32768 + 1024, WrittenBytes: 32768, Flops: 49152, Known: true, Exact: true}},
		{"an addition that repeats its second source", of("ADD", "", f32(2048, 24), f32(2048, 24), tensor("blk.0.attn_q.bias", "f32", 2048)), ExpertChoice{},
			Cost{ReadBytes: 196608 + 8192, WrittenBytes: 196608, WeightBytes: 8192, Flops: 49152, Weights: 3, Known: true, Exact: true}},
		{"rms norm", of("RMS_NORM", "", f32(2048), f32(2048)), ExpertChoice{}, Cost{ReadBytes: 8192, WrittenBytes: 8192, Flops: 6144, Known: true, Exact: true}},
		{"silu", of("UNARY", "SILU", f32(100), f32(100)), ExpertChoice{}, Cost{ReadBytes: 400, WrittenBytes: 400, Flops: 400, Known: true, Exact: true}},
		{"swiglu of one source is half as wide", of("GLU", "SWIGLU", f32(100), f32(200)), ExpertChoice{}, Cost{ReadBytes: 800, WrittenBytes: 400, Flops: 500, Known: true, Exact: true}},
		{"rows go into a cache of 4096", of("SET_ROWS", "", tensor("cache_k_l0 (view)", "f16", 512, 4096), f32(512, 3), tensor("idx", "i64", 3)), ExpertChoice{},
			Cost{ReadBytes: 6144 + 24, WrittenBytes: 3072, Known: true, Exact: true}},
		{"two rows of an embedding of q6_K: 2 x 2048 / 256 x 210", of("GET_ROWS", "", f32(2048, 2), tensor("token_embd.weight", "q6_K", 2048, 32000), tensor("ids", "i32", 2)), ExpertChoice{},
			Cost{ReadBytes: 3360 + 8, WrittenBytes: 16384, WeightBytes: 3360, Weights: 2, Known: true, Exact: true}},
		{"a copy into f16 does not read where it goes", of("CPY", "", tensor("d", "f16", 512), f32(512), tensor("d", "f16", 512)), ExpertChoice{}, Cost{ReadBytes: 2048, WrittenBytes: 1024, Known: true, Exact: true}},
		{"cont", of("CONT", "", f32(512), f32(512)), ExpertChoice{}, Cost{ReadBytes: 2048, WrittenBytes: 2048, Known: true, Exact: true}},
		{"sum of rows", of("SUM_ROWS", "", f32(1, 3), f32(8, 3)), ExpertChoice{}, Cost{ReadBytes: 96, WrittenBytes: 12, Flops: 24, Known: true, Exact: true}},
		{"argsort of eight: 8 x 3 comparisons", of("ARGSORT", "", tensor("o", "i32", 8, 3), f32(8, 3)), ExpertChoice{}, Cost{ReadBytes: 96, WrittenBytes: 96, Flops: 72, Known: true}},
		{"convolution: 3 x 3 x 16 multiply-adds for each of 8 x 8 x 32", of("CONV_2D", "", f32(8, 8, 32), tensor("c.weight", "f16", 3, 3, 16, 32), f32(10, 10, 16)), ExpertChoice{},
			Cost{ReadBytes: 9216 + 6400, WrittenBytes: 8192, WeightBytes: 9216, Flops: 589824, Weights: 2, Known: true, Exact: true}},
		{"state space convolution", of("SSM_CONV", "", f32(64, 5), f32(8, 64), tensor("blk.0.ssm_conv1d.weight", "f32", 4, 64)), ExpertChoice{},
			Cost{ReadBytes: 2048 + 1024, WrittenBytes: 1280, WeightBytes: 1024, Flops: 2560, Weights: 3, Known: true, Exact: true}},
		{"state space scan: 5 x 16 x 64 x 3", of("SSM_SCAN", "", f32(1216), f32(16, 64), f32(64, 1, 3)), ExpertChoice{}, Cost{ReadBytes: 4096 + 768, WrittenBytes: 4864, Flops: 15360, Known: true}},
		// Mamba-2 of 128 states, heads 4 of 64, 3 tokens of 2 sequences in a cache of 10: 2 x 128 x 64 x 4
		// states of 4 bytes are read; x 64 x 4 x 3 x 2; dt 4 x 3 x 2; A 4; B and C 128 x 3 x 2 each; 2 ids of
		// 4 bytes. Written are 1536 of y and the 65536 states. 5 x 128 for each of the 1536 of x.
		{"a scan of two of ten sequences", of("SSM_SCAN", "", f32(1536+65536), f32(128, 64, 4, 10), f32(64, 4, 3, 2), f32(4, 3, 2), f32(1, 4), f32(128, 1, 3, 2), f32(128, 1, 3, 2), tensor("ids", "i32", 2)), ExpertChoice{},
			Cost{ReadBytes: 4*(65536+1536+24+4+768+768) + 8, WrittenBytes: 4 * 67072, Flops: 983040, Known: true}},
		// Mamba has a factor for each of 16 states: 7 x 16 x 64.
		{"a scan with a factor for each state", of("SSM_SCAN", "", f32(64+1024), f32(16, 1, 64, 1), f32(1, 64, 1, 1), f32(64, 1, 1), tensor("blk.0.ssm_a", "f32", 16, 64), f32(16, 1, 1, 1), f32(16, 1, 1, 1), tensor("ids", "i32", 1)), ExpertChoice{},
			Cost{ReadBytes: 4*(1024+64+64+1024+16+16) + 4, WrittenBytes: 4 * 1088, WeightBytes: 4096, Flops: 7168, Weights: 5, Known: true}},
		// 2 heads of 64, 3 tokens, one state of 2 x 64 x 64: 384 elements of k with 64 columns each.
		{"wkv6: 7 x 64 x 384", of("RWKV_WKV6", "", f32(128, 3+64), f32(64, 2, 3), f32(64, 2, 3), f32(64, 2, 3), f32(64, 2), f32(64, 2, 3), f32(8192, 1)), ExpertChoice{},
			Cost{ReadBytes: 4 * (4*384 + 128 + 8192), WrittenBytes: 4 * 8576, Flops: 172032, Known: true, Exact: true}},
		{"wkv7: 9 x 64 x 384", of("RWKV_WKV7", "", f32(128, 3+64), f32(64, 2, 3), f32(64, 2, 3), f32(64, 2, 3), f32(64, 2, 3), f32(64, 2, 3), f32(64, 2, 3), f32(8192, 1)), ExpertChoice{},
			Cost{ReadBytes: 4 * (6*384 + 8192), WrittenBytes: 4 * 8576, Flops: 221184, Known: true, Exact: true}},
		{"gated linear attention: 5 x 64 x 384", of("GATED_LINEAR_ATTN", "", f32(128, 3+64), f32(64, 2, 3), f32(64, 2, 3), f32(64, 2, 3), f32(64, 2, 3), f32(8192, 1)), ExpertChoice{},
			Cost{ReadBytes: 4 * (4*384 + 8192), WrittenBytes: 4 * 8576, Flops: 122880, Known: true, Exact: true}},
		// One head of keys for two of values, each of 128: q and k 128 x 3, v 256 x 3, g and beta 2 x 3, the
		// state 2 x 128 x 128. 7 x 128 for each of the 768 of v.
		{"gated delta net", of("GATED_DELTA_NET", "", f32(256, 3+128), f32(128, 1, 3), f32(128, 1, 3), f32(128, 2, 3), f32(1, 2, 3), f32(1, 2, 3), f32(128, 128, 2)), ExpertChoice{},
			Cost{ReadBytes: 4 * (384 + 384 + 768 + 6 + 6 + 32768), WrittenBytes: 4 * 33536, Flops: 688128, Known: true, Exact: true}},
		// Rows of 4 take 0+2, 2+2, 4+2, 6+2 = 20 operations for each of 3 columns; 10 of 16 elements are in the triangle.
		{"a triangle of four", of("SOLVE_TRI", "", f32(3, 4), f32(4, 4), f32(3, 4)), ExpertChoice{},
			Cost{ReadBytes: 40 + 48, WrittenBytes: 48, Flops: 60, Known: true, Exact: true}},
		// 2 x 2 x 2 x 3 channels in, 5 out, 2 images: 24 multiply-adds for each of 4 x 4 x 4 x 10.
		{"convolution of volumes", of("CONV_3D", "", f32(4, 4, 4, 10), tensor("c.weight", "f16", 2, 2, 2, 15), f32(5, 5, 5, 6)), ExpertChoice{},
			Cost{ReadBytes: 240 + 3000, WrittenBytes: 2560, WeightBytes: 240, Flops: 30720, Weights: 2, Known: true, Exact: true}},
		{"columns of volumes do not read the kernel", of("IM2COL_3D", "", tensor("c", "f16", 24, 64), tensor("c.weight", "f16", 2, 2, 2, 15), f32(5, 5, 5, 3)), ExpertChoice{},
			Cost{ReadBytes: 1500, WrittenBytes: 3072, Known: true, Exact: true}},
		// 512 tokens with 4 experts each look up 2048 rows of 32: each is read once.
		{"biases of 32 experts for 2048 rows", of("ADD_ID", "", f32(2880, 4, 512), f32(2880, 4, 512), tensor("blk.0.ffn_up_exps.bias", "f32", 2880, 32), tensor("ids", "i32", 4, 512)), ExpertChoice{},
			Cost{ReadBytes: 4*5898240 + 4*92160 + 8192, WrittenBytes: 4 * 5898240, WeightBytes: 4 * 92160, Flops: 5898240, Weights: 3, Known: true, Exact: true}},
		{"one row of a table looked up 100 times is one row", of("GET_ROWS", "", f32(64, 100), f32(64, 1), tensor("ids", "i32", 100)), ExpertChoice{},
			Cost{ReadBytes: 256 + 400, WrittenBytes: 25600, Known: true, Exact: true}},
		{"scaling is one multiplication", of("SCALE", "", f32(100), f32(100)), ExpertChoice{}, Cost{ReadBytes: 400, WrittenBytes: 400, Flops: 100, Known: true, Exact: true}},
		{"a part of a copy is set", of("SET", "", f32(100), f32(100), f32(10)), ExpertChoice{}, Cost{ReadBytes: 440, WrittenBytes: 440, Known: true, Exact: true}},
		{"a gate of tomorrow", of("GLU", "NEWGLU", f32(100), f32(200)), ExpertChoice{}, Cost{ReadBytes: 800, WrittenBytes: 400, Flops: 200, Known: true}},
		{"a view is nothing", of("PERMUTE", "", f32(10), f32(10)), ExpertChoice{}, Cost{Known: true, Exact: true}},
		{"an operator of tomorrow", of("NEW_THING", "", f32(10), f32(20), f32(30)), ExpertChoice{}, Cost{ReadBytes: 200, WrittenBytes: 40, Flops: 10, Known: true, Guessed: true}},
		{"no name", of("", "", f32(10), f32(10)), ExpertChoice{}, Cost{}},
		{"a type of tomorrow: rows of 90 bytes for 64 elements", of("CONT", "", f32(128), Tensor{Type: "q9_9", NE: [4]int64{64, 2, 1, 1}, NB: [4]uint64{45, 90, 180, 180}}), ExpertChoice{},
			Cost{ReadBytes: 180, WrittenBytes: 512, Known: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			tables, op := c.make()
			got := CostOf(tables, op, c.experts)
			near := func(a, b float64) bool { return math.Abs(a-b) <= 1e-9*math.Abs(b) }
			if !near(got.ReadBytes, c.want.ReadBytes) || !near(got.WeightBytes, c.want.WeightBytes) {
				t.Errorf("reads %v, of weights %v, want %v, %v", got.ReadBytes, got.WeightBytes, c.want.ReadBytes, c.want.WeightBytes)
			}
			got.ReadBytes, got.WeightBytes = c.want.ReadBytes, c.want.WeightBytes
			if got != c.want {
				t.Errorf("got %+v\nwant %+v", got, c.want)
			}
		})
	}
}

func TestCostOfPartOfARope(t *testing.T) {
	tables, op := shape("ROPE", "", tensor("q", "f32", 64, 32), tensor("q", "f32", 64, 32), tensor("pos", "i32", 1))
	if got := CostOf(tables, op, ExpertChoice{}); got.Flops != 3*2048 || got.ReadBytes != 8196 {
		t.Errorf("all turned: %+v", got)
	}
	op.Params[1] = 16
	if got := CostOf(tables, op, ExpertChoice{}); got.Flops != 3*512 {
		t.Errorf("a quarter turned: %+v", got)
	}
}

// TestCostOfParameters has operators whose work depends on their parameters: a scale with an
// offset, parts that are set and added in place.
func TestCostOfParameters(t *testing.T) {
	for _, c := range []struct {
		op                   string
		parameter            int
		read, written, flops float64
	}{
		{"SCALE", 1, 440, 400, 200}, // with a source too many, which is read
		{"SET", 4, 40, 40, 0},
		{"ACC", 4, 80, 40, 10},
		{"ACC", 0, 480, 440, 10}, // not in place: all is copied besides
	} {
		tables, op := shape(c.op, "", tensor("x", "f32", 100), tensor("x", "f32", 100), tensor("y", "f32", 10))
		op.Params[c.parameter] = 1
		if got := CostOf(tables, op, ExpertChoice{}); got.ReadBytes != c.read || got.WrittenBytes != c.written || got.Flops != c.flops {
			t.Errorf("%s: %+v, want %v, %v, %v", c.op, got, c.read, c.written, c.flops)
		}
	}
}

func TestCostOfFused(t *testing.T) {
	tables, op := shape("RMS_NORM", "", tensor("attn_norm-0", "f32", 2048), tensor("x", "f32", 2048), tensor("blk.0.attn_norm.weight", "f32", 2048))
	op.Fused = []string{"MUL"}
	if got := CostOf(tables, op, ExpertChoice{}); got.Flops != 4*2048 || got.WrittenBytes != 8192 || got.ReadBytes != 16384 || !got.Exact {
		t.Errorf("got %+v", got)
	}
}

func TestCostOfAbsentSource(t *testing.T) {
	tables, op := shape("MUL_MAT", "", tensor("y", "f32", 10), tensor("a", "f32", 4, 10), tensor("b", "f32", 4))
	op.In[1] = 0
	if got := CostOf(tables, op, ExpertChoice{}); got.Exact || got.ReadBytes != 160 {
		t.Errorf("got %+v", got)
	}
	op.Out = 9
	if got := CostOf(tables, op, ExpertChoice{}); got != (Cost{}) {
		t.Errorf("no result: %+v", got)
	}
}

// TestFormats compares the bits per weight with ggml's README of k-quants: 4.5 for q4_K, 6.5625
// for q6_K.
func TestFormats(t *testing.T) {
	for name, bits := range map[string]float64{
		"f32": 32, "f16": 16, "bf16": 16, "q4_0": 4.5, "q4_1": 5, "q5_0": 5.5, "q5_1": 6, "q8_0": 8.5, "q2_K": 2.625, "q3_K": 3.4375,
		"q4_K": 4.5, "q5_K": 5.5, "q6_K": 6.5625, "iq2_xxs": 2.0625, "iq3_xxs": 3.0625, "iq4_xs": 4.25, "iq4_nl": 4.5, "iq1_s": 1.5625,
		"iq1_m": 1.75, "tq1_0": 1.6875, "tq2_0": 2.0625, "mxfp4": 4.25, "nvfp4": 4.5,
	} {
		f, ok := formats[name]
		if got := 8 * float64(f.Bytes) / float64(f.Block); !ok || got != bits {
			t.Errorf("%s: %v bits, want %v", name, got, bits)
		}
	}
}
