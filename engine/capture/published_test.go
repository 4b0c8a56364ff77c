package capture

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// row has the published values of one run of inferscope: the inputs of its derived figures.
type row struct {
	gpu, model           string
	perSecond            float64 // tokens
	watts, limit         float64
	sm                   float64 // 0..1
	vramBytes, vramTotal float64
	perHour              float64 // dollars
}

// Inputs as printed. The H100's memory is NVML's value for an "80 GB" card, 81559 MiB; the L4's
// 23034 MiB is in the text.
func publishedRows() map[string]row {
	const gb, mib = 1e9, 1 << 20
	return map[string]row{
		"H100 7B":  {"H100 SXM", "Qwen2.5-7B-Instruct", 230.4, 170, 700, 0.48, 5.56 * gb, 81559 * mib, 3.29},
		"H100 32B": {"H100 SXM", "Qwen2.5-32B-Instruct", 69, 439, 700, 0.88, 21.4 * gb, 81559 * mib, 3.29},
		"L4 0.5B":  {"L4", "Qwen2.5-0.5B-Instruct", 381, 38, 72, 0.58, 1.34 * gb, 23034 * mib, 0.45},
	}
}

// figures returns the figures of a row, using the functions of a real capture, with one energy
// counter and a run long enough for a mean power.
func (r row) figures(t *testing.T, span time.Duration) (GPUUsage, Energy, *derivation) {
	t.Helper()
	c := run(span, func(at time.Duration) engine.GPU {
		var g engine.GPU
		for f, v := range map[engine.GPUField]float64{
			engine.GPUPowerW: r.watts, engine.GPUPowerLimitW: r.limit, engine.GPUUtil: r.sm,
			engine.GPUVRAMUsed: r.vramBytes, engine.GPUVRAMTotal: r.vramTotal,
			engine.GPUEnergyJ: r.watts * at.Seconds(),
		} {
			g.Fields[f] = stat.Some(v)
		}
		return g
	})
	gpus := c.gpuUsage()
	energy := c.totalEnergy(gpus)
	tokens := Tokens{Used: stat.Some(r.perSecond * span.Seconds()), From: "usage"}
	return gpus[0], energy, c.derive(tokens, gpus, energy, Machine{Facts: factsOf(t, r.gpu, r.model, r.perHour)})
}

// TestPublishedTables recomputes the figures of two published articles on
// inferscope ("Profiling LLM inference: what your /proc sampler isn't telling
// you", and "The profiler had to teach me about the hardware") from the inputs
// in their tables.
func TestPublishedTables(t *testing.T) {
	const minute = time.Minute
	rows := publishedRows()
	small, _, h7 := rows["H100 7B"].figures(t, minute)
	large, _, h32 := rows["H100 32B"].figures(t, minute)
	_, _, l4 := rows["L4 0.5B"].figures(t, minute)
	mean := func(g GPUUsage, f engine.GPUField) float64 { return g.Fields[f].Mean.V }
	low, high := rows["L4 0.5B"], rows["L4 0.5B"]
	low.watts, high.watts = 37, 39
	_, _, l4low := low.figures(t, minute)
	_, _, l4high := high.figures(t, minute)

	for _, tt := range []struct {
		figure         string
		got, published float64
		// off is how far the published figure may be from its inputs: half of its last digit,
		// unless a note says more.
		off  float64
		note string
	}{
		{"7B: VRAM of the GPU, %", 100 * h7.value(VRAMShare).V, 6.5, 0.05, "of NVML's 81559 MiB; of 80 GB it would be 6.95 %"},
		{"32B: VRAM of the GPU, %", 100 * h32.value(VRAMShare).V, 25.1, 0.1, "25.0 % of 21.4 GB as printed; 25.1 % needs 21.45 GB"},
		{"7B: power of TDP, %", 100 * h7.value(PowerShare).V, 24, 0.5, ""},
		{"32B: power of TDP, %", 100 * h32.value(PowerShare).V, 63, 0.5, ""},
		{"L4: power of TDP, %, at 37 W", 100 * l4low.value(PowerShare).V, 51, 0.5, ""},
		{"L4: at 39 W it is 54 %: 51 % is the lower end of what was printed", 100 * l4high.value(PowerShare).V, 51, 3.5, ""},
		{"L4: 1.25 GiB in GB", 1.25 * (1 << 30) / 1e9, 1.34, 0.005, ""},
		{"32B uses more SM, times", mean(large, engine.GPUUtil) / mean(small, engine.GPUUtil), 1.8, 0.05, ""},
		{"32B uses more power, times", mean(large, engine.GPUPowerW) / mean(small, engine.GPUPowerW), 2.6, 0.05, ""},
		{"32B uses more VRAM, times", large.Fields[engine.GPUVRAMUsed].Peak.V / small.Fields[engine.GPUVRAMUsed].Peak.V, 3.8, 0.05, ""},
		{"throughput drops, %", 100 * (1 - rows["H100 32B"].perSecond/rows["H100 7B"].perSecond), 70, 0.5, ""},
		{"7B: between tokens, ms", 1e3 / rows["H100 7B"].perSecond, 4.3, 0.05, ""},
		{"32B: between tokens, ms", 1e3 / rows["H100 32B"].perSecond, 14.4, 0.15, "69 tokens/s are 14.49 ms; a median may be below the mean"},
		{"RSS that the wrapper shows, % of 720 MiB", 100 * 2.25 / 720, 0.3, 0.05, ""},
		{"threads that the wrapper shows, % of 228", 100.0 / 228, 0.4, 0.05, ""},
		{"L4: RSS that the wrapper shows, %", 100 * 2144.0 / 523804, 0.4, 0.05, ""},
		{"the sum over children against the right PID, RSS, %", 100 * (722.0/720 - 1), 0.3, 0.05, ""},
		{"and CPU, points", 90.77 - 90.72, 0.05, 0.005, ""},
		// Not published; they follow from the rows.
		{"7B: J per token", h7.value(JoulesPerToken).V, 0.738, 0.0005, ""},
		{"32B: J per token", h32.value(JoulesPerToken).V, 6.362, 0.0005, ""},
		{"L4: J per token", l4.value(JoulesPerToken).V, 0.0997, 0.00005, ""},
		{"7B: dollars per million tokens", h7.value(DollarsPerMillion).V, 3.967, 0.0005, ""},
		{"32B: dollars per million tokens", h32.value(DollarsPerMillion).V, 13.245, 0.0005, ""},
		{"L4: dollars per million tokens", l4.value(DollarsPerMillion).V, 0.328, 0.0005, ""},
	} {
		if math.Abs(tt.got-tt.published) > tt.off {
			t.Errorf("%s: computed %.4g, published %.4g (may differ by %.2g)", tt.figure, tt.got, tt.published, tt.off)
		}
		t.Logf("%s: computed %.4g, published %.4g %s", tt.figure, tt.got, tt.published, tt.note)
	}
}

