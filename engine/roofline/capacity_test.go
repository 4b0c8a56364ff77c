package roofline

import (
	"math"
	"strings"
	"testing"

	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Published sizes, in bytes per token of a bf16 cache.
func TestKVBytesPerToken(t *testing.T) {
	for _, tc := range []struct {
		model string
		want  float64
	}{
		{"meta-llama/Llama-3.1-8B-Instruct", 131072}, {"meta-llama/Llama-3.3-70B-Instruct", 327680}, {"Qwen/Qwen3-8B", 147456},
		{"Qwen/Qwen3-32B", 262144}, {"Qwen/Qwen3-30B-A3B", 98304}, {"deepseek-ai/DeepSeek-V3", 70272},
		{"openai/gpt-oss-120b", 36864}, {"google/gemma-3-27b-it", 81920}, {"Qwen/Qwen3-Next-80B-A3B-Instruct", 24576},
	} {
		c := bf16(h100sxm(), mustModel(t, tc.model), 1)
		near(t, tc.model, c.KVBytesPerToken(), tc.want, 1e-9)
	}
	c := bf16(h100sxm(), mustModel(t, "openai/gpt-oss-120b"), 1)
	near(t, "gpt-oss windows", c.StoredPerSequence(10000)-10000*c.KVBytesPerToken(), 4.7e6, 0.01)
	c = bf16(h100sxm(), mustModel(t, "google/gemma-3-27b-it"), 1)
	near(t, "gemma windows", c.StoredPerSequence(10000)-10000*c.KVBytesPerToken(), 436e6, 0.01)
	c = bf16(h100sxm(), mustModel(t, "deepseek-ai/DeepSeek-V3.2"), 1)
	if read, stored := c.KVRead(100000), c.StoredPerSequence(100000); read > stored/5 {
		t.Errorf("sparse attention reads %g of %g bytes", read, stored)
	}
}

// Sizes that vLLM logged when loading a checkpoint, or sizes of its files.
func TestWeightBytes(t *testing.T) {
	for _, tc := range []struct {
		model  string
		weight catalog.DType
		want   float64 // GiB
	}{
		{"meta-llama/Llama-3.1-8B-Instruct", catalog.BF16, 14.96},
		{"meta-llama/Llama-3.3-70B-Instruct", catalog.NVFP4, 39.89},      // logged on a B200
		{"deepseek-ai/DeepSeek-R1", catalog.NVFP4, 4 * 94.08},            // logged, four ranks
		{"openai/gpt-oss-20b", catalog.MXFP4, 12.8},                      // 13.76e9 bytes of files
		{"openai/gpt-oss-120b", catalog.MXFP4, 60.8},                     // 65.3e9 bytes of files
		{"meta-llama/Meta-Llama-3-8B-Instruct", catalog.INT4, 5.3},       // AWQ with 16-bit embeddings: 5.7e9 bytes of files
		{"deepseek-ai/DeepSeek-R1", catalog.FP8, 671.0e9 / (1 << 30)},    // 8 bit but for the embeddings
		{"moonshotai/Kimi-K2-Thinking", catalog.INT4, 594e9 / (1 << 30)}, // published: 594 GB
	} {
		c := bf16(h100sxm(), mustModel(t, tc.model), 1)
		c.Weight = tc.weight
		near(t, tc.model+" "+string(tc.weight), c.TotalWeightBytes()/gib, tc.want, 0.05)
	}
}

func TestExpertsTouched(t *testing.T) {
	s := shape{experts: 128, perToken: 8}
	near(t, "one token", s.distinct(1), 8, 1e-9)
	near(t, "36 tokens of a sixteenth", s.distinct(36)/128, 0.9, 0.01)
	near(t, "a chunk", s.distinct(2048), 128, 1e-6)
	if got := s.fewest(1); got != 8 {
		t.Errorf("fewest of one token = %g, want its own 8", got)
	}
	near(t, "fewest of many", s.fewest(4096), 96, 1e-6)
	one := shape{experts: 1, perToken: 1}
	near(t, "a single expert", one.distinct(5), 1, 1e-9)
}

func TestMinTP(t *testing.T) {
	for _, tc := range []struct {
		name   string
		model  string
		weight catalog.DType
		vram   float64 // GiB
		want   int     // 0 is unknown
	}{
		{"8B fits one", "meta-llama/Llama-3.1-8B-Instruct", catalog.BF16, 79.65, 1},
		{"70B just fits two", "meta-llama/Llama-3.3-70B-Instruct", catalog.BF16, 79.65, 2},
		{"405B: eleven by the formula, sixteen by the heads", "meta-llama/Llama-3.1-405B-Instruct", catalog.BF16, 79.65, 16},
		{"a latent cache splits by query heads", "deepseek-ai/DeepSeek-R1", catalog.FP8, 79.65, 16},
		{"memory unknown", "meta-llama/Llama-3.1-8B-Instruct", catalog.BF16, 0, 0},
	} {
		c := bf16(h100sxm(), mustModel(t, tc.model), 1)
		c.Weight, c.GPU.VRAMGiB = tc.weight, tc.vram
		if tp, ok := c.MinTP(0.9); tp != tc.want || ok != (tc.want > 0) {
			t.Errorf("%s: min tp = %d, %v, want %d", tc.name, tp, ok, tc.want)
		}
	}
}

func TestPrefill(t *testing.T) {
	c := bf16(h100sxm(), llama8b(), 1)
	// A worked example: a 1,000-token prompt, 15.4 ms at full FLOPS with the
	// output layer on every token; it sees one.
	ideal, achievable := c.Prefill(1000, 0, 0)
	near(t, "ideal", ideal, 14.4e-3, 0.03)
	if achievable < 18e-3 || achievable > 35e-3 {
		t.Errorf("achievable = %.1f ms, vLLM measures about 25", achievable*1e3)
	}
	_, rate := c.PrefillRate(1000, 0, 0)
	near(t, "rate", rate, 1000/achievable, 1e-9)
	_, chunks := c.Prefill(8192, 0, 512)
	_, whole := c.Prefill(8192, 0, 0)
	if chunks <= whole {
		t.Errorf("16 chunks take %g s, one piece %g s", chunks, whole)
	}
	short, _ := c.Prefill(1000, 0, 0)
	behind, _ := c.Prefill(1000, 60000, 0)
	if behind < 2*short {
		t.Errorf("1,000 tokens behind 60,000 take %g s, alone %g s", behind, short)
	}
	if i, a := c.Prefill(0, 100, 0); i != 0 || a != 0 {
		t.Errorf("no tokens take %g, %g", i, a)
	}
}

func TestOperate(t *testing.T) {
	c := bf16(h100sxm(), llama8b(), 1)
	m := Measured{
		Point: Point{Batch: 8, Context: 21000}, StepSeconds: stat.Some(15.18e-3), OutputPerS: stat.Some(527),
		KVCapacity: stat.Some(420000), MaxNumSeqs: stat.Some(256),
	}
	o, p, err := c.Operate(m, 2)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "efficiency", o.Efficiency.V, 0.73, 0.01)
	near(t, "ideal of two replicas", o.IdealTokensPerS.V, 2*8/11.05e-3, 0.01)
	near(t, "raw", p.Raw, 15.18/13.95, 0.01)
	near(t, "best batch of two replicas", o.BestBatch.V, 2*20, 0.01)
	if o.BestTokensPerS.V < 2*527 {
		t.Errorf("best = %g tok/s, measured already %d", o.BestTokensPerS.V, 2*527)
	}
	m.MaxNumSeqs = stat.None
	if open, _, err := c.Operate(m, 2); err != nil || open.BestTokensPerS.OK {
		t.Errorf("without the slots the server's best is %g tok/s, %v", open.BestTokensPerS.V, err)
	}
	if !strings.Contains(strings.Join(o.Assumptions, "\n"), "decode only") {
		t.Errorf("assumptions %q do not say that prefill is unknown", o.Assumptions)
	}
	if o.Impossible(1054) || o.Impossible(o.IdealTokensPerS.V*1.04) || !o.Impossible(o.IdealTokensPerS.V*1.1) {
		t.Error("impossible at the wrong rates")
	}

	t.Run("prefill adds to the step", func(t *testing.T) {
		m := m
		m.PrefillPerS = stat.Some(5270)
		mixed, _, err := c.Operate(m, 1)
		if err != nil {
			t.Fatal(err)
		}
		near(t, "step tokens", mixed.StepTokens, 8+5270*15.18e-3, 1e-9)
		if mixed.StepAchievableS <= o.StepAchievableS {
			t.Errorf("achievable step %g s with prefill, %g s without", mixed.StepAchievableS, o.StepAchievableS)
		}
	})
	t.Run("a rate no H100 has", func(t *testing.T) {
		// "85 tok/s at batch 1 of Llama-2-70B in fp16 on an H100" needs 11.7 TB/s.
		big := bf16(h100sxm(), mustModel(t, "meta-llama/Llama-2-70b-hf"), 1)
		o, _, err := big.Operate(Measured{Point: Point{Batch: 1, Context: 500}, StepSeconds: stat.Some(1 / 85.0)}, 1)
		if err != nil {
			t.Fatal(err)
		}
		if !o.Impossible(85) || o.Efficiency.OK {
			t.Errorf("85 tok/s against an ideal of %g: efficiency %+v", o.IdealTokensPerS.V, o.Efficiency)
		}
	})
	t.Run("errors", func(t *testing.T) {
		if _, _, err := c.Operate(Measured{}, 1); err == nil || !strings.Contains(err.Error(), "running") {
			t.Errorf("nothing running: %v", err)
		}
		bad := c
		bad.GPU.MemBandwidthGBs, bad.Model.Layers = 0, 0
		_, _, err := bad.Operate(m, 1)
		if err == nil || !strings.Contains(err.Error(), "memory bandwidth of the GPU, layer count") {
			t.Errorf("missing inputs: %v", err)
		}
	})
	t.Run("pipeline", func(t *testing.T) {
		c := c
		c.PP = 2
		m := m
		m.StepSeconds, m.OutputPerS = stat.Some(7.59e-3), stat.None // two stages, each with half of the sequences
		_, p, err := c.Operate(m, 1)
		if err != nil {
			t.Fatal(err)
		}
		near(t, "step", p.Measured.StepSeconds.V, 15.18e-3, 1e-9)
	})
}

