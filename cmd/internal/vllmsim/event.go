package vllmsim

import "time"

// kind is what an event of the front end is.
type kind uint8

const (
	arrives kind = iota // at the socket
	queues              // tokenized and handed to an engine
	leaves              // the client is gone
	reaches             // an update gets through a slow network
)

// event is something that will happen to one request.
type event struct {
	at      time.Duration
	order   uint64 // of events at one time
	kind    kind
	request *request
	update  Update
}

// eventQueue is a binary heap of events by time, then by order of insertion.
type eventQueue struct {
	heap  []event
	count uint64
}

func (q *eventQueue) next() time.Duration {
	if len(q.heap) == 0 {
		return never
	}
	return q.heap[0].at
}

func (q *eventQueue) push(e event) {
	q.count++
	e.order = q.count
	q.heap = append(q.heap, e)
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

func (q *eventQueue) pop() event {
	h := q.heap
	first := h[0]
	last := len(h) - 1
	h[0] = h[last]
	h[last] = event{}
	h = h[:last]
	q.heap = h
	for i := 0; ; {
		child := 2*i + 1
		if child >= last {
			return first
		}
		if child+1 < last && h[child+1].before(&h[child]) {
			child++
		}
		if !h[child].before(&h[i]) {
			return first
		}
		h[i], h[child] = h[child], h[i]
		i = child
	}
}

func (e *event) before(o *event) bool {
	if e.at != o.at {
		return e.at < o.at
	}
	return e.order < o.order
}
