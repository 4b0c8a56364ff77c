//go:build amd64 || arm64

package ggml

import (
	"errors"
	"fmt"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The ring is an array map with one value that programs write and this process reads: two cache
// lines of control, the data, and room after it so that a record at the end is contiguous. It
// replaces the kernel's own ring buffer, for which the target pays with a lock, two calls and
// ten cold lines of code per record: with an atomic addition and a store instead, an operator's
// 225 ns became 165 (152 M parameters, one thread).
//
// Positions count bytes from the start of the trace; the data of a position is at that modulo
// the size. A record is a word, the reserved bytes, and padding to 8 bytes. The word is the
// record's position, with its length from bit 48 on; bit 0 is set last and marks the record as
// complete. A stale word has another position.
const (
	ringHead    = 0   // u64 in the control: the end of the reserved part
	ringTail    = 64  // u64 in the control: the position up to which this process has read
	ringControl = 128 // bytes before the data
	ringWord    = 8
	ringDone    = 1
	ringLength  = 48 // bits below the length
)

// largestRecord is the size of the experts of a prompt.
const largestRecord = headerSize + expertRowsLarge*expertSlot*4

// spareEach is what the programs of one CPU take at the same moment: an operator's with two
// tensors, and a kernel event in between. At most two CPUs are assumed to write the largest
// record.
const spareEach = 2 << 10

// spare returns how much of a ring stays free, in bytes: a program checks for room and then
// takes it, and programs of other CPUs may do so in between. A preempted program is not
// covered; the reader detects too many of these ([errOverrun]).
func spare(cpus int) int { return 2*largestRecord + cpus*spareEach }

// maxDrain is the number of bytes that one drain reads at most, to bound the resulting events.
const maxDrain = 4 << 20

// publishEvery is the number of bytes after which a drain returns room to the programs.
const publishEvery = 256 << 10

// ring reads what programs write, in batches and without copying: a record is a slice of the
// buffer, valid until the next one.
type ring struct {
	head, tail *uint64
	data       []byte // longer than mask+1, see the layout above
	mask       uint64
	mapped     []byte
}

var (
	errRing    = errors.New("the ring buffer holds a record that is longer than what was written to it")
	errOverrun = errors.New("the ring buffer was written to faster than its spare room allows for")
)

// ringBytes returns the size of the map of a ring with size bytes of data.
func ringBytes(size int) int { return ringControl + size + largestRecord + ringWord + 8 }

// mapRing maps the ring of a map's descriptor; size is that of its data in bytes, a power of
// two.
func mapRing(fd, size int) (*ring, error) {
	mapped, err := unix.Mmap(fd, 0, ringBytes(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map the ring buffer: %w", err)
	}
	r := newRing(mapped, size)
	r.mapped = mapped
	return r, nil
}

// newRing returns a ring over memory with the layout of its map.
func newRing(memory []byte, size int) *ring {
	return &ring{
		head: (*uint64)(unsafe.Pointer(&memory[ringHead])), tail: (*uint64)(unsafe.Pointer(&memory[ringTail])),
		data: memory[ringControl:], mask: uint64(size - 1),
	}
}

// drain passes each record to visit, oldest first. whole is true if it reached the end as of
// its start; otherwise there are more records after one that is still being written, or after
// maxDrain.
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

// size returns the size of the data in bytes.
func (r *ring) size() int { return int(r.mask + 1) }

// waiting returns the number of bytes to be read.
func (r *ring) waiting() uint64 { return atomic.LoadUint64(r.head) - atomic.LoadUint64(r.tail) }

// close unmaps the buffer; records become invalid.
func (r *ring) close() error {
	if r.mapped == nil {
		return nil
	}
	err := unix.Munmap(r.mapped)
	r.mapped, r.data = nil, nil
	return err
}