func TestCeiling(t *testing.T) {
	c := bf16(h100sxm(), llama8b(), 1)
	r, err := c.Ceiling(CeilingInput{Batch: 64, Context: 2000, Prompt: 1500, Utilization: 0.9})
	if err != nil {
		t.Fatal(err)
	}
	if r.DecodeAchievableTokensPerS >= r.DecodeIdealTokensPerS || r.PrefillAchievableTokensS.V >= r.PrefillIdealTokensPerS.V {
		t.Errorf("achievable above ideal: %+v", r)
	}
	near(t, "decode", r.DecodeIdealTokensPerS, 64/r.StepIdealS, 1e-9)
	near(t, "kv", r.KVBytesPerToken, 131072, 1e-9)
	near(t, "weights", r.WeightBytes, 16.06e9, 1e-9)
	near(t, "pool", r.KVCapacityTokens.V, 440000, 0.1) // vLLM logs 430,000 to 450,000
	near(t, "sequences", r.MaxSequences.V, r.KVCapacityTokens.V/2000, 0.01)
	if !r.Fits {
		t.Error("8B does not fit 80 GB")
	}
	big := bf16(h100sxm(), mustModel(t, "meta-llama/Llama-3.3-70B-Instruct"), 1)
	r, err = big.Ceiling(CeilingInput{Batch: 1, Context: 100})
	if err != nil {
		t.Fatal(err)
	}
	if r.Fits || r.MinTP.V != 2 || r.KVCapacityTokens.V != 0 || r.MaxSequences.V != 0 || r.PrefillIdealTokensPerS.OK {
		t.Errorf("70B on one H100: %+v", r)
	}
	if _, err := (Config{}).Ceiling(CeilingInput{}); err == nil {
		t.Error("no error without any input")
	}
}

