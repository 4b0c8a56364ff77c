package optrace

import (
	"slices"
	"time"
)

// offCPU is the present or last time that a thread was off its CPU.
type offCPU struct {
	away     bool
	out      time.Duration // when it left the CPU
	cpu      uint16        // the CPU that it left
	reason   OffReason
	woken    time.Duration // when it became ready again, or never
	then     cpuTimes      // sums of the target when it left
	lastAway absence
}

// absence is a time that a thread was off its CPU.
type absence struct {
	from, to  time.Duration
	woken     time.Duration
	preempted bool
	waited    bool     // it was woken and another process had the CPU until the end
	own       int32    // PID of its process
	taken     []taking // time slices of processes, its own included, while it could have run
	target    cpuTimes // sums of the target during the absence
}

// taking is a time slice for which a process had a CPU.
type taking struct {
	from, to time.Duration
	pid      int32
}

// cpuUse is which processes had a CPU, as far as events say so.
type cpuUse struct {
	pid   int32 // the process that has it, 0 if none or unknown
	since time.Duration
	taken []taking // the newest maxTakings at least, oldest first
}

// advance ends the time slice of one process and begins that of the next. If the process that
// leaves is not the one that came, switches in between were not reported, and that time counts
// for none.
func (u *cpuUse) advance(at time.Duration, leaves, comes int64) {
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

// takenBetween returns the time slices that processes had in an interval up to now.
func (u *cpuUse) takenBetween(from, to time.Duration) []taking {
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

// get returns the use of a CPU, an empty one if it is new.
func (b *cpuBook) get(number uint16) *cpuUse {
	u := b.byNumber[number]
	if u == nil {
		if len(b.byNumber) >= maxCPUs {
			clear(b.byNumber)
		}
		u = &cpuUse{}
		b.byNumber[number] = u
	}
	return u
}

// until returns the absence of a thread that is still off its CPU.
func (o *offCPU) until(at time.Duration) absence {
	return absence{from: o.out, to: max(at, o.out), woken: min(o.woken, max(at, o.out)), preempted: o.reason == OffPreempted}
}

// absenceOf returns the absence of a thread up to a moment, with the sums of the target's
// threads meanwhile.
func (b *cpuBook) absenceOf(th *thread, at, now time.Duration) absence {
	was := th.until(at)
	b.sums.advance(now)
	was.target = b.sums.since(th.then).part(was.to-was.from, now-th.out)
	return was
}

// pushKernel processes a kernel event of a thread.
func (a *Assembler) pushKernel(e *Event) {
	if e.Kind == BlockIOEnd { // it is reported on whatever thread the interrupt hit
		a.disk.end(e)
		return
	}
	th := a.thread(e)
	if th == nil {
		return
	}
	switch e.Kind {
	case SwitchOut:
		th.away, th.out, th.reason, th.woken = true, e.At, OffReason(e.N), never
		th.cpu = e.CPU
		use := useNone
		if th.reason == OffPreempted {
			use = useReady
		}
		a.cpus.setUse(th, use, a.now)
		th.then = a.cpus.sums.cpuTimes
		a.cpus.get(e.CPU).advance(e.At, int64(th.pid), int64(e.Addr))
	case SwitchIn:
		a.switchIn(th, e)
	case WakeUp:
		if th.away && th.reason != OffPreempted && th.woken == never {
			th.woken = e.At
			a.cpus.setUse(th, useReady, a.now)
		}
	case BlockIOBegin:
		a.disk.begin(th, e)
	case CountersRead:
		a.readCounters(th, e)
	default:
		th.countKernel(e)
	}
}

func (a *Assembler) switchIn(th *thread, e *Event) {
	a.cpus.get(e.CPU).advance(e.At, e.N, int64(th.pid))
	if !th.away {
		a.cpus.setUse(th, useRuns, a.now)
		return
	}
	th.away = false
	was := a.cpus.absenceOf(th, e.At, a.now)
	a.cpus.setUse(th, useRuns, a.now)
	was.own = th.pid
	switch {
	case was.preempted:
		// It waited for its former CPU. Another CPU would have run it at once.
		was.taken = a.cpus.get(th.cpu).takenBetween(was.from, was.to)
	case was.woken >= 0 && e.N != 0 && e.N != int64(th.pid):
		// It waited for its new CPU, which another process had. The idle task and its own threads
		// do not count.
		was.taken, was.waited = a.cpus.get(e.CPU).takenBetween(was.woken, was.to), true
	}
	th.lastAway = was
	if th.work != nil {
		th.work.Switches++
		th.work.addAbsent(was)
	}
}

// addAbsent adds an absence to the compute thread. A thread enters and leaves barriers on a CPU, so
// the absence is either within one barrier or outside of all.
func (w *worker) addAbsent(was absence) {
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

// addEarlierAbsence adds the part after begin of an absence from before the compute thread's first
// operator.
func (w *worker) addEarlierAbsence(was absence, begin time.Duration) {
	if was.to <= begin {
		return
	}
	if s := w.Spans; len(s) > 0 && s[0].Begin < was.to {
		return // it is included in the spans
	}
	w.Switches++
	w.addAbsence(was.after(begin))
}

// after returns the part of an absence after a moment.
func (was absence) after(begin time.Duration) absence {
	whole := was.to - was.from
	was.from = min(max(was.from, begin), was.to)
	was.target = was.target.part(was.to-was.from, whole)
	if was.woken >= 0 {
		was.woken = min(max(was.woken, begin), was.to)
	}
	return was
}

func (w *worker) addAbsence(was absence) {
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
			w.takenBy(t.pid, took)
		} else {
			w.takenBy(SiblingPID, took)
		}
	}
	w.takenBy(UnknownPID, rest)
}

// takenBy adds the time that a process took.
func (w *worker) takenBy(pid int32, took time.Duration) {
	if took <= 0 {
		return
	}
	if w.TakenBy == nil {
		w.TakenBy = map[int32]time.Duration{}
	}
	if _, known := w.TakenBy[pid]; known || len(w.TakenBy) < maxTakers {
		w.TakenBy[pid] += took
	}
}

// countKernel counts system calls and faults for the compute thread that the thread works as.
func (th *thread) countKernel(e *Event) {
	w := th.work
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

func (w *worker) fault(major bool) {
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
