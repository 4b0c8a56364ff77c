package ggml

import (
	"encoding/binary"
	"time"

	"github.com/rooftop-dev/rooftop/engine/optrace"
)

// A record of the ring is a header of headerSize bytes in the machine's byte order
// (amd64 and arm64: little endian) and a payload that depends on its kind.
const (
	offAt      = 0  // u64, CLOCK_MONOTONIC in ns
	offThread  = 8  // u64, PID << 32 | TID
	offAddr    = 16 // u64
	offN       = 24 // i64
	offExtra   = 32 // u64
	offCookie  = 40 // u32: kind | place << 16
	offCPU     = 44 // u32
	offDropped = 48 // u32: records that were lost so far
	offIth     = 52 // u16
	offNth     = 54 // u16
	headerSize = 56
)

// Kinds of records that are not events: they belong to an event that follows. All others are
// [optrace.Kind].
const (
	recordNode = 200 + iota // a node of a graph whose GraphBegin follows; extra is the graph
	recordKinds
)

// Rows of experts in a record: slots of a fixed size, so that the verifier of the
// kernel can follow.
const (
	expertSlot      = 32  // ids of a row; no known model uses more than 16 experts of a layer at a time
	expertRowsSmall = 4   // rows of the small record: decoding, and a few sequences at once
	expertRowsLarge = 128 // rows of the large record; of longer prompts the first ones are kept
)

// defaultRaw is the number of bytes of a tensor that are read if the layout is unknown: its
// name ends there in every version since 2024-06.
const defaultRaw = 320

// header is the common start of every record.
type header struct {
	at      time.Duration
	pid     int32
	tid     int32
	addr    uint64
	n       int64
	extra   uint64
	kind    uint8
	place   uint16
	cpu     uint32
	dropped uint32
	ith     uint16
	nth     uint16
}

// parseHeader parses the header of a record, and returns false if the record is too short.
func parseHeader(b []byte, h *header) bool {
	if len(b) < headerSize {
		return false
	}
	b = b[:headerSize]
	le := binary.LittleEndian
	h.at = time.Duration(le.Uint64(b[offAt:]))
	thread := le.Uint64(b[offThread:])
	h.pid, h.tid = int32(thread>>32), int32(thread)
	h.addr = le.Uint64(b[offAddr:])
	h.n = int64(le.Uint64(b[offN:]))
	h.extra = le.Uint64(b[offExtra:])
	cookie := le.Uint32(b[offCookie:])
	h.kind, h.place = uint8(cookie), uint16(cookie>>16)
	h.cpu = le.Uint32(b[offCPU:])
	h.dropped = le.Uint32(b[offDropped:])
	h.ith = le.Uint16(b[offIth:])
	h.nth = le.Uint16(b[offNth:])
	return true
}

// cookie encodes what a probe's program knows of its place: the kind of event, the place's
// index, and how far the stack pointer has moved.
func cookie(kind optrace.Kind, place, pushed int) uint64 {
	return uint64(kind) | uint64(place)<<16 | uint64(pushed)<<32
}
