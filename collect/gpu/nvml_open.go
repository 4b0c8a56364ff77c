//go:build linux && cgo

package gpu

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// library is the part of NVML that rooftop uses: getters, and the buffers of GPM.
type library interface {
	Init() nvml.Return
	Shutdown() nvml.Return
	SystemGetDriverVersion() (string, nvml.Return)
	DeviceGetCount() (int, nvml.Return)
	DeviceGetHandleByIndex(index int) (nvml.Device, nvml.Return)
	GpmSampleAlloc() (nvml.GpmSample, nvml.Return)
	GpmMetricsGet(metrics *nvml.GpmMetricsGetType) nvml.Return
	Extensions() nvml.ExtendedInterface
}

// handle is the part of nvml.Device that rooftop uses. It has no setter, so calling one
// does not compile.
type handle interface {
	GetName() (string, nvml.Return)
	GetUUID() (string, nvml.Return)
	GetPciInfo() (nvml.PciInfo, nvml.Return)
	GetMinorNumber() (int, nvml.Return)
	GetCudaComputeCapability() (int, int, nvml.Return)
	GetMigMode() (int, int, nvml.Return)
	GetMaxMigDeviceCount() (int, nvml.Return)
	GetMigDeviceHandleByIndex(index int) (nvml.Device, nvml.Return)
	GetGpuInstanceId() (int, nvml.Return)
	GetUtilizationRates() (nvml.Utilization, nvml.Return)
	GetMemoryInfo() (nvml.Memory, nvml.Return)
	GetMemoryInfo_v2() (nvml.Memory_v2, nvml.Return)
	GetPowerUsage() (uint32, nvml.Return)
	GetEnforcedPowerLimit() (uint32, nvml.Return)
	GetTemperature(sensor nvml.TemperatureSensors) (uint32, nvml.Return)
	GetTemperatureThreshold(threshold nvml.TemperatureThresholds) (uint32, nvml.Return)
	GetClockInfo(clock nvml.ClockType) (uint32, nvml.Return)
	GetMaxClockInfo(clock nvml.ClockType) (uint32, nvml.Return)
	GetTotalEnergyConsumption() (uint64, nvml.Return)
	GetCurrentClocksEventReasons() (uint64, nvml.Return)
	GetCurrentClocksThrottleReasons() (uint64, nvml.Return)
	GpmSampleGet(sample nvml.GpmSample) nvml.Return
	GpmMigSampleGet(instance int, sample nvml.GpmSample) nvml.Return
	GetComputeRunningProcesses() ([]nvml.ProcessInfo, nvml.Return)
	GetMPSComputeRunningProcesses() ([]nvml.ProcessInfo, nvml.Return)
}

// libraryPaths are the places outside the linker's search path where drivers put their
// library: WSL, GKE's device plugin, NixOS.
var libraryPaths = [...]string{
	"/usr/lib/wsl/lib/libnvidia-ml.so.1",
	"/usr/local/nvidia/lib64/libnvidia-ml.so.1",
	"/run/opengl-driver/lib/libnvidia-ml.so.1",
}

func openLocalNVML(ctx context.Context, clock func() time.Duration) (Source, error) {
	candidates := []library{nvml.New()}
	for _, path := range libraryPaths {
		candidates = append(candidates, nvml.New(nvml.WithLibraryPath(path)))
	}
	source, err := openNVML(ctx, clock, candidates...)
	if err != nil {
		return nil, err
	}
	return source, nil
}

// openNVML opens the first candidate that can be loaded. It initialises the library in
// another goroutine, because with a stuck driver Init never returns.
func openNVML(ctx context.Context, clock func() time.Duration, candidates ...library) (*nvmlSource, error) {
	opening := newSlot[*nvmlSource]().start(func() (*nvmlSource, error) {
		lib, err := initialise(candidates)
		if err != nil {
			return nil, err
		}
		return newNVMLSource(lib, clock)
	})
	return wait(ctx, opening)
}

// initialise returns the first library that loads and starts. It calls nothing else, not
// even for an error text, of a library whose Init failed: a call into a library that is
// not loaded ends the process.
func initialise(candidates []library) (library, error) {
	ret := nvml.ERROR_LIBRARY_NOT_FOUND
	for _, lib := range candidates {
		ret = lib.Init()
		if ret == nvml.SUCCESS {
			return lib, nil
		}
		if ret != nvml.ERROR_LIBRARY_NOT_FOUND {
			break
		}
	}
	return nil, errors.New(initReason(ret))
}

func initReason(ret nvml.Return) string {
	switch ret {
	case nvml.ERROR_LIBRARY_NOT_FOUND:
		return "libnvidia-ml.so.1 was not found: no NVIDIA driver here (a container needs the NVIDIA runtime, docker run --gpus all)"
	case nvml.ERROR_DRIVER_NOT_LOADED:
		return "the NVIDIA driver is not loaded: run nvidia-smi once as root, or modprobe nvidia"
	case nvml.ERROR_LIB_RM_VERSION_MISMATCH:
		return "the driver's library and kernel module differ, as after an update: reboot, or reload the module"
	case nvml.ERROR_NO_PERMISSION:
		return "no permission to open /dev/nvidiactl: run rooftop as a user of the GPUs"
	}
	return reasonText(ret)
}

// reasonText describes why NVML did not answer, "" for SUCCESS. It does not use NVML's own
// text, which would need another call into the library.
func reasonText(ret nvml.Return) string {
	switch ret {
	case nvml.SUCCESS:
		return ""
	case nvml.ERROR_NOT_SUPPORTED:
		return "this GPU or driver does not offer it"
	case nvml.ERROR_FUNCTION_NOT_FOUND:
		return "this driver is too old for it"
	case nvml.ERROR_NO_PERMISSION:
		return "the driver refuses it to this user: run rooftop as root to read it"
	case nvml.ERROR_GPU_IS_LOST:
		return "the GPU is lost: it fell off the bus"
	case nvml.ERROR_RESET_REQUIRED:
		return "the GPU needs a reset"
	case nvml.ERROR_TIMEOUT:
		return "the driver timed out"
	}
	return fmt.Sprintf("NVML error %d", int32(ret))
}
