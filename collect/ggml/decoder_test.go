package ggml

import (
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	layouts "github.com/rooftop-dev/rooftop/collect/ggml/binary"
	"github.com/rooftop-dev/rooftop/engine/optrace"
)

// opsOfMixture are the operators of a decoded token of the mixture model, with four layers.
var opsOfMixture = map[string]int{
	"GET_ROWS": 7, "RMS_NORM+MUL": 9, "MUL_MAT": 21, "MUL_MAT_ID": 12, "ROPE": 8, "SET_ROWS": 8, "FLASH_ATTN_EXT": 4,
	"ADD": 8 + 4, "SOFT_MAX": 4, "ARGSORT": 4, "SUM_ROWS": 4, "CLAMP": 4, "DIV": 4, "GLU": 4, "MUL": 4,
}

func TestRecordsOfARealRuntime(t *testing.T) {
	d, events := readFixture(t).events()
	if d.malformed != 0 || d.misfits != 0 || !d.verified() || d.out.late != 0 {
		t.Errorf("malformed %d, misfits %d, verified %v, late %d", d.malformed, d.misfits, d.verified(), d.out.late)
	}
	var calls, graphs []int64
	each := []map[string]int{}
	for _, e := range events {
		switch e.Kind {
		case optrace.CallBegin:
			calls = append(calls, e.N)
		case optrace.GraphBegin:
			graphs = append(graphs, e.N)
			each = append(each, map[string]int{})
			if e.Ref == 0 {
				t.Error("a graph without its nodes")
			}
		case optrace.OpBegin, optrace.FusedBegin:
			o := d.tables.Operator(e.Ref)
			name := o.Op
			for _, f := range o.Fused {
				name += "+" + f
			}
			each[len(each)-1][name]++
			if e.Thread != 0 || e.Threads != 1 {
				t.Fatalf("lane %d of %d, one thread", e.Thread, e.Threads)
			}
		}
	}
	if diff := cmp.Diff([]int64{12, 1, 1}, calls); diff != "" {
		t.Errorf("tokens of the calls: %s", diff)
	}
	if len(graphs) != 3 {
		t.Fatalf("graphs %v", graphs)
	}
	for i, ops := range each {
		if diff := cmp.Diff(opsOfMixture, ops); diff != "" {
			t.Errorf("operators of graph %d: %s", i, diff)
		}
	}
}

// A graph that the programs take as known, but the decoder has forgotten, is requested again.
func TestGraphsThatAreForgottenAreAskedFor(t *testing.T) {
	d := empty()
	d.withheld = ""
	var asked []string
	d.forget = func(pid int32, graph uint64) { asked = append(asked, fmt.Sprint(pid, " ", graph)) }
	again := func() {
		d.Record(record(optrace.GraphBegin, 1, func(b []byte) { binary.LittleEndian.PutUint64(b[offAddr:], 9) }))
	}
	d.processOf(7).graphs[9] = 3
	again()
	if events := d.out.takeUntil(1); len(asked) != 0 || events[0].Ref != 3 {
		t.Errorf("a known graph is asked for: %q, and has the ref %d", asked, events[0].Ref)
	}
	d.forgetAll()
	again()
	d.processOf(7).graphs[9] = 3
	for i := range uint64(maxAddresses) + 1 {
		d.tensorAt(d.processOf(7), i)
	}
	again()
	if diff := cmp.Diff([]string{"7 9", "7 9"}, asked); diff != "" {
		t.Error(diff)
	}
}

// Two of 8 experts are chosen, in range and distinct; the three matrices of a layer use the
// same ids.
func TestExpertsAreChosen(t *testing.T) {
	d, events := readFixture(t).events()
	byLayer := map[int]map[uint32]int{}
	for _, e := range events {
		if e.Kind != optrace.ExpertsChosen {
			continue
		}
		c := d.tables.Experts[e.Ref-1]
		if byLayer[c.Layer] == nil {
			byLayer[c.Layer] = map[uint32]int{}
		}
		byLayer[c.Layer][e.Ref]++
		if c.Used != 2 || len(c.IDs) != 2*c.Tokens {
			t.Errorf("%+v", c)
		}
		for i := 0; i < len(c.IDs); i += 2 {
			if a, b := c.IDs[i], c.IDs[i+1]; a == b || min(a, b) < 0 || max(a, b) > 7 {
				t.Errorf("layer %d chose %d and %d", c.Layer, a, b)
			}
		}
	}
	for layer := range 4 {
		total := 0
		for ref, n := range byLayer[layer] {
			total += n
			if n%3 != 0 {
				t.Errorf("layer %d: choice %d came %d times", layer, ref, n)
			}
		}
		if total != 9 {
			t.Errorf("layer %d has %d choices, want 3 matrices of 3 graphs", layer, total)
		}
	}
}

// record returns a record with the given kind and time.
func record(kind optrace.Kind, at time.Duration, fill func(b []byte)) []byte {
	b := make([]byte, headerSize)
	binary.LittleEndian.PutUint64(b[offAt:], uint64(at))
	binary.LittleEndian.PutUint64(b[offThread:], 7<<32|8)
	binary.LittleEndian.PutUint32(b[offCookie:], uint32(kind))
	if fill != nil {
		fill(b)
	}
	return b
}

func empty() *Decoder {
	return newDecoder(layouts.Layout{}, layouts.Names{}, []watched{{uint32(optrace.CallDecode)}})
}

