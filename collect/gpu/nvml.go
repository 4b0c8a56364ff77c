//go:build linux && cgo

package gpu

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/rooftop-dev/rooftop/collect"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// library is what rooftop asks of NVML: getters, and the buffers of GPM.
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

// handle is what rooftop asks of a device, so that a setter does not compile.
type handle interface {
	GetName() (string, nvml.Return)
	GetUUID() (string, nvml.Return)
	GetPciInfo() (nvml.PciInfo, nvml.Return)
	GetMinorNumber() (int, nvml.Return)
	GetMigMode() (int, int, nvml.Return)
	GetMaxMigDeviceCount() (int, nvml.Return)
	GetMigDeviceHandleByIndex(index int) (nvml.Device, nvml.Return)
	GetGpuInstanceId() (int, nvml.Return)
	GetComputeInstanceId() (int, nvml.Return)
	GetUtilizationRates() (nvml.Utilization, nvml.Return)
	GetMemoryInfo() (nvml.Memory, nvml.Return)
	GetMemoryInfo_v2() (nvml.Memory_v2, nvml.Return)
	GetPowerUsage() (uint32, nvml.Return)
	GetEnforcedPowerLimit() (uint32, nvml.Return)
	GetTemperature(sensor nvml.TemperatureSensors) (uint32, nvml.Return)
	GetClockInfo(clock nvml.ClockType) (uint32, nvml.Return)
	GetTotalEnergyConsumption() (uint64, nvml.Return)
	GetCurrentClocksEventReasons() (uint64, nvml.Return)
	GetCurrentClocksThrottleReasons() (uint64, nvml.Return)
	GetPcieThroughput(counter nvml.PcieUtilCounter) (uint32, nvml.Return)
	GetFieldValues(values []nvml.FieldValue) nvml.Return
	GpmQueryDeviceSupport() (nvml.GpmSupport, nvml.Return)
	GpmSampleGet(sample nvml.GpmSample) nvml.Return
	GpmMigSampleGet(instance int, sample nvml.GpmSample) nvml.Return
	GetComputeRunningProcesses() ([]nvml.ProcessInfo, nvml.Return)
	GetMPSComputeRunningProcesses() ([]nvml.ProcessInfo, nvml.Return)
}

// libraryPaths are where drivers put their library outside the linker's search
// path: WSL, GKE's device plugin, NixOS.
func libraryPaths() []string {
	return []string{
		"/usr/lib/wsl/lib/libnvidia-ml.so.1",
		"/usr/local/nvidia/lib64/libnvidia-ml.so.1",
		"/run/opengl-driver/lib/libnvidia-ml.so.1",
	}
}

func openLocalNVML(ctx context.Context, clock func() time.Duration) (Source, error) {
	candidates := []library{nvml.New()}
	for _, path := range libraryPaths() {
		candidates = append(candidates, nvml.New(nvml.WithLibraryPath(path)))
	}
	source, err := openNVML(ctx, clock, candidates...)
	if err != nil {
		return nil, err
	}
	return source, nil
}

// openNVML initialises the first candidate that can be loaded. It runs beside
// its caller: with a stuck driver Init never returns.
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

// initialise returns the first library that loads and starts. After an Init
// that failed nothing else is asked of that library, not even the text of its
// error: a call into a library that is not there ends the process.
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

// reasonText says in words why NVML did not answer. NVML's own text is not
// asked for: that is one more call into the library.
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

// nvmlSource reads devices through NVML, each in a slot of its own.
type nvmlSource struct {
	lib     library
	clock   func() time.Duration
	devices []Device
	units   []*unit
	listing slot[map[string][]int]
	notes   []string // of the start

	questions *[numProbes]question

	mu     sync.Mutex
	closed bool
	keep   []int // positions
	reads  int
	last   []answered // of each unit, by position
}

// answered is what a unit's last read left to say.
type answered struct {
	asked bool
	why   why
	note  string
}

