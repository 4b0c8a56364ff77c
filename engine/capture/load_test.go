package capture

import (
	"math"
	"testing"
	"time"
)

func TestTreeLoad(t *testing.T) {
	const s = time.Second
	look := func(at time.Duration, list ...ProcessSample) TreeSample {
		return TreeSample{At: at, Walked: at%(2*s) == 0, Processes: list}
	}
	root := func(cpu time.Duration) ProcessSample { return ProcessSample{CPU: cpu} }
	child := func(cpu time.Duration) ProcessSample { return ProcessSample{Process: 1, CPU: cpu} }
	for _, c := range []struct {
		name    string
		samples []TreeSample
		want    []float64 // cores of each interval
	}{
		{"nothing", nil, nil},
		{"one look", []TreeSample{look(0, root(s))}, nil},
		{"a process alone", []TreeSample{look(0, root(s)), look(s, root(3*s)), look(2*s, root(3*s))}, []float64{2, 0}},
		{"a failed look is none", []TreeSample{look(0, root(0)), {At: s, Error: "gone"}, look(2*s, root(4*s))}, []float64{2}},
		{"a child that was found a look late", []TreeSample{look(0, root(0)), look(s, root(0)), look(2*s, root(0), child(3*s))}, []float64{1.5, 1.5}},
		{"a child that ends", []TreeSample{look(0, root(0), child(9*s)), look(s, root(s))}, []float64{1}},
		{"a process that is not of the tree", []TreeSample{look(0, root(0)), look(s, ProcessSample{Process: 7})}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			tree := Tree{Processes: make([]Process, 2), Samples: c.samples}
			got := tree.Load()
			if len(got) != len(c.want) {
				t.Fatalf("%d intervals, want %d", len(got), len(c.want))
			}
			for i, v := range got {
				if math.Abs(v.Cores-c.want[i]) > 1e-9 {
					t.Errorf("interval %d: %v cores, want %v", i, v.Cores, c.want[i])
				}
			}
		})
	}
}
