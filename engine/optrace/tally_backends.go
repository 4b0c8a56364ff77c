package optrace

import (
	"slices"
	"strings"
	"time"
)

// maxBackends is the number of backends that are told apart: a machine has a handful of
// devices.
const maxBackends = 64

// backendSums adds up what backends were given.
type backendSums struct {
	of     map[uint32]*backendSum // by the ref of the name
	copies [int(CopyAcross) + 1]copySum
}

// backendSum adds one backend up.
type backendSum struct {
	splits, nodes int64
	graphs        int
	spans         bool
	time          time.Duration
}

// copySum adds the copies in one direction up.
type copySum struct{ count, bytes int64 }

// get is the sum of a backend, nil where there are too many.
func (s *backendSums) get(ref uint32) *backendSum {
	b := s.of[ref]
	if b == nil && len(s.of) < maxBackends {
		b = &backendSum{}
		s.of[ref] = b
	}
	return b
}

// addGraph adds a graph that a backend computed on the CPU.
func (s *backendSums) addGraph(g *Graph, took time.Duration) {
	if g.Backend == 0 {
		return
	}
	if b := s.get(g.Backend); b != nil {
		b.graphs++
		b.time = plus(b.time, took)
		b.spans = b.spans || slices.ContainsFunc(g.Lanes, func(l Lane) bool { return len(l.Spans) > 0 })
	}
}

// Split takes a part of a graph that was handed to a backend.
func (t *Tally) Split(s *Split) {
	if s.Backend == 0 {
		return
	}
	if b := t.backends.get(s.Backend); b != nil {
		b.splits++
		b.nodes = int64(plus(asTime(int(b.nodes)), asTime(s.Nodes)))
	}
}

// Copy takes a copy to, from or between backends.
func (t *Tally) Copy(c *Copy) {
	kind := c.Kind
	if kind > CopyAcross {
		kind = CopyOther
	}
	sum := &t.backends.copies[kind]
	sum.count++
	sum.bytes = int64(plus(time.Duration(sum.bytes), time.Duration(c.Bytes)))
}

// observers are the tools that see the operators of a backend that runs elsewhere, by
// the begin of its name in GGML.
var observers = [...]struct{ backend, tool string }{
	{"CUDA", "nsys profile"}, {"ROCm", "rocprofv3"}, {"HIP", "rocprofv3"}, {"SYCL", "unitrace"}, {"Vulkan", "GGML_VK_PERF_LOGGER=1"},
}

// rows are the backends in the order in which they were named.
func (s *backendSums) rows(t *Tables) []BackendRow {
	rows := make([]BackendRow, 0, len(s.of))
	for _, ref := range sorted(s.of) {
		b := s.of[ref]
		row := BackendRow{Splits: b.splits, Nodes: b.nodes, Time: b.time, Seen: b.spans}
		if int(ref) <= len(t.Names) {
			row.Name = t.Names[ref-1]
		}
		for _, o := range observers {
			if !row.Seen && strings.HasPrefix(row.Name, o.backend) {
				row.Pair = o.tool
			}
		}
		rows = append(rows, row)
	}
	return rows
}

// directions are a document's words for the kinds of copies.
var directions = [...]string{CopyOther: "other", CopySet: "in", CopyGet: "out", CopyAcross: "across"}

// copyRows are the copies by direction.
func (s *backendSums) copyRows() []CopyRow {
	rows := []CopyRow{}
	for kind, c := range s.copies {
		if c.count > 0 {
			rows = append(rows, CopyRow{Direction: directions[kind], Count: c.count, Bytes: c.bytes})
		}
	}
	return rows
}
