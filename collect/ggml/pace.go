package ggml

import "time"

// Pauses between two readings of the ring. Programs wake nobody: waking costs the target
// more than the record itself. A reading that finds little costs about as much as one
// that finds much, so that the pause grows as events become few.
const (
	minPause = 5 * time.Millisecond
	maxPause = 32 * time.Millisecond // for a ring of the default size
)

// fillShare is the part of the ring that may fill in a pause at the present rate: what
// is left is for bursts. One of 470,000 events a second with tensors, 190 MB/s, fills
// 6 MB of 16 in the longest pause.
const fillShare = 16

// pace says when to read the ring next.
type pace struct {
	size int     // of the ring in bytes
	rate float64 // bytes a second
}

// saw takes in how many bytes came in a time. A rate that grows counts at once, one that
// falls by and by.
func (p *pace) saw(bytes uint64, in time.Duration) {
	if in <= 0 {
		return
	}
	rate := float64(bytes) / in.Seconds()
	p.rate = max(rate, p.rate/2)
}

// pause is how long to wait after a reading.
func (p *pace) pause() time.Duration {
	longest := max(minPause, min(maxPause, maxPause*time.Duration(p.size)/defaultRing))
	room := float64(p.size) / fillShare
	if p.rate*longest.Seconds() <= room {
		return longest
	}
	return max(minPause, time.Duration(room/p.rate*float64(time.Second)))
}
