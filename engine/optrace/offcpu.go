package optrace

import "time"

// offCPU is the present or last time that a thread was off its CPU.
type offCPU struct {
	away     bool
	out      time.Duration // when it left the CPU
	reason   OffReason
	tracer   bool          // the tracing process got the CPU
	woken    time.Duration // when it became ready again, or never
	lastAway absence
}

// absence is a time that a thread was off its CPU.
type absence struct {
	from, to  time.Duration
	woken     time.Duration
	preempted bool
	tracer    bool // the tracing process began or ended it
}

// until returns the absence of a thread that is still off its CPU.
func (o *offCPU) until(at time.Duration) absence {
	at = max(at, o.out)
	preempted := o.reason == OffPreempted
	return absence{from: o.out, to: at, woken: min(o.woken, at), preempted: preempted, tracer: preempted && o.tracer}
}

// isTracer reports whether a PID of an event is that of the tracing process.
func (a *Assembler) isTracer(pid int64) bool { return a.Tracer > 0 && pid == int64(a.Tracer) }

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
		th.tracer = a.isTracer(int64(e.Addr))
	case SwitchIn:
		a.switchIn(th, e)
	case WakeUp:
		if th.away && th.reason != OffPreempted && th.woken == never {
			th.woken = e.At
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
	if !th.away {
		return
	}
	th.away = false
	was := th.until(e.At)
	was.tracer = was.tracer || was.woken >= 0 && a.isTracer(e.N)
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
	was.from = min(max(was.from, begin), was.to)
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
	}
	ready := off
	if was.woken >= 0 {
		ready = was.to - was.woken
		w.Waking += ready
		if len(w.WakeUps) < maxWakeUps {
			w.WakeUps = append(w.WakeUps, ready)
		}
	}
	if was.tracer {
		w.Tracer += ready
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