// Graphs of a lower level that are still in the ring when operators are requested do not show
// that the hook is bypassed.
func TestGraphsAreCountedFromAMomentOn(t *testing.T) {
	d := empty()
	d.Record(record(optrace.GraphBegin, 3, func([]byte) {}))
	d.countFrom(10)
	for at := range time.Duration(10) {
		d.Record(record(optrace.GraphBegin, at, func([]byte) {}))
	}
	if d.graphs != 0 {
		t.Errorf("%d graphs of before", d.graphs)
	}
	d.Record(record(optrace.GraphBegin, 10, func([]byte) {}))
	d.Record(record(optrace.OpBegin, 11, func([]byte) {}))
	if d.graphs != 1 || d.hits != 1 {
		t.Errorf("%d graphs and %d operators, want 1 and 1", d.graphs, d.hits)
	}
}

// A loss is reported around its time, and once, even if an earlier record arrives later.
func TestLossesAreTold(t *testing.T) {
	d := empty()
	for i, dropped := range []uint32{0, 0, 4, 2, 4, 9} {
		d.Record(record(optrace.BarrierBegin, time.Duration(i)*time.Second, func(b []byte) {
			binary.LittleEndian.PutUint32(b[offDropped:], dropped)
			binary.LittleEndian.PutUint32(b[offCPU:], 1)
		}))
	}
	var lost []string
	for _, e := range d.out.takeUntil(time.Minute) {
		if e.Kind == optrace.Lost {
			lost = append(lost, fmt.Sprint(e.At, " ", time.Duration(e.Addr), " ", e.N))
		}
	}
	if diff := cmp.Diff([]string{"1.998s 2.002s 4", "4.998s 5.002s 5"}, lost); diff != "" {
		t.Error(diff)
	}
}

func TestRecordsThatMakeNoSense(t *testing.T) {
	for name, b := range map[string][]byte{
		"short":             make([]byte, headerSize-1),
		"unknown kind":      record(180, 1, nil),
		"cut tensor":        append(record(optrace.OpBegin, 1, nil), 1, 2, 3),
		"cut counters":      append(record(optrace.CountersRead, 1, nil), 1, 2, 3),
		"no experts":        record(optrace.ExpertsChosen, 1, nil),
		"no node":           record(recordNode, 1, nil),
		"unknown node kind": record(recordKinds, 1, nil),
	} {
		d := empty()
		d.withheld = ""
		d.Record(b)
		if d.malformed != 1 {
			t.Errorf("%s: malformed %d", name, d.malformed)
		}
	}
}

// An impossible number of tokens counts as unknown.
func TestTokensOfABatch(t *testing.T) {
	for n, want := range map[int64]int64{0: 0, 1: 1, 512: 512, maxBatch: maxBatch, maxBatch + 1: 0, 0xfffffff0: 0} {
		d := empty()
		d.Record(record(optrace.CallBegin, 1, func(b []byte) { binary.LittleEndian.PutUint64(b[offN:], uint64(n)) }))
		if e := d.out.takeUntil(10)[0]; e.N != want || e.Ref != uint32(optrace.CallDecode) {
			t.Errorf("%d: %+v", n, e)
		}
	}
}

// If the layout does not fit, names are withheld and times are kept.
func TestMisfitsAreWithheld(t *testing.T) {
	x := readFixture(t)
	x.Layout.NE, x.Layout.NB = x.Layout.NB, x.Layout.Params
	d := x.decoder()
	ops := 0
	for i, r := range x.Records {
		withheld := d.withheld != ""
		d.Record(r)
		for _, e := range d.out.takeUntil(1 << 62) {
			if e.Kind != optrace.OpBegin && e.Kind != optrace.FusedBegin {
				continue
			}
			ops++
			if withheld && e.Ref != 0 {
				t.Fatalf("record %d has an operator", i)
			}
		}
	}
	if d.withheld == "" || d.verified() {
		t.Errorf("fits %d, misfits %d, withheld %q", d.fits, d.misfits, d.withheld)
	}
	if ops != 3*109 {
		t.Errorf("%d operators", ops)
	}
}

// Operators without their tensors get their names from the graph.
func TestOperatorsByAddress(t *testing.T) {
	x := readFixture(t)
	for i, r := range x.Records {
		switch optrace.Kind(r[offCookie]) {
		case optrace.OpBegin, optrace.FusedBegin:
			x.Records[i] = r[:headerSize]
		}
	}
	d, events := x.events()
	unnamed := 0
	for _, e := range events {
		if e.Kind == optrace.OpBegin || e.Kind == optrace.FusedBegin {
			if d.tables.Operator(e.Ref).Op == "" {
				unnamed++
			}
		}
	}
	if unnamed != 0 {
		t.Errorf("%d operators have no name", unnamed)
	}
}

// No content of the ring makes the decoder fail or grow without bound.
func FuzzDecoder(f *testing.F) {
	x := readFixture(f)
	for i := 0; i < len(x.Records); i += 40 {
		f.Add(x.Records[i])
	}
	f.Add(record(optrace.SwitchIn, 3, nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		d := x.decoder()
		for range 3 {
			d.Record(b)
		}
		d.Record(record(optrace.GraphBegin, 9, func(b []byte) { b[offExtra] = 3 }))
		if n := len(d.out.takeUntil(1 << 62)); n > 8 {
			t.Errorf("%d events of 4 records", n)
		}
	})
}
