package loop_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/engine/longtest"
	"github.com/rooftop-dev/rooftop/engine/loop"
)

// held returns the number of bytes that a loop keeps alive.
func held(r *rig) uint64 {
	r.events, r.acts = nil, nil
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestMemoryIsFlatOverADay restarts a server every twenty minutes, with the kept configuration, with a
// worse one that is reverted, and with one without a gain. It checks that the loop needs no more
// memory after a day than after some hours.
func TestMemoryIsFlatOverADay(t *testing.T) {
	if !longtest.Tests {
		t.Skip("NOT CHECKED without -tags long: memory over a day of samples")
	}
	r := newRig(t, "--max-num-seqs 32", quiet)
	r.every = 2 * time.Second
	r.step(loop.Begin{})
	size := map[int]uint64{}
	for n := range 24 * 3 {
		r.run(10 * time.Minute)
		switch args := []string{"--max-num-seqs 32", "--max-num-seqs 2", "--max-num-seqs 32 --block-size 32"}[n%3]; {
		case r.loop.Snapshot().Phase == loop.PhaseWorse:
			r.press(loop.CommandRevert)
			r.restart("--max-num-seqs 32", 10*time.Second)
		default:
			r.restart(args, 10*time.Second)
		}
		r.run(10 * time.Minute)
		if r.loop.Snapshot().Phase == loop.PhaseWorse {
			r.press(loop.CommandRevert)
			r.restart("--max-num-seqs 32", 10*time.Second)
		}
		r.acts, r.events = nil, nil
		if hour := (n + 1) / 3; (n+1)%3 == 0 && (hour == 1 || hour == 8 || hour == 24) {
			size[hour] = held(r)
		}
	}
	s := r.loop.Snapshot()
	t.Logf("%d changes, %d repeats; %s after an hour, %s after 8, %s after 24", s.Iterations[len(s.Iterations)-1].N, len(s.Noise), mib(size[1]), mib(size[8]), mib(size[24]))
	if len(s.Iterations) < 40 {
		t.Errorf("only %d changes", len(s.Iterations))
	}
	if size[24] > size[8]+8<<20 {
		t.Errorf("%s after 8 hours, %s after 24", mib(size[8]), mib(size[24]))
	}
}

func mib(n uint64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }
