package optrace

import (
	"fmt"
	"strings"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

const (
	// copyRate is what a copy to or from a GPU moves in a second at best: PCIe 4.0 with
	// 16 lanes, some 25 of its 31.5 GB/s. Assumption, on the careful side: most are slower.
	copyRate = 25e9
	// copyShare is the share of the time of calls that copies must take at that rate.
	copyShare = 0.05
	// splitsEach are the parts of a graph from which on it goes back and forth.
	splitsEach = 3
)

// findCopies is tensors that go between backends for a share of the time that matters,
// in graphs that are cut into parts.
func findCopies(v *view) (cause, bool) {
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
		seconds += v.Phases[i].callSeconds()
	}
	var bytes, count int64
	for i := range v.Copies {
		bytes += v.Copies[i].Bytes
		count += v.Copies[i].Count
	}
	if gpu == "" || graphs < fewestGraphs || seconds <= 0 || splits < splitsEach*graphs {
		return cause{}, false
	}
	share := float64(bytes) / copyRate / seconds
	if share < copyShare {
		return cause{}, false
	}
	r := &remedy{
		kind: remedyFlag, do: "Put more layers on " + gpu + ", all where they fit.",
		why:   "Each part of a graph on another backend needs its inputs copied there. How much is gained depends on the GPU, whose operators are not in this trace." + v.names.aside(),
		price: "memory of the GPU",
	}
	r.flag, r.value = v.names.spell(optLayers, "99")
	return cause{
		Finding: Finding{ID: "offload-copies", Severity: severityWarn, Title: "Copies between backends take time", Cost: stat.Some(min(share, 1)), Evidence: []string{
			fmt.Sprintf("%d copies move %s; at %s they take %s of the time of calls (est).", count, spellBytes(float64(bytes)), spellScaled(copyRate, "B/s"), spellPercent(min(share, 1))),
			fmt.Sprintf("A call is cut into %s parts.", spellThree(float64(splits)/float64(graphs))),
		}},
		remedy: r,
	}, true
}
