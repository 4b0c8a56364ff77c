//go:build linux && cgo

package gpu

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

const tick = 250 * time.Millisecond

// h100Fields are the readings of a fake H100, without the two that GPM gives.
func h100Fields() map[engine.GPUField]float64 {
	const mib = 1 << 20
	return map[engine.GPUField]float64{
		engine.GPUUtil: 0.97, engine.GPUMemUtil: 0.61, engine.GPUPowerW: 612.345, engine.GPUPowerLimitW: 700,
		engine.GPUVRAMTotal: 80 << 30, engine.GPUVRAMUsed: 70 << 30, engine.GPUTemperatureC: 64,
		engine.GPUSMClockMHz: 1755, engine.GPUSMClockMaxMHz: 1980, engine.GPUTemperatureLimitC: 87, engine.GPUMemClockMHz: 2619, engine.GPUEnergyJ: 123_456.789,
		engine.GPUDRAMActive: 0.715, engine.GPUTensorUtil: 0.1225, engine.GPUSMActive: 0.93,
		engine.GPUPCIeTxBps: 3 * mib, engine.GPUPCIeRxBps: 2 * mib,
		engine.GPUNVLinkTxBps: 40 * mib, engine.GPUNVLinkRxBps: 41 * mib,
	}
}

var near = cmpopts.EquateApprox(1e-9, 0)

// readTwice reads, waits a tick and reads again: GPM and the link counters need
// a pair.
func readTwice(t *testing.T, s *nvmlSource, clock *ticker) engine.GPUReading {
	t.Helper()
	var reading engine.GPUReading
	for range 2 {
		clock.add(tick)
		var err error
		if reading, err = s.Read(t.Context()); err != nil {
			t.Fatalf("read: %v", err)
		}
	}
	return reading
}

func TestNVMLReadsEveryField(t *testing.T) {
	clock := newTicker(time.Second)
	s := openFake(t, driver([]*mock.Device{h100(0)}), clock.now)
	got := readTwice(t, s, clock)
	if diff := cmp.Diff(h100Fields(), presentFields(got.Devices[0]), near); diff != "" {
		t.Errorf("fields (-want +got):\n%s", diff)
	}
	if g := got.Devices[0]; !g.ThrottleOK || g.Throttle != 0x4 {
		t.Errorf("clocks-event reasons: got %#x, %v; want 0x4", g.Throttle, g.ThrottleOK)
	}
	if got.T != clock.now() {
		t.Errorf("stamp: got %v, want the completion %v", got.T, clock.now())
	}
	if missing := s.Missing(); len(missing) > 0 {
		t.Errorf("missing: got %v, want nothing", missing)
	}
	want := []Device{{
		Index: 0, Name: "NVIDIA H100 80GB HBM3", UUID: "GPU-a0000000-1111-2222-3333-444444444444",
		GI: -1, VRAMBytes: stat.Some(80 << 30), BusID: "00000000:1a:00.0", Minor: 0, Driver: "570.133.20",
	}}
	if diff := cmp.Diff(want, s.Devices()); diff != "" {
		t.Errorf("devices (-want +got):\n%s", diff)
	}
}

// gpmReadings are those that only GPM gives.
var gpmReadings = []engine.GPUField{
	engine.GPUDRAMActive, engine.GPUTensorUtil, engine.GPUSMActive, engine.GPUPCIeTxBps, engine.GPUPCIeRxBps, engine.GPUNVLinkTxBps, engine.GPUNVLinkRxBps,
}

