package advice

import (
	"fmt"
	"strconv"

	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

const (
	// syncLimit is the share of the time of graphs that threads wait at barriers. A healthy run
	// waits for a few percent, since products are handed out in pieces.
	syncLimit = 0.20
	syncBad   = 0.40
	// unevenLimit is the difference between the longest and the shortest wait from which
	// threads count as uneven.
	unevenLimit = 0.15
	// fastGain is the predicted gain from which another number of threads is advised.
	fastGain = 0.05
)

// findSync finds threads that wait for each other while none of them lost its CPU.
func findSync(v *subject) *cause {
	s, p := v.Barriers(), v.PreemptedSpread()
	if !s.OK || v.ThreadCount < 2 || s.Mean < syncLimit || p.Max >= optrace.PreemptedLimit || (v.Target.CPUs > 0 && v.ThreadCount > v.Target.CPUs) {
		return nil
	}
	c := newCause(severityFrom(s.Mean, syncBad), "Threads wait for each other", stat.Some(s.Mean),
		fmt.Sprintf("%s wait at barriers for %s of the time of graphs on average.", figure.Counted(v.ThreadCount, "thread"), figure.PercentSign(s.Mean)))
	switch {
	case !p.OK:
		c.Evidence = append(c.Evidence, "Whether another process preempted one of them was not traced.")
		c.instead = "trace scheduling first: a preempted thread looks the same"
	case s.Max-s.Min < unevenLimit:
		c.Evidence = append(c.Evidence, fmt.Sprintf("All wait about as long (%s to %s): the operators are too small for so many threads.", figure.PercentSign(s.Min), figure.PercentSign(s.Max)))
		if c.remedy = v.halfTheThreads(s.Mean); c.remedy == nil {
			c.instead = "half the threads would lose more time computing than they save waiting"
		}
	default:
		c.Evidence = append(c.Evidence, fmt.Sprintf("Thread %d waits for %s, thread %d for %s: the thread that waits least is the slow one.", s.Lowest, figure.PercentSign(s.Min), s.Highest, figure.PercentSign(s.Max)))
		if c.remedy = v.fastCores(s); c.remedy == nil {
			c.instead = "the slow threads still help: without them a graph would take longer"
		}
	}
	return c
}

// halfTheThreads returns the remedy of half as many threads, nil if it does not pay: computing
// (1-s) takes twice as long, waiting s half as long.
func (v *subject) halfTheThreads(s float64) *remedy {
	g := 1/(2*(1-s)+s/2) - 1
	if g < fastGain {
		return nil
	}
	return v.threads(v.ThreadCount/2, "Waiting takes longer than computing: half as many threads compute twice as long and wait half as long.", g)
}

// fastCores returns the remedy of leaving out the threads on slow cores, nil if it does not
// pay. n threads with equal shares take the time of the slowest; k fast ones have n/k times the
// work each. The gain is k·fast/(n·slow), with the speeds as the reciprocals of the time that
// they compute.
func (v *subject) fastCores(s optrace.Spread) *remedy {
	middle := (s.Min + s.Max) / 2
	var fast, slow float64 // threads
	var busyFast, busySlow float64
	v.EachThread(func(t *optrace.ThreadRow) {
		switch {
		case !t.InBarriers().OK || !t.Busy.OK:
		case t.InBarriers().V >= middle:
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
	return v.threads(int(fast), "The slow threads cost the others more time than they save. Bind the threads to the fast CPUs (taskset).", g)
}

// threads returns the remedy of another number of threads.
func (v *subject) threads(n int, why string, g float64) *remedy {
	return v.setting(optThreads, strconv.Itoa(n), remedy{
		do: fmt.Sprintf("Run %s instead of %d.", figure.Counted(n, "thread"), v.ThreadCount), why: why,
		price: "prefill has fewer threads too, unless they are set separately (llama.cpp: --threads-batch)", gain: gainOf(0, g/2, g),
	})
}