// TestPublishedEnergy checks that both ways to determine an energy give the rows' power.
func TestPublishedEnergy(t *testing.T) {
	for name, r := range publishedRows() {
		gpu, energy, _ := r.figures(t, time.Minute)
		if want := 60 * r.watts; energy.How != fromCounter || math.Abs(energy.Joules.V-want) > 1e-6*want {
			t.Errorf("%s: %v J by %q, want %v by the counter", name, energy.Joules, energy.How, want)
		}
		if got := gpu.Fields[engine.GPUPowerW].Mean; !within(got, r.watts, 1e-9) {
			t.Errorf("%s: mean power %v, want %v", name, got, r.watts)
		}
	}
}

// TestPublishedDisagreements lists what in the two articles does not follow from their inputs, and
// by how much, so that it is not attributed to rooftop.
func TestPublishedDisagreements(t *testing.T) {
	change := func(name string, edit func(*row)) (GPUUsage, *derivation) {
		r := publishedRows()[name]
		edit(&r)
		gpu, _, d := r.figures(t, time.Minute)
		return gpu, d
	}
	mean := func(g GPUUsage, f engine.GPUField) float64 { return g.Fields[f].Mean.V }
	large, _ := change("H100 32B", func(*row) {})
	right, _ := change("H100 7B", func(r *row) { r.sm = 0.46 })
	children, _ := change("H100 7B", func(r *row) { r.watts = 177 })
	_, second := change("L4 0.5B", func(*row) {})
	_, first := change("L4 0.5B", func(r *row) { r.perSecond, r.perHour = 375.7, 0.39 })
	eighty := run(80*time.Second/381, with(engine.GPUTemperatureC, constant(1)))

	for _, tt := range []struct {
		name                string
		computed, published float64
		share               float64 // by how much the published one is off
	}{
		// The column of the 7B model combines throughput, first token and power of the run with the
		// right PID with the utilization of the run over children.
		{"more SM, by the right PID's run alone, times", mean(large, engine.GPUUtil) / mean(right, engine.GPUUtil), 1.8, -0.059},
		{"more power, by the other run alone, times", mean(large, engine.GPUPowerW) / mean(children, engine.GPUPowerW), 2.6, 0.048},
		// The same card, model and load have 375.7 tokens/s at $0.39 an hour in one
		// article, 381 at $0.45 in the other.
		{"L4: dollars per million tokens, by the first article", second.value(DollarsPerMillion).V, first.value(DollarsPerMillion).V, -0.121},
		// 80 tokens at 381 tokens/s take 0.21 s: not 16 samples every 50 ms.
		{"L4: samples of a run of 80 tokens", float64(eighty.gpuUsage()[0].Fields[engine.GPUTemperatureC].Samples), 16, 1.667},
	} {
		if got := tt.published/tt.computed - 1; math.Abs(got-tt.share) > 0.0015 {
			t.Errorf("%s: published %.4g against %.4g is off by %.3f, want %.3f", tt.name, tt.published, tt.computed, got, tt.share)
		}
	}
}

// The published runs are shorter than their means require: 80 tokens of the 7B model take 0.35 s,
// and NVML's power on an H100 is the mean of a second.
func TestPublishedRunIsTooShort(t *testing.T) {
	r := publishedRows()["H100 7B"]
	span := time.Duration(80 / r.perSecond * float64(time.Second)).Round(time.Millisecond)
	gpu, energy, d := r.figures(t, span)
	for _, f := range []engine.GPUField{engine.GPUPowerW, engine.GPUUtil} {
		if got := gpu.Fields[f]; got.Mean.OK || got.Samples != 8 || !strings.Contains(got.Reason, "the run of 347\u00a0ms is shorter than the 1.00\u00a0s") {
			t.Errorf("field %d: got %+v, want no mean and why", f, got)
		}
	}
	if got := gpu.Fields[engine.GPUVRAMUsed]; !got.Peak.OK {
		t.Errorf("VRAM is an instant: got %+v", got)
	}
	// The counter still gives the energy, if not precisely.
	if got := d.value(JoulesPerToken); !within(got, 0.738, 0.01) || !strings.Contains(energy.Reason, "± ") {
		t.Errorf("energy: %v J per token, %+v", got, energy)
	}
}
