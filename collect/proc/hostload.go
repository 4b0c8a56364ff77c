package proc

import (
	"fmt"
	"math"
	"time"

	"github.com/prometheus/procfs"

	"github.com/rooftop-dev/rooftop/engine/capture"
	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// LoadMeter measures the use of the CPUs that a target process may use, since the
// meter was created. It reads every process at creation and at each call of Load.
type LoadMeter struct {
	fs    FS
	pid   int
	cpus  map[int]bool
	clock func() time.Duration
	group *group
	first hostCounts
}

// hostCounts holds the kernel's counters at one time.
type hostCounts struct {
	at        time.Duration
	busy      time.Duration // of programs and the kernel, on the CPUs that the target may use
	idle      time.Duration // of the same CPUs
	processes map[int]statLine
	group     capture.CgroupSample
}

// NewLoadMeter starts measuring the load around a process. The clock may count from any
// origin. The error says what cannot be read.
func (f FS) NewLoadMeter(pid int, clock func() time.Duration) (*LoadMeter, error) {
	cpus := f.allowedCPUs(pid)
	if len(cpus) == 0 {
		return nil, fmt.Errorf("%w %d: the CPUs that it may use cannot be read", ErrNotFound, pid)
	}
	m := &LoadMeter{fs: f, pid: pid, cpus: cpus, clock: clock, group: f.newGroup(pid)}
	var err error
	if m.first, err = m.read(); err != nil {
		return nil, err
	}
	if _, there := m.first.processes[pid]; !there {
		return nil, fmt.Errorf("%w %d", ErrNotFound, pid)
	}
	return m, nil
}

// Load returns the use of the CPUs since the meter was created; nil if no time passed or
// the readings fail, for example because the process ended.
func (m *LoadMeter) Load() *optrace.HostLoad {
	now, err := m.read()
	if err != nil || now.at <= m.first.at || now.processes[m.pid].start != m.first.processes[m.pid].start {
		return nil
	}
	l := &optrace.HostLoad{Elapsed: now.at - m.first.at, CPUs: len(m.cpus), Idle: max(now.idle-m.first.idle, 0)}
	for pid := range now.processes {
		p := now.processes[pid]
		took := p.cpu
		if before, known := m.first.processes[pid]; known && before.start == p.start {
			took = max(p.cpu-before.cpu, 0)
		}
		switch {
		case pid == m.pid:
			l.Target = took
		case pid == m.fs.self:
			l.Rooftop = took
		case p.kernel:
			l.Kernel += took
		}
	}
	l.Others = max(now.busy-m.first.busy-l.Target-l.Rooftop-l.Kernel, 0)
	l.CPULimit = now.group.CPULimitCores
	if was, is := m.first.group.ThrottledSeconds, now.group.ThrottledSeconds; was.OK && is.OK {
		l.Throttled = stat.Some(max(is.V-was.V, 0))
	}
	// Periods and ThrottledPeriods are absent together.
	was, is := m.first.group, now.group
	if periods := is.Periods.V - was.Periods.V; periods > 0 && was.ThrottledPeriods.OK && is.ThrottledPeriods.OK {
		l.ThrottledPeriods = stat.Some(min(max((is.ThrottledPeriods.V-was.ThrottledPeriods.V)/periods, 0), 1))
	}
	return l
}

func (m *LoadMeter) read() (hostCounts, error) {
	l := hostCounts{at: m.clock(), processes: map[int]statLine{}}
	var err error
	if l.busy, l.idle, err = m.fs.cpuTime(m.cpus); err != nil {
		return l, fmt.Errorf("which processes have the CPUs cannot be read: %w", err)
	}
	pids, err := m.fs.PIDs()
	if err != nil {
		return l, err
	}
	for _, pid := range append(pids, m.fs.self) {
		text, err := readFile(m.fs.path(pid, "stat"))
		if err != nil {
			continue // it ended or is hidden
		}
		if line, ok := parseStat(text); ok {
			line.comm = nil // it refers to the text
			l.processes[pid] = line
		}
	}
	if m.group != nil {
		m.group.cpuLimit(&l.group)
	}
	return l, nil
}

// CPUTime returns the time, since boot, that programs and the kernel used the CPUs which a process may
// use, and the number of these CPUs.
func (f procfiles) CPUTime(pid int) (time.Duration, int, error) {
	cpus := f.allowedCPUs(pid)
	if len(cpus) == 0 {
		return 0, 0, fmt.Errorf("%w %d: the CPUs that it may use cannot be read", ErrNotFound, pid)
	}
	busy, _, err := f.cpuTime(cpus)
	return busy, len(cpus), err
}

// cpuTime returns how long CPUs were busy and idle since boot. Time of interrupts and of a hypervisor is
// neither.
func (f procfiles) cpuTime(cpus map[int]bool) (busy, idle time.Duration, err error) {
	st, err := f.mount.Stat()
	if err != nil {
		return 0, 0, err
	}
	for cpu := range cpus {
		c := st.CPU[int64(cpu)]
		busy += secondsTime(c.User + c.Nice + c.System)
		idle += secondsTime(c.Idle + c.Iowait)
	}
	return busy, idle, nil
}

// secondsTime converts the seconds that procfs derives from clock ticks, rounded to a
// tick.
func secondsTime(seconds float64) time.Duration {
	return time.Duration(math.Round(seconds*ticksPerSecond)) * (time.Second / ticksPerSecond)
}

// allowedCPUs returns the union of the CPUs that the threads of a process may use; empty
// if that cannot be read.
func (f procfiles) allowedCPUs(pid int) map[int]bool {
	cpus := map[int]bool{}
	tasks, err := f.mount.AllThreads(pid)
	if err != nil || len(tasks) == 0 {
		p, err := f.mount.Proc(pid)
		if err != nil {
			return nil
		}
		tasks = procfs.Procs{p}
	}
	for _, task := range tasks {
		status, err := task.NewStatus()
		if err != nil {
			continue
		}
		for _, cpu := range status.CpusAllowedList {
			cpus[int(cpu)] = true
		}
	}
	return cpus
}
