package roofline

import (
	"testing"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

func wantOpt(t *testing.T, what string, got stat.Opt, want float64) {
	t.Helper()
	if !got.OK {
		t.Errorf("%s is absent, want %g", what, want)
		return
	}
	near(t, what, got.V, want, 1e-9)
}

func wantNone(t *testing.T, what string, got stat.Opt) {
	t.Helper()
	if got.OK {
		t.Errorf("%s = %g, want absent", what, got.V)
	}
}

// Worked by hand: an 8e9-parameter bf16 model on two devices of 2,000 GB/s,
// 60 FP32 TFLOPS and 80e9 bytes.
func TestClassicByHand(t *testing.T) {
	in := ClassicInput{
		TP: 2, TotalParams: 8e9, BytesPerParam: 2, BytesPerParamFrom: "bf16 fallback",
		VRAMTotalBytes: stat.Some(80e9),
		PromptTokens:   stat.Some(499.6), Running: stat.Some(10), GenerationPerS: stat.Some(1000), CostPerHour: stat.Some(5),
	}
	in.GPU.MemBandwidthGBs, in.GPU.FP32TFLOPS = 2000, 60
	c := NewClassic(in)

	wantOpt(t, "decode ceiling", c.DecodeTokensPerS, 250) // 4e12/16e9
	wantOpt(t, "decode lower", c.DecodeLower, 212.5)
	wantOpt(t, "decode upper", c.DecodeUpper, 262.5)
	wantOpt(t, "prefill ceiling", c.PrefillTokensPerS, 5) // 120e12/(6*8e9*500)
	wantOpt(t, "prefill lower", c.PrefillLower, 4.25)
	wantOpt(t, "prefill upper", c.PrefillUpper, 5.25)
	wantOpt(t, "ridge", c.RidgeBatch, 60) // 60e12*2/2e12
	wantOpt(t, "aggregate", c.AggregateTokensPerS, 2500)
	wantOpt(t, "efficiency", c.Efficiency, 0.4)
	wantOpt(t, "headroom", c.Headroom, 0.6)
	wantOpt(t, "recoverable", c.RecoverableUSDPerHour, 3)
	wantOpt(t, "weights", c.WeightGB, 16)
	wantOpt(t, "kv headroom", c.KVHeadroomGB, 72) // 80 - 16/2
	wantOpt(t, "tpot floor", c.TPOTFloorS, 0.004)
	wantOpt(t, "prefill floor", c.PrefillFloorS, 0.2)
	if c.Caveat != "" {
		t.Errorf("caveat %q without a prefill share", c.Caveat)
	}
}

func TestClassicAbsences(t *testing.T) {
	base := func() ClassicInput {
		in := ClassicInput{
			TP: 1, TotalParams: 8e9, BytesPerParam: 2,
			PromptTokens: stat.Some(500), Running: stat.Some(10), GenerationPerS: stat.Some(1000),
		}
		in.GPU.MemBandwidthGBs, in.GPU.FP32TFLOPS, in.GPU.VRAMGiB = 2000, 60, 80
		return in
	}
	for _, tc := range []struct {
		name  string
		edit  func(*ClassicInput)
		check func(*testing.T, Classic)
	}{
		{"efficiency above the aggregate ceiling", func(in *ClassicInput) { in.GenerationPerS = stat.Some(1251) }, func(t *testing.T, c Classic) {
			wantNone(t, "efficiency", c.Efficiency)
			wantNone(t, "headroom", c.Headroom)
		}},
		{"efficiency at the aggregate ceiling", func(in *ClassicInput) { in.GenerationPerS = stat.Some(1250) }, func(t *testing.T, c Classic) {
			wantOpt(t, "efficiency", c.Efficiency, 1)
		}},
		{"nothing running", func(in *ClassicInput) { in.Running = stat.Some(0) }, func(t *testing.T, c Classic) {
			wantNone(t, "efficiency", c.Efficiency)
			wantOpt(t, "decode ceiling", c.DecodeTokensPerS, 125)
		}},
		{"nothing generated", func(in *ClassicInput) { in.GenerationPerS = stat.Some(0) }, func(t *testing.T, c Classic) {
			wantNone(t, "efficiency", c.Efficiency)
		}},
		{"no cost", func(*ClassicInput) {}, func(t *testing.T, c Classic) {
			wantNone(t, "recoverable", c.RecoverableUSDPerHour)
		}},
		{"prefill floor at the ridge batch", func(in *ClassicInput) { in.Running = stat.Some(60) }, func(t *testing.T, c Classic) {
			wantNone(t, "prefill floor", c.PrefillFloorS)
		}},
		{"prefill floor below the ridge batch", func(in *ClassicInput) { in.Running = stat.Some(59.9) }, func(t *testing.T, c Classic) {
			wantOpt(t, "prefill floor", c.PrefillFloorS, 6*8e9*500/60e12)
		}},
		{"model length stands in for prompts", func(in *ClassicInput) { in.PromptTokens, in.MaxModelLen = stat.None, stat.Some(1000) }, func(t *testing.T, c Classic) {
			wantOpt(t, "prefill ceiling", c.PrefillTokensPerS, 1.25)
		}},
		{"no length at all", func(in *ClassicInput) { in.PromptTokens = stat.None }, func(t *testing.T, c Classic) {
			wantNone(t, "prefill ceiling", c.PrefillTokensPerS)
			wantNone(t, "prefill floor", c.PrefillFloorS)
		}},
		{"no FP32 peak", func(in *ClassicInput) { in.GPU.FP32TFLOPS = 0 }, func(t *testing.T, c Classic) {
			wantNone(t, "prefill ceiling", c.PrefillTokensPerS)
			wantNone(t, "ridge", c.RidgeBatch)
			wantOpt(t, "decode ceiling", c.DecodeTokensPerS, 125)
		}},
		{"mixture of experts: active for ceilings, total for weights", func(in *ClassicInput) { in.TotalParams, in.ActiveParams = 40e9, 4e9 }, func(t *testing.T, c Classic) {
			wantOpt(t, "decode ceiling", c.DecodeTokensPerS, 250)
			wantOpt(t, "weights", c.WeightGB, 80)
			wantOpt(t, "kv headroom", c.KVHeadroomGB, 80*1.073741824-80)
		}},
		{"weights exceed memory", func(in *ClassicInput) { in.TotalParams = 80e9 }, func(t *testing.T, c Classic) {
			if !c.KVHeadroomGB.OK || c.KVHeadroomGB.V >= 0 {
				t.Errorf("kv headroom = %+v, want negative", c.KVHeadroomGB)
			}
		}},
		{"only active parameters known", func(in *ClassicInput) { in.TotalParams, in.ActiveParams = 0, 8e9 }, func(t *testing.T, c Classic) {
			wantOpt(t, "weights", c.WeightGB, 16)
		}},
		{"no bytes per parameter", func(in *ClassicInput) { in.BytesPerParam = 0 }, func(t *testing.T, c Classic) {
			wantNone(t, "decode ceiling", c.DecodeTokensPerS)
			wantNone(t, "weights", c.WeightGB)
			wantNone(t, "bytes", c.BytesPerParam)
		}},
		{"prefill-heavy load", func(in *ClassicInput) { in.PrefillShare = stat.Some(0.4) }, func(t *testing.T, c Classic) {
			if c.Caveat == "" {
				t.Error("no caveat at a prefill share of 0.4")
			}
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			in := base()
			tc.edit(&in)
			tc.check(t, NewClassic(in))
		})
	}
}

func TestMinTPClassic(t *testing.T) {
	for _, tc := range []struct {
		name             string
		weight, vram, ut float64
		want             float64 // 0: absent
	}{
		{"fits one", 60, 80, 0.9, 1},       // usable 69
		{"just two", 69.1, 80, 0.9, 2},     // usable 69
		{"70B bf16", 141.1, 80, 0.9, 3},    // 2.04 -> 3
		{"405B bf16", 811.7, 80, 0.9, 12},  // 11.76 -> 12
		{"reserve eats all", 1, 3, 0.9, 0}, // usable -0.3
		{"no weights", 0, 80, 0.9, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := MinTPClassic(tc.weight, tc.vram, tc.ut)
			if tc.want == 0 {
				wantNone(t, "min tp", got)
				return
			}
			wantOpt(t, "min tp", got, tc.want)
		})
	}
}

func TestEconomics(t *testing.T) {
	e := NewEconomics(stat.Some(500), stat.Some(250), stat.Some(3.6))
	wantOpt(t, "tok/W", e.TokensPerWatt, 2)
	wantOpt(t, "J/token", e.JoulesPerToken, 0.5)
	wantOpt(t, "$/1M", e.USDPerMillionTokens, 2) // 3.6/(500*3600)*1e6
	e = NewEconomics(stat.Some(0), stat.Some(250), stat.Some(3.6))
	wantNone(t, "J/token of nothing", e.JoulesPerToken)
	wantNone(t, "$/1M of nothing", e.USDPerMillionTokens)
	e = NewEconomics(stat.Some(500), stat.None, stat.None)
	wantNone(t, "tok/W without power", e.TokensPerWatt)
	wantNone(t, "$/1M without cost", e.USDPerMillionTokens)
}
