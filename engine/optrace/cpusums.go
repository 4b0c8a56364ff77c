package optrace

import "time"

// cpuUsing is whether a thread has a CPU.
type cpuUsing uint8

const (
	useUnknown cpuUsing = iota // nothing said so yet
	useNone                    // it waits for something
	useReady                   // it could run, and has none
	useRuns
)

// cpuTimes are times of the threads of the target, added up over them.
type cpuTimes struct {
	ran    time.Duration // on a CPU
	queued time.Duration // ready and without one
}

// since is what came after a moment, of which then were the times.
func (t cpuTimes) since(then cpuTimes) cpuTimes {
	return cpuTimes{ran: max(t.ran-then.ran, 0), queued: max(t.queued-then.queued, 0)}
}

// part is the share of some time in a longer one, as if both were even over it.
func (t cpuTimes) part(of, whole time.Duration) cpuTimes {
	if whole <= 0 || of >= whole {
		return t
	}
	share := float64(max(of, 0)) / float64(whole)
	return cpuTimes{ran: time.Duration(share * float64(t.ran)), queued: time.Duration(share * float64(t.queued))}
}

// cpuSums adds up the CPU time of the target's threads, as the kernel's switches tell it.
// Who waits for a CPU while these have few of them waits for other programs.
type cpuSums struct {
	cpuTimes
	at             time.Duration
	running, ready int // threads now
}

// pass adds the time up to a moment.
func (s *cpuSums) pass(at time.Duration) {
	if d := at - s.at; d > 0 {
		s.ran = plus(s.ran, time.Duration(s.running)*d)
		s.queued = plus(s.queued, time.Duration(s.ready)*d)
		s.at = at
	}
}

// uses is a thread that has a CPU from now on, or has none.
func (a *Assembler) uses(th *thread, use cpuUsing) {
	if th.use == use || th.epoch != a.epoch {
		return
	}
	s := &a.inUse
	s.pass(a.now)
	for _, change := range [...]struct {
		of cpuUsing
		by int
	}{{th.use, -1}, {use, 1}} {
		switch change.of {
		case useRuns:
			s.running += change.by
		case useReady:
			s.ready += change.by
		case useUnknown, useNone:
		}
	}
	th.use = use
}

// runs is a thread that does something: it has a CPU.
func (a *Assembler) runs(th *thread) {
	th.away = false
	if th.use != useRuns {
		a.uses(th, useRuns)
	}
}
