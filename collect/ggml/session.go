package ggml

import (
	"errors"
	"math/bits"

	"github.com/rooftop-dev/rooftop/engine/optrace"
)

// Sizes of the ring buffer in bytes. 16 MiB held bursts of 470,000 events a second with
// two threads; 1 MiB lost four fifths of events with tensors.
const (
	defaultRing = 16 << 20
	minRing     = 64 << 10
	maxRing     = 256 << 20 // the verifier follows offsets up to 512 MiB (BPF_MAX_VAR_OFF)
)

// Options are the choices of a session.
type Options struct {
	// Ring is the size of the ring buffer in bytes, rounded up to a power of two of 256 MiB
	// at most; 0 is 16 MiB. It is 128 KiB at least, more where there are many CPUs, and
	// 2 MiB at most before Linux 6.0.
	Ring int
	// All watches every process that maps the files, where the runtime has no PID; else
	// the first process that is seen becomes the target.
	All bool
	// Single attaches one probe at a time (perf events), as on kernels before 6.6.
	Single bool
}

// ErrPrivileges is the error, wrapped in a sentence, of [Open] without the privileges
// that it needs; [Ladder] tells which.
var ErrPrivileges = errors.New("not permitted")

// ErrEnded is the error, wrapped in a sentence, of [Open] and [Session.SetDetail] when the
// target has ended meanwhile.
var ErrEnded = errors.New("it ended before all of it was watched")

// ErrGone is the error, wrapped in a sentence, of [Session.Next] when the target became
// a program that has no GGML runtime.
var ErrGone = errors.New("the target became another program")

// ringSize is the size that is meant.
func (o *Options) ringSize() int {
	size := o.Ring
	if size <= 0 {
		size = defaultRing
	}
	size = min(max(size, minRing), maxRing)
	return 1 << bits.Len(uint(size-1))
}

// implied adds the details that others need: a graph's operators are told apart by its
// begin, and what belongs to an operator needs the operator.
func implied(d optrace.Detail) optrace.Detail {
	if d&(optrace.DetailTensor|optrace.DetailExperts|optrace.DetailCounters) != 0 {
		d |= optrace.DetailOperator
	}
	if d&(optrace.DetailOperator|optrace.DetailBarrier) != 0 {
		d |= optrace.DetailGraph
	}
	return d | optrace.DetailToken
}
