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

// kernelDetails are those that need programs in the kernel itself.
const kernelDetails = optrace.DetailSched | optrace.DetailSyscall | optrace.DetailIO | optrace.DetailFault

// kernelLayer is what is attached to the kernel, by detail.
type kernelLayer struct {
	on   map[optrace.Detail][]link.Link
	exec link.Link
}

// tracepoint is a program and the kernel's tracepoint that it follows.
type tracepoint struct {
	name string
	ins  asm.Instructions
}

// setKernel attaches what the details need, and returns the links of what they do not. What fails is a gap.
func (s *Session) setKernel(d optrace.Detail) (unused []link.Link) {
	if s.kernel == nil {
		s.kernel = &kernelLayer{on: map[optrace.Detail][]link.Link{}}
		s.followExecs()
	}
	for bit := optrace.DetailToken; bit < optrace.LevelAll; bit <<= 1 {
		if bit&kernelDetails == 0 {
			continue
		}
		links := s.kernel.on[bit]
		switch {
		case d&bit == 0:
			unused = append(unused, links...)
			delete(s.kernel.on, bit)
		case links == nil:
			links, err := s.attachKernel(bit)
			if err != nil {
				unused = append(unused, links...)
				s.gaps.add(optrace.Gap{What: kernelNames[bit], Why: err.Error(), Next: kernelNext(err)})
				continue
			}
			s.kernel.on[bit] = links
		}
	}
	return unused
}

// kernelNames are what a reader misses without a detail.
var kernelNames = map[optrace.Detail]string{
	optrace.DetailSched: "time on and off the CPU", optrace.DetailSyscall: "system calls",
	optrace.DetailIO: "block I/O", optrace.DetailFault: "page faults",
}

// kernelNext is what to do about an error.
func kernelNext(err error) string {
	if errors.Is(err, os.ErrPermission) {
		return "run as root, or see `rooftop doctor`"
	}
	return "use a kernel with BTF (CONFIG_DEBUG_INFO_BTF), 5.5 or later"
}

// attachKernel attaches one detail.
func (s *Session) attachKernel(bit optrace.Detail) ([]link.Link, error) {
	if s.unknown == followAll {
		return nil, errors.New("several processes are watched at a time, and threads are told apart by one")
	}
	if bit == optrace.DetailFault {
		return s.attachFaults()
	}
	if s.task == nil {
		return nil, s.taskErr
	}
	var points []tracepoint
	var links []link.Link
	switch bit {
	case optrace.DetailSched:
		points = []tracepoint{{"sched_switch", switches(s.maps, s.task)}, {"sched_wakeup", wakeUps(s.maps, s.task)}}
	case optrace.DetailSyscall:
		points = []tracepoint{{"sys_enter", syscalls(s.maps, optrace.SyscallBegin)}, {"sys_exit", syscalls(s.maps, optrace.SyscallEnd)}}
	case optrace.DetailIO:
		if !s.task.blocks {
			return nil, errors.New("the kernel's type of disk requests has other fields than are known")
		}
		start, err := attachTracepoint(tracepoint{"block_io_start", blockStart(s.maps)})
		if err == nil {
			links = append(links, start)
		} else {
			s.gaps.add(optrace.Gap{What: "block I/O that threads of the kernel issue for the target", Why: short(err), Next: "use Linux 6.4 or later"})
		}
		points = []tracepoint{{"block_rq_issue", blockBegin(s.maps, s.task)}, {"block_rq_complete", blockEnd(s.maps, s.task)}}
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

// attachTracepoint loads and attaches; the link keeps the program.
func attachTracepoint(p tracepoint) (link.Link, error) {
	program, err := loadTracepoint(p.name, p.ins)
	if err != nil {
		return nil, err
	}
	defer program.Close()
	return link.AttachTracing(link.TracingOptions{Program: program})
}

// followExecs tells of a target that becomes another program.
func (s *Session) followExecs() {
	if s.unknown == followAll {
		return
	}
	l, err := attachTracepoint(tracepoint{"sched_process_exec", execs(s.maps)})
	if err != nil {
		s.gaps.add(optrace.Gap{What: "whether the target becomes another program", Why: err.Error(), Next: kernelNext(err)})
		return
	}
	s.kernel.exec = l
}

// attachFaults opens events of page faults on every CPU.
func (s *Session) attachFaults() ([]link.Link, error) {
	var links []link.Link
	for _, major := range []bool{false, true} {
		program, err := loadFaults(faults(s.maps, major))
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

// possibleCPUs is how many CPUs the kernel may have.
func possibleCPUs() int {
	if n, err := ebpf.PossibleCPU(); err == nil {
		return n
	}
	return runtime.NumCPU()
}

// eventLink is a perf event that a program follows.
type eventLink struct {
	link.Link
	fd int
}

// Close ends the event too.
func (e *eventLink) Close() error { return errors.Join(e.Link.Close(), unix.Close(e.fd)) }

// attachSoftware runs a program at each of a software event of a CPU.
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
	return closeLinks(links)
}

// noteAbsent says what of the wanted details nothing can give.
func (s *Session) noteAbsent(d optrace.Detail) {
	have := optrace.Detail(0)
	for _, g := range s.groups {
		have |= g.detail
	}
	for _, one := range []struct {
		bit        optrace.Detail
		what, next string
	}{
		{optrace.DetailToken, "calls and their tokens", "tokens are told by graphs, where they are"},
		{optrace.DetailGraph, "graphs", "use a build that is not stripped"},
		{optrace.DetailBarrier, "waits in barriers", "ends of operators are the begins of the next ones"},
	} {
		if d&one.bit != 0 && have&one.bit == 0 {
			s.gaps.add(optrace.Gap{What: one.what, Why: "no function of it has a symbol in the runtime's files", Next: one.next})
		}
	}
	if d&optrace.DetailExperts != 0 && !s.offsets.experts() {
		s.gaps.add(optrace.Gap{What: "experts of mixtures", Why: "the layout or the number of MUL_MAT_ID is not known"})
	}
	if d&optrace.DetailCounters != 0 {
		s.noteCounters()
	}
}

// noteCounters says which counters there are.
func (s *Session) noteCounters() {
	switch {
	case s.pmu == nil:
		s.gaps.add(optrace.Gap{
			What: "instructions, cycles, cache and branch misses",
			Why:  "this machine shows no performance monitoring unit (" + s.pmuErr.Error() + ")",
			Next: "run on bare metal or give the virtual machine a PMU; the kernel's own counters are read instead",
		})
	case s.pmu.have != cpuCounters:
		s.gaps.add(optrace.Gap{
			What: "some of instructions, cycles, cache and branch misses",
			Why:  "the performance monitoring unit does not count all of them, or others use it",
		})
	}
	if s.task == nil {
		s.gaps.add(optrace.Gap{What: "the kernel's counters of threads", Why: s.taskErr.Error(), Next: kernelNext(s.taskErr)})
	}
}

// havePMU says why a hardware counter cannot be opened; nil where it can.
func havePMU() error {
	attr := unix.PerfEventAttr{Type: unix.PERF_TYPE_HARDWARE, Config: unix.PERF_COUNT_HW_INSTRUCTIONS, Bits: unix.PerfBitDisabled}
	attr.Size = uint32(unix.PERF_ATTR_SIZE_VER0)
	fd, err := unix.PerfEventOpen(&attr, 0, -1, -1, unix.PERF_FLAG_FD_CLOEXEC)
	if err != nil {
		return err
	}
	return unix.Close(fd)
}