func newNVMLSource(lib library, clock func() time.Duration) (*nvmlSource, error) {
	s := &nvmlSource{lib: lib, clock: clock, listing: newSlot[map[string][]int](), questions: questions()}
	if err := s.enumerate(); err != nil {
		lib.Shutdown()
		return nil, err
	}
	s.keep = kept(nil, len(s.devices))
	s.last = make([]answered, len(s.devices))
	return s, nil
}

// offered reports whether the loaded library has a symbol: calling one that it
// lacks ends the process.
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
	can := s.probesOffered()
	for i := range count {
		h, ret := s.lib.DeviceGetHandleByIndex(i)
		if ret != nvml.SUCCESS {
			s.notes = append(s.notes, fmt.Sprintf("GPU %d cannot be opened: %s", i, reasonText(ret)))
			continue
		}
		d := s.describe(h, i, driver)
		slices := s.migSlices(h, d)
		if len(slices) == 0 {
			s.add(d, &unit{own: h, whole: h, gi: -1}, can)
			continue
		}
		s.notes = append(s.notes, label(d)+" is in MIG mode: its slices are read, and ceilings are those of the whole GPU")
		for _, m := range slices {
			s.add(m.device, &unit{own: m.handle, whole: h, gi: m.device.GI}, can)
		}
	}
	if len(s.devices) == 0 {
		return fmt.Errorf("none of %d GPUs can be opened: %s", count, strings.Join(s.notes, "; "))
	}
	return nil
}

func (s *nvmlSource) add(d Device, u *unit, can [numProbes]bool) {
	u.lib, u.clock, u.device, u.questions, u.can = s.lib, s.clock, d, s.questions, can
	u.slot = newSlot[outcome]()
	u.v2 = s.offered("nvmlDeviceGetMemoryInfo_v2")
	u.eventReasons = s.offered("nvmlDeviceGetCurrentClocksEventReasons")
	u.mps = s.offered("nvmlDeviceGetMPSComputeRunningProcesses")
	s.devices = append(s.devices, d)
	s.units = append(s.units, u)
}

func (s *nvmlSource) describe(h handle, index int, driver string) Device {
	d := Device{Index: index, GI: -1, CI: -1, Minor: -1, Driver: driver}
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
		d.BusID = strings.ToLower(cString(pci.BusId[:]))
	}
	if memory, ret := h.GetMemoryInfo(); ret == nvml.SUCCESS {
		d.VRAMBytes = stat.Some(float64(memory.Total))
	}
	return d
}

func cString(b []byte) string {
	if end := slices.Index(b, 0); end >= 0 {
		b = b[:end]
	}
	return string(b)
}

type migSlice struct {
	device Device
	handle handle
}

// migSlices lists the MIG slices of a GPU; none where MIG is off.
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
			continue // not every place holds a slice
		}
		d := s.describe(mig, parent.Index, parent.Driver)
		d.Parent, d.BusID, d.Minor = parent.UUID, parent.BusID, parent.Minor
		if d.Name == "" {
			d.Name = parent.Name + " MIG"
		}
		if gi, ret := mig.GetGpuInstanceId(); ret == nvml.SUCCESS {
			d.GI = gi
		}
		if ci, ret := mig.GetComputeInstanceId(); ret == nvml.SUCCESS {
			d.CI = ci
		}
		found = append(found, migSlice{d, mig})
	}
	return found
}

// Name implements [Source].
func (s *nvmlSource) Name() string { return "NVML" }

// Devices implements [Source].
func (s *nvmlSource) Devices() []Device { return slices.Clone(s.devices) }

// Keep implements [Source].
func (s *nvmlSource) Keep(positions []int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keep = kept(positions, len(s.devices))
}

