package ggml

import "github.com/rooftop-dev/rooftop/engine/optrace"

// maxSteppers is the number of threads of one process that are tracked.
const maxSteppers = 1 << 12

// stepping makes the operators of GGML before June 2024 look like those of later versions. Each
// operator was prepared, computed and finished, with a call for each step, and a step for a
// single thread ran on whichever thread finished the previous step last, as thread 0 of 1. Here
// each operator begins once, and thread 0 is always the thread of the graph.
type stepping struct {
	main    int32            // TID of the thread of the newest graph, 0 if there is none
	began   map[int32]uint64 // by thread of a graph: the operator that thread 0 began last, 0 if none
	again   map[int32]bool   // by thread: its latest begin was another step of an operator
	threads uint16           // number of threads of the previous graph, or more
	counted uint16           // number of threads in this graph so far
}

func newStepping() stepping { return stepping{began: map[int32]uint64{}, again: map[int32]bool{}} }

// graph notes that a thread begins a graph.
func (s *stepping) graph(tid int32) {
	if len(s.began) >= maxSteppers {
		clear(s.began)
	}
	s.main, s.began[tid] = tid, 0
	if s.counted > 0 {
		s.threads = s.counted
	}
	s.counted = 0
}

// begins reports whether an operator begins, as opposed to another step of one, and corrects
// the event's thread.
func (s *stepping) begins(e *optrace.Event) bool {
	s.counted = max(s.counted, e.Threads)
	s.threads = max(s.threads, e.Threads)
	e.Threads = s.threads
	if len(s.again) >= maxSteppers {
		clear(s.again)
	}
	by := e.TID
	s.again[by] = false
	if e.Thread != 0 || s.main == 0 {
		return true
	}
	if _, main := s.began[e.TID]; !main {
		e.TID = s.main
	}
	if s.began[e.TID] == e.Addr {
		s.again[by] = true
		return false
	}
	s.began[e.TID] = e.Addr
	return true
}
