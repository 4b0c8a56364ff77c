//go:build amd64 || arm64

package ggml

import (
	"errors"
	"fmt"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The ring is an array map of one value that programs write and this process reads: two
// cache lines of control, the data, and room behind it so that no record is cut where the
// data begins anew. It is here in place of the kernel's own ring buffer, for which the
// target pays with a lock, two calls and ten cold lines of code in each record: an
// operator's 225 ns became 165 (152 M parameters, one thread) with an atomic addition and
// a store that do the same.
//
// Positions count bytes from the start of the trace; the data at a position is at that
// modulo the size. A record is a word, what was reserved for, and padding to 8 bytes. The
// word is its position, and its length from bit 48 on; bit 0 is set last and tells that the
// record is whole. What lies there from the time before has another position.
const (
	ringHead    = 0   // u64 in the control: the position behind what is reserved
	ringTail    = 64  // u64 there: the position up to which this process has read
	ringControl = 128 // bytes before the data
	ringWord    = 8
	ringDone    = 1
	ringLength  = 48 // bits below the length
)

// largestRecord is that of the experts of a prompt.
const largestRecord = headerSize + expertRowsLarge*expertSlot*4

// spareEach is what the programs of one CPU take at the same moment: an operator's with two
// tensors, and one of the kernel's in between. Two of all may take the largest record.
const spareEach = 2 << 10

// spare is how much of a ring stays free: a program looks whether there is room and then
// takes it, and programs of other CPUs do so in between. One that is preempted there is
// beyond that; the reader says so where there were too many ([errOverrun]).
func spare(cpus int) int { return 2*largestRecord + cpus*spareEach }

// maxDrain is how many bytes one drain reads at most, so that what it makes of them
// stays bounded.
const maxDrain = 4 << 20

// publishEvery is after how many bytes the room is given back to the programs while a
// drain goes on.
const publishEvery = 256 << 10

// ring reads what programs write, in batches and without copying: a record is a slice of
// the buffer itself, valid until the next one.
type ring struct {
	head, tail *uint64
	data       []byte // its size is more than mask, see the layout above
	mask       uint64
	mapped     []byte
}

var (
	errRing    = errors.New("the ring buffer holds a record that is longer than what was written to it")
	errOverrun = errors.New("the ring buffer was written to faster than its spare room allows for")
)

// ringBytes is the size of the map of a ring with so much data.
func ringBytes(size int) int { return ringControl + size + largestRecord + ringWord + 8 }

// mapRing maps the ring of a map's descriptor; size is that of its data in bytes, a power
// of two.
func mapRing(fd, size int) (*ring, error) {
	mapped, err := unix.Mmap(fd, 0, ringBytes(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map the ring buffer: %w", err)
	}
	r := newRing(mapped, size)
	r.mapped = mapped
	return r, nil
}

// newRing is a ring over memory that is laid out as its map.
func newRing(memory []byte, size int) *ring {
	return &ring{
		head: (*uint64)(unsafe.Pointer(&memory[ringHead])), tail: (*uint64)(unsafe.Pointer(&memory[ringTail])),
		data: memory[ringControl:], mask: uint64(size - 1),
	}
}

// drain hands each record to visit, oldest first. whole says that it came to the end of
// what was written when it began; else records go on behind one that is being written, or
// behind maxDrain.
func (r *ring) drain(visit func(record []byte)) (whole bool, err error) {
	at := atomic.LoadUint64(r.tail)
	end := atomic.LoadUint64(r.head)
	start, published := at, at
	defer func() { atomic.StoreUint64(r.tail, at) }()
	if end-at > r.mask+1 {
		at = end
		return true, errOverrun
	}
	for at < end {
		if at-start >= maxDrain {
			return false, nil
		}
		offset := at & r.mask
		word := atomic.LoadUint64((*uint64)(unsafe.Pointer(&r.data[offset])))
		if word&(1<<ringLength-1) != at|ringDone {
			return false, nil
		}
		size := word >> ringLength
		padded := ringWord + (size+7)&^7
		if padded > end-at || size > largestRecord {
			at = end
			return true, errRing
		}
		visit(r.data[offset+ringWord : offset+ringWord+size : offset+ringWord+size])
		at += padded
		if at-published >= publishEvery {
			atomic.StoreUint64(r.tail, at)
			published = at
		}
	}
	return true, nil
}

// size is the ring's, in bytes.
func (r *ring) size() int { return int(r.mask + 1) }

// waiting is how many bytes wait to be read.
func (r *ring) waiting() uint64 { return atomic.LoadUint64(r.head) - atomic.LoadUint64(r.tail) }

// close unmaps the buffer; records are no longer valid.
func (r *ring) close() error {
	if r.mapped == nil {
		return nil
	}
	err := unix.Munmap(r.mapped)
	r.mapped, r.data = nil, nil
	return err
}