// Read implements [Source]. The kept devices are read side by side; one that
// does not answer keeps its place, without values.
func (s *nvmlSource) Read(ctx context.Context) (engine.GPUReading, error) {
	began := s.clock()
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return engine.GPUReading{}, ErrClosed
	}
	keep, turn := s.keep, s.reads
	s.reads++
	running := make([]<-chan answer[outcome], len(keep))
	for i, p := range keep {
		u := s.units[p]
		running[i] = u.slot.start(func() (outcome, error) { return u.read(turnOf(turn, i, len(keep))), nil })
	}
	s.mu.Unlock()

	reading := engine.GPUReading{Devices: make([]engine.GPU, len(keep))}
	said := make([]answered, len(keep))
	var failed error
	silent := 0
	for i, p := range keep {
		d := &s.devices[p]
		out, err := wait(ctx, running[i])
		if err == nil && out.lost != nvml.SUCCESS {
			err = errors.New(reasonText(out.lost))
		}
		said[i] = answered{asked: true, why: out.why}
		reading.Devices[i] = out.gpu
		reading.Devices[i].Index, reading.Devices[i].Name, reading.Devices[i].UUID = d.Index, d.Name, d.UUID
		if err != nil {
			silent++
			said[i].note = label(*d) + ": " + err.Error()
			failed = errors.Join(failed, fmt.Errorf("%s: %w", label(*d), err))
		}
	}
	reading.T = s.clock()
	reading.Took = reading.T - began

	s.mu.Lock()
	for i, p := range keep {
		s.last[p] = said[i]
	}
	s.mu.Unlock()
	if silent == len(keep) {
		if len(keep) == 0 {
			return engine.GPUReading{}, fmt.Errorf("no GPU is kept: %w", collect.ErrNoData)
		}
		return engine.GPUReading{}, fmt.Errorf("read GPUs through NVML: %w", failed)
	}
	return reading, nil
}

// Processes implements [Source].
func (s *nvmlSource) Processes(ctx context.Context) (map[string][]int, error) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil, ErrClosed
	}
	listing := s.listing.start(s.processes)
	s.mu.Unlock()
	held, err := wait(ctx, listing)
	if err != nil {
		return nil, fmt.Errorf("list the processes on the GPUs: %w", err)
	}
	return held, nil
}

func (s *nvmlSource) processes() (map[string][]int, error) {
	held := map[string][]int{}
	var refused nvml.Return
	for i, u := range s.units {
		pids, ret := u.processes()
		if ret != nvml.SUCCESS {
			refused = ret
			continue
		}
		held[s.devices[i].UUID] = pids
	}
	if len(held) == 0 {
		return nil, fmt.Errorf("%s: %w", reasonText(refused), collect.ErrNoData)
	}
	return held, nil
}

// Missing implements [Source].
func (s *nvmlSource) Missing() []engine.Missing {
	s.mu.Lock()
	defer s.mu.Unlock()
	var labels []string
	var reasons []why
	for _, p := range s.keep {
		if s.last[p].asked && s.last[p].note == "" {
			labels = append(labels, label(s.devices[p]))
			reasons = append(reasons, s.last[p].why)
		}
	}
	return gaps(labels, reasons)
}

// Notes implements [Source].
func (s *nvmlSource) Notes() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	notes := slices.Clone(s.notes)
	for _, p := range s.keep {
		if s.last[p].note != "" {
			notes = append(notes, s.last[p].note)
		}
	}
	return notes
}

// Close implements [Source].
func (s *nvmlSource) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	s.mu.Unlock()

	timer := time.NewTimer(closeTimeout)
	defer timer.Stop()
	free := s.listing.seize(timer.C)
	for _, u := range s.units {
		free = free && u.slot.seize(timer.C)
	}
	if !free {
		return fmt.Errorf("close NVML: %w", errStillReading)
	}
	for _, u := range s.units {
		u.gpm.free()
	}
	if ret := s.lib.Shutdown(); ret != nvml.SUCCESS {
		return fmt.Errorf("close NVML: %s", reasonText(ret))
	}
	return nil
}
