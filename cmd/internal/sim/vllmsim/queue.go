package vllmsim

import (
	"math"
	"time"
)

// Never is the time of an event that does not happen.
const Never time.Duration = math.MaxInt64

// Queue is the queue of future events of a simulation: a binary heap of values, ordered by time and then by
// insertion. The zero Queue is empty.
type Queue[T any] struct {
	heap  []entry[T]
	count uint64
}

type entry[T any] struct {
	at    time.Duration
	order uint64
	value T
}

func (e *entry[T]) before(o *entry[T]) bool { return e.at < o.at || e.at == o.at && e.order < o.order }

// Next returns the time of the first value, Never if the queue is empty.
func (q *Queue[T]) Next() time.Duration {
	if len(q.heap) == 0 {
		return Never
	}
	return q.heap[0].at
}

// Push adds a value.
func (q *Queue[T]) Push(at time.Duration, value T) {
	q.count++
	q.heap = append(q.heap, entry[T]{at, q.count, value})
	h := q.heap
	for i := len(h) - 1; i > 0; {
		parent := (i - 1) / 2
		if !h[i].before(&h[parent]) {
			break
		}
		h[i], h[parent] = h[parent], h[i]
		i = parent
	}
}

// Pop removes and returns the first value. The queue must not be empty.
func (q *Queue[T]) Pop() (at time.Duration, value T) {
	h := q.heap
	first, last := h[0], len(h)-1
	h[0] = h[last]
	h[last] = entry[T]{}
	h = h[:last]
	q.heap = h
	for i := 0; ; {
		child := 2*i + 1
		if child >= last {
			return first.at, first.value
		}
		if child+1 < last && h[child+1].before(&h[child]) {
			child++
		}
		if !h[child].before(&h[i]) {
			return first.at, first.value
		}
		h[i], h[child] = h[child], h[i]
		i = child
	}
}
