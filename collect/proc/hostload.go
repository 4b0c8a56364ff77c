package proc

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/engine/capture"
	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

const (
	// mostLoads are the processes that a [LoadMeter] names.
	mostLoads = 8
	// maxCPU bounds the numbers of CPUs that are read.
	maxCPU = 1 << 14
	// leastLoad is the CPU time below which no process is named: two ticks.
	leastLoad = 2 * time.Second / ticksPerSecond
)

// LoadMeter tells who had the CPUs that a process may use since the meter was made. It
// reads each process once then, and once for each answer.
type LoadMeter struct {
	fs    FS
	pid   int
	cpus  map[int]bool
	clock func() time.Duration
	group *group
	first hostLook
}

// hostLook is what the kernel has counted by a moment.
type hostLook struct {
	at        time.Duration
	busy      time.Duration // of programs and the kernel on the CPUs that the target may use
	idle      time.Duration // of these
	processes map[int]statLine
	group     capture.CgroupSample
}

// NewLoadMeter begins to measure beside a process. The clock counts from any moment. The
// error says what cannot be read.
func (f FS) NewLoadMeter(pid int, clock func() time.Duration) (*LoadMeter, error) {
	cpus := f.allowed(pid)
	if len(cpus) == 0 {
		return nil, fmt.Errorf("%w %d: the CPUs that it may use cannot be read", ErrNotFound, pid)
	}
	m := &LoadMeter{fs: f, pid: pid, cpus: cpus, clock: clock, group: f.newGroup(pid)}
	var err error
	if m.first, err = m.look(); err != nil {
		return nil, err
	}
	if _, there := m.first.processes[pid]; !there {
		return nil, fmt.Errorf("%w %d", ErrNotFound, pid)
	}
	return m, nil
}

// Load is who had the CPUs since the meter was made; nil where that is no time, or cannot
// be read any more, as after the end of the process.
func (m *LoadMeter) Load() *optrace.HostLoad {
	now, err := m.look()
	if err != nil || now.at <= m.first.at || now.processes[m.pid].start != m.first.processes[m.pid].start {
		return nil
	}
	l := &optrace.HostLoad{Elapsed: now.at - m.first.at, CPUs: len(m.cpus), Idle: max(now.idle-m.first.idle, 0), Processes: []optrace.ProcessLoad{}}
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
		case took >= leastLoad:
			l.Processes = append(l.Processes, optrace.ProcessLoad{PID: pid, Name: strings.ToValidUTF8(string(p.comm), "\uFFFD"), Time: took})
		}
	}
	l.Others = max(now.busy-m.first.busy-l.Target-l.Rooftop-l.Kernel, 0)
	l.Processes = m.largest(l.Processes)
	l.CPULimit = now.group.CPULimitCores
	if was, is := m.first.group.ThrottledSeconds, now.group.ThrottledSeconds; was.OK && is.OK {
		l.Throttled = stat.Some(max(is.V-was.V, 0))
	}
	// Both are absent together.
	was, is := m.first.group, now.group
	if periods := is.Periods.V - was.Periods.V; periods > 0 && was.ThrottledPeriods.OK && is.ThrottledPeriods.OK {
		l.ThrottledPeriods = stat.Some(min(max((is.ThrottledPeriods.V-was.ThrottledPeriods.V)/periods, 0), 1))
	}
	return l
}

// largest are the processes that took most and may run on a CPU of the target.
func (m *LoadMeter) largest(list []optrace.ProcessLoad) []optrace.ProcessLoad {
	slices.SortFunc(list, func(a, b optrace.ProcessLoad) int {
		return cmp.Or(cmp.Compare(b.Time, a.Time), cmp.Compare(a.PID, b.PID))
	})
	out := list[:0]
	for _, p := range list {
		if len(out) == mostLoads {
			break
		}
		if m.meets(p.PID) {
			out = append(out, p)
		}
	}
	return out
}

// meets says that a process may use a CPU of the target, or that this cannot be read.
func (m *LoadMeter) meets(pid int) bool {
	theirs := m.fs.allowed(pid)
	for cpu := range theirs {
		if m.cpus[cpu] {
			return true
		}
	}
	return len(theirs) == 0
}

func (m *LoadMeter) look() (hostLook, error) {
	l := hostLook{at: m.clock(), processes: map[int]statLine{}}
	text, err := readFile(m.fs.root + "/stat")
	if err != nil {
		return l, fmt.Errorf("who has the CPUs cannot be read: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		if cpu, busy, idle, ok := parseCPU(line); ok && m.cpus[cpu] {
			l.busy += busy
			l.idle += idle
		}
	}
	pids, err := m.fs.pids()
	if err != nil {
		return l, err
	}
	for _, pid := range append(pids, m.fs.self) {
		text, err := readFile(m.fs.path(pid, "stat"))
		if err != nil {
			continue // it has ended, or is hidden
		}
		if line, ok := parseStat(text); ok {
			line.comm = slices.Clone(line.comm)
			l.processes[pid] = line
		}
	}
	if m.group != nil {
		m.group.cpuLimit(&l.group)
	}
	return l, nil
}

// parseCPU reads a line of one CPU of /proc/stat, "cpu3 user nice system idle iowait …"
// (proc_stat(5)). What interrupts and a hypervisor took is neither busy nor idle.
func parseCPU(line string) (cpu int, busy, idle time.Duration, ok bool) {
	name, rest, _ := strings.Cut(line, " ")
	number, found := strings.CutPrefix(name, "cpu")
	cpu, err := strconv.Atoi(number)
	if !found || err != nil {
		return 0, 0, 0, false
	}
	b := []byte(rest)
	var field [5]uint64
	for i := range field {
		if field[i], b, ok = nextNumber(b); !ok {
			return 0, 0, 0, false
		}
	}
	return cpu, ticksTime(field[0], field[1]) + ticksTime(field[2], 0), ticksTime(field[3], field[4]), true
}

// allowed are the CPUs that the threads of a process may use, together; none where that
// cannot be read.
func (f FS) allowed(pid int) map[int]bool {
	cpus := map[int]bool{}
	tasks, err := f.mount.AllThreads(pid)
	if err != nil || len(tasks) == 0 {
		f.allow(cpus, f.path(pid, "status"))
		return cpus
	}
	for _, task := range tasks {
		f.allow(cpus, f.path(pid, "task", strconv.Itoa(task.PID), "status"))
	}
	return cpus
}

// allow adds the CPUs that a status says a thread may use (proc_pid_status(5),
// Cpus_allowed_list: "0-3,8").
func (f FS) allow(cpus map[int]bool, status string) {
	text, err := readFile(status)
	if err != nil {
		return
	}
	for line := range strings.Lines(string(text)) {
		list, found := strings.CutPrefix(line, "Cpus_allowed_list:")
		if !found {
			continue
		}
		for part := range strings.SplitSeq(strings.TrimSpace(list), ",") {
			low, high, several := strings.Cut(part, "-")
			first, err := strconv.Atoi(low)
			last := first
			if err == nil && several {
				last, err = strconv.Atoi(high)
			}
			for cpu := first; err == nil && cpu <= min(last, maxCPU); cpu++ {
				cpus[cpu] = true
			}
		}
		return
	}
}
