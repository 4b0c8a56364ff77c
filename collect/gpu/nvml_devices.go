//go:build linux && cgo

package gpu

import (
	"errors"
	"fmt"
	"strings"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

// offered reports whether the loaded library has a symbol. Calling a missing symbol ends
// the process.
func (s *nvmlSource) offered(symbol string) bool {
	return s.lib.Extensions().LookupSymbol(symbol) == nil
}

func (s *nvmlSource) enumerate() error {
	count, ret := s.lib.DeviceGetCount()
	if ret != nvml.SUCCESS {
		return fmt.Errorf("count the GPUs: %s", reasonText(ret))
	}
	if count == 0 {
		return errors.New("the driver shows no GPU (a container needs docker run --gpus all)")
	}
	driver, ret := s.lib.SystemGetDriverVersion()
	if ret != nvml.SUCCESS {
		driver = ""
	}
	for i := range count {
		h, ret := s.lib.DeviceGetHandleByIndex(i)
		if ret != nvml.SUCCESS {
			s.notes = append(s.notes, fmt.Sprintf("GPU %d cannot be opened: %s", i, reasonText(ret)))
			continue
		}
		d := s.describe(h, i, driver)
		slices := s.migSlices(h, d)
		if len(slices) == 0 {
			s.add(d, &unit{own: h, whole: h, gi: -1})
			continue
		}
		s.notes = append(s.notes, label(d)+" is in MIG mode: its slices are read, and ceilings are those of the whole GPU")
		for _, m := range slices {
			s.add(m.device, &unit{own: m.handle, whole: h, gi: m.device.GI})
		}
	}
	if len(s.devices) == 0 {
		return fmt.Errorf("none of %d GPUs can be opened: %s", count, strings.Join(s.notes, "; "))
	}
	return nil
}

func (s *nvmlSource) add(d Device, u *unit) {
	u.lib, u.clock, u.device, u.probes = s.lib, s.clock, d, s.probes()
	u.slot = newSlot[outcome]()
	u.v2 = s.offered("nvmlDeviceGetMemoryInfo_v2")
	u.eventReasons = s.offered("nvmlDeviceGetCurrentClocksEventReasons")
	if s.offered("nvmlDeviceGetCudaComputeCapability") {
		major, minor, ret := u.whole.GetCudaComputeCapability()
		u.instantPower = ret == nvml.SUCCESS && instantPower(major, minor)
		u.noGPM = ret == nvml.SUCCESS && major < hopper
	}
	u.mps = s.offered("nvmlDeviceGetMPSComputeRunningProcesses")
	s.devices = append(s.devices, d)
	s.units = append(s.units, u)
}

// instantPower reports whether GPUs of a compute capability report instantaneous power,
// as GA100 (8.0) and older GPUs do (nvml.h, nvmlDeviceGetPowerUsage).
func instantPower(major, minor int) bool { return major < 8 || major == 8 && minor == 0 }

// averaging returns the averaging of all kept devices together.
func (s *nvmlSource) averaging() Averaging {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := Averaging{Window: averagingWindow, InstantPower: len(s.keep) > 0}
	for _, p := range s.keep {
		a.InstantPower = a.InstantPower && s.units[p].instantPower
	}
	return a
}

func (s *nvmlSource) describe(h handle, index int, driver string) Device {
	d := Device{Index: index, GI: -1, Minor: -1, Driver: driver}
	if name, ret := h.GetName(); ret == nvml.SUCCESS {
		d.Name = name
	}
	if uuid, ret := h.GetUUID(); ret == nvml.SUCCESS {
		d.UUID = uuid
	}
	if minor, ret := h.GetMinorNumber(); ret == nvml.SUCCESS {
		d.Minor = minor
	}
	if pci, ret := h.GetPciInfo(); ret == nvml.SUCCESS {
		var name strings.Builder
		for _, c := range pci.BusId {
			if c == 0 {
				break
			}
			name.WriteByte(byte(c))
		}
		d.BusID = strings.ToLower(name.String())
	}
	if memory, ret := h.GetMemoryInfo(); ret == nvml.SUCCESS {
		d.VRAMBytes = stat.Some(float64(memory.Total))
	}
	return d
}

type migSlice struct {
	device Device
	handle handle
}

// migSlices lists the MIG slices of a GPU; nil if MIG is off.
func (s *nvmlSource) migSlices(h handle, parent Device) []migSlice {
	if !s.offered("nvmlDeviceGetMigMode") || !s.offered("nvmlDeviceGetMigDeviceHandleByIndex") {
		return nil
	}
	if mode, _, ret := h.GetMigMode(); ret != nvml.SUCCESS || mode != nvml.DEVICE_MIG_ENABLE {
		return nil
	}
	count, ret := h.GetMaxMigDeviceCount()
	if ret != nvml.SUCCESS {
		return nil
	}
	var found []migSlice
	for i := range count {
		mig, ret := h.GetMigDeviceHandleByIndex(i)
		if ret != nvml.SUCCESS {
			continue // not every index has a slice
		}
		d := s.describe(mig, parent.Index, parent.Driver)
		d.Parent, d.BusID, d.Minor = parent.UUID, parent.BusID, parent.Minor
		if d.Name == "" {
			d.Name = parent.Name + " MIG"
		}
		if gi, ret := mig.GetGpuInstanceId(); ret == nvml.SUCCESS {
			d.GI = gi
		}
		found = append(found, migSlice{d, mig})
	}
	return found
}
