//go:build amd64 || arm64

package ggml

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// fake is a ring as the kernel writes it.
type fake struct {
	*ring
	consumerPage, producerPage, data []byte
}

func newFake(size int) *fake {
	f := &fake{consumerPage: make([]byte, 8), producerPage: make([]byte, 8), data: make([]byte, 2*size)}
	f.ring = newRing(f.consumerPage, f.producerPage, f.data)
	return f
}

// write puts a record where the kernel would, in both halves; flags as in its header.
func (f *fake) write(payload []byte, flags uint32) {
	at := *f.producer
	record := binary.LittleEndian.AppendUint32(nil, uint32(len(payload))|flags)
	record = append(append(record, 0, 0, 0, 0), payload...)
	for len(record)%8 != 0 {
		record = append(record, 0)
	}
	size := uint64(len(f.data) / 2)
	for i, b := range record {
		where := (at + uint64(i)) & f.mask
		f.data[where], f.data[where+size] = b, b
	}
	*f.producer += uint64(len(record))
}

func TestRingReadsInOrder(t *testing.T) {
	f := newFake(256)
	var want, got [][]byte
	for i := range 40 { // several times around
		b := bytes.Repeat([]byte{byte(i)}, i%50)
		want = append(want, b)
		f.write(b, 0)
		whole, err := f.drain(func(r []byte) { got = append(got, bytes.Clone(r)) })
		if err != nil || !whole {
			t.Fatal(whole, err)
		}
	}
	if f.waiting() != 0 || len(got) != len(want) {
		t.Fatalf("%d records, %d bytes wait", len(got), f.waiting())
	}
	for i := range want {
		if !bytes.Equal(got[i], want[i]) {
			t.Errorf("record %d: %v", i, got[i])
		}
	}
}

func TestRingStopsAtBusyAndLeavesOutDiscarded(t *testing.T) {
	f := newFake(1024)
	f.write([]byte("a"), 0)
	f.write([]byte("b"), ringDiscard)
	f.write([]byte("c"), 0)
	busy := *f.producer
	f.write([]byte("d"), ringBusy)
	f.write([]byte("e"), 0)
	var got string
	read := func() bool {
		whole, err := f.drain(func(r []byte) { got += string(r) })
		if err != nil {
			t.Fatal(err)
		}
		return whole
	}
	if read() || got != "ac" || *f.consumer != busy {
		t.Errorf("%q, at %d of %d", got, *f.consumer, busy)
	}
	f.data[busy+3] &^= 0x80 // committed
	if !read() || got != "acde" {
		t.Errorf("%q", got)
	}
}

// A drain is bounded: the rest comes with the next.
func TestRingDrainsInPieces(t *testing.T) {
	f := newFake(16 << 20)
	n, payload := 0, make([]byte, 64<<10)
	for range 100 {
		f.write(payload, 0)
	}
	whole, err := f.drain(func([]byte) { n++ })
	if whole || err != nil || n < 60 || n > 70 {
		t.Errorf("%d records, whole %v, %v", n, whole, err)
	}
	if whole, _ = f.drain(func([]byte) { n++ }); !whole || n != 100 {
		t.Errorf("%d records in the end", n)
	}
}

func TestRingOfNonsense(t *testing.T) {
	f := newFake(1024)
	f.write([]byte("a"), 0)
	f.data[0], f.data[1] = 0xff, 0xff // longer than what was written
	if _, err := f.drain(func([]byte) { t.Error("a record") }); !errors.Is(err, errRing) {
		t.Error(err)
	}
	if f.waiting() != 0 {
		t.Error("it would be read again")
	}
}

// benchmarkRing reads and decodes what a busy runtime writes.
func benchmarkRing(b *testing.B, tensors bool) {
	x := readFixture(b)
	d := x.decoder()
	f := newFake(16 << 20)
	n := 0
	for f.waiting() < 3<<20 {
		for _, r := range x.Records {
			if !tensors && len(r) > headerSize && r[offCookie] < recordNode {
				r = r[:headerSize]
			}
			if r[offCookie] == recordNode || int(r[offCookie]) == 12 && !tensors {
				continue
			}
			f.write(r, 0)
			n++
		}
	}
	end := *f.producer
	for _, r := range x.Records { // the graphs are known
		d.Record(r)
	}
	d.out.take(1 << 62)
	b.ReportAllocs()
	events := 0
	began := used(b)
	for b.Loop() {
		*f.consumer, *f.producer = 0, end
		for {
			whole, err := f.drain(d.Record)
			if err != nil {
				b.Fatal(err)
			}
			events += len(d.out.take(1 << 62))
			if whole {
				break
			}
		}
	}
	b.ReportMetric(float64(events)/(used(b)-began).Seconds(), "events/core-s")
	b.ReportMetric(0, "ns/op")
}

// used is the CPU time of this process: the machine may be busy with others.
func used(b *testing.B) time.Duration {
	b.Helper()
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func BenchmarkOperators(b *testing.B) { benchmarkRing(b, false) }

func BenchmarkOperatorsWithTensors(b *testing.B) { benchmarkRing(b, true) }
