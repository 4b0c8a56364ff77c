//go:build linux && cgo

package gpu

import (
	"math"
	"testing"
	"time"
	"unsafe"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock"
	"github.com/google/go-cmp/cmp"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// The driver fills an array of metrics. In go-nvml 0.13.0 an element is shorter than in nvml.h,
// so that on a real H200 every metric but the first was read as 0, without an error.
func TestGPMMetricHasTheDriversSize(t *testing.T) {
	const size = 4 + 4 + 8 + 3*8 // identifier, result, value, three strings
	if got := unsafe.Sizeof(nvml.GpmMetric{}); got != size {
		t.Errorf("a metric has %d bytes, want %d", got, size)
	}
}

// A GPM metric is the mean between two samples: a pair must be neither too close
// nor too far apart.
func TestGPMPairs(t *testing.T) {
	clock := newTicker(0)
	s := openFake(t, driver([]*mock.Device{h100(0)}), clock.now)
	for _, step := range []struct {
		name string
		gap  time.Duration
		want bool
	}{
		{"the first sample has no pair", tick, false},
		{"a tick later", tick, true},
		{"too soon", 60 * time.Millisecond, false},
		{"measured from the last sample that was taken", 60 * time.Millisecond, true},
		{"after a gap", 3 * time.Second, false},
		{"and again", tick, true},
	} {
		clock.add(step.gap)
		r, err := s.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got := r.Devices[0].Fields[engine.GPUDRAMActive].OK; got != step.want {
			t.Errorf("%s: DRAM use present is %v, want %v", step.name, got, step.want)
		}
	}
	if missing := s.Missing(); len(missing) > 0 {
		t.Errorf("missing: got %v; a read without a pair does not count as missing", missing)
	}
}

// Metrics fail one by one.
func TestGPMMetricFails(t *testing.T) {
	clock := newTicker(0)
	lib := driver([]*mock.Device{h100(0)})
	lib.GpmMetricsGetFunc = metrics(map[nvml.GpmMetricId]float64{
		nvml.GPM_METRIC_DRAM_BW_UTIL: 50, nvml.GPM_METRIC_ANY_TENSOR_UTIL: math.NaN(), nvml.GPM_METRIC_PCIE_TX_PER_SEC: 7, nvml.GPM_METRIC_PCIE_RX_PER_SEC: 8,
	})
	s := openFake(t, lib, clock.now)
	got := presentFields(readTwice(t, s, clock).Devices[0])
	want := h100Fields()
	for _, f := range gpmReadings {
		delete(want, f)
	}
	want[engine.GPUDRAMActive], want[engine.GPUPCIeTxBps], want[engine.GPUPCIeRxBps] = 0.5, 7<<20, 8<<20
	if diff := cmp.Diff(want, got, near); diff != "" {
		t.Errorf("fields (-want +got):\n%s", diff)
	}
	missing := s.Missing()
	if len(missing) != 2 || missing[0].What != "DRAM and tensor-core use" || missing[1].What != "NVLink traffic" {
		t.Errorf("missing: got %v, want tensor and SM use, and NVLink traffic", missing)
	}
}

// A slice has readings of its own (memory, GPM), shares those that are as true
// of the whole GPU, and has no power: the driver measures the whole GPU's.
func TestNVMLMIG(t *testing.T) {
	clock := newTicker(0)
	whole := h100(0)
	whole.GetMigModeFunc = func() (int, int, nvml.Return) { return 1, 1, nvml.SUCCESS }
	whole.GetMaxMigDeviceCountFunc = func() (int, nvml.Return) { return ok(3) }
	sampled := []int{}
	whole.GpmMigSampleGetFunc = func(gi int, _ nvml.GpmSample) nvml.Return { sampled = append(sampled, gi); return nvml.SUCCESS }
	whole.GetMigDeviceHandleByIndexFunc = func(i int) (nvml.Device, nvml.Return) {
		if i == 1 {
			return nil, nvml.ERROR_NOT_FOUND
		}
		return &mock.Device{
			GetNameFunc:                       func() (string, nvml.Return) { return ok("NVIDIA H100 80GB HBM3 MIG 3g.40gb") },
			GetUUIDFunc:                       func() (string, nvml.Return) { return ok([]string{"MIG-aaaa", "", "MIG-cccc"}[i]) },
			GetMinorNumberFunc:                fails[int](nvml.ERROR_NOT_SUPPORTED),
			GetPciInfoFunc:                    fails[nvml.PciInfo](nvml.ERROR_NOT_SUPPORTED),
			GetGpuInstanceIdFunc:              func() (int, nvml.Return) { return ok(i + 1) },
			GetMemoryInfoFunc:                 func() (nvml.Memory, nvml.Return) { return ok(nvml.Memory{Total: 40 << 30, Used: 30 << 30}) },
			GetMemoryInfo_v2Func:              fails[nvml.Memory_v2](nvml.ERROR_INVALID_ARGUMENT),
			GetComputeRunningProcessesFunc:    func() ([]nvml.ProcessInfo, nvml.Return) { return ok([]nvml.ProcessInfo{{Pid: uint32(50 + i)}}) },
			GetMPSComputeRunningProcessesFunc: func() ([]nvml.ProcessInfo, nvml.Return) { return ok([]nvml.ProcessInfo{{Pid: uint32(90 + i)}}) },
		}, nvml.SUCCESS
	}
	s := openFake(t, driver([]*mock.Device{whole}), clock.now)
	want := []Device{
		{Index: 0, Name: "NVIDIA H100 80GB HBM3 MIG 3g.40gb", UUID: "MIG-aaaa", Parent: "GPU-a0000000-1111-2222-3333-444444444444",
			GI: 1, VRAMBytes: stat.Some(40 << 30), BusID: "00000000:1a:00.0", Minor: 0, Driver: "570.133.20"},
		{Index: 0, Name: "NVIDIA H100 80GB HBM3 MIG 3g.40gb", UUID: "MIG-cccc", Parent: "GPU-a0000000-1111-2222-3333-444444444444",
			GI: 3, VRAMBytes: stat.Some(40 << 30), BusID: "00000000:1a:00.0", Minor: 0, Driver: "570.133.20"},
	}
	if diff := cmp.Diff(want, s.Devices()); diff != "" {
		t.Errorf("devices (-want +got):\n%s", diff)
	}
	s.Keep([]int{1})
	got := presentFields(readTwice(t, s, clock).Devices[0])
	const mib = 1 << 20
	wantFields := map[engine.GPUField]float64{
		engine.GPUVRAMTotal: 40 << 30, engine.GPUVRAMUsed: 30 << 30, engine.GPUTemperatureC: 64, engine.GPUSMClockMHz: 1755, engine.GPUSMClockMaxMHz: 1980, engine.GPUTemperatureLimitC: 87, engine.GPUMemClockMHz: 2619,
		engine.GPUDRAMActive: 0.715, engine.GPUTensorUtil: 0.1225, engine.GPUSMActive: 0.93,
		engine.GPUPCIeTxBps: 3 * mib, engine.GPUPCIeRxBps: 2 * mib, engine.GPUNVLinkTxBps: 40 * mib, engine.GPUNVLinkRxBps: 41 * mib,
	}
	if diff := cmp.Diff(wantFields, got, near); diff != "" {
		t.Errorf("fields of a slice (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]int{3, 3}, sampled); diff != "" {
		t.Errorf("GPU instances sampled (-want +got):\n%s", diff)
	}
	held, err := s.Processes(t.Context())
	if diff := cmp.Diff(map[string][]int{"MIG-aaaa": {50, 90}, "MIG-cccc": {52, 92}}, held); diff != "" || err != nil {
		t.Errorf("processes: %v (-want +got):\n%s", err, diff)
	}
	for _, m := range s.Missing() {
		if m.Reason != "the driver measures the whole GPU only, and this is a MIG slice of it" {
			t.Errorf("missing: %v, want the slice as the reason", m)
		}
	}
	if got := s.Notes(); len(got) != 1 {
		t.Errorf("notes: got %v, want one about MIG mode", got)
	}
}
