//go:build linux && cgo

package gpu

import (
	"fmt"
	"testing"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// quickDevice answers as an H100 without recording its calls, which the
// generated fake does: what is measured is this package.
type quickDevice struct{ nvml.Device }

func (quickDevice) GetName() (string, nvml.Return)          { return "NVIDIA H100 80GB HBM3", nvml.SUCCESS }
func (quickDevice) GetUUID() (string, nvml.Return)          { return "GPU-a", nvml.SUCCESS }
func (quickDevice) GetPciInfo() (nvml.PciInfo, nvml.Return) { return nvml.PciInfo{}, nvml.SUCCESS }
func (quickDevice) GetMinorNumber() (int, nvml.Return)      { return 0, nvml.SUCCESS }
func (quickDevice) GetCudaComputeCapability() (int, int, nvml.Return) {
	return 9, 0, nvml.SUCCESS
}
func (quickDevice) GetMigMode() (int, int, nvml.Return) { return 0, 0, nvml.SUCCESS }
func (quickDevice) GetUtilizationRates() (nvml.Utilization, nvml.Return) {
	return nvml.Utilization{Gpu: 90, Memory: 50}, nvml.SUCCESS
}
func (quickDevice) GetMemoryInfo() (nvml.Memory, nvml.Return) {
	return nvml.Memory{Total: 80 << 30}, nvml.SUCCESS
}
func (quickDevice) GetMemoryInfo_v2() (nvml.Memory_v2, nvml.Return) {
	return nvml.Memory_v2{Total: 80 << 30, Used: 1 << 30}, nvml.SUCCESS
}
func (quickDevice) GetPowerUsage() (uint32, nvml.Return)         { return 700_000, nvml.SUCCESS }
func (quickDevice) GetEnforcedPowerLimit() (uint32, nvml.Return) { return 700_000, nvml.SUCCESS }
func (quickDevice) GetTemperature(nvml.TemperatureSensors) (uint32, nvml.Return) {
	return 60, nvml.SUCCESS
}
func (quickDevice) GetClockInfo(nvml.ClockType) (uint32, nvml.Return) { return 1980, nvml.SUCCESS }
func (quickDevice) GetMaxClockInfo(nvml.ClockType) (uint32, nvml.Return) {
	return 1980, nvml.SUCCESS
}
func (quickDevice) GetTemperatureThreshold(nvml.TemperatureThresholds) (uint32, nvml.Return) {
	return 87, nvml.SUCCESS
}
func (quickDevice) GetTotalEnergyConsumption() (uint64, nvml.Return) { return 1 << 40, nvml.SUCCESS }
func (quickDevice) GetCurrentClocksEventReasons() (uint64, nvml.Return) {
	return 4, nvml.SUCCESS
}
func (quickDevice) GpmSampleGet(nvml.GpmSample) nvml.Return { return nvml.SUCCESS }

// BenchmarkNVMLRead is one poll of all GPUs of a host, the driver's own time
// and go-nvml's conversions aside.
func BenchmarkNVMLRead(b *testing.B) {
	for _, gpus := range []int{1, 8} {
		b.Run(fmt.Sprintf("gpus=%d", gpus), func(b *testing.B) {
			lib := driver(nil)
			lib.DeviceGetCountFunc = func() (int, nvml.Return) { return gpus, nvml.SUCCESS }
			lib.DeviceGetHandleByIndexFunc = func(int) (nvml.Device, nvml.Return) { return quickDevice{}, nvml.SUCCESS }
			clock := newTicker(0)
			s, err := openNVML(b.Context(), clock.now, quickLibrary{lib})
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				clock.add(250 * time.Millisecond)
				r, err := s.Read(b.Context())
				if err != nil || len(r.Devices) != gpus {
					b.Fatal(err)
				}
			}
		})
	}
}

// quickLibrary answers GPM requests without recording them.
type quickLibrary struct{ library }

func (quickLibrary) GpmMetricsGet(request *nvml.GpmMetricsGetType) nvml.Return {
	for i := range request.NumMetrics {
		request.Metrics[i].Value, request.Metrics[i].NvmlReturn = 50, uint32(nvml.SUCCESS)
	}
	return nvml.SUCCESS
}
