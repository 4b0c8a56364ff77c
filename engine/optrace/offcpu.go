package optrace

import (
	"slices"
	"time"
)

// offCPU is whether a thread is on a CPU.
type offCPU struct {
	away     bool
	out      time.Duration // when it left
	cpu      uint16        // which one
	reason   OffReason
	woken    time.Duration // when it was ready again, none not yet
	then     cpuTimes      // of the target, when it left
	lastAway absence
}

// absence is a time that a thread was off its CPU.
type absence struct {
	from, to  time.Duration
	woken     time.Duration
	preempted bool
	waited    bool     // for a CPU after it was woken, that another process had at the end
	own       int32    // its process
	taken     []taking // by processes while it could have run, its own among them
	target    cpuTimes // of the target meanwhile
}

// taking is a time that a process had a CPU.
type taking struct {
	from, to time.Duration
	pid      int32
}

// cpuUse is who had a CPU, as far as it was told.
type cpuUse struct {
	pid   int32 // who has it, 0 nobody or not known
	since time.Duration
	taken []taking // the newest maxTakings at least, oldest first
}

// pass ends what one process has and begins what the next has. Where another one leaves
// than came, switches between were not told, and nobody is charged with that time.
func (u *cpuUse) pass(at time.Duration, leaves, comes int64) {
	if u.pid > 0 && int64(u.pid) == leaves {
		if len(u.taken) == 2*maxTakings {
			u.taken = append(u.taken[:0], u.taken[maxTakings:]...)
		}
		u.taken = append(u.taken, taking{from: u.since, to: at, pid: u.pid})
	}
	u.pid, u.since = 0, at
	if pid := int32(comes); pid > 0 && int64(pid) == comes {
		u.pid = pid
	}
}

// between is what processes had of a time up to now.
func (u *cpuUse) between(from, to time.Duration) []taking {
	first := len(u.taken)
	for first > 0 && u.taken[first-1].to > from {
		first--
	}
	out := slices.Clone(u.taken[first:])
	if u.pid > 0 && u.since < to {
		out = append(out, taking{from: u.since, to: to, pid: u.pid})
	}
	return out
}

// cpu is what is known of a CPU.
func (a *Assembler) cpu(number uint16) *cpuUse {
	u := a.cpus[number]
	if u == nil {
		if len(a.cpus) >= maxCPUs {
			clear(a.cpus)
		}
		u = &cpuUse{}
		a.cpus[number] = u
	}
	return u
}

// until is the absence of a thread that is still away.
func (o *offCPU) until(at time.Duration) absence {
	return absence{from: o.out, to: max(at, o.out), woken: min(o.woken, max(at, o.out)), preempted: o.reason == OffPreempted}
}

// absenceOf is the absence of a thread up to a moment, with what the target's threads had
// meanwhile.
func (a *Assembler) absenceOf(th *thread, at time.Duration) absence {
	was := th.until(at)
	a.inUse.pass(a.now)
	was.target = a.inUse.cpuTimes.since(th.then).part(was.to-was.from, a.now-th.out)
	return was
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
		th.cpu = e.CPU
		use := useNone
		if th.reason == OffPreempted {
			use = useReady
		}
		a.uses(th, use)
		th.then = a.inUse.cpuTimes
		a.cpu(e.CPU).pass(e.At, int64(th.pid), int64(e.Addr))
	case SwitchIn:
		a.switchIn(th, e)
	case WakeUp:
		if th.away && th.reason != OffPreempted && th.woken == none {
			th.woken = e.At
			a.uses(th, useReady)
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
	a.cpu(e.CPU).pass(e.At, e.N, int64(th.pid))
	if !th.away {
		a.uses(th, useRuns)
		return
	}
	th.away = false
	was := a.absenceOf(th, e.At)
	a.uses(th, useRuns)
	was.own = th.pid
	switch {
	case was.preempted:
		// It waited for the CPU that it had. Another one that takes it over runs it at once.
		was.taken = a.cpu(th.cpu).between(was.from, was.to)
	case was.woken >= 0 && e.N != 0 && e.N != int64(th.pid):
		// It waited for the CPU that it gets. An idle one, or one of its own threads, is no
		// other process.
		was.taken, was.waited = a.cpu(e.CPU).between(was.woken, was.to), true
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
	s := w.span()
	switch {
	case !w.waiting:
		w.since += off // a part of the wait otherwise
	case s != nil:
		w.OffWaiting, s.OffWaiting = w.OffWaiting+off, s.OffWaiting+off
	default:
		w.OffWaiting += off
	}
	if s != nil {
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
	whole := was.to - was.from
	was.from = min(max(was.from, begin), was.to)
	was.target = was.target.part(was.to-was.from, whole)
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
		w.Ran += was.target.ran
		w.Queued += was.target.queued
	}
	if was.woken >= 0 {
		waking := was.to - was.woken
		w.Waking += waking
		if len(w.WakeUps) < maxWakeUps {
			w.WakeUps = append(w.WakeUps, waking)
		}
	}
	from, rest := was.from, time.Duration(0)
	if was.waited {
		from = was.woken
		rest = was.to - from
	}
	for _, t := range was.taken {
		took := min(t.to, was.to) - max(t.from, from)
		rest -= max(took, 0)
		if t.pid != was.own {
			w.rob(t.pid, took)
		} else {
			w.rob(siblingThief, took)
		}
	}
	w.rob(untoldThief, rest)
}

// untoldThief stands for the processes that had a CPU while a woken thread waited for it,
// where the switches between them were not told.
const untoldThief = -1

// siblingThief stands for other threads of the target itself.
const siblingThief = -2

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
