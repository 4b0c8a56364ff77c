package vllmsim

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/perf"
)

// dcgmField is one family of a DCGM exporter's page.
type dcgmField struct {
	name, kind string
	value      func(*perf.Reading) float64
}

// dcgmFields lists the families of a simulated device, with DCGM's units:
// per cent, W, MiB, °C, MHz, mJ, ratios, and bytes per second
// (dcgm-exporter, etc/default-counters.csv and dcp-metrics-included.csv).
var dcgmFields = []dcgmField{
	{"DCGM_FI_DEV_SM_CLOCK", "gauge", func(r *perf.Reading) float64 { return r.SMClockMHz }},
	{"DCGM_FI_DEV_MAX_SM_CLOCK", "gauge", func(r *perf.Reading) float64 { return r.SMClockMaxMHz }},
	{"DCGM_FI_DEV_MEM_CLOCK", "gauge", func(r *perf.Reading) float64 { return r.MemClockMHz }},
	{"DCGM_FI_DEV_GPU_TEMP", "gauge", func(r *perf.Reading) float64 { return r.TemperatureC }},
	{"DCGM_FI_DEV_SLOWDOWN_TEMP", "gauge", func(r *perf.Reading) float64 { return r.TemperatureLimit }},
	{"DCGM_FI_DEV_POWER_USAGE", "gauge", func(r *perf.Reading) float64 { return r.PowerW }},
	{"DCGM_FI_DEV_ENFORCED_POWER_LIMIT", "gauge", func(r *perf.Reading) float64 { return r.LimitW }},
	{"DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "counter", func(r *perf.Reading) float64 { return 1000 * r.EnergyJ }},
	{"DCGM_FI_DEV_GPU_UTIL", "gauge", func(r *perf.Reading) float64 { return 100 * r.Util }},
	{"DCGM_FI_DEV_MEM_COPY_UTIL", "gauge", func(r *perf.Reading) float64 { return 100 * r.MemUtil }},
	{"DCGM_FI_DEV_CLOCKS_EVENT_REASONS", "gauge", func(r *perf.Reading) float64 { return float64(r.Throttle) }},
	{"DCGM_FI_DEV_FB_TOTAL", "gauge", func(r *perf.Reading) float64 { return r.VRAMTotal / (1 << 20) }},
	{"DCGM_FI_DEV_FB_USED", "gauge", func(r *perf.Reading) float64 { return r.VRAM / (1 << 20) }},
	{"DCGM_FI_DEV_FB_FREE", "gauge", func(r *perf.Reading) float64 { return (r.VRAMTotal - r.VRAM) / (1 << 20) }},
	{"DCGM_FI_PROF_SM_ACTIVE", "gauge", func(r *perf.Reading) float64 { return r.SMActive }},
	{"DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "gauge", func(r *perf.Reading) float64 { return r.TensorActive }},
	{"DCGM_FI_PROF_DRAM_ACTIVE", "gauge", func(r *perf.Reading) float64 { return r.DRAMActive }},
	// Links carry only all-reduces, in which a GPU receives as much as it sends.
	{"DCGM_FI_PROF_PCIE_TX_BYTES", "gauge", func(r *perf.Reading) float64 { return r.PCIeTx }},
	{"DCGM_FI_PROF_PCIE_RX_BYTES", "gauge", func(r *perf.Reading) float64 { return r.PCIeTx }},
	{"DCGM_FI_PROF_NVLINK_TX_BYTES", "gauge", func(r *perf.Reading) float64 { return r.NVLinkTx }},
	{"DCGM_FI_PROF_NVLINK_RX_BYTES", "gauge", func(r *perf.Reading) float64 { return r.NVLinkTx }},
}

// simulatedHost is the value of the Hostname label of every series.
const simulatedHost = "simulated"

// gpuPage answers GET /sim/gpu: the simulated devices in the format of a DCGM exporter.
func (f *incarnation) gpuPage(w http.ResponseWriter, r *http.Request) *refusal {
	var devices []perf.Reading
	if !f.reached(r.Context(), func(now time.Duration) { devices = f.m.GPUs(now) }) {
		return nil
	}
	var b []byte
	for _, field := range dcgmFields {
		b = fmt.Appendf(b, "# HELP %s Simulated.\n# TYPE %[1]s %s\n", field.name, field.kind)
		for i := range devices {
			d := &devices[i]
			b = fmt.Appendf(b, `%s{gpu="%d",UUID="%s",modelName="%s",Hostname="%s"} %s`+"\n", field.name, d.Index, d.UUID, d.Name,
				simulatedHost, strconv.FormatFloat(field.value(d), 'f', -1, 64))
		}
	}
	writeBody(w, http.StatusOK, "text/plain; version=0.0.4; charset=utf-8", b)
	return nil
}
