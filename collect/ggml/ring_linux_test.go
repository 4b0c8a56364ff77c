//go:build amd64 || arm64

package ggml

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"
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
