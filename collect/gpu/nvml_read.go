//go:build linux && cgo

package gpu

import (
	"encoding/binary"
	"math"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// probe is one question to a device.
type probe uint8

const (
	probeUtil probe = iota
	probeMemory
	probePower
	probePowerLimit
	probeTemperature
	probeSMClock
	probeMemClock
	probeEnergy
	probeEvents
	probeGPM
	probeNVLink
	probePCIe
	numProbes
)

// question says how a probe is asked.
type question struct {
	// symbols: the probe is asked where the library has one of them.
	symbols []string
	fields  []engine.GPUField
	// slice says that a MIG slice has the answer: its own, or one that is
	// equally true of the whole GPU. The power of a GPU is not that of a slice.
	slice bool
	ask   func(u *unit, out *outcome) nvml.Return
}

func questions() *[numProbes]question {
	return &[numProbes]question{
		probeUtil: {[]string{"nvmlDeviceGetUtilizationRates"},
			[]engine.GPUField{engine.GPUUtil, engine.GPUMemUtil}, false, (*unit).askUtil},
		probeMemory: {[]string{"nvmlDeviceGetMemoryInfo_v2", "nvmlDeviceGetMemoryInfo"},
			[]engine.GPUField{engine.GPUVRAMTotal, engine.GPUVRAMUsed}, true, (*unit).askMemory},
		probePower: {[]string{"nvmlDeviceGetPowerUsage"},
			[]engine.GPUField{engine.GPUPowerW}, false, (*unit).askPower},
		probePowerLimit: {[]string{"nvmlDeviceGetEnforcedPowerLimit"},
			[]engine.GPUField{engine.GPUPowerLimitW}, false, (*unit).askPowerLimit},
		probeTemperature: {[]string{"nvmlDeviceGetTemperature"},
			[]engine.GPUField{engine.GPUTemperatureC}, true, (*unit).askTemperature},
		probeSMClock: {[]string{"nvmlDeviceGetClockInfo"},
			[]engine.GPUField{engine.GPUSMClockMHz}, true, (*unit).askSMClock},
		probeMemClock: {[]string{"nvmlDeviceGetClockInfo"},
			[]engine.GPUField{engine.GPUMemClockMHz}, true, (*unit).askMemClock},
		probeEnergy: {[]string{"nvmlDeviceGetTotalEnergyConsumption"},
			[]engine.GPUField{engine.GPUEnergyJ}, false, (*unit).askEnergy},
		probeEvents: {[]string{"nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"},
			[]engine.GPUField{clockEvents}, true, (*unit).askEvents},
		probeGPM: {[]string{"nvmlGpmSampleGet"},
			[]engine.GPUField{engine.GPUDRAMActive, engine.GPUTensorUtil, engine.GPUSMActive}, true, (*unit).askGPM},
		probeNVLink: {[]string{"nvmlDeviceGetFieldValues"},
			[]engine.GPUField{engine.GPUNVLinkTxBps, engine.GPUNVLinkRxBps}, false, (*unit).askNVLink},
		probePCIe: {[]string{"nvmlDeviceGetPcieThroughput"},
			[]engine.GPUField{engine.GPUPCIeTxBps, engine.GPUPCIeRxBps}, false, (*unit).askPCIe},
	}
}

// gpmSymbols are all that GPM needs; a driver has all or none.
func gpmSymbols() []string {
	return []string{"nvmlGpmQueryDeviceSupport", "nvmlGpmSampleAlloc", "nvmlGpmSampleFree",
		"nvmlGpmSampleGet", "nvmlGpmMigSampleGet", "nvmlGpmMetricsGet"}
}

// probesOffered says which probes the loaded library can be asked at all.
func (s *nvmlSource) probesOffered() [numProbes]bool {
	var can [numProbes]bool
	for p, q := range s.questions {
		for _, symbol := range q.symbols {
			can[p] = can[p] || s.offered(symbol)
		}
	}
	for _, symbol := range gpmSymbols() {
		can[probeGPM] = can[probeGPM] && s.offered(symbol)
	}
	return can
}

// A probe that a device does not offer is asked again after this time, and so is
// the power limit, which changes only when somebody sets it.
const restTime = time.Minute

// NVML measures PCIe traffic for 20 ms before it answers (nvml.h,
// nvmlDeviceGetPcieThroughput), which would be two fifths of a read every 50 ms.
// It is asked no more often than this, whatever the cadence of reads.
const pciePeriod = 250 * time.Millisecond

// unit reads one device. Its fields belong to the goroutine that holds its slot.
type unit struct {
	lib    library
	clock  func() time.Duration
	device Device
	own    handle // the GPU, or the MIG slice
	whole  handle // the GPU
	gi     int    // GPU instance of a slice, -1 of a whole GPU
	slot   slot[outcome]

	questions        *[numProbes]question
	can              [numProbes]bool
	v2, eventReasons bool // which of two spellings the library has
	mps              bool
	instantPower     bool // power readings are instants

	why        why
	due        [numProbes]time.Duration // when a probe that rests is asked again
	powerLimit stat.Opt
	gpm        gpmSamples
	link       linkCounters
	pcie       pcieTurn
}

// outcome is one read of a unit.
type outcome struct {
	gpu  engine.GPU
	why  why
	lost nvml.Return // SUCCESS while the device answers
}

// pcieTurn says which PCIe direction a read may ask for.
type pcieTurn uint8

const (
	pcieNone pcieTurn = iota
	pcieTx
	pcieRx
)

// turnOf gives one device of each turn one PCIe direction.
func turnOf(turn, device, devices int) pcieTurn {
	turn %= 2 * devices
	if turn/2 != device {
		return pcieNone
	}
	return pcieTx + pcieTurn(turn%2)
}

// read asks every probe that is due, and stops at the first answer that the
// device is lost: it costs one question a read until it is back.
func (u *unit) read(pcie pcieTurn) outcome {
	var out outcome
	u.pcie = pcie
	for p := range numProbes {
		q := &u.questions[p]
		ret, asked := u.probe(p, q, &out)
		if !asked {
			continue
		}
		u.settle(p, q, ret)
		if ret == nvml.ERROR_GPU_IS_LOST || ret == nvml.ERROR_RESET_REQUIRED {
			return outcome{lost: ret}
		}
	}
	out.gpu.Fields[engine.GPUPowerLimitW] = u.powerLimit
	out.why = u.why
	return out
}

func (u *unit) probe(p probe, q *question, out *outcome) (nvml.Return, bool) {
	switch {
	case u.clock() < u.due[p]:
		return nvml.SUCCESS, false
	case !u.can[p]:
		return nvml.ERROR_FUNCTION_NOT_FOUND, true
	case u.gi >= 0 && !q.slice:
		return nvml.ERROR_NOT_SUPPORTED, true
	}
	return q.ask(u, out), true
}

// settle keeps what a probe's answer means for the reads to come.
func (u *unit) settle(p probe, q *question, ret nvml.Return) {
	switch ret {
	case nvml.ERROR_NOT_SUPPORTED, nvml.ERROR_FUNCTION_NOT_FOUND, nvml.ERROR_NO_PERMISSION,
		nvml.ERROR_INVALID_ARGUMENT, nvml.ERROR_ARGUMENT_VERSION_MISMATCH:
		u.due[p] = u.clock() + restTime
	case nvml.SUCCESS:
		if p == probePowerLimit {
			u.due[p] = u.clock() + restTime
		}
		if p == probeGPM {
			return // its metrics fail one by one
		}
	}
	if p == probeGPM {
		u.gpm.fail()
	}
	for _, f := range q.fields {
		u.why[f] = u.reason(p, ret)
	}
}

func (u *unit) reason(p probe, ret nvml.Return) string {
	switch {
	case ret == nvml.ERROR_NOT_SUPPORTED && u.gi >= 0 && p != probeGPM:
		return "the driver measures the whole GPU only, and this is a MIG slice of it"
	case ret == nvml.ERROR_NOT_SUPPORTED && p == probeGPM:
		return "the GPU has no GPM: Hopper and newer have"
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

// askMemory prefers the second version, in which what the driver reserves for
// itself is not counted as used.
func (u *unit) askMemory(out *outcome) nvml.Return {
	if u.v2 {
		v, ret := u.own.GetMemoryInfo_v2()
		if ret == nvml.SUCCESS {
			out.set(engine.GPUVRAMTotal, float64(v.Total))
			out.set(engine.GPUVRAMUsed, float64(v.Used))
			return ret
		}
		if ret == nvml.ERROR_GPU_IS_LOST {
			return ret
		}
	}
	v, ret := u.own.GetMemoryInfo()
	if ret == nvml.SUCCESS {
		out.set(engine.GPUVRAMTotal, float64(v.Total))
		out.set(engine.GPUVRAMUsed, float64(v.Used))
	}
	return ret
}

// askPower reads milliwatts: an instant or the mean of the last second (see
// [instantPower]).
func (u *unit) askPower(out *outcome) nvml.Return {
	v, ret := u.own.GetPowerUsage()
	if ret == nvml.SUCCESS {
		out.set(engine.GPUPowerW, float64(v)/1e3)
	}
	return ret
}

func (u *unit) askPowerLimit(*outcome) nvml.Return {
	v, ret := u.own.GetEnforcedPowerLimit()
	if ret == nvml.SUCCESS {
		u.powerLimit = stat.Some(float64(v) / 1e3)
	}
	return ret
}

func (u *unit) askTemperature(out *outcome) nvml.Return {
	v, ret := u.whole.GetTemperature(nvml.TEMPERATURE_GPU)
	if ret == nvml.SUCCESS {
		out.set(engine.GPUTemperatureC, float64(v))
	}
	return ret
}

func (u *unit) askSMClock(out *outcome) nvml.Return {
	return u.askClock(out, nvml.CLOCK_SM, engine.GPUSMClockMHz)
}

func (u *unit) askMemClock(out *outcome) nvml.Return {
	return u.askClock(out, nvml.CLOCK_MEM, engine.GPUMemClockMHz)
}

func (u *unit) askClock(out *outcome, clock nvml.ClockType, f engine.GPUField) nvml.Return {
	v, ret := u.whole.GetClockInfo(clock)
	if ret == nvml.SUCCESS {
		out.set(f, float64(v))
	}
	return ret
}

func (u *unit) askEnergy(out *outcome) nvml.Return {
	v, ret := u.own.GetTotalEnergyConsumption()
	if ret == nvml.SUCCESS {
		out.set(engine.GPUEnergyJ, float64(v)/1e3)
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

// askPCIe is for GPUs without GPM. Each answer is the traffic of 20 ms, so a
// read holds one direction of one device at most, and the others are absent
// from it. The byte counters that NVML has too wrap at 32 bits, which is less
// than a tenth of a second of a fast link.
func (u *unit) askPCIe(out *outcome) nvml.Return {
	counter, f := nvml.PCIE_UTIL_TX_BYTES, engine.GPUPCIeTxBps
	switch {
	case !u.gpm.lacks[gpmPCIeTx] || u.pcie == pcieNone:
		return nvml.SUCCESS
	case u.pcie == pcieRx:
		counter, f = nvml.PCIE_UTIL_RX_BYTES, engine.GPUPCIeRxBps
	}
	v, ret := u.own.GetPcieThroughput(counter)
	if ret == nvml.SUCCESS {
		out.set(f, float64(v)*1024) // "KB/s", counted as the KiB of NVML's other traffic figures
	}
	return ret
}

// linkCounters are the NVLink counters of the previous read.
type linkCounters struct {
	at     time.Duration
	tx, rx uint64 // KiB
	ok     bool
}

// allLinks as a field's scope sums a GPU's links (nvml.h).
const allLinks = math.MaxUint32

// askNVLink is for GPUs whose traffic GPM does not tell.
func (u *unit) askNVLink(out *outcome) nvml.Return {
	if !u.gpm.lacks[gpmNVLinkTx] {
		return nvml.SUCCESS
	}
	values := [2]nvml.FieldValue{
		{FieldId: nvml.FI_DEV_NVLINK_THROUGHPUT_DATA_TX, ScopeId: allLinks},
		{FieldId: nvml.FI_DEV_NVLINK_THROUGHPUT_DATA_RX, ScopeId: allLinks},
	}
	if ret := u.own.GetFieldValues(values[:]); ret != nvml.SUCCESS {
		return ret
	}
	for _, v := range values {
		if ret := nvml.Return(v.NvmlReturn); ret != nvml.SUCCESS {
			return ret
		}
		if nvml.ValueType(v.ValueType) != nvml.VALUE_TYPE_UNSIGNED_LONG_LONG {
			return nvml.ERROR_NOT_SUPPORTED // a narrower counter would wrap between two reads
		}
	}
	now := linkCounters{
		at: u.clock(), ok: true,
		tx: binary.NativeEndian.Uint64(values[0].Value[:]),
		rx: binary.NativeEndian.Uint64(values[1].Value[:]),
	}
	before := u.link
	u.link = now
	seconds := (now.at - before.at).Seconds()
	if !before.ok || seconds <= 0 || now.tx < before.tx || now.rx < before.rx {
		return nvml.SUCCESS
	}
	out.set(engine.GPUNVLinkTxBps, float64(now.tx-before.tx)*1024/seconds)
	out.set(engine.GPUNVLinkRxBps, float64(now.rx-before.rx)*1024/seconds)
	return nvml.SUCCESS
}

func (o *outcome) set(f engine.GPUField, v float64) { o.gpu.Fields[f] = stat.Some(v) }

// processes lists the PIDs on the device, those of MPS clients included.
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