// Each query fails on its own.
func TestNVMLFieldFailsAlone(t *testing.T) {
	tests := []struct {
		name    string
		refuse  func(d *mock.Device, r nvml.Return)
		without []engine.GPUField
		topic   string
	}{
		{"utilization", func(d *mock.Device, r nvml.Return) { d.GetUtilizationRatesFunc = fails[nvml.Utilization](r) },
			[]engine.GPUField{engine.GPUUtil, engine.GPUMemUtil}, "GPU utilization"},
		{"memory", func(d *mock.Device, r nvml.Return) {
			d.GetMemoryInfo_v2Func, d.GetMemoryInfoFunc = fails[nvml.Memory_v2](r), fails[nvml.Memory](r)
		}, []engine.GPUField{engine.GPUVRAMTotal, engine.GPUVRAMUsed}, "VRAM"},
		{"power", func(d *mock.Device, r nvml.Return) { d.GetPowerUsageFunc = fails[uint32](r) },
			[]engine.GPUField{engine.GPUPowerW}, "GPU power"},
		{"power limit", func(d *mock.Device, r nvml.Return) { d.GetEnforcedPowerLimitFunc = fails[uint32](r) },
			[]engine.GPUField{engine.GPUPowerLimitW}, "GPU power limit"},
		{"temperature", func(d *mock.Device, r nvml.Return) {
			d.GetTemperatureFunc = func(nvml.TemperatureSensors) (uint32, nvml.Return) { return 0, r }
		}, []engine.GPUField{engine.GPUTemperatureC}, "GPU temperature"},
		{"clocks", func(d *mock.Device, r nvml.Return) {
			d.GetClockInfoFunc = func(nvml.ClockType) (uint32, nvml.Return) { return 0, r }
		}, []engine.GPUField{engine.GPUSMClockMHz, engine.GPUMemClockMHz}, "GPU clocks"},
		{"limits", func(d *mock.Device, r nvml.Return) {
			d.GetMaxClockInfoFunc = func(nvml.ClockType) (uint32, nvml.Return) { return 0, r }
			d.GetTemperatureThresholdFunc = func(nvml.TemperatureThresholds) (uint32, nvml.Return) { return 0, r }
		}, []engine.GPUField{engine.GPUSMClockMaxMHz, engine.GPUTemperatureLimitC}, "limits of GPU clock and temperature"},
		{"energy", func(d *mock.Device, r nvml.Return) { d.GetTotalEnergyConsumptionFunc = fails[uint64](r) },
			[]engine.GPUField{engine.GPUEnergyJ}, "GPU energy counter"},
		{"clock events", func(d *mock.Device, r nvml.Return) { d.GetCurrentClocksEventReasonsFunc = fails[uint64](r) },
			nil, "reasons for lower clocks"},
		{"GPM", func(d *mock.Device, r nvml.Return) {
			d.GpmSampleGetFunc = func(nvml.GpmSample) nvml.Return { return r }
		}, gpmReadings, "DRAM and tensor-core use"},
	}
	for _, tt := range tests {
		for _, ret := range []nvml.Return{nvml.ERROR_NOT_SUPPORTED, nvml.ERROR_NO_PERMISSION, nvml.ERROR_UNKNOWN, nvml.ERROR_TIMEOUT} {
			t.Run(fmt.Sprintf("%s/%v", tt.name, ret), func(t *testing.T) {
				clock := newTicker(0)
				d := h100(0)
				tt.refuse(d, ret)
				s := openFake(t, driver([]*mock.Device{d}), clock.now)
				got := readTwice(t, s, clock).Devices[0]
				want := h100Fields()
				for _, f := range tt.without {
					delete(want, f)
				}
				if diff := cmp.Diff(want, presentFields(got), near); diff != "" {
					t.Errorf("fields (-want +got):\n%s", diff)
				}
				if tt.without == nil && got.ThrottleOK {
					t.Error("clocks-event reasons are present")
				}
				if !slices.ContainsFunc(s.Missing(), func(m engine.Missing) bool { return m.What == tt.topic && m.Reason != "" && m.Effect != "" }) {
					t.Errorf("missing: got %v, want one about %q", s.Missing(), tt.topic)
				}
			})
		}
	}
}

