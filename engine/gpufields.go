package engine

import "strings"

// gpuFields has the key of each field in documents, which ends in its unit, and the unit for
// display.
var gpuFields = [NumGPUFields]struct{ key, unit string }{
	GPUUtil: {"gpu_util", "ratio"}, GPUMemUtil: {"mem_util", "ratio"}, GPUDRAMActive: {"dram_util", "ratio"},
	GPUTensorUtil: {"tensor_util", "ratio"}, GPUSMActive: {"sm_active", "ratio"},
	GPUPowerW: {"power_w", "W"}, GPUPowerLimitW: {"power_limit_w", "W"}, GPUEnergyJ: {"energy_j", "J"},
	GPUVRAMTotal: {"vram_total_bytes", "B"}, GPUVRAMUsed: {"vram_used_bytes", "B"}, GPUTemperatureC: {"temperature_c", "C"},
	GPUSMClockMHz: {"sm_clock_mhz", "MHz"}, GPUMemClockMHz: {"mem_clock_mhz", "MHz"},
	GPUPCIeTxBps: {"pcie_tx_bytes_per_s", "B/s"}, GPUPCIeRxBps: {"pcie_rx_bytes_per_s", "B/s"},
	GPUNVLinkTxBps: {"nvlink_tx_bytes_per_s", "B/s"}, GPUNVLinkRxBps: {"nvlink_rx_bytes_per_s", "B/s"},
	GPUSMClockMaxMHz: {"sm_clock_max_mhz", "MHz"}, GPUTemperatureLimitC: {"temperature_limit_c", "C"},
}

// GPUFields returns every field in the order of documents and pages.
func GPUFields() []GPUField {
	return []GPUField{
		GPUUtil, GPUMemUtil, GPUDRAMActive, GPUTensorUtil, GPUSMActive, GPUPowerW, GPUPowerLimitW, GPUEnergyJ,
		GPUVRAMTotal, GPUVRAMUsed, GPUTemperatureC, GPUTemperatureLimitC, GPUSMClockMHz, GPUSMClockMaxMHz, GPUMemClockMHz,
		GPUPCIeTxBps, GPUPCIeRxBps, GPUNVLinkTxBps, GPUNVLinkRxBps,
	}
}

// Key returns the key of the field in documents, such as "power_w".
func (f GPUField) Key() string { return gpuFields[f].key }

// Unit returns the unit of the field, as accepted by package figure.
func (f GPUField) Unit() string { return gpuFields[f].unit }

// Name returns the display name of the field without its unit, such as "power".
func (f GPUField) Name() string {
	name := f.Key()
	for _, unit := range [...]string{"_bytes_per_s", "_bytes", "_mhz", "_w", "_c", "_j"} {
		name = strings.TrimSuffix(name, unit)
	}
	return strings.ReplaceAll(name, "_", " ")
}
