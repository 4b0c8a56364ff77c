package optrace

import (
	"fmt"
	"strconv"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

const (
	// syncLimit is the share of the time of graphs that lanes wait at barriers. Products
	// are handed out in pieces, so that a healthy run waits for a few percent.
	syncLimit = 0.20
	syncBad   = 0.40
	// unevenLimit is how much longer the lane that waits most waits than the one that
	// waits least, before lanes are called uneven.
	unevenLimit = 0.15
	// fastGain is the predicted gain from which on the fast cores alone are advised.
	fastGain = 0.05
)

// findSync is lanes that wait for each other, while none of them lost its CPU.
func findSync(v *view) (cause, bool) {
	s, p := v.barriers(), v.preempted()
	if !s.ok || v.lanes < 2 || s.mean < syncLimit || p.max >= preemptedLimit || (v.Target.CPUs > 0 && v.lanes > v.Target.CPUs) {
		return cause{}, false
	}
	severity := severityWarn
	if s.mean >= syncBad {
		severity = severityBad
	}
	c := cause{Finding: Finding{ID: "sync-bound", Severity: severity, Title: "Threads wait for each other", Cost: stat.Some(s.mean), Evidence: []string{
		fmt.Sprintf("%s wait at barriers for %s of the time of graphs in the mean.", spellThreads(v.lanes), spellPercent(s.mean)),
	}}}
	if !p.ok {
		c.Evidence = append(c.Evidence, "Whether another process put one of them off was not traced.")
		c.instead = "trace scheduling first: a lane that is put off looks the same"
		return c, true
	}
	if s.max-s.min < unevenLimit {
		c.Evidence = append(c.Evidence, fmt.Sprintf("All wait about as long (%s to %s): the operators are too small for so many threads.", spellPercent(s.min), spellPercent(s.max)))
		c.remedy = v.halfTheThreads(s.mean)
		if c.remedy == nil {
			c.instead = "half the threads would lose more by computing longer than they gain by waiting less"
		}
		return c, true
	}
	c.Evidence = append(c.Evidence, fmt.Sprintf("Lane %d waits for %s, lane %d for %s: the one that waits least is the slow one.", s.least, spellPercent(s.min), s.most, spellPercent(s.max)))
	c.remedy = v.fastCores(s)
	if c.remedy == nil {
		c.instead = "the slow lanes still do more than nothing: without them it would take longer"
	}
	return c, true
}

// halfTheThreads pays where waiting is most of the time: computing (1-s) takes twice
// as long, waiting s half as long.
func (v *view) halfTheThreads(s float64) *remedy {
	g := 1/(2*(1-s)+s/2) - 1
	if g < fastGain {
		return nil
	}
	return v.threads(v.lanes/2, "Waiting takes longer than computing: half the threads compute for twice as long and wait for half as long.", g)
}

// fastCores leaves out lanes on slow cores. n lanes that share evenly take the time of
// the slowest, k fast ones are n/k times as long at it and that much faster: the gain
// is k·fast/(n·slow), with the speeds as the reciprocals of the time that they compute.
func (v *view) fastCores(s spread) *remedy {
	middle := (s.min + s.max) / 2
	var fast, slow float64 // lanes
	var busyFast, busySlow float64
	v.present(func(t *ThreadRow) {
		switch {
		case !t.barriers().OK || !t.Busy.OK:
		case t.barriers().V >= middle:
			fast, busyFast = fast+1, busyFast+t.Busy.V
		default:
			slow, busySlow = slow+1, busySlow+t.Busy.V
		}
	})
	if fast == 0 || slow == 0 || busyFast <= 0 {
		return nil
	}
	g := fast*(busySlow/slow)/((fast+slow)*(busyFast/fast)) - 1
	if g < fastGain {
		return nil
	}
	return v.threads(int(fast), "The slow lanes hold the others up by more than they do themselves. Bind the threads to the fast CPUs (taskset).", g)
}

// threads is the remedy of another number of threads.
func (v *view) threads(n int, why string, g float64) *remedy {
	r := &remedy{
		kind: remedyFlag, do: fmt.Sprintf("Run %s instead of %d.", spellThreads(n), v.lanes), why: why + v.names.aside(),
		price: "prefill has fewer threads too, unless they are set apart (llama.cpp: --threads-batch)", gain: gainOf(0, g/2, g),
	}
	r.flag, r.value = v.names.spell(optThreads, strconv.Itoa(n))
	return r
}
