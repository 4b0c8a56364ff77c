package session

import (
	"slices"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
)

const (
	// reelStride is the time between two snapshots that are kept for the way back;
	// reelMost bounds them: beyond it every other one goes.
	reelStride = engine.WindowLength
	reelMost   = 2048
)

// reel is a tape with a way back: it keeps a snapshot of every window and of every
// turn of the loop. They share nearly all that they hold.
type reel struct {
	tape   *tape
	at     time.Duration      // where it stands, at most where the tape was read to unless nothing lies between
	kept   []*engine.Snapshot // by rising time
	stride time.Duration
	err    error // why the tape ends early
}

func newReel(t *tape) *reel {
	r := &reel{tape: t, at: t.at, stride: reelStride}
	r.keep()
	return r
}

// to moves to a time, with at most so many lines read on the way. It reports
// whether it is there.
func (r *reel) to(target time.Duration, lines int) bool {
	for range lines {
		next, ok := r.tape.next()
		if !ok || next > target {
			r.at = target
			return true
		}
		if err := r.tape.step(); err != nil {
			r.err = err
		}
		r.keep()
	}
	r.at = r.tape.at
	return false
}

// keep keeps the loop's snapshot where it is time for one.
func (r *reel) keep() {
	s := r.tape.loop.Snapshot()
	if n := len(r.kept); n > 0 {
		last := r.kept[n-1]
		if s.Now-last.Now < r.stride && s.Phase == last.Phase && len(s.Iterations) == len(last.Iterations) {
			return
		}
	}
	if len(r.kept) == reelMost {
		r.stride *= 2
		every := 0
		r.kept = slices.DeleteFunc(r.kept, func(*engine.Snapshot) bool { every++; return every%2 == 0 })
	}
	r.kept = append(r.kept, s)
}

// snapshot is what there is to see where it stands.
func (r *reel) snapshot() *engine.Snapshot {
	if r.at >= r.tape.at {
		return r.tape.loop.Snapshot()
	}
	return r.kept[max(0, r.later()-1)]
}

// later is the place of the first kept snapshot after where it stands.
func (r *reel) later() int {
	i, _ := slices.BinarySearchFunc(r.kept, r.at, func(s *engine.Snapshot, at time.Duration) int {
		if s.Now <= at {
			return -1
		}
		return 1
	})
	return i
}

// next is the time at which there will be something else to see; false where
// there will not.
func (r *reel) next() (time.Duration, bool) {
	if r.at >= r.tape.at {
		return r.tape.next()
	}
	if i := r.later(); i < len(r.kept) {
		return r.kept[i].Now, true
	}
	return r.tape.at, true
}
