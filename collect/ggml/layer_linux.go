//go:build amd64 || arm64

package ggml

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"github.com/rooftop-dev/rooftop/engine/optrace"
)

// kernelCounters are the counters that the kernel keeps for every thread.
const kernelCounters = 1<<optrace.TaskClock | 1<<optrace.ContextSwitches | 1<<optrace.Migrations |
	1<<optrace.MinorFaults | 1<<optrace.MajorFaults

// kernelDetails are the details that need programs for kernel events.
const kernelDetails = optrace.DetailSched | optrace.DetailSyscall | optrace.DetailIO | optrace.DetailFault

// kernelLayer attaches programs to kernel events, and opens counters of CPUs.
type kernelLayer struct {
	maps    *maps
	gaps    *gaps
	several bool // several processes are traced, so a thread's process is ambiguous
	task    *taskOffsets
	taskErr error
	pmu     *pmu
	pmuErr  error
	on      map[optrace.Detail][]link.Link
	exec    link.Link
}

// newKernelLayer reads the kernel's types, opens its counters, and follows a target that
// becomes another program.
func newKernelLayer(m *maps, g *gaps, several bool) *kernelLayer {
	k := &kernelLayer{maps: m, gaps: g, several: several, on: map[optrace.Detail][]link.Link{}}
	k.task, k.taskErr = kernelTypes()
	if k.pmu, k.pmuErr = openPMU(hardware); k.pmu != nil {
		m.pmu = k.pmu.maps
	}
	if !several {
		k.followExecs()
	}
	return k
}

// counters returns the counters that are read, one bit each.
func (k *kernelLayer) counters() (have uint16) {
	if k.task != nil {
		have = kernelCounters
		if k.pmu != nil {
			have |= k.pmu.have
		}
	}
	return have
}

// tracepoint is a program and the kernel's tracepoint that it handles.
type tracepoint struct {
	name string
	ins  asm.Instructions
}

// set attaches what the details need, and returns the links that they do not need. A failure
// becomes a gap.
func (k *kernelLayer) set(d optrace.Detail) (unused []link.Link) {
	k.pmu.run(d&optrace.DetailCounters != 0)
	for bit := optrace.DetailToken; bit < optrace.LevelAll; bit <<= 1 {
		if bit&kernelDetails == 0 {
			continue
		}
		links := k.on[bit]
		switch {
		case d&bit == 0:
			unused = append(unused, links...)
			delete(k.on, bit)
		case links == nil:
			links, err := k.attach(bit)
			if err != nil {
				unused = append(unused, links...)
				k.gaps.add(optrace.Gap{What: kernelNames[bit], Why: err.Error(), Next: kernelNext(err)})
				continue
			}
			k.on[bit] = links
		}
	}
	return unused
}

// kernelNames are what is missing without a detail.
var kernelNames = map[optrace.Detail]string{
	optrace.DetailSched: "time on and off the CPU", optrace.DetailSyscall: "system calls",
	optrace.DetailIO: "block I/O", optrace.DetailFault: "page faults",
}

// kernelNext returns the next step for an error.
func kernelNext(err error) string {
	if errors.Is(err, os.ErrPermission) {
		return "run as root, or see `rooftop doctor`"
	}
	return "use a kernel with BTF (CONFIG_DEBUG_INFO_BTF), 5.5 or later"
}

// attach attaches one detail.
func (k *kernelLayer) attach(bit optrace.Detail) ([]link.Link, error) {
	if k.several {
		return nil, errors.New("time on and off the CPU is available for a single process only, and several are traced")
	}
	if bit == optrace.DetailFault {
		return k.attachFaults()
	}
	if k.task == nil {
		return nil, k.taskErr
	}
	var points []tracepoint
	var links []link.Link
	switch bit {
	case optrace.DetailSched:
		points = []tracepoint{{"sched_switch", switches(k.maps, k.task)}, {"sched_wakeup", wakeUps(k.maps, k.task)}}
	case optrace.DetailSyscall:
		points = []tracepoint{{"sys_enter", syscalls(k.maps, optrace.SyscallBegin)}, {"sys_exit", syscalls(k.maps, optrace.SyscallEnd)}}
	case optrace.DetailIO:
		if !k.task.blocks {
			return nil, errors.New("the kernel's struct request has unexpected fields")
		}
		start, err := attachTracepoint(tracepoint{"block_io_start", blockStart(k.maps)})
		if err == nil {
			links = append(links, start)
		} else {
			k.gaps.add(optrace.Gap{What: "block I/O that threads of the kernel issue for the target", Why: shortError(err), Next: "use Linux 6.4 or later"})
		}
		points = []tracepoint{{"block_rq_issue", blockBegin(k.maps, k.task)}, {"block_rq_complete", blockEnd(k.maps, k.task)}}
	}
	for _, p := range points {
		l, err := attachTracepoint(p)
		if err != nil {
			return links, err
		}
		links = append(links, l)
	}
	return links, nil
}

// attachTracepoint loads and attaches a program; the link keeps the program alive.
func attachTracepoint(p tracepoint) (link.Link, error) {
	program, err := loadTracepoint(p.name, p.ins)
	if err != nil {
		return nil, err
	}
	defer program.Close()
	return link.AttachTracing(link.TracingOptions{Program: program})
}

// followExecs emits an event when the target becomes another program.
func (k *kernelLayer) followExecs() {
	l, err := attachTracepoint(tracepoint{"sched_process_exec", execs(k.maps)})
	if err != nil {
		k.gaps.add(optrace.Gap{What: "whether the target becomes another program", Why: err.Error(), Next: kernelNext(err)})
		return
	}
	k.exec = l
}

// attachFaults opens events of page faults on every CPU.
func (k *kernelLayer) attachFaults() ([]link.Link, error) {
	var links []link.Link
	for _, major := range []bool{false, true} {
		program, err := loadFaults(faults(k.maps, major))
		if err != nil {
			return links, err
		}
		defer program.Close()
		config := uint64(unix.PERF_COUNT_SW_PAGE_FAULTS_MIN)
		if major {
			config = unix.PERF_COUNT_SW_PAGE_FAULTS_MAJ
		}
		for cpu := range possibleCPUs() {
			l, err := attachSoftware(program, config, cpu)
			if errors.Is(err, unix.ENODEV) {
				continue // the CPU is off
			}
			if err != nil {
				return links, fmt.Errorf("open the software event of page faults: %w", err)
			}
			links = append(links, l)
		}
	}
	if len(links) == 0 {
		return nil, errors.New("no CPU has software events")
	}
	return links, nil
}

// possibleCPUs returns how many CPUs the kernel may have.
func possibleCPUs() int {
	if n, err := ebpf.PossibleCPU(); err == nil {
		return n
	}
	return runtime.NumCPU()
}

// eventLink is the link of a program and its perf event.
type eventLink struct {
	link.Link
	fd int
}

// Close closes the link and the event.
func (e *eventLink) Close() error { return errors.Join(e.Link.Close(), unix.Close(e.fd)) }

// attachSoftware runs a program at each occurrence of a software event on a CPU.
func attachSoftware(p *ebpf.Program, config uint64, cpu int) (link.Link, error) {
	attr := unix.PerfEventAttr{
		Type: unix.PERF_TYPE_SOFTWARE, Config: config, Sample: 1, Sample_type: unix.PERF_SAMPLE_ADDR,
	}
	attr.Size = uint32(unix.PERF_ATTR_SIZE_VER0)
	fd, err := unix.PerfEventOpen(&attr, -1, cpu, -1, unix.PERF_FLAG_FD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	raw, err := link.AttachRawLink(link.RawLinkOptions{Target: fd, Program: p, Attach: ebpf.AttachPerfEvent})
	if err != nil {
		return nil, errors.Join(err, unix.Close(fd))
	}
	return &eventLink{raw, fd}, nil
}

func (k *kernelLayer) close() error {
	if k == nil {
		return nil
	}
	var links []link.Link
	for _, more := range k.on {
		links = append(links, more...)
	}
	if k.exec != nil {
		links = append(links, k.exec)
	}
	return errors.Join(closeLinks(links), k.pmu.close())
}

// noteAbsent adds gaps for wanted details that nothing can provide.
func (s *Session) noteAbsent(d optrace.Detail) {
	have := optrace.Detail(0)
	for _, g := range s.groups {
		have |= g.detail
	}
	for _, one := range []struct {
		bit        optrace.Detail
		what, next string
	}{
		{optrace.DetailToken, "calls and their tokens", "trace graphs, which show tokens"},
		{optrace.DetailGraph, "graphs", "use a build that is not stripped"},
		{optrace.DetailBarrier, "waits in barriers", "operators count as ending when the next one begins"},
	} {
		if d&one.bit != 0 && have&one.bit == 0 {
			s.gaps.add(optrace.Gap{What: one.what, Why: "the runtime's files have no symbol for it", Next: one.next})
		}
	}
	if d&optrace.DetailExperts != 0 && !s.offsets.experts() {
		s.gaps.add(optrace.Gap{What: "experts of mixtures", Why: "the layout or the number of MUL_MAT_ID is not known"})
	}
	if d&optrace.DetailCounters != 0 {
		s.kernel.noteCounters()
	}
}

// noteCounters adds gaps for counters that are missing.
func (k *kernelLayer) noteCounters() {
	switch {
	case k.pmu == nil:
		k.gaps.add(optrace.Gap{
			What: "instructions, cycles, cache and branch misses",
			Why:  "this machine shows no performance monitoring unit (" + k.pmuErr.Error() + ")",
			Next: "run on bare metal or give the virtual machine a PMU; the kernel's own counters are read instead",
		})
	case k.pmu.have != cpuCounters:
		k.gaps.add(optrace.Gap{
			What: "some of instructions, cycles, cache and branch misses",
			Why:  "the performance monitoring unit does not count all of them, or others use it",
		})
	}
	if k.task == nil {
		k.gaps.add(optrace.Gap{What: "the kernel's counters of threads", Why: k.taskErr.Error(), Next: kernelNext(k.taskErr)})
	}
}

// havePMU returns why a hardware counter cannot be opened, nil if it can.
func havePMU() error {
	attr := unix.PerfEventAttr{Type: unix.PERF_TYPE_HARDWARE, Config: unix.PERF_COUNT_HW_INSTRUCTIONS, Bits: unix.PerfBitDisabled}
	attr.Size = uint32(unix.PERF_ATTR_SIZE_VER0)
	fd, err := unix.PerfEventOpen(&attr, 0, -1, -1, unix.PERF_FLAG_FD_CLOEXEC)
	if err != nil {
		return err
	}
	return unix.Close(fd)
}
