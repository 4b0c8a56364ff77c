package optrace

import "time"

// thread is what is known of a thread of the target.
type thread struct {
	tid, pid int32
	epoch    uint32
	seen     time.Duration

	graph  *building // that it began, nil none
	lane   *laneWork // that it computes, nil none
	worker int32     // the thread that it computed for last
	hint   int       // spans of lane 0 of the graph that it began last
	stray  bool      // it computes a graph that was counted as partial

	call *callWork // that it is in, nil none

	split   uint64 // graph that it handed to a backend last
	backend uint32 // which

	offCPU
	use       cpuUsing // whether it has a CPU
	inSyscall bool
	syscall   time.Duration // its begin

	read   uint32 // ref of the counters that were read last, 0 none
	readAt time.Duration
}

// span is what the thread computes, nil nothing.
func (th *thread) span() *Span {
	if th.lane == nil {
		return nil
	}
	return th.lane.span()
}

// thread is the thread of an event, a new one where it was not known; nil where there
// is no room for more.
func (a *Assembler) thread(e *Event) *thread {
	th := a.last
	if th == nil || th.tid != e.TID {
		th = a.threads[e.TID]
	}
	switch {
	case th == nil:
		if len(a.threads) >= maxThreads && !a.sweep() {
			a.lost = addUp(a.lost, 1)
			return nil
		}
		th = &thread{tid: e.TID, pid: e.PID, epoch: a.epoch}
		a.threads[e.TID] = th
	case th.pid != e.PID: // the number was given away again
		a.abandon(th)
		a.uses(th, useUnknown)
		*th = thread{tid: e.TID, pid: e.PID, epoch: a.epoch}
	case th.epoch != a.epoch:
		th.epoch = a.epoch
		th.call, th.away, th.inSyscall, th.read = nil, false, false, 0
		th.use = useUnknown
		th.lastAway = absence{}
	}
	th.seen = a.now
	a.last = th
	return th
}

// abandon drops what a thread that is gone was part of.
func (a *Assembler) abandon(th *thread) {
	if th.graph != nil {
		a.drop(th.graph)
	}
	w := th.lane
	switch {
	case w == nil:
	case w.graph != nil:
		a.drop(w.graph)
	default:
		a.letGo(w)
	}
}

// sweep forgets threads that compute nothing, and says whether there is room again. It
// looks through the table once for many new threads, however full it stays.
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

// forgetThreads forgets those that compute nothing, unless they are to be kept.
func (a *Assembler) forgetThreads(keep func(*thread) bool) {
	for tid, th := range a.threads {
		if th.graph == nil && th.lane == nil && !keep(th) {
			a.uses(th, useUnknown)
			delete(a.threads, tid)
		}
	}
	a.last = nil
}
