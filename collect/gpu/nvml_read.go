//go:build linux && cgo

package gpu

import (
	"slices"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// query is one query to a device.
type query struct {
	// symbols are the library's functions that the query needs: one of them, or with all
	// every one.
	symbols []string
	all     bool
	fields  []engine.GPUField
	// slice is true if the answer is valid for a MIG slice, because it is the slice's own
	// or the same for the whole GPU. The power of a GPU is not that of a slice.
	slice bool
	// setting is true if the answer changes only when an administrator changes it.
	setting bool
	gpm     bool
	ask     func(u *unit, out *outcome) nvml.Return
}

// queries are all queries in order.
var queries = []query{
	{symbols: []string{"nvmlDeviceGetUtilizationRates"}, fields: []engine.GPUField{engine.GPUUtil, engine.GPUMemUtil}, ask: (*unit).askUtil},
	{symbols: []string{"nvmlDeviceGetMemoryInfo_v2", "nvmlDeviceGetMemoryInfo"}, slice: true,
		fields: []engine.GPUField{engine.GPUVRAMTotal, engine.GPUVRAMUsed}, ask: (*unit).askMemory},
	scalarQuery(engine.GPUPowerW, 1e3, "nvmlDeviceGetPowerUsage", false, func(u *unit) (uint32, nvml.Return) { return u.own.GetPowerUsage() }),
	{symbols: []string{"nvmlDeviceGetEnforcedPowerLimit"}, setting: true, fields: []engine.GPUField{engine.GPUPowerLimitW}, ask: (*unit).askPowerLimit},
	scalarQuery(engine.GPUTemperatureC, 1, "nvmlDeviceGetTemperature", true,
		func(u *unit) (uint32, nvml.Return) { return u.whole.GetTemperature(nvml.TEMPERATURE_GPU) }),
	scalarQuery(engine.GPUSMClockMHz, 1, "nvmlDeviceGetClockInfo", true, func(u *unit) (uint32, nvml.Return) { return u.whole.GetClockInfo(nvml.CLOCK_SM) }),
	scalarQuery(engine.GPUMemClockMHz, 1, "nvmlDeviceGetClockInfo", true, func(u *unit) (uint32, nvml.Return) { return u.whole.GetClockInfo(nvml.CLOCK_MEM) }),
	{symbols: []string{"nvmlDeviceGetMaxClockInfo"}, setting: true, slice: true, fields: []engine.GPUField{engine.GPUSMClockMaxMHz}, ask: (*unit).askMaxClock},
	{symbols: []string{"nvmlDeviceGetTemperatureThreshold"}, setting: true, slice: true, fields: []engine.GPUField{engine.GPUTemperatureLimitC}, ask: (*unit).askTemperatureLimit},
	scalarQuery(engine.GPUEnergyJ, 1e3, "nvmlDeviceGetTotalEnergyConsumption", false,
		func(u *unit) (uint64, nvml.Return) { return u.own.GetTotalEnergyConsumption() }),
	{symbols: []string{"nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"}, slice: true,
		fields: []engine.GPUField{clockEvents}, ask: (*unit).askEvents},
	{symbols: gpmSymbols, all: true, gpm: true, slice: true,
		fields: gpmFields(), ask: (*unit).askGPM},
}

// gpmSymbols are the functions that GPM needs. A driver has all or none of them.
var gpmSymbols = []string{"nvmlGpmSampleAlloc", "nvmlGpmSampleFree",
	"nvmlGpmSampleGet", "nvmlGpmMigSampleGet", "nvmlGpmMetricsGet"}

// scalarQuery returns a query for one number; scale is the number of NVML's units in one of the
// field's. Power is in milliwatts, instantaneous or the mean of the last second (see
// [instantPower]).
func scalarQuery[V uint32 | uint64](f engine.GPUField, scale float64, symbol string, slice bool, get func(*unit) (V, nvml.Return)) query {
	return query{symbols: []string{symbol}, fields: []engine.GPUField{f}, slice: slice, ask: func(u *unit, out *outcome) nvml.Return {
		v, ret := get(u)
		if ret == nvml.SUCCESS {
			out.set(f, float64(v)/scale)
		}
		return ret
	}}
}

// probe is the state of a query for one device.
type probe struct {
	*query
	supported bool          // the library has its symbols
	due       time.Duration // when to run the query again after a rest
}

// probes returns a probe for each query.
func (s *nvmlSource) probes() []probe {
	all := make([]probe, len(queries))
	for i := range queries {
		q := &queries[i]
		lacks := func(symbol string) bool { return !s.offered(symbol) }
		all[i] = probe{query: q, supported: slices.ContainsFunc(q.symbols, s.offered)}
		if q.all {
			all[i].supported = !slices.ContainsFunc(q.symbols, lacks)
		}
	}
	return all
}

// restTime is how long a query rests that a device does not support, or whose answer is a
// setting, such as the power limit.
const restTime = time.Minute

// unit reads one device. Its fields belong to the goroutine that holds its slot.
type unit struct {
	lib    library
	clock  func() time.Duration
	device Device
	own    handle // the GPU, or the MIG slice
	whole  handle // the GPU
	gi     int    // GPU instance of a slice, -1 of a whole GPU
	slot   slot[outcome]

	probes           []probe
	v2, eventReasons bool // the library has the newer of two functions
	mps              bool // the library lists MPS clients
	instantPower     bool // power readings are instantaneous
	noGPM            bool // the device is older than GPM

	why      why
	settings [engine.NumGPUFields]stat.Opt // last answers of queries for settings
	gpm      gpmSamples
}

// outcome is one read of a unit.
type outcome struct {
	gpu  engine.GPU
	why  why
	lost nvml.Return // SUCCESS while the device answers
}

// read runs every query that is due. It stops at the first answer that the device is lost,
// so that a lost device costs only one query a read.
func (u *unit) read() outcome {
	var out outcome
	for i := range u.probes {
		p := &u.probes[i]
		ret, asked := u.probe(p, &out)
		if !asked {
			continue
		}
		u.recordResult(p, ret)
		if ret == nvml.ERROR_GPU_IS_LOST || ret == nvml.ERROR_RESET_REQUIRED {
			return outcome{lost: ret}
		}
	}
	for i := range u.probes {
		if p := &u.probes[i]; p.setting {
			out.gpu.Fields[p.fields[0]] = u.settings[p.fields[0]]
		}
	}
	out.why = u.why
	return out
}

func (u *unit) probe(p *probe, out *outcome) (nvml.Return, bool) {
	switch {
	case u.clock() < p.due:
		return nvml.SUCCESS, false
	case !p.supported:
		return nvml.ERROR_FUNCTION_NOT_FOUND, true
	case u.gi >= 0 && !p.slice:
		return nvml.ERROR_NOT_SUPPORTED, true
	}
	return p.ask(u, out), true
}

// recordResult updates a probe's rest and the reasons of its fields after an answer.
func (u *unit) recordResult(p *probe, ret nvml.Return) {
	switch ret {
	case nvml.ERROR_NOT_SUPPORTED, nvml.ERROR_FUNCTION_NOT_FOUND, nvml.ERROR_NO_PERMISSION,
		nvml.ERROR_INVALID_ARGUMENT, nvml.ERROR_ARGUMENT_VERSION_MISMATCH:
		p.due = u.clock() + restTime
	case nvml.SUCCESS:
		if p.setting {
			p.due = u.clock() + restTime
		}
		if p.gpm {
			return // GPM's metrics fail individually
		}
	}
	if p.gpm {
		u.gpm.taken = false // no metric until the next complete pair
	}
	for _, f := range p.fields {
		u.why[f] = u.reason(p, ret)
	}
}

func (u *unit) reason(p *probe, ret nvml.Return) string {
	switch {
	case ret == nvml.ERROR_NOT_SUPPORTED && u.gi >= 0 && !p.gpm:
		return "the driver measures the whole GPU only, and this is a MIG slice of it"
	case ret == nvml.ERROR_NOT_SUPPORTED && p.gpm:
		return "the GPU has no GPM; Hopper and newer GPUs have it"
	}
	return reasonText(ret)
}

func (u *unit) askUtil(out *outcome) nvml.Return {
	v, ret := u.own.GetUtilizationRates()
	if ret == nvml.SUCCESS {
		out.set(engine.GPUUtil, float64(v.Gpu)/100)
		out.set(engine.GPUMemUtil, float64(v.Memory)/100)
	}
	return ret
}

// askMemory prefers version 2, which does not count memory reserved by the driver as
// used.
func (u *unit) askMemory(out *outcome) nvml.Return {
	used := func(total, used uint64, ret nvml.Return) nvml.Return {
		if ret == nvml.SUCCESS {
			out.set(engine.GPUVRAMTotal, float64(total))
			out.set(engine.GPUVRAMUsed, float64(used))
		}
		return ret
	}
	if u.v2 {
		v, ret := u.own.GetMemoryInfo_v2()
		if used(v.Total, v.Used, ret); ret == nvml.SUCCESS || ret == nvml.ERROR_GPU_IS_LOST {
			return ret
		}
	}
	v, ret := u.own.GetMemoryInfo()
	return used(v.Total, v.Used, ret)
}

func (u *unit) askPowerLimit(*outcome) nvml.Return {
	v, ret := u.own.GetEnforcedPowerLimit()
	if ret == nvml.SUCCESS {
		u.settings[engine.GPUPowerLimitW] = stat.Some(float64(v) / 1e3)
	}
	return ret
}

func (u *unit) askMaxClock(*outcome) nvml.Return {
	v, ret := u.whole.GetMaxClockInfo(nvml.CLOCK_SM)
	if ret == nvml.SUCCESS {
		u.settings[engine.GPUSMClockMaxMHz] = stat.Some(float64(v))
	}
	return ret
}

// askTemperatureLimit reads the temperature at which the driver lowers the clocks (nvml.h,
// NVML_TEMPERATURE_THRESHOLD_GPU_MAX), or else that at which the hardware does.
func (u *unit) askTemperatureLimit(*outcome) nvml.Return {
	v, ret := u.whole.GetTemperatureThreshold(nvml.TEMPERATURE_THRESHOLD_GPU_MAX)
	if ret != nvml.SUCCESS {
		v, ret = u.whole.GetTemperatureThreshold(nvml.TEMPERATURE_THRESHOLD_SLOWDOWN)
	}
	if ret == nvml.SUCCESS {
		u.settings[engine.GPUTemperatureLimitC] = stat.Some(float64(v))
	}
	return ret
}

func (u *unit) askEvents(out *outcome) nvml.Return {
	ask := u.whole.GetCurrentClocksThrottleReasons
	if u.eventReasons {
		ask = u.whole.GetCurrentClocksEventReasons
	}
	mask, ret := ask()
	if ret == nvml.SUCCESS {
		out.gpu.Throttle, out.gpu.ThrottleOK = mask, true
	}
	return ret
}

func (o *outcome) set(f engine.GPUField, v float64) { o.gpu.Fields[f] = stat.Some(v) }

// processes lists the PIDs on the device, MPS clients included.
func (u *unit) processes() ([]int, nvml.Return) {
	infos, ret := u.own.GetComputeRunningProcesses()
	if ret != nvml.SUCCESS {
		return nil, ret
	}
	if u.mps {
		if clients, ret := u.own.GetMPSComputeRunningProcesses(); ret == nvml.SUCCESS {
			infos = append(infos, clients...)
		}
	}
	pids := make([]int, 0, len(infos))
	for _, info := range infos {
		pids = append(pids, int(info.Pid))
	}
	return pids, nvml.SUCCESS
}
