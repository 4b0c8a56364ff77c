package advice

import (
	"fmt"
	"strings"

	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

const (
	// copyRate is the assumed rate of a copy to or from a GPU, in bytes per second: PCIe 4.0
	// with 16 lanes, some 25 of its 31.5 GB/s. It is conservative: most are slower.
	copyRate = 25e9
	// copyShare is the least share of the calls' time that copies must take, at copyRate, to be
	// reported.
	copyShare = 0.05
	// splitsEach is the number of parts per graph from which values go back and forth.
	splitsEach = 3
)

// findCopies finds graphs that are split between backends and whose copies take time.
func findCopies(v *subject) *cause {
	var splits, graphs int64
	gpu := ""
	for i := range v.Backends {
		b := &v.Backends[i]
		splits += b.Splits
		if !b.Seen && !strings.HasPrefix(strings.ToUpper(b.Name), "CPU") {
			gpu = b.Name
		}
	}
	seconds := 0.0
	for i := range v.Phases {
		graphs += int64(v.Phases[i].Calls)
		seconds += v.Phases[i].CallTimes().TotalSeconds()
	}
	var bytes, count int64
	for i := range v.Copies {
		bytes += v.Copies[i].Bytes
		count += v.Copies[i].Count
	}
	if gpu == "" || graphs < optrace.FewestGraphs || seconds <= 0 || splits < splitsEach*graphs {
		return nil
	}
	share := float64(bytes) / copyRate / seconds
	if share < copyShare {
		return nil
	}
	c := newCause(severityWarn, "Copies between backends take time", stat.Some(min(share, 1)),
		fmt.Sprintf("%s move %s; at %s they take %s of the time of calls (est).", figure.Counted(count, "copy"), figure.Bytes(float64(bytes)), figure.Value(copyRate, "B/s"), figure.PercentSign(min(share, 1))),
		fmt.Sprintf("A call is split into %s parts on average.", figure.Significant(float64(splits)/float64(graphs))))
	c.remedy = v.setting(optLayers, "99", remedy{
		do:    "Put more layers on " + gpu + ", all of them if they fit.",
		why:   "Each part of a graph on another backend needs its inputs copied there. The gain depends on the GPU, whose operators are not in this trace.",
		price: "memory of the GPU",
	})
	return c
}
