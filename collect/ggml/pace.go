package ggml

import "time"

// Pauses between two readings of the ring. Programs do not wake the reader, because waking
// costs the target more than the record itself. A reading of few records costs about as much as
// one of many, so the pause grows when events become rare.
const (
	minPause = 5 * time.Millisecond
	maxPause = 32 * time.Millisecond // for a ring of the default size
)

// fillShare is the divisor of the ring's size that may fill during a pause at the present rate;
// the remainder is for bursts. 470,000 events per second with tensors, 190 MB/s, fill 6 MB of
// 16 in the longest pause.
const fillShare = 16

// pace decides when to read the ring next.
type pace struct {
	size int     // of the ring in bytes
	rate float64 // bytes per second
}

// update updates the rate by the bytes that came in a time. A rising rate counts at once, a
// falling one gradually.
func (p *pace) update(bytes uint64, in time.Duration) {
	if in <= 0 {
		return
	}
	rate := float64(bytes) / in.Seconds()
	p.rate = max(rate, p.rate/2)
}

// pause returns how long to wait after a reading.
func (p *pace) pause() time.Duration {
	longest := max(minPause, min(maxPause, maxPause*time.Duration(p.size)/defaultRing))
	room := float64(p.size) / fillShare
	if p.rate*longest.Seconds() <= room {
		return longest
	}
	return max(minPause, time.Duration(room/p.rate*float64(time.Second)))
}
