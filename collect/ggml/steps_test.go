package ggml

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	layouts "github.com/rooftop-dev/rooftop/collect/ggml/binary"
	"github.com/rooftop-dev/rooftop/engine/optrace"
)

// A graph of three operators on two threads, as GGML computed it until June 2024: a
// single-threaded step runs on the thread that arrives last, and a product has three steps.
func TestStepsOfOneOperatorAreOne(t *testing.T) {
	d := newDecoder(layouts.Layout{Thread: 4}, layouts.Names{}, nil)
	const main, worker = 8, 9
	now := time.Duration(0)
	take := func(kind optrace.Kind, tid uint64, addr uint64, lane, lanes uint16) {
		now++
		d.Record(record(kind, now, func(b []byte) {
			binary.LittleEndian.PutUint64(b[offThread:], 7<<32|tid)
			binary.LittleEndian.PutUint64(b[offAddr:], addr)
			binary.LittleEndian.PutUint16(b[offIth:], lane)
			binary.LittleEndian.PutUint16(b[offNth:], lanes)
		}))
	}
	graph := func() {
		take(optrace.GraphBegin, main, 0x1000, 0, 0)
		take(optrace.OpBegin, worker, 0x10, 0, 1)
		take(optrace.OpBegin, worker, 0x20, 0, 2) // prepared
		take(optrace.OpBegin, worker, 0x20, 1, 2) // computed by both
		take(optrace.OpBegin, main, 0x20, 0, 2)
		take(optrace.OpBegin, main, 0x20, 0, 2) // finished
		take(optrace.OpBegin, main, 0x30, 0, 1)
		take(optrace.GraphEnd, main, 0x1000, 0, 0)
	}
	graph()
	d.out.takeUntil(now)
	graph() // how many threads there are is known
	type begin struct {
		TID         int32
		Addr        uint64
		Lane, Lanes uint16
	}
	var got []begin
	for _, e := range d.out.takeUntil(now) {
		if e.Kind == optrace.OpBegin {
			got = append(got, begin{e.TID, e.Addr, e.Thread, e.Threads})
		}
	}
	want := []begin{{main, 0x10, 0, 2}, {main, 0x20, 0, 2}, {worker, 0x20, 1, 2}, {main, 0x30, 0, 2}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
