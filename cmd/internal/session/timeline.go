package session

import (
	"slices"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/loop"
)

const (
	// snapshotStride is the time between two snapshots that are kept for seeking back.
	snapshotStride = engine.WindowLength
	// maxSnapshots bounds the kept snapshots; at the bound, every other one is dropped and the
	// stride doubles.
	maxSnapshots = 2048
)

// timeline is a playback that can seek back: it keeps a snapshot of every window and of every change
// of the phase. Snapshots share nearly all of their memory.
type timeline struct {
	playback *playback
	at       time.Duration    // position; after that of the playback only if no line lies between
	kept     []*loop.Snapshot // in order of time
	stride   time.Duration
	err      error // why the playback ends early
}

func newTimeline(t *playback) *timeline {
	r := &timeline{playback: t, at: t.at, stride: snapshotStride}
	r.keepSnapshot()
	return r
}

// seek moves towards a time, reading at most the given number of lines. It reports whether it
// reached the time.
func (r *timeline) seek(target time.Duration, lines int) bool {
	for range lines {
		next, ok := r.playback.next()
		if !ok || next > target {
			r.at = target
			return true
		}
		if err := r.playback.step(); err != nil {
			r.err = err
		}
		r.keepSnapshot()
	}
	r.at = r.playback.at
	return false
}

// keepSnapshot keeps the loop's snapshot if the stride has passed or the phase has changed.
func (r *timeline) keepSnapshot() {
	s := r.playback.loop.Snapshot()
	if n := len(r.kept); n > 0 {
		last := r.kept[n-1]
		if s.Now-last.Now < r.stride && s.Phase == last.Phase && len(s.Iterations) == len(last.Iterations) {
			return
		}
	}
	if len(r.kept) == maxSnapshots {
		r.stride *= 2
		every := 0
		r.kept = slices.DeleteFunc(r.kept, func(*loop.Snapshot) bool { every++; return every%2 == 0 })
	}
	r.kept = append(r.kept, s)
}

// snapshot returns the snapshot at the current position: the latest one, or the last that was kept
// before it.
func (r *timeline) snapshot() *loop.Snapshot {
	if r.at >= r.playback.at {
		return r.playback.loop.Snapshot()
	}
	return r.kept[max(0, r.nextKept()-1)]
}

// nextKept returns the index of the first kept snapshot after the current position.
func (r *timeline) nextKept() int {
	i, _ := slices.BinarySearchFunc(r.kept, r.at, func(s *loop.Snapshot, at time.Duration) int {
		if s.Now <= at {
			return -1
		}
		return 1
	})
	return i
}

// nextChange returns the time of the next snapshot; false at the end.
func (r *timeline) nextChange() (time.Duration, bool) {
	if r.at >= r.playback.at {
		return r.playback.next()
	}
	if i := r.nextKept(); i < len(r.kept) {
		return r.kept[i].Now, true
	}
	return r.playback.at, true
}
