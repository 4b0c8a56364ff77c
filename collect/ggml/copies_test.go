package ggml

import (
	"testing"
	"time"
)

func TestTheCopyThatComputesIsWatched(t *testing.T) {
	var c copies
	if c.shouldSwitch(time.Hour, false) {
		t.Error("it is left before it is watched")
	}
	now := time.Hour
	c.watch(now)
	for i, dwell := range []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second, 2 * time.Second} {
		if c.shouldSwitch(now+dwell-1, false) || !c.shouldSwitch(now+dwell, false) {
			t.Errorf("copy %d is not watched for %v", i, dwell)
		}
		now += dwell
		c.watch(now)
	}
	if c.shouldSwitch(now+time.Millisecond, true) || c.shouldSwitch(now+time.Hour, false) {
		t.Error("one that computed is left")
	}
}
