package ggml

import (
	"testing"

	layouts "github.com/rooftop-dev/rooftop/collect/ggml/binary"
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

// Tables store new entries once, and stop at their limits.
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

// A table of large entries is limited by their total size.
func TestTablesOfLargeThingsStayBounded(t *testing.T) {
	in := newInterner()
	ids := make([]int32, 4096)
	for i := range 2 * maxChosen / len(ids) {
		ids[0] = int32(i)
		in.choice(optrace.ExpertChoice{Used: 8, Tokens: len(ids) / 8, IDs: ids})
	}
	held := 0
	for _, c := range in.Experts {
		held += len(c.IDs)
	}
	if held != maxChosen || in.left != int64(maxChosen/len(ids)) {
		t.Errorf("%d ids of experts, %d choices left out", held, in.left)
	}
	in, held = newInterner(), 0
	for i := range 2 * maxNodes / maxGraphNodesHeld {
		in.dag(optrace.DAG{Addr: uint64(i), Nodes: make([]optrace.Node, maxGraphNodesHeld-1), Leaves: make([]optrace.Node, 1)})
	}
	for _, d := range in.DAGs {
		held += len(d.Nodes) + len(d.Leaves)
	}
	if held != maxNodes || in.left != maxNodes/maxGraphNodesHeld {
		t.Errorf("%d nodes, %d graphs left out", held, in.left)
	}
}

// maxGraphNodesHeld is the size of the graphs of a test, as large as programs send them.
const maxGraphNodesHeld = 1 << 16

// The known addresses are bounded over all processes, and when tables are full the target's
// memory is not read for entries without room.
func TestAddressesStayBounded(t *testing.T) {
	d := newDecoder(layouts.Layout{}, layouts.Names{}, nil)
	for i := range maxAddresses + 3 {
		d.tensorAt(d.processOf(int32(i%7)), uint64(i))
	}
	held := 0
	for _, p := range d.processes {
		held += len(p.tensors)
	}
	if held != 3 {
		t.Errorf("%d tensors are held", held)
	}
	reads := 0
	d.memory = func(int32, uint64, []byte) error { reads++; return errNoMemory }
	p := d.processOf(1)
	d.resolve(p, &tensor{}, []uint64{0x10, 0x20})
	d.tables.Tensors = make([]optrace.Tensor, maxTensors)
	d.resolve(p, &tensor{}, []uint64{0x10, 0x20})
	if reads != 2 {
		t.Errorf("%d reads of the target's memory", reads)
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
