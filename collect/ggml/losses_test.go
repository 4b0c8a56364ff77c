package ggml

import (
	"cmp"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/engine/optrace/assemble"
)

// hit is one run of a program: it takes the time, reserves room, and then reads or increments
// the number of lost records. It may be preempted between these steps.
type hit struct {
	graph              int
	kind               optrace.Kind
	tid                int32
	ith                uint16
	addr               uint64
	at, reserved, done time.Duration
	lost               bool
}

// crowd computes graphs on a few CPUs concurrently.
type crowd struct {
	rnd  *rand.Rand
	hits []hit
}

const (
	crowdThreads = 3
	crowdOps     = 6
)

// hit runs a program from a moment on, and returns when it is done.
func (c *crowd) hit(h hit, from time.Duration) time.Duration {
	pause := func() time.Duration {
		if c.rnd.IntN(20) == 0 { // interrupted
			return time.Duration(c.rnd.Int64N(int64(holdBack) / 2))
		}
		return time.Duration(1 + c.rnd.Int64N(500))
	}
	h.at = from
	h.reserved = h.at + pause()
	h.done = h.reserved + pause()
	c.hits = append(c.hits, h)
	return h.done
}

// graphs computes graphs in sequence on threads of its own, as GGML does: the first thread
// begins and ends them, and all meet after each operator.
func (c *crowd) graphs(first, count int, tid int32) {
	at := time.Duration(c.rnd.Int64N(100_000))
	for g := range count {
		h := hit{graph: first + g, tid: tid, addr: uint64(tid) << 20}
		h.kind = optrace.GraphBegin
		at = c.hit(h, at)
		for op := range uint64(crowdOps) {
			met := at
			for lane := range int32(crowdThreads) {
				o := h
				o.kind, o.tid, o.ith, o.addr = optrace.OpBegin, tid+lane, uint16(lane), h.addr+1+op
				met = max(met, c.hit(o, at+time.Duration(c.rnd.Int64N(5000))))
			}
			at = met + 1
		}
		h.kind = optrace.GraphEnd
		at = c.hit(h, at) + time.Duration(1+c.rnd.Int64N(20_000))
	}
}

// lose makes the ring full for some of the time. It returns the records in ring order, each
// with the losses that it reports, and the number of lost records.
func (c *crowd) lose(often int) (records [][]byte, lost uint32) {
	slices.SortStableFunc(c.hits, func(a, b hit) int { return cmp.Compare(a.reserved, b.reserved) })
	var added []time.Duration
	full := 0
	for i := range c.hits {
		if full == 0 && often > 0 && c.rnd.IntN(often) == 0 {
			full = 1 + c.rnd.IntN(3)
		}
		if full > 0 {
			full--
			c.hits[i].lost = true
			added = append(added, c.hits[i].done)
		}
	}
	slices.Sort(added)
	for i := range c.hits {
		h := &c.hits[i]
		if h.lost {
			continue
		}
		known, _ := slices.BinarySearch(added, h.done)
		records = append(records, record(h.kind, h.at, func(b []byte) {
			binary.LittleEndian.PutUint64(b[offThread:], 7<<32|uint64(h.tid))
			binary.LittleEndian.PutUint64(b[offAddr:], h.addr)
			binary.LittleEndian.PutUint32(b[offDropped:], uint32(known))
			binary.LittleEndian.PutUint32(b[offCPU:], uint32(h.tid&3))
			binary.LittleEndian.PutUint16(b[offIth:], h.ith)
			binary.LittleEndian.PutUint16(b[offNth:], crowdThreads)
		}))
	}
	return records, uint32(len(added))
}

// whole is a receiver that keeps graphs.
type whole []*optrace.Graph

func (w *whole) Graph(g *optrace.Graph) { *w = append(*w, g) }
func (w *whole) Call(*optrace.Call)     {}

// assembled reads records like a session, some at a time, and returns the complete graphs.
func assembled(rnd *rand.Rand, records [][]byte, lost uint32) (got whole, told int64) {
	d := empty()
	a := assemble.New(&d.tables.Tables, &got)
	push := func(until time.Duration) {
		for _, e := range d.out.takeUntil(until) {
			a.Push(e)
		}
	}
	for len(records) > 0 {
		n := min(1+rnd.IntN(40), len(records))
		for _, r := range records[:n] {
			d.Record(r)
		}
		records = records[n:]
		push(d.newestRecorded - holdBack)
	}
	d.reportLost(lost, 0)
	push(1 << 62)
	a.Flush(1 << 62)
	_, told = a.Dropped()
	return got, told
}

// A graph with a lost event is never passed to the receiver, whichever CPU lost it and in
// whatever order programs reserved room; all others are, and no loss is reported twice.
func TestGraphsWithLossesAreNotHandedOver(t *testing.T) {
	const each = 40
	for seed := range uint64(300) {
		c := &crowd{rnd: rand.New(rand.NewPCG(seed, 9))}
		c.graphs(0, each, 100)
		c.graphs(each, each, 200)
		often := []int{0, 20, 200, 1000}[seed%4]
		records, lost := c.lose(often)
		torn, begins := map[int]bool{}, map[time.Duration]int{}
		for _, h := range c.hits {
			if h.lost {
				torn[h.graph] = true
			}
			if h.kind == optrace.GraphBegin {
				begins[h.at] = h.graph
			}
		}
		got, told := assembled(c.rnd, records, lost)
		for _, g := range got {
			n, ok := begins[g.Begin]
			if !ok || torn[n] || len(g.Threads) != crowdThreads {
				t.Fatalf("seed %d: graph %d of %d lanes is whole (%v), but it lost events", seed, n, len(g.Threads), ok)
			}
			for _, lane := range g.Threads {
				if len(lane.Spans) != crowdOps {
					t.Fatalf("seed %d: a lane has %d operators of %d", seed, len(lane.Spans), crowdOps)
				}
			}
		}
		if lost == 0 && len(got) != 2*each {
			t.Errorf("seed %d: %d graphs of %d, none of which lost anything", seed, len(got), 2*each)
		}
		if often == 1000 && len(got) == 0 {
			t.Errorf("seed %d: no graph at all after %d losses", seed, lost)
		}
		if told != int64(lost) {
			t.Errorf("seed %d: %d losses are told, %d were", seed, told, lost)
		}
	}
}
