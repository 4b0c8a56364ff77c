//go:build amd64 || arm64

package ggml

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A record of the kernel's ring buffer (kernel/bpf/ringbuf.c): a length of 32 bits with
// two flags, an unused word, the data, padded to 8 bytes.
const (
	ringHeader  = 8
	ringBusy    = 1 << 31
	ringDiscard = 1 << 30
)

// maxDrain is how many bytes one drain reads at most, so that what it makes of them
// stays bounded.
const maxDrain = 4 << 20

// publishEvery is after how many bytes the room is given back to the programs while a
// drain goes on.
const publishEvery = 256 << 10

// ring reads a BPF ring buffer in batches and without copying: a record is a slice of
// the buffer itself, valid until the next one.
type ring struct {
	consumer, producer *uint64
	data               []byte // the buffer twice in a row, so that no record is cut
	mask               uint64
	control, buffer    []byte // what is mapped
}

var errRing = errors.New("the ring buffer holds a record that is longer than what was written to it")

// mapRing maps the ring buffer of a map's descriptor; size is its size in bytes.
func mapRing(fd, size int) (*ring, error) {
	page := os.Getpagesize()
	control, err := unix.Mmap(fd, 0, page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map the ring buffer's position: %w", err)
	}
	buffer, err := unix.Mmap(fd, int64(page), page+2*size, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		_ = unix.Munmap(control)
		return nil, fmt.Errorf("map the ring buffer: %w", err)
	}
	r := newRing(control, buffer[:page], buffer[page:])
	r.control, r.buffer = control, buffer
	return r, nil
}

// newRing is a ring over memory: two pages with the reader's and the writer's position,
// and the data, mapped twice in a row.
func newRing(consumer, producer, data []byte) *ring {
	return &ring{
		consumer: (*uint64)(unsafe.Pointer(&consumer[0])), producer: (*uint64)(unsafe.Pointer(&producer[0])),
		data: data, mask: uint64(len(data)/2 - 1),
	}
}

// drain hands each record to visit, oldest first. whole says that it came to the end of
// what was written when it began; else records go on behind a busy one, or behind
// maxDrain.
func (r *ring) drain(visit func(record []byte)) (whole bool, err error) {
	at := atomic.LoadUint64(r.consumer)
	end := atomic.LoadUint64(r.producer)
	start, published := at, at
	defer func() { atomic.StoreUint64(r.consumer, at) }()
	for at < end {
		if at-start >= maxDrain {
			return false, nil
		}
		offset := at & r.mask
		length := atomic.LoadUint32((*uint32)(unsafe.Pointer(&r.data[offset])))
		if length&ringBusy != 0 {
			return false, nil
		}
		size := uint64(length &^ (ringBusy | ringDiscard))
		if padded := ringHeader + (size+7)&^7; padded > end-at {
			at = end
			return true, errRing
		}
		if length&ringDiscard == 0 {
			visit(r.data[offset+ringHeader : offset+ringHeader+size : offset+ringHeader+size])
		}
		at += ringHeader + (size+7)&^7
		if at-published >= publishEvery {
			atomic.StoreUint64(r.consumer, at)
			published = at
		}
	}
	return true, nil
}

// size is the ring's, in bytes.
func (r *ring) size() int { return len(r.data) / 2 }

// waiting is how many bytes wait to be read.
func (r *ring) waiting() uint64 {
	return atomic.LoadUint64(r.producer) - atomic.LoadUint64(r.consumer)
}

// close unmaps the buffer; records are no longer valid.
func (r *ring) close() error {
	if r.buffer == nil {
		return nil
	}
	err := errors.Join(unix.Munmap(r.control), unix.Munmap(r.buffer))
	r.control, r.buffer, r.data = nil, nil, nil
	return err
}
