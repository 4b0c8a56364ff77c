package capture

import (
	"math"
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
	_, _, h7 := rows["H100 7B"].figures(t, minute)
	_, _, h32 := rows["H100 32B"].figures(t, minute)
	_, _, l4 := rows["L4 0.5B"].figures(t, minute)
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
