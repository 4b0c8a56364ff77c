//go:build amd64 || arm64

package ggml

import (
	"testing"

	"github.com/rooftop-dev/rooftop/collect/ggml/binary"
	"github.com/rooftop-dev/rooftop/engine/optrace"
)

// The index of a thread is cached only if the begins of all graphs are probed: a second copy of
// the runtime may lack the function's symbol.
func TestGraphsSeen(t *testing.T) {
	one, other := &binary.Image{Path: "one"}, &binary.Image{Path: "other"}
	operators := func(i *binary.Image) *group {
		return &group{groupKey: groupKey{image: i, program: "operator", detail: optrace.DetailOperator}}
	}
	graphs := func(i *binary.Image) *group {
		return &group{groupKey: groupKey{image: i, program: "graph", detail: optrace.DetailGraph}}
	}
	for name, c := range map[string]struct {
		groups []*group
		want   bool
	}{
		"one file":                     {[]*group{operators(one), graphs(one)}, true},
		"no graphs":                    {[]*group{operators(one)}, false},
		"two copies":                   {[]*group{graphs(other), operators(one), graphs(one), operators(other)}, true},
		"a copy whose graphs are dark": {[]*group{operators(one), graphs(one), operators(other)}, false},
		"calls in another file":        {[]*group{operators(one), graphs(one), {groupKey: groupKey{image: other, program: "call", detail: optrace.DetailToken}}}, true},
	} {
		if got := graphsSeen(c.groups); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
