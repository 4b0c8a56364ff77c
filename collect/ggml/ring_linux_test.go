//go:build amd64 || arm64

package ggml

import (
	"bytes"
	"encoding/binary"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// fake is a ring as written by programs.
type fake struct {
	*ring
	memory []byte
}

func newFake(size int) *fake {
	memory := make([]byte, ringBytes(size))
	return &fake{newRing(memory, size), memory}
}

// reserve makes room for a record and returns its position.
func (f *fake) reserve(payload []byte) uint64 {
	at := *f.head
	f.word(at, uint64(len(payload))<<ringLength|at)
	copy(f.data[at&f.mask+ringWord:], payload)
	*f.head += ringWord + uint64(len(payload)+7)&^7
	return at
}

// commit completes a record of some size.
func (f *fake) commit(at uint64, size int) {
	f.word(at, at|ringDone|uint64(size)<<ringLength)
}

// word writes the word of a record.
func (f *fake) word(at, word uint64) { binary.NativeEndian.PutUint64(f.data[at&f.mask:], word) }

// write writes a complete record.
func (f *fake) write(payload []byte) { f.commit(f.reserve(payload), len(payload)) }

func TestRingReadsInOrder(t *testing.T) {
	f := newFake(256)
	var want, got [][]byte
	for i := range 40 { // several times around
		b := bytes.Repeat([]byte{byte(i)}, i%50)
		want = append(want, b)
		f.write(b)
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

// A drain stops at an incomplete record, even if a complete one from an earlier round is there.
func TestRingStopsAtWhatIsBeingWritten(t *testing.T) {
	for _, around := range []int{0, 1, 3} {
		f := newFake(256)
		for range around * 256 / 16 {
			f.write([]byte("old"))
			if whole, err := f.drain(func([]byte) {}); !whole || err != nil {
				t.Fatal(whole, err)
			}
		}
		f.write([]byte("a"))
		f.write([]byte("b"))
		busy := f.reserve([]byte("c"))
		f.write([]byte("d"))
		var got string
		read := func() bool {
			whole, err := f.drain(func(r []byte) { got += string(r) })
			if err != nil {
				t.Fatal(err)
			}
			return whole
		}
		if read() || got != "ab" || *f.tail != busy {
			t.Errorf("%q, at %d of %d", got, *f.tail, busy)
		}
		f.commit(busy, 1)
		if !read() || got != "abcd" {
			t.Errorf("%q", got)
		}
	}
}

// A drain is bounded: the remainder comes with the next one.
func TestRingDrainsInPieces(t *testing.T) {
	f := newFake(16 << 20)
	n, payload := 0, make([]byte, 16<<10)
	for range 400 {
		f.write(payload)
	}
	whole, err := f.drain(func([]byte) { n++ })
	if whole || err != nil || n < 240 || n > 270 {
		t.Errorf("%d records, whole %v, %v", n, whole, err)
	}
	if whole, _ = f.drain(func([]byte) { n++ }); !whole || n != 400 {
		t.Errorf("%d records in the end", n)
	}
}

func TestRingOfNonsense(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(*fake)
		want  error
	}{
		"longer than what was written":   {func(f *fake) { f.commit(0, 9000) }, errRing},
		"longer than any record":         {func(f *fake) { *f.head += 32 << 10; f.commit(0, largestRecord+1) }, errRing},
		"written to while it was unread": {func(f *fake) { *f.head = 65 << 10 }, errOverrun},
	} {
		f := newFake(64 << 10)
		f.write([]byte("a"))
		c.spoil(f)
		if _, err := f.drain(func([]byte) { t.Error(name + ": a record") }); !errors.Is(err, c.want) {
			t.Error(name, err)
		}
		if f.waiting() != 0 {
			t.Error(name + ": it would be read again")
		}
	}
}

// Concurrent writers, like programs of several CPUs, neither lose nor corrupt what has room.
func TestRingOfManyWriters(t *testing.T) {
	const (
		writers = 8
		size    = 4 << 10
		largest = 200 // bytes of a record
		each    = 20_000
	)
	f := newFake(size)
	var wait sync.WaitGroup
	for w := range writers {
		wait.Go(func() {
			for i := 0; i < each; {
				if f.race(w, i, headerSize+(i*7+w*13)%(largest-headerSize), size-writers*largest) {
					i++
				} else {
					runtime.Gosched()
				}
			}
		})
	}
	next, read := [writers]uint32{}, 0
	for read < writers*each {
		_, err := f.drain(func(r []byte) {
			w, i := r[0], binary.NativeEndian.Uint32(r[4:])
			if w >= writers || i != next[w] || bytes.Count(r[8:], r[:1]) != len(r)-8 {
				t.Fatalf("of writer %d record %d, want %d: % x", w, i, next[w], r)
			}
			next[w]++
			read++
		})
		if err != nil {
			t.Fatal(err)
		}
		runtime.Gosched()
	}
	wait.Wait()
}

// race writes a record like a program, concurrently with others; it returns false without room.
func (f *fake) race(writer, index, size, room int) bool {
	tail := atomic.LoadUint64(f.tail)
	if atomic.LoadUint64(f.head)-tail > uint64(room) {
		return false
	}
	padded := uint64(ringWord + (size+7)&^7)
	at := atomic.AddUint64(f.head, padded) - padded
	word := (*uint64)(unsafe.Pointer(&f.data[at&f.mask]))
	atomic.StoreUint64(word, uint64(size)<<ringLength|at)
	runtime.Gosched() // another may run between any two instructions
	r := f.data[at&f.mask+ringWord:][:size]
	for i := range r {
		r[i] = byte(writer)
	}
	binary.NativeEndian.PutUint32(r[4:], uint32(index))
	atomic.StoreUint64(word, *word|ringDone)
	return true
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
			f.write(r)
			n++
		}
	}
	end := *f.head
	for _, r := range x.Records { // the graphs are known
		d.Record(r)
	}
	d.out.takeUntil(1 << 62)
	b.ReportAllocs()
	events := 0
	began := used(b)
	for b.Loop() {
		*f.tail, *f.head = 0, end
		for {
			whole, err := f.drain(d.Record)
			if err != nil {
				b.Fatal(err)
			}
			events += len(d.out.takeUntil(1 << 62))
			if whole {
				break
			}
		}
	}
	b.ReportMetric(float64(events)/(used(b)-began).Seconds(), "events/core-s")
	b.ReportMetric(0, "ns/op")
}

// used returns the CPU time of this process, because the machine may be busy with others.
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