// What a device does not offer is asked again once a minute; what failed for a
// moment is asked again at once; the power limit is read once a minute.
func TestNVMLAsksAgain(t *testing.T) {
	clock := newTicker(0)
	d := h100(0)
	d.GetPowerUsageFunc = fails[uint32](nvml.ERROR_NOT_SUPPORTED)
	d.GetTotalEnergyConsumptionFunc = fails[uint64](nvml.ERROR_UNKNOWN)
	s := openFake(t, driver([]*mock.Device{d}), clock.now)
	const reads = int(restTime/tick) + 1
	for i := range reads {
		clock.add(tick)
		r, err := s.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if limit := r.Devices[0].Fields[engine.GPUPowerLimitW]; limit != stat.Some(700) {
			t.Fatalf("power limit of read %d: got %v, want 700 W", i, limit)
		}
	}
	got := []int{len(d.GetPowerUsageCalls()), len(d.GetEnforcedPowerLimitCalls()), len(d.GetTotalEnergyConsumptionCalls())}
	if diff := cmp.Diff([]int{2, 2, reads}, got); diff != "" {
		t.Errorf("calls for power (not supported), power limit, energy (failing) in %d reads (-want +got):\n%s", reads, diff)
	}
}

// A driver of 2020 lacks half of the symbols, and calling one of these ends the
// process. The fake lacks the functions too, so that a call panics.
func TestNVMLOldDriver(t *testing.T) {
	clock := newTicker(0)
	d := h100(0)
	d.GetMemoryInfo_v2Func, d.GetCurrentClocksEventReasonsFunc = nil, nil
	d.GpmSampleGetFunc, d.GetMPSComputeRunningProcessesFunc = nil, nil
	d.GetMigModeFunc = nil
	d.GetCurrentClocksThrottleReasonsFunc = func() (uint64, nvml.Return) { return ok(uint64(0x20)) }
	s := openFake(t, driver([]*mock.Device{d},
		"nvmlDeviceGetUtilizationRates", "nvmlDeviceGetMemoryInfo", "nvmlDeviceGetPowerUsage", "nvmlDeviceGetEnforcedPowerLimit",
		"nvmlDeviceGetTemperature", "nvmlDeviceGetTemperatureThreshold", "nvmlDeviceGetClockInfo", "nvmlDeviceGetMaxClockInfo", "nvmlDeviceGetTotalEnergyConsumption",
		"nvmlDeviceGetCurrentClocksThrottleReasons"), clock.now)
	got := readTwice(t, s, clock).Devices[0]
	want := h100Fields()
	want[engine.GPUVRAMUsed] = 71 << 30 // the first version counts what the driver reserves
	for _, f := range gpmReadings {
		delete(want, f)
	}
	if diff := cmp.Diff(want, presentFields(got), near); diff != "" {
		t.Errorf("fields (-want +got):\n%s", diff)
	}
	if !got.ThrottleOK || got.Throttle != 0x20 {
		t.Errorf("reasons: got %#x, want 0x20", got.Throttle)
	}
	held, err := s.Processes(t.Context())
	if diff := cmp.Diff(map[string][]int{s.Devices()[0].UUID: {1000}}, held); diff != "" || err != nil {
		t.Errorf("processes: %v (-want +got):\n%s", err, diff)
	}
	for _, m := range s.Missing() {
		if m.Reason != "this driver is too old for it" {
			t.Errorf("missing: got %v, want the age of the driver as the reason", m)
		}
	}
	if len(s.Missing()) != 3 {
		t.Errorf("missing: got %v, want GPM, PCIe and NVLink", s.Missing())
	}
}

// A lost device costs one query a read, and is back when it answers.
func TestNVMLLostDevice(t *testing.T) {
	clock := newTicker(0)
	d := h100(0)
	s := openFake(t, driver([]*mock.Device{d}), clock.now)
	readTwice(t, s, clock)
	whole := d.GetUtilizationRatesFunc
	d.GetUtilizationRatesFunc = fails[nvml.Utilization](nvml.ERROR_GPU_IS_LOST)
	asked := len(d.GetPowerUsageCalls())
	for range 3 {
		clock.add(tick)
		if _, err := s.Read(t.Context()); err == nil {
			t.Error("read of a lost device succeeded")
		}
	}
	if got := len(d.GetPowerUsageCalls()); got != asked {
		t.Errorf("a lost device was asked for its power %d times", got-asked)
	}
	d.GetUtilizationRatesFunc = whole
	got := readTwice(t, s, clock)
	if diff := cmp.Diff(h100Fields(), presentFields(got.Devices[0]), near); diff != "" {
		t.Errorf("after it came back (-want +got):\n%s", diff)
	}
	if len(s.Notes()) != 0 {
		t.Errorf("notes after it came back: %v", s.Notes())
	}
}

