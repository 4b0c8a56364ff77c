package ggml

import (
	"testing"
	"time"
)

func TestPace(t *testing.T) {
	for _, c := range []struct {
		name string
		size int
		rate float64 // bytes a second
		want time.Duration
	}{
		{"nothing comes", defaultRing, 0, maxPause},
		{"a large model", defaultRing, 1.6e6, maxPause},
		{"a tiny one", defaultRing, 64 << 20, time.Second / 64},
		{"more than can be read", defaultRing, 10e9, minPause},
		{"a small ring", minRing, 0, minPause},
		{"a large ring", maxRing, 1e6, maxPause},
	} {
		p := pace{size: c.size}
		for range 3 {
			p.update(uint64(c.rate/100), 10*time.Millisecond)
		}
		if got := p.pause(); (got - c.want).Abs() > time.Millisecond/10 {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// A burst is read soon afterwards, and the pause does not grow back at once.
func TestPaceOfABurst(t *testing.T) {
	p := pace{size: defaultRing}
	p.update(0, 10*time.Millisecond)
	p.update(2<<20, 10*time.Millisecond)
	if got := p.pause(); got > 6*time.Millisecond {
		t.Errorf("after a burst %v", got)
	}
	p.update(0, 10*time.Millisecond)
	if got := p.pause(); got > 12*time.Millisecond {
		t.Errorf("one reading after a burst %v", got)
	}
	for range 20 {
		p.update(0, 10*time.Millisecond)
	}
	if got := p.pause(); got != maxPause {
		t.Errorf("long after a burst %v, want %v", got, maxPause)
	}
	before := p
	p.update(1<<20, 0) // in no time
	if p != before {
		t.Error("a rate of no time")
	}
}
