package tally

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// maxBackends is the number of backends that are distinguished: a machine has a handful of
// devices.
const maxBackends = 64

// backendSums sums up the work of backends and the copies between them.
type backendSums struct {
	of     bounded[uint32, backendSum] // by ref of the name
	copies [int(optrace.CopyAcross) + 1]copySum
}

// backendSum sums up one backend.
type backendSum struct {
	splits, nodes int64
	graphs        int
	spans         bool
	time          time.Duration
}

// copySum sums up the copies in one direction.
type copySum struct{ count, bytes int64 }

// addGraph adds a graph that a backend computed on the CPU.
func (s *backendSums) addGraph(g *optrace.Graph, took time.Duration) {
	if g.Backend == 0 {
		return
	}
	if b := s.of.get(g.Backend); b != nil {
		b.graphs++
		b.time = stat.AddSaturating(b.time, took)
		b.spans = b.spans || slices.ContainsFunc(g.Threads, func(l optrace.Thread) bool { return len(l.Spans) > 0 })
	}
}

// Split adds a part of a graph on a backend.
func (t *Tally) Split(s *optrace.Split) {
	if s.Backend == 0 {
		return
	}
	if b := t.backends.of.get(s.Backend); b != nil {
		b.splits++
		b.nodes = stat.AddSaturating(b.nodes, int64(s.Nodes))
	}
}

// Copy adds a copy to, from or between backends.
func (t *Tally) Copy(c *optrace.Copy) {
	kind := c.Kind
	if kind > optrace.CopyAcross {
		kind = optrace.CopyOther
	}
	sum := &t.backends.copies[kind]
	sum.count++
	sum.bytes = stat.AddSaturating(sum.bytes, c.Bytes)
}

// observers are the tools that show the operators of backends on other devices, by the prefix
// of the backend's name in GGML.
var observers = [...]struct{ backend, tool string }{
	{"CUDA", "nsys profile"}, {"ROCm", "rocprofv3"}, {"HIP", "rocprofv3"}, {"SYCL", "unitrace"}, {"Vulkan", "GGML_VK_PERF_LOGGER=1"},
}

// rows returns the backends in the order in which their names were added.
func (s *backendSums) rows(t *optrace.Tables) []optrace.BackendRow {
	rows := make([]optrace.BackendRow, 0, len(s.of.of))
	for _, ref := range slices.Sorted(maps.Keys(s.of.of)) {
		b := s.of.of[ref]
		row := optrace.BackendRow{Name: t.Name(ref), Splits: b.splits, Nodes: b.nodes, Time: b.time, Seen: b.spans}
		for _, o := range observers {
			if !row.Seen && strings.HasPrefix(row.Name, o.backend) {
				row.Pair = o.tool
			}
		}
		rows = append(rows, row)
	}
	return rows
}

// directions are the names for the kinds of copies in a document.
var directions = [...]string{optrace.CopyOther: "other", optrace.CopySet: "in", optrace.CopyGet: "out", optrace.CopyAcross: "across"}

// copyRows returns the copies by direction.
func (s *backendSums) copyRows() []optrace.CopyRow {
	rows := []optrace.CopyRow{}
	for kind, c := range s.copies {
		if c.count > 0 {
			rows = append(rows, optrace.CopyRow{Direction: directions[kind], Count: c.count, Bytes: c.bytes})
		}
	}
	return rows
}
