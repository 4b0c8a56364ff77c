//go:build e2e && linux && (amd64 || arm64)

package ggml

import (
	"strings"
	"testing"

	layouts "github.com/rooftop-dev/rooftop/collect/ggml/binary"
	"github.com/rooftop-dev/rooftop/engine/optrace"
)

// A forked child computes at the same addresses as the target. It is not taken for the target
// and runs unaffected; if every process with the files is traced, its graphs are separate.
func TestE2ETargetForks(t *testing.T) {
	b := build(t)
	const times = 8
	for name, single := range map[string]bool{"one process": false, "one process, single": true, "all": false, "all, single": true} {
		all := strings.HasPrefix(name, "all")
		k := start(t, b.program)
		r := runtimeOf(t, k.pid())
		if all {
			var err error
			if r, err = layouts.FromFile(b.program); err != nil {
				t.Fatal(err)
			}
		}
		s := open(t, r, Options{Single: single}, optrace.LevelOperator)
		k.order(t, "fork 8 5 2 0")
		k.expect(t, "done")
		steps, graphs := map[int32]int{}, map[int32]int{}
		for _, e := range drained(t, s) {
			switch e.Kind {
			case optrace.OpBegin, optrace.FusedBegin:
				steps[e.PID]++
				if s.Tables().Operator(e.Ref).Op == "" {
					t.Fatalf("%s: an operator of process %d of %d has no name", name, e.PID, k.pid())
				}
			case optrace.GraphBegin:
				graphs[e.PID]++
				if e.Ref == 0 {
					t.Fatalf("%s: a graph of process %d of %d has no nodes", name, e.PID, k.pid())
				}
			}
		}
		processes := 1
		if all {
			processes = 2
		}
		if len(graphs) != processes || steps[int32(k.pid())] != times*2*len(sequence) || s.Dropped() != 0 {
			t.Errorf("%s: graphs %v, steps %v, of %d", name, graphs, steps, k.pid())
		}
		for pid, n := range graphs {
			if n != times || steps[pid] != times*2*len(sequence) {
				t.Errorf("%s: process %d computed %d graphs of %d steps", name, pid, n, steps[pid])
			}
		}
	}
}
