package optrace

import (
	"time"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

// thread is the state of a thread of the target.
type thread struct {
	tid, pid int32
	epoch    uint32
	seen     time.Duration

	graph      *building // the open graph that it began, nil if none
	work       *worker   // its open compute thread, nil if none
	servedLast int32     // TID of the thread whose graph it computed last
	hint       int       // number of spans of compute thread 0 in the graph that it began last
	stray      bool      // its present graph was counted as partial

	call *callWork // its open call, nil if none

	split   uint64 // address of the graph that it passed to a backend last
	backend uint32 // that backend

	offCPU
	inSyscall bool
	syscall   time.Duration // when it began

	read   uint32 // ref of its last reading of counters, 0 if none
	readAt time.Duration
}

// span returns the span that the thread computes, nil if none.
func (th *thread) span() *Span {
	if th.work == nil {
		return nil
	}
	return th.work.span()
}

// thread returns the thread of an event, a new one if it is unknown, or nil if the table is
// full.
func (a *Assembler) thread(e *Event) *thread {
	th := a.last
	if th == nil || th.tid != e.TID {
		th = a.threads[e.TID]
	}
	switch {
	case th == nil:
		if len(a.threads) >= maxThreads && !a.sweep() {
			a.lost = stat.AddSaturating(a.lost, 1)
			return nil
		}
		th = &thread{tid: e.TID, pid: e.PID, epoch: a.epoch}
		a.threads[e.TID] = th
	case th.pid != e.PID: // the TID was reused
		a.dropThread(th)
		*th = thread{tid: e.TID, pid: e.PID, epoch: a.epoch}
	case th.epoch != a.epoch:
		th.epoch = a.epoch
		th.call, th.away, th.inSyscall, th.read = nil, false, false, 0
		th.lastAway = absence{}
	}
	th.seen = a.now
	a.last = th
	return th
}

// dropThread drops the graph or worker of a thread that no longer exists.
func (a *Assembler) dropThread(th *thread) {
	if th.graph != nil {
		a.drop(th.graph)
	}
	w := th.work
	switch {
	case w == nil:
	case w.graph != nil:
		a.drop(w.graph)
	default:
		a.dropLoose(w)
	}
}

// sweep forgets threads that compute nothing, and reports whether there is room again. If the
// table stays full, it is searched only once for many new threads.
func (a *Assembler) sweep() bool {
	if a.refused > 0 && a.refused < maxThreads/2 {
		a.refused++
		return false
	}
	a.refused = 0
	a.forgetThreads(func(th *thread) bool { return th.call != nil })
	if len(a.threads) > maxThreads/2 {
		a.forgetThreads(func(*thread) bool { return false })
	}
	if len(a.threads) > maxThreads*3/4 {
		a.refused = 1
		return false
	}
	return true
}

// forgetThreads forgets the threads that compute nothing, unless keep returns true.
func (a *Assembler) forgetThreads(keep func(*thread) bool) {
	for tid, th := range a.threads {
		if th.graph == nil && th.work == nil && !keep(th) {
			delete(a.threads, tid)
		}
	}
	a.last = nil
}
