package optrace

import (
	"time"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

// cpuUsing is the state of a thread with regard to a CPU.
type cpuUsing uint8

const (
	useUnknown cpuUsing = iota // no event showed it yet
	useNone                    // blocked
	useReady                   // ready, without a CPU
	useRuns
)

// cpuTimes are times added up over the threads of the target.
type cpuTimes struct {
	ran    time.Duration // on a CPU
	queued time.Duration // ready, without a CPU
}

// since returns the difference to the earlier sums then.
func (t cpuTimes) since(then cpuTimes) cpuTimes {
	return cpuTimes{ran: max(t.ran-then.ran, 0), queued: max(t.queued-then.queued, 0)}
}

// part returns the share of the times in a part of the whole, as if they were even over it.
func (t cpuTimes) part(of, whole time.Duration) cpuTimes {
	if whole <= 0 || of >= whole {
		return t
	}
	share := float64(max(of, 0)) / float64(whole)
	return cpuTimes{ran: time.Duration(share * float64(t.ran)), queued: time.Duration(share * float64(t.queued))}
}

// cpuSums adds up the CPU time of the target's threads, by the kernel's switches. If they have
// few CPUs while one of them waits, other programs have the others.
type cpuSums struct {
	cpuTimes
	at             time.Duration
	running, ready int // threads now
}

// advance adds the time up to a moment.
func (s *cpuSums) advance(at time.Duration) {
	if d := at - s.at; d > 0 {
		s.ran = stat.AddSaturating(s.ran, time.Duration(s.running)*d)
		s.queued = stat.AddSaturating(s.queued, time.Duration(s.ready)*d)
		s.at = at
	}
}

// cpuBook tracks which processes and threads have the CPUs.
type cpuBook struct {
	byNumber map[uint16]*cpuUse
	sums     cpuSums // of the threads of this epoch
	epoch    uint32  // increases when the states of threads become invalid
}

// setUse sets the state of a thread from now on.
func (b *cpuBook) setUse(th *thread, use cpuUsing, now time.Duration) {
	if th.use == use || th.epoch != b.epoch {
		return
	}
	s := &b.sums
	s.advance(now)
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

// runs notes that a thread does something, so it has a CPU.
func (b *cpuBook) runs(th *thread, now time.Duration) {
	th.away = false
	if th.use != useRuns {
		b.setUse(th, useRuns, now)
	}
}
