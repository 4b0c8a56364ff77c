package optrace

import (
	"fmt"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

const (
	// coldFaults are the pages read from the disk below which nothing is said: a start
	// or a library that is touched first reads a few.
	coldFaults = 50
	// coldCost is the share of the time of graphs that a lane must be blocked.
	coldCost = 0.02
	coldBad  = 0.10
	// warmNow is the share of time off the CPU, in the later half of the calls, below
	// which reading the weights is over.
	warmNow = 0.01
)

// findCold is weights that are mapped from a file and read from the disk while
// operators compute. A lane that waits for the disk is off the CPU and not preempted.
func findCold(v *view) (cause, bool) {
	var faults, bytes float64
	v.present(func(t *ThreadRow) {
		faults += t.MajorFaults.Or(0)
		bytes += t.IOBytes.Or(0)
	})
	blocked := v.over(func(t *ThreadRow) stat.Opt {
		if !t.Off.OK || !t.Preempted.OK {
			return stat.None
		}
		return stat.Some(max(0, t.Off.V-t.Preempted.V))
	})
	if faults < coldFaults || !blocked.ok || blocked.max < coldCost {
		return cause{}, false
	}
	severity := severityWarn
	if blocked.max >= coldBad {
		severity = severityBad
	}
	c := cause{Finding: Finding{ID: "mmap-cold", Severity: severity, Title: "Weights are read from the disk while operators compute", Cost: stat.Some(blocked.max), Evidence: []string{
		fmt.Sprintf("%.0f pages had to be read from the disk within operators (major faults).", faults),
		fmt.Sprintf("Lane %d was blocked, and not preempted, for %s of the time of graphs.", blocked.most, spellPercent(blocked.max)),
	}}}
	if bytes > 0 {
		c.Evidence = append(c.Evidence, fmt.Sprintf("The lanes' requests to disks are %s.", spellBytes(bytes)))
	}
	if later, ok := v.offLater(); ok && later < warmNow {
		c.Severity = severityInfo
		c.Evidence = append(c.Evidence, fmt.Sprintf("In the later half of the calls it is %s: the weights are in memory now.", spellPercent(later)))
		c.instead = "the weights are in memory now; a request before the first real one warms them up"
		return c, true
	}
	if _, set := argument(v.Target.Command, "--no-mmap"); set {
		c.instead = "the weights are not mapped from the file (--no-mmap): what comes back from the disk was swapped out, the memory is too small"
		return c, true
	}
	if len(v.Tokens) < fewestGraphs {
		c.instead = fmt.Sprintf("fewer than %d calls were seen: a first request always reads the weights, trace the next ones", fewestGraphs)
		return c, true
	}
	if _, set := argument(v.Target.Command, "--mlock"); set {
		c.instead = "the weights are to be locked already: the lock failed (ulimit -l), or the memory is too small"
		return c, true
	}
	r := &remedy{
		kind: remedyFlag, do: "Keep the weights in memory.", why: "What is mapped from a file goes out of memory when others need it, and comes back page by page." + v.names.aside(),
		price: "the memory of the whole model, all the time; where it is not there, the start fails or the machine swaps",
		gain:  gainOf(freed(blocked.mean)/2, freed(blocked.max), freed(v.lostByAll(blocked))),
	}
	r.flag, r.value = v.names.spell(optMlock, "")
	c.remedy = r
	return c, true
}

// offLater is the share of time off the CPU, of the lane that was off it longest, in the
// later half of the calls that are kept; false with too few of them.
func (v *view) offLater() (float64, bool) {
	if len(v.Tokens) < fewestGraphs {
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
