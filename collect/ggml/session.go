package ggml

import (
	"errors"
	"math/bits"

	"github.com/rooftop-dev/rooftop/engine/optrace"
)

// Sizes of the ring buffer in bytes. 16 MiB held bursts of 470,000 events per second with two
// threads; 1 MiB lost four fifths of the events with tensors.
const (
	defaultRing = 16 << 20
	minRing     = 64 << 10
	maxRing     = 256 << 20 // the verifier follows offsets up to 512 MiB (BPF_MAX_VAR_OFF)
)

// Options are the choices of a session.
type Options struct {
	// Ring is the size of the ring buffer in bytes, rounded up to a power of two; 0 is 16 MiB.
	// It is at least 128 KiB, more with many CPUs, and at most 256 MiB, or 2 MiB before Linux
	// 6.0.
	Ring int
	// Single attaches one probe at a time (perf events), as on kernels before 6.6.
	Single bool
}

// ErrPrivileges is wrapped by [Open] if privileges are missing; [Ladder] says which.
var ErrPrivileges = errors.New("not permitted")

// ErrEnded is wrapped by [Open] and [Session.SetDetail] if the target has ended.
var ErrEnded = errors.New("it ended before all probes were attached")

// ringSize returns the size of the ring buffer in bytes, within limits and rounded up.
func (o *Options) ringSize() int {
	size := o.Ring
	if size <= 0 {
		size = defaultRing
	}
	size = min(max(size, minRing), maxRing)
	return 1 << bits.Len(uint(size-1))
}

// implied adds the details that others need: operators are assigned to graphs by the graph's
// begin, and whatever belongs to an operator needs the operator.
func implied(d optrace.Detail) optrace.Detail {
	if d&(optrace.DetailTensor|optrace.DetailExperts|optrace.DetailCounters) != 0 {
		d |= optrace.DetailOperator
	}
	if d&(optrace.DetailOperator|optrace.DetailBarrier) != 0 {
		d |= optrace.DetailGraph
	}
	return d | optrace.DetailToken
}
