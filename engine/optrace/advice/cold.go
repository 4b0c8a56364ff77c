package advice

import (
	"fmt"

	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

const (
	// coldFaults is the number of pages read from the disk below which no finding is made: a
	// start, or a library that is touched first, reads a few.
	coldFaults = 50
	// coldCost is the share of the time of graphs for which a thread must be blocked.
	coldCost = 0.02
	coldBad  = 0.10
	// warmNow is the share of time off the CPU, in the later half of the calls, below which the
	// weights count as loaded.
	warmNow = 0.01
)

// findCold finds weights that are mapped from a file and read from the disk while
// operators compute. A thread that waits for the disk is off the CPU and not preempted.
func findCold(v *subject) *cause {
	var faults, bytes float64
	v.EachThread(func(t *optrace.ThreadRow) {
		faults += t.MajorFaults.Or(0)
		bytes += t.IOBytes.Or(0)
	})
	blocked := v.Spread(func(t *optrace.ThreadRow) stat.Opt {
		if !t.Off.OK || !t.Preempted.OK {
			return stat.None
		}
		return stat.Some(max(0, t.Off.V-t.Preempted.V))
	})
	if faults < coldFaults || !blocked.OK || blocked.Max < coldCost {
		return nil
	}
	c := newCause(severityFrom(blocked.Max, coldBad), "Weights are read from the disk while operators compute", stat.Some(blocked.Max),
		fmt.Sprintf("Operators caused %s (pages read from the disk).", figure.Counted(faults, "major fault")),
		fmt.Sprintf("Thread %d was blocked, not preempted, for %s of the time of graphs.", blocked.Highest, figure.PercentSign(blocked.Max)))
	if bytes > 0 {
		c.Evidence = append(c.Evidence, fmt.Sprintf("Compute threads read %s from disks.", figure.Bytes(bytes)))
	}
	if later, ok := v.offLater(); ok && later < warmNow {
		c.Severity = severityInfo
		c.Evidence = append(c.Evidence, fmt.Sprintf("In the later half of the calls it is %s: the weights are in memory now.", figure.PercentSign(later)))
	}
	if c.instead = v.whyNotLock(c.Severity == severityInfo); c.instead == "" {
		c.remedy = v.setting(optMlock, "", remedy{
			do: "Keep the weights in memory.", why: "Pages that are mapped from a file are evicted when other programs need memory, and come back one by one.",
			price: "the memory of the whole model, permanently; with too little memory the start fails or the machine swaps",
			gain:  gainOf(freed(blocked.Mean)/2, freed(blocked.Max), freed(v.LostByAll(blocked))),
		})
	}
	return c
}

// whyNotLock returns why locking the weights in memory is not advised, "" if it is.
func (v *subject) whyNotLock(warm bool) string {
	_, unmapped := argument(v.Target.Command, "--no-mmap")
	_, locked := argument(v.Target.Command, "--mlock")
	switch {
	case warm:
		return "the weights are in memory now; a warm-up request before the first real one avoids this"
	case unmapped:
		return "the weights are not mapped from the file (--no-mmap): the pages were swapped out, the machine has too little memory"
	case len(v.Tokens) < optrace.FewestGraphs:
		return fmt.Sprintf("the trace has fewer than %d calls: a first request always reads the weights, so trace later ones", optrace.FewestGraphs)
	case locked:
		return "--mlock is set already: the lock failed (ulimit -l), or the machine has too little memory"
	}
	return ""
}

// offLater returns the share of time off the CPU, of the thread that was off it longest, in
// the later half of the calls that are kept; false with too few of them.
func (v *subject) offLater() (float64, bool) {
	if len(v.Tokens) < optrace.FewestGraphs {
		return 0, false
	}
	var off, all float64
	for _, t := range v.Tokens[len(v.Tokens)/2:] {
		if !t.Off.OK {
			continue // scheduling was not recorded
		}
		off += t.Off.D.Seconds()
		all += t.Graph.Seconds()
	}
	if all <= 0 {
		return 0, false
	}
	return off / all, true
}
