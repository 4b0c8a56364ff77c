package gpu

import (
	"fmt"
	"slices"
	"sync"

	"github.com/rooftop-dev/rooftop/collect"
	"github.com/rooftop-dev/rooftop/engine"
)

// base is the common part of all sources: the devices, which of them are read, and their
// last readings.
type base struct {
	devices []Device // does not change once the source is open
	notes   []string // found when the source was opened

	mu     sync.Mutex // guards the fields below, and those of the source that say so
	closed bool
	keep   []int   // positions in devices
	last   []state // by position
}

// state is the last reading of one device.
type state struct {
	gpu   engine.GPU
	why   why
	asked bool
	note  string // why nothing was read, a sentence with the device's name; "" if something was
}

// keepAll selects all devices and clears their states.
func (b *base) keepAll() {
	b.keep = kept(nil, len(b.devices))
	b.last = make([]state, len(b.devices))
}

// Devices implements [Source].
func (b *base) Devices() []Device { return slices.Clone(b.devices) }

// Keep implements [Source].
func (b *base) Keep(positions []int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.keep = kept(positions, len(b.devices))
}

// ready returns an error if the source is closed or keeps no device. The caller holds the
// mutex.
func (b *base) ready() error {
	switch {
	case b.closed:
		return ErrClosed
	case len(b.keep) == 0:
		return fmt.Errorf("no GPU is kept: %w", collect.ErrNoData)
	}
	return nil
}

// reading assembles a reading from the states of devices; ok is false if none was read.
// The caller holds the mutex.
func (b *base) reading(keep []int) (r engine.GPUReading, ok bool) {
	r.Devices = make([]engine.GPU, len(keep))
	for i, p := range keep {
		d, g := &b.devices[p], b.last[p].gpu
		g.Index, g.Name, g.UUID = d.Index, d.Name, d.UUID
		r.Devices[i] = g
		ok = ok || b.last[p].asked && b.last[p].note == ""
	}
	return r, ok
}

// Missing implements [Source].
func (b *base) Missing() []engine.Missing {
	b.mu.Lock()
	defer b.mu.Unlock()
	var labels []string
	var reasons []why
	for _, p := range b.keep {
		if s := &b.last[p]; s.asked && s.note == "" {
			labels = append(labels, label(b.devices[p]))
			reasons = append(reasons, s.why)
		}
	}
	return gaps(labels, reasons)
}

// Notes implements [Source].
func (b *base) Notes() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	notes := slices.Clone(b.notes)
	for _, p := range b.keep {
		if b.last[p].note != "" {
			notes = append(notes, b.last[p].note)
		}
	}
	return notes
}

// Close implements [Source].
func (b *base) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	return nil
}

// kept returns the valid ones of the positions given to Keep for n devices; nil means
// all.
func kept(positions []int, n int) []int {
	out := make([]int, 0, n)
	if positions == nil {
		for i := range n {
			out = append(out, i)
		}
		return out
	}
	for _, p := range positions {
		if p >= 0 && p < n {
			out = append(out, p)
		}
	}
	return out
}