// A device whose driver call hangs costs a read its deadline, keeps its place
// and is not asked again before it answered.
func TestNVMLStuckDevice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		clock := func() time.Duration { return time.Since(start) }
		stuck := make(chan struct{})
		devices := []*mock.Device{h100(0), h100(1)}
		defer close(stuck)
		devices[1].GetPowerUsageFunc = func() (uint32, nvml.Return) { <-stuck; return ok(uint32(1000)) }
		lib := driver(devices)
		s := openFake(t, lib, clock)
		read := func() (engine.GPUReading, error) {
			ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
			defer cancel()
			return s.Read(ctx)
		}
		for range 3 {
			r, err := read()
			if err != nil {
				t.Fatalf("one of two devices answers: %v", err)
			}
			if r.Took > 200*time.Millisecond {
				t.Errorf("took %v, want at most the deadline", r.Took)
			}
			if r.Devices[0].Fields[engine.GPUUtil] != stat.Some(0.97) || len(presentFields(r.Devices[1])) > 0 || r.Devices[1].Index != 1 {
				t.Errorf("got %v; want readings of the first device and an empty place for the second", r.Devices)
			}
			if notes := s.Notes(); len(notes) != 1 || !strings.Contains(notes[0], "GPU 1: the driver has not answered yet") {
				t.Errorf("notes: got %v, want that GPU 1 does not answer", notes)
			}
		}
		if got := len(devices[1].GetPowerUsageCalls()); got != 1 {
			t.Errorf("the stuck call was made %d times, want once", got)
		}
		s.Keep([]int{1})
		if _, err := read(); !errors.Is(err, errStillReading) {
			t.Errorf("the only kept device is stuck: got %v", err)
		}
		s.Keep(nil)
		if err := s.Close(); !errors.Is(err, errStillReading) || len(lib.ShutdownCalls()) > 0 {
			t.Errorf("close while a call hangs: got %v and %d shutdowns, want a refusal and none", err, len(lib.ShutdownCalls()))
		}
	})
}

func TestNVMLClose(t *testing.T) {
	clock := newTicker(0)
	freed := 0
	lib := driver([]*mock.Device{h100(0)})
	lib.GpmSampleAllocFunc = func() (nvml.GpmSample, nvml.Return) {
		return &mock.GpmSample{FreeFunc: func() nvml.Return { freed++; return nvml.SUCCESS }}, nvml.SUCCESS
	}
	s := openFake(t, lib, clock.now)
	readTwice(t, s, clock)
	for range 2 {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if len(lib.ShutdownCalls()) != 1 || freed != 2 {
		t.Errorf("got %d shutdowns and %d freed samples, want 1 and 2", len(lib.ShutdownCalls()), freed)
	}
	if _, err := s.Read(t.Context()); !errors.Is(err, ErrClosed) {
		t.Errorf("read after close: got %v", err)
	}
	if _, err := s.Processes(t.Context()); !errors.Is(err, ErrClosed) {
		t.Errorf("processes after close: got %v", err)
	}
}

// A panic below a read is an error of that read.
func TestNVMLPanicIsAnError(t *testing.T) {
	d := h100(0)
	d.GetPowerUsageFunc = nil
	s := openFake(t, driver([]*mock.Device{d}), newTicker(0).now)
	for range 2 {
		if _, err := s.Read(t.Context()); err == nil || !strings.Contains(err.Error(), "panic") {
			t.Errorf("got %v, want the panic as an error", err)
		}
	}
}
