//go:build linux && cgo

package gpu

import (
	"testing"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock"
	"github.com/google/go-cmp/cmp"
)

// At the cadence of a probe only the queries run at every read that the
// driver answers from what it has at hand.
func TestNVMLAtFiftyMilliseconds(t *testing.T) {
	clock := newTicker(time.Second)
	hopper := h100(0)
	s := openFake(t, driver([]*mock.Device{hopper}), clock.now)
	const seconds = 4
	for range seconds * 20 {
		clock.add(50 * time.Millisecond)
		if _, err := s.Read(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	every := seconds * 20
	want := map[string]int{
		"utilization": every, "VRAM": every, "power": every, "temperature": every, "clocks": 2 * every, "energy": every, "events": every,
		"GPM samples": every / 2, "power limit": 1,
	}
	got := map[string]int{
		"utilization": len(hopper.GetUtilizationRatesCalls()), "VRAM": len(hopper.GetMemoryInfo_v2Calls()),
		"power": len(hopper.GetPowerUsageCalls()), "temperature": len(hopper.GetTemperatureCalls()), "clocks": len(hopper.GetClockInfoCalls()),
		"energy": len(hopper.GetTotalEnergyConsumptionCalls()), "events": len(hopper.GetCurrentClocksEventReasonsCalls()),
		"GPM samples": len(hopper.GpmSampleGetCalls()), "power limit": len(hopper.GetEnforcedPowerLimitCalls()),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("queries in %d reads over %d s (-want +got):\n%s", every, seconds, diff)
	}
}

func TestNVMLAveraging(t *testing.T) {
	clock := newTicker(0)
	capability := func(major, minor int) *mock.Device {
		d := h100(0)
		d.GetCudaComputeCapabilityFunc = func() (int, int, nvml.Return) { return major, minor, nvml.SUCCESS }
		return d
	}
	unknown := h100(0)
	unknown.GetCudaComputeCapabilityFunc = func() (int, int, nvml.Return) { return 0, 0, nvml.ERROR_UNKNOWN }
	for _, tt := range []struct {
		name    string
		devices []*mock.Device
		instant bool
	}{
		{"Turing", []*mock.Device{capability(7, 5)}, true},
		{"GA100", []*mock.Device{capability(8, 0)}, true},
		{"another Ampere", []*mock.Device{capability(8, 6)}, false},
		{"Ada", []*mock.Device{capability(8, 9)}, false},
		{"Hopper", []*mock.Device{capability(9, 0)}, false},
		{"one of unknown capability", []*mock.Device{unknown}, false},
		{"one of two averages", []*mock.Device{capability(8, 0), capability(9, 0)}, false},
	} {
		s := openFake(t, driver(tt.devices), clock.now)
		if got, want := AveragingOf(s), (Averaging{Window: time.Second, InstantPower: tt.instant}); got != want {
			t.Errorf("%s: got %+v, want %+v", tt.name, got, want)
		}
	}
	both := openFake(t, driver([]*mock.Device{capability(8, 0), capability(9, 0)}), clock.now)
	both.Keep([]int{0})
	if !AveragingOf(both).InstantPower {
		t.Error("the device that averages is not kept, and power is still said to be averaged")
	}
}
