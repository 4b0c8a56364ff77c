package optrace

import (
	"slices"
	"time"
)

// offCPU is whether a thread is on a CPU.
type offCPU struct {
	away     bool
	out      time.Duration // when it left
	reason   OffReason
	woken    time.Duration // when it was ready again, none not yet
	lastAway absence
}

// absence is a time that a thread was off its CPU.
type absence struct {
	from, to  time.Duration
	woken     time.Duration
	preempted bool
	taken     []taking // by other processes meanwhile; not where it was blocked
}

// taking is a time that another process had a CPU which the target had before and after.
type taking struct {
	from, to time.Duration
	pid      int32 // the last one, where there were several
}

// cpuOf is a CPU as the threads of a process have it.
type cpuOf struct {
	pid int32
	cpu uint16
}

// cpuUse is who had a CPU between threads of a process. A thread that lost it to another
// one of its own process may come back after that one, which has lost it to a third party
// in between.
type cpuUse struct {
	out   time.Duration // when a thread of the process last left it
	taken []taking      // the newest maxTakings, oldest first
}

// take adds the time since a thread of the process last had the CPU.
func (u *cpuUse) take(to time.Duration, pid int32) {
	if len(u.taken) == maxTakings {
		u.taken = append(u.taken[:0], u.taken[1:]...)
	}
	u.taken = append(u.taken, taking{from: u.out, to: to, pid: pid})
}

// since are those that reach beyond a moment.
func (u *cpuUse) since(from time.Duration) []taking {
	n := len(u.taken)
	for n > 0 && u.taken[n-1].to > from {
		n--
	}
	return slices.Clone(u.taken[n:])
}

// cpu is what is known of a CPU.
func (a *Assembler) cpu(of cpuOf) *cpuUse {
	u := a.cpus[of]
	if u == nil {
		if len(a.cpus) >= maxCPUs {
			clear(a.cpus)
		}
		u = &cpuUse{}
		a.cpus[of] = u
	}
	return u
}

// until is the absence of a thread that is still away.
func (o *offCPU) until(at time.Duration) absence {
	return absence{from: o.out, to: max(at, o.out), woken: min(o.woken, max(at, o.out)), preempted: o.reason == OffPreempted}
}

// pushKernel takes what the kernel says of a thread.
func (a *Assembler) pushKernel(e *Event) {
	if e.Kind == BlockIOEnd { // it ends on whatever thread the interrupt came to
		a.endRequest(e)
		return
	}
	th := a.thread(e)
	if th == nil {
		return
	}
	switch e.Kind {
	case SwitchOut:
		th.away, th.out, th.reason, th.woken = true, e.At, OffReason(e.N), none
		a.cpu(cpuOf{th.pid, e.CPU}).out = e.At
	case SwitchIn:
		a.switchIn(th, e)
	case WakeUp:
		if th.away && th.reason != OffPreempted && th.woken == none {
			th.woken = e.At
		}
	case BlockIOBegin:
		a.beginRequest(th, e)
	case CountersRead:
		a.readCounters(th, e)
	default:
		th.countKernel(e)
	}
}

func (a *Assembler) switchIn(th *thread, e *Event) {
	u := a.cpu(cpuOf{th.pid, e.CPU})
	if pid := int32(e.N); int64(pid) == e.N && pid > 0 && pid != th.pid {
		u.take(e.At, pid)
	}
	if !th.away {
		return
	}
	th.away = false
	was := th.until(e.At)
	if was.preempted {
		was.taken = u.since(was.from)
	}
	th.lastAway = was
	if th.lane != nil {
		th.lane.Switches++
		th.lane.gone(was)
	}
}

// gone adds an absence within the lane. A thread enters and leaves barriers on a CPU:
// it was away within one or outside of all.
func (w *laneWork) gone(was absence) {
	if w.graph != nil {
		was = was.after(w.graph.Begin)
	}
	off := was.to - was.from
	w.addAbsence(was)
	if !w.waiting {
		w.since += off // a part of the wait otherwise
	}
	if s := w.span(); s != nil {
		s.Off += off
		if was.preempted {
			s.Preempted += off
		}
	}
}

// before adds what lies after begin of an absence from before the lane's first operator.
func (w *laneWork) before(was absence, begin time.Duration) {
	if was.to <= begin {
		return
	}
	if s := w.Spans; len(s) > 0 && s[0].Begin < was.to {
		return // it is in the spans already
	}
	w.Switches++
	w.addAbsence(was.after(begin))
}

// after is the part of an absence after a moment.
func (was absence) after(begin time.Duration) absence {
	was.from = min(max(was.from, begin), was.to)
	if was.woken >= 0 {
		was.woken = min(max(was.woken, begin), was.to)
	}
	return was
}

func (w *laneWork) addAbsence(was absence) {
	off := was.to - was.from
	w.Off += off
	if was.preempted {
		w.Preempted += off
	}
	if was.woken >= 0 {
		waking := was.to - was.woken
		w.Waking += waking
		if len(w.WakeUps) < maxWakeUps {
			w.WakeUps = append(w.WakeUps, waking)
		}
	}
	for _, t := range was.taken {
		w.rob(t.pid, min(t.to, was.to)-max(t.from, was.from))
	}
}

// rob adds what a process took.
func (w *laneWork) rob(pid int32, took time.Duration) {
	if took <= 0 {
		return
	}
	if w.Thieves == nil {
		w.Thieves = map[int32]time.Duration{}
	}
	if _, known := w.Thieves[pid]; known || len(w.Thieves) < maxThieves {
		w.Thieves[pid] += took
	}
}

// countKernel counts system calls and faults for the lane of a thread.
func (th *thread) countKernel(e *Event) {
	w := th.lane
	switch e.Kind {
	case SyscallBegin:
		th.inSyscall, th.syscall = true, e.At
		if w != nil {
			w.Syscalls++
		}
	case SyscallEnd:
		if w != nil && th.inSyscall {
			from := th.syscall
			if w.graph != nil {
				from = max(from, w.graph.Begin)
			}
			w.SyscallTime += e.At - from
		}
		th.inSyscall = false
	case PageFault:
		if w != nil {
			w.fault(e.N == 1)
		}
	}
}

func (w *laneWork) fault(major bool) {
	s := w.span()
	if major {
		w.MajorFaults++
		if s != nil {
			s.MajorFaults++
		}
		return
	}
	w.MinorFaults++
	if s != nil {
		s.MinorFaults++
	}
}
