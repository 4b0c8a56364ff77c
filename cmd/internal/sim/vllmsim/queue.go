package vllmsim

import (
	"math"
	"slices"
	"sort"
	"time"
)

// Never is the time of an event that does not happen.
const Never time.Duration = math.MaxInt64

// Queue is the queue of future events of a simulation, ordered by time and then by insertion. Most values are pushed
// at its end. The zero Queue is empty.
type Queue[T any] struct{ list []entry[T] }

type entry[T any] struct {
	at    time.Duration
	value T
}

// Next returns the time of the first value, Never if the queue is empty.
func (q *Queue[T]) Next() time.Duration {
	if len(q.list) == 0 {
		return Never
	}
	return q.list[0].at
}

// Push adds a value.
func (q *Queue[T]) Push(at time.Duration, value T) {
	i := len(q.list)
	if i > 0 && q.list[i-1].at > at {
		i = sort.Search(i, func(i int) bool { return q.list[i].at > at })
	}
	q.list = slices.Insert(q.list, i, entry[T]{at, value})
}

// Pop removes and returns the first value. The queue must not be empty.
func (q *Queue[T]) Pop() (at time.Duration, value T) {
	first := q.list[0]
	q.list[0] = entry[T]{} // may hold much
	q.list = q.list[1:]
	return first.at, first.value
}
