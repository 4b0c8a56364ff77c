//go:build amd64 || arm64

package ggml

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/rooftop-dev/rooftop/engine/optrace"
)

// event is a counter of a CPU for perf_event_open(2).
type event struct {
	counter optrace.Counter
	kind    uint32
	config  uint64
}

// hardware are the counters of the performance monitoring unit that are read.
var hardware = []event{
	{optrace.Instructions, unix.PERF_TYPE_HARDWARE, unix.PERF_COUNT_HW_INSTRUCTIONS},
	{optrace.Cycles, unix.PERF_TYPE_HARDWARE, unix.PERF_COUNT_HW_CPU_CYCLES},
	{optrace.LLCMisses, unix.PERF_TYPE_HARDWARE, unix.PERF_COUNT_HW_CACHE_MISSES},
	{optrace.BranchMisses, unix.PERF_TYPE_HARDWARE, unix.PERF_COUNT_HW_BRANCH_MISSES},
}

// pmu is the counters on every CPU, and the maps through which programs read them.
type pmu struct {
	maps   map[optrace.Counter]*ebpf.Map
	events []int
	have   uint16
}

// openPMU opens counters without starting them. Counters that cannot be opened are left out; if
// none can, it fails with the reason of the first.
func openPMU(wanted []event) (*pmu, error) {
	p := &pmu{maps: map[optrace.Counter]*ebpf.Map{}}
	var first error
	for _, e := range wanted {
		if err := p.open(e); err != nil {
			if first == nil {
				first = fmt.Errorf("open a hardware counter: %w", err)
			}
			continue
		}
		p.have |= 1 << e.counter
	}
	if p.have == 0 {
		return nil, errors.Join(first, p.close())
	}
	return p, nil
}

// open opens one counter on every CPU that is online.
func (p *pmu) open(e event) error {
	cpus := possibleCPUs()
	m, err := ebpf.NewMap(&ebpf.MapSpec{Name: "rooftop_pmu", Type: ebpf.PerfEventArray, KeySize: 4, ValueSize: 4, MaxEntries: uint32(cpus)})
	if err != nil {
		return err
	}
	opened := 0
	for cpu := range cpus {
		attr := unix.PerfEventAttr{Type: e.kind, Config: e.config, Size: unix.PERF_ATTR_SIZE_VER0, Bits: unix.PerfBitDisabled}
		fd, err := unix.PerfEventOpen(&attr, -1, cpu, -1, unix.PERF_FLAG_FD_CLOEXEC)
		if errors.Is(err, unix.ENODEV) {
			continue // the CPU is off
		}
		if err == nil {
			p.events = append(p.events, fd)
			err = m.Put(uint32(cpu), uint32(fd))
		}
		if err != nil {
			return errors.Join(err, m.Close())
		}
		opened++
	}
	if opened == 0 {
		return errors.Join(errors.New("no CPU has it"), m.Close())
	}
	p.maps[e.counter] = m
	return nil
}

// run starts or stops the counters.
func (p *pmu) run(on bool) {
	if p == nil {
		return
	}
	request := uint(unix.PERF_EVENT_IOC_DISABLE)
	if on {
		request = unix.PERF_EVENT_IOC_ENABLE
	}
	for _, fd := range p.events {
		_ = unix.IoctlSetInt(fd, request, 0) // an event that cannot be started counts nothing
	}
}

// close ends the counters.
func (p *pmu) close() error {
	if p == nil {
		return nil
	}
	var all []error
	for _, m := range p.maps {
		all = append(all, m.Close())
	}
	for _, fd := range p.events {
		all = append(all, unix.Close(fd))
	}
	p.maps, p.events = nil, nil
	return errors.Join(all...)
}