// Values of a described device replace the architecture's fractions, without an assumption.
func TestAchievedOverrides(t *testing.T) {
	cpu := catalog.GPU{Name: "EPYC 9654", Vendor: "cpu", MemBandwidthGBs: 460, FP32TFLOPS: 5, BF16TFLOPS: 10}
	plain := bf16(cpu, llama8b(), 1).Step(Point{Batch: 1, Context: 100})
	if len(plain.Assumptions) == 0 {
		t.Error("a CPU without fractions of its own has no assumption")
	}
	cpu.Achieved = &catalog.Achieved{GEMMBandwidth: 0.5, AttnBandwidth: 0.5, GEMMCompute: 0.4, PrefillAttn: 0.2, LayerSeconds: 1e-3, StepSeconds: 2e-3, RequestSeconds: 1e-3}
	s := bf16(cpu, llama8b(), 1).Step(Point{Batch: 1, Context: 100})
	near(t, "weights", s.Achievable.Weights, s.Ideal.Weights/0.5, 0.01) // one row computes next to nothing
	near(t, "fixed", s.Achievable.Fixed, 35e-3, 1e-9)
	if len(s.Assumptions) != 0 {
		t.Errorf("assumptions %q on a measured device", s.Assumptions)
	}
}

// Published mixture-of-experts decode at batch 4: the
// band that Operate prints holds the measured step.
func TestMoEWithinBand(t *testing.T) {
	for _, tc := range []struct {
		model    string
		gpu      string
		tp       int
		weight   catalog.DType
		measured float64 // ms
	}{
		{"openai/gpt-oss-120b", "NVIDIA H100 80GB HBM3", 2, catalog.MXFP4, 5.75},
		{"openai/gpt-oss-120b", "NVIDIA H100 80GB HBM3", 1, catalog.MXFP4, 8.31},
		{"openai/gpt-oss-120b", "NVIDIA A100-SXM4-80GB", 1, catalog.MXFP4, 11.67},
		{"zai-org/GLM-4.6", "NVIDIA H200", 8, catalog.BF16, 18.1},
		{"deepseek-ai/DeepSeek-R1", "NVIDIA H200", 8, catalog.FP8, 19.4},
	} {
		c := bf16(mustGPU(t, tc.gpu), mustModel(t, tc.model), tc.tp)
		c.Weight = tc.weight
		at := Point{Batch: 4, Context: 500, Tokens: 4}
		s := c.Step(at)
		pl := c.plan()
		lower, upper := pl.band(at, s.Achievable)
		fast, slow := 1e3*s.Achievable.Total()/upper, 1e3*s.Achievable.Total()/lower
		t.Logf("%s %s TP %d: measured %.1f ms, achievable %.1f (%.1f to %.1f), ideal %.1f", tc.model, tc.gpu, tc.tp, tc.measured, 1e3*s.Achievable.Total(), fast, slow, 1e3*s.Ideal.Total())
		if tc.measured < fast || tc.measured > slow {
			t.Errorf("%s TP %d: measured %.1f ms lies outside %.1f to %.1f", tc.model, tc.tp, tc.measured, fast, slow)
		}
	}
}

func TestAbsurdGaugesCalibrateNothing(t *testing.T) {
	c := bf16(h100sxm(), llama8b(), 1)
	for _, m := range []Measured{
		{Point: Point{Batch: 1e308, Context: 1e308}, StepSeconds: stat.Some(math.Inf(1))},
		{Point: Point{Batch: 1, Context: 1e308}, StepSeconds: stat.Some(0.02)},
		{Point: Point{Batch: 1, Context: math.Inf(1)}, StepSeconds: stat.Some(math.Inf(1))},
	} {
		o, _, err := c.Operate(m, 1)
		if text := strings.Join(o.Assumptions, "; "); err == nil && (strings.Contains(text, "NaN") || o.CalibrationRaw.OK && math.IsNaN(o.CalibrationRaw.V)) {
			t.Errorf("%+v: calibrated by %v: %s", m, o.CalibrationRaw, text)
		}
	}
}
