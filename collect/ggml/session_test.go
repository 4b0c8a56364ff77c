package ggml

import (
	"testing"

	"github.com/rooftop-dev/rooftop/engine/optrace"
)

func TestRingSize(t *testing.T) {
	for ring, want := range map[int]int{0: defaultRing, -1: defaultRing, 1: minRing, minRing: minRing, 100_000: 128 << 10, 1 << 40: maxRing, 16 << 20: 16 << 20} {
		o := Options{Ring: ring}
		if got := o.ringSize(); got != want {
			t.Errorf("%d: %d, want %d", ring, got, want)
		}
	}
}

func TestImpliedDetails(t *testing.T) {
	for d, want := range map[optrace.Detail]optrace.Detail{
		0:                      optrace.DetailToken,
		optrace.DetailTensor:   optrace.DetailToken | optrace.DetailGraph | optrace.DetailOperator | optrace.DetailTensor,
		optrace.DetailCounters: optrace.DetailToken | optrace.DetailGraph | optrace.DetailOperator | optrace.DetailCounters,
		optrace.DetailBarrier:  optrace.DetailToken | optrace.DetailGraph | optrace.DetailBarrier,
		optrace.DetailSched:    optrace.DetailToken | optrace.DetailSched,
		optrace.LevelAll:       optrace.LevelAll,
	} {
		if got := implied(d); got != want {
			t.Errorf("%b: %b, want %b", d, got, want)
		}
	}
}

// Tables take what is new once, and stop at their size.
func TestTablesStayBounded(t *testing.T) {
	in := newInterner()
	for range 2 {
		for i := range 3 {
			c := optrace.ExpertChoice{Layer: i, Used: 1, Tokens: 1, IDs: []int32{int32(i)}}
			if ref := in.choice(c); ref != uint32(i+1) {
				t.Errorf("ref %d", ref)
			}
		}
	}
	for i := range maxNames + 5 {
		in.name(string(rune('a'+i%26)) + string(rune(i)))
	}
	if len(in.Names) != maxNames || in.left != 5 || in.name("") != 0 {
		t.Errorf("%d names, %d left out", len(in.Names), in.left)
	}
	in.Counters = make([]optrace.CounterSet, maxCounters-1)
	if a, b := in.counter(optrace.CounterSet{}), in.counter(optrace.CounterSet{}); a != maxCounters || b != 0 || in.left != 6 {
		t.Errorf("refs %d and %d, %d left out", a, b, in.left)
	}
}

func TestGapsAreToldOnce(t *testing.T) {
	var g gaps
	g.add(optrace.Gap{What: "a", Why: "1"}, optrace.Gap{What: "b"})
	g.add(optrace.Gap{What: "a", Why: "2"})
	if all := g.list(); len(all) != 2 || all[0].Why != "1" {
		t.Errorf("%+v", all)
	}
}
