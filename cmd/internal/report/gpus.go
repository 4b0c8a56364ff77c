package report

import (
	"fmt"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// reading describes one field of a GPU: its stable name, its unit, and whether
// its value is a mean over the run or the last one read.
type reading struct {
	field engine.GPUField
	name  string
	unit  string
	state bool // the last value counts
}

// readings lists every field of a device.
func readings() []reading {
	return []reading{
		{engine.GPUUtil, "gpu_util", "ratio", false},
		{engine.GPUMemUtil, "mem_util", "ratio", false},
		{engine.GPUDRAMActive, "dram_util", "ratio", false},
		{engine.GPUTensorUtil, "tensor_util", "ratio", false},
		{engine.GPUSMActive, "sm_active", "ratio", false},
		{engine.GPUPowerW, "power_w", "W", false},
		{engine.GPUPowerLimitW, "power_limit_w", "W", true},
		{engine.GPUEnergyJ, "energy_j", "J", true},
		{engine.GPUVRAMTotal, "vram_total_bytes", "B", true},
		{engine.GPUVRAMUsed, "vram_used_bytes", "B", true},
		{engine.GPUTemperatureC, "temperature_c", "C", true},
		{engine.GPUSMClockMHz, "sm_clock_mhz", "MHz", true},
		{engine.GPUMemClockMHz, "mem_clock_mhz", "MHz", true},
		{engine.GPUPCIeTxBps, "pcie_tx_bytes_per_s", "B/s", false},
		{engine.GPUPCIeRxBps, "pcie_rx_bytes_per_s", "B/s", false},
		{engine.GPUNVLinkTxBps, "nvlink_tx_bytes_per_s", "B/s", false},
		{engine.GPUNVLinkRxBps, "nvlink_rx_bytes_per_s", "B/s", false},
	}
}

// value returns what stands for the reading over the run.
func (r reading) value(g *engine.GPUSummary) stat.Opt {
	if r.state {
		return g.Last[r.field]
	}
	return g.Mean[r.field]
}

// throttleReasons names the bits of NVML's clock-event reasons
// (nvmlClocksEventReason*, nvml.h); idle and application clocks included, since
// they explain a low clock too.
func throttleReasons(mask uint64) []string {
	names := []string{
		"gpu_idle", "applications_clocks_setting", "sw_power_cap", "hw_slowdown", "sync_boost",
		"sw_thermal_slowdown", "hw_thermal_slowdown", "hw_power_brake_slowdown", "display_clock_setting",
	}
	found := []string{}
	for bit := range 64 {
		switch {
		case mask&(1<<bit) == 0:
		case bit < len(names):
			found = append(found, names[bit])
		default:
			found = append(found, fmt.Sprintf("bit_%d", bit))
		}
	}
	return found
}
