//go:build linux && cgo

package gpu

import (
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock"
)

// ticker is a session clock that a test moves while devices read it.
type ticker struct{ at atomic.Int64 }

func (t *ticker) now() time.Duration     { return time.Duration(t.at.Load()) }
func (t *ticker) add(d time.Duration)    { t.at.Add(int64(d)) }
func newTicker(at time.Duration) *ticker { t := &ticker{}; t.add(at); return t }
func ok[T any](v T) (T, nvml.Return)     { return v, nvml.SUCCESS }
func fails[T any](r nvml.Return) func() (T, nvml.Return) {
	return func() (T, nvml.Return) { var none T; return none, r }
}

// h100 is a Hopper device that answers everything, with the figures of one
// under load.
func h100(index int) *mock.Device {
	letter := string(rune('a' + index))
	d := &mock.Device{
		GetNameFunc:        func() (string, nvml.Return) { return ok("NVIDIA H100 80GB HBM3") },
		GetUUIDFunc:        func() (string, nvml.Return) { return ok("GPU-" + letter + "0000000-1111-2222-3333-444444444444") },
		GetMinorNumberFunc: func() (int, nvml.Return) { return ok(index) },
		GetPciInfoFunc: func() (nvml.PciInfo, nvml.Return) {
			var p nvml.PciInfo
			for i, c := range "00000000:" + string("1234567890"[index]) + "A:00.0" {
				p.BusId[i] = int8(c)
			}
			return ok(p)
		},
		GetCudaComputeCapabilityFunc: func() (int, int, nvml.Return) { return 9, 0, nvml.SUCCESS },
		GetMigModeFunc:               func() (int, int, nvml.Return) { return 0, 0, nvml.SUCCESS },
		GetUtilizationRatesFunc:      func() (nvml.Utilization, nvml.Return) { return ok(nvml.Utilization{Gpu: 97, Memory: 61}) },
		GetMemoryInfoFunc:            func() (nvml.Memory, nvml.Return) { return ok(nvml.Memory{Total: 80 << 30, Used: 71 << 30}) },
		GetMemoryInfo_v2Func:         func() (nvml.Memory_v2, nvml.Return) { return ok(nvml.Memory_v2{Total: 80 << 30, Used: 70 << 30}) },
		GetPowerUsageFunc:            func() (uint32, nvml.Return) { return ok(uint32(612_345)) },
		GetEnforcedPowerLimitFunc:    func() (uint32, nvml.Return) { return ok(uint32(700_000)) },
		GetTemperatureFunc:           func(nvml.TemperatureSensors) (uint32, nvml.Return) { return ok(uint32(64)) },
		GetClockInfoFunc: func(c nvml.ClockType) (uint32, nvml.Return) {
			if c == nvml.CLOCK_MEM {
				return ok(uint32(2619))
			}
			return ok(uint32(1755))
		},
		GetMaxClockInfoFunc: func(nvml.ClockType) (uint32, nvml.Return) { return ok(uint32(1980)) },
		GetTemperatureThresholdFunc: func(t nvml.TemperatureThresholds) (uint32, nvml.Return) {
			if t == nvml.TEMPERATURE_THRESHOLD_GPU_MAX {
				return ok(uint32(87))
			}
			return ok(uint32(90))
		},
		GetTotalEnergyConsumptionFunc:     func() (uint64, nvml.Return) { return ok(uint64(123_456_789)) },
		GetCurrentClocksEventReasonsFunc:  func() (uint64, nvml.Return) { return ok(uint64(0x4)) },
		GpmSampleGetFunc:                  func(nvml.GpmSample) nvml.Return { return nvml.SUCCESS },
		GetComputeRunningProcessesFunc:    func() ([]nvml.ProcessInfo, nvml.Return) { return ok([]nvml.ProcessInfo{{Pid: uint32(1000 + index)}}) },
		GetMPSComputeRunningProcessesFunc: fails[[]nvml.ProcessInfo](nvml.ERROR_NOT_SUPPORTED),
	}
	return d
}

// driver is a library with these devices; symbols, where given, are all it has.
func driver(devices []*mock.Device, symbols ...string) *mock.Interface {
	return &mock.Interface{
		InitFunc:                   func() nvml.Return { return nvml.SUCCESS },
		ShutdownFunc:               func() nvml.Return { return nvml.SUCCESS },
		SystemGetDriverVersionFunc: func() (string, nvml.Return) { return ok("570.133.20") },
		DeviceGetCountFunc:         func() (int, nvml.Return) { return ok(len(devices)) },
		DeviceGetHandleByIndexFunc: func(i int) (nvml.Device, nvml.Return) {
			if devices[i] == nil {
				return nil, nvml.ERROR_GPU_IS_LOST
			}
			return devices[i], nvml.SUCCESS
		},
		GpmSampleAllocFunc: func() (nvml.GpmSample, nvml.Return) {
			return &mock.GpmSample{FreeFunc: func() nvml.Return { return nvml.SUCCESS }}, nvml.SUCCESS
		},
		GpmMetricsGetFunc: metrics(map[nvml.GpmMetricId]float64{
			nvml.GPM_METRIC_DRAM_BW_UTIL: 71.5, nvml.GPM_METRIC_ANY_TENSOR_UTIL: 12.25, nvml.GPM_METRIC_SM_UTIL: 93,
			nvml.GPM_METRIC_PCIE_TX_PER_SEC: 3, nvml.GPM_METRIC_PCIE_RX_PER_SEC: 2,
			nvml.GPM_METRIC_NVLINK_TOTAL_TX_PER_SEC: 40, nvml.GPM_METRIC_NVLINK_TOTAL_RX_PER_SEC: 41,
		}),
		ExtensionsFunc: func() nvml.ExtendedInterface {
			return &mock.ExtendedInterface{LookupSymbolFunc: func(symbol string) error {
				if len(symbols) > 0 && !slices.Contains(symbols, symbol) {
					return errors.New("undefined symbol")
				}
				return nil
			}}
		},
	}
}

// metrics answers GPM requests; a metric that is not listed is not supported.
func metrics(values map[nvml.GpmMetricId]float64) func(*nvml.GpmMetricsGetType) nvml.Return {
	return func(request *nvml.GpmMetricsGetType) nvml.Return {
		for i := range request.NumMetrics {
			m := &request.Metrics[i]
			v, found := values[nvml.GpmMetricId(m.MetricId)]
			m.Value, m.NvmlReturn = v, uint32(nvml.SUCCESS)
			if !found {
				m.NvmlReturn = uint32(nvml.ERROR_NOT_SUPPORTED)
			}
		}
		return nvml.SUCCESS
	}
}

// openFake opens a fake library.
func openFake(t *testing.T, lib *mock.Interface, clock func() time.Duration) *nvmlSource {
	t.Helper()
	s, err := openNVML(t.Context(), clock, lib)
	if err != nil {
		t.Fatalf("open the fake driver: %v", err)
	}
	return s
}
