package ggml

import "github.com/rooftop-dev/rooftop/engine/optrace"

// maxSteppers is how many threads of one process are remembered.
const maxSteppers = 1 << 12

// stepping makes the operators of GGML until June 2024 look like those of later: each was
// prepared, computed and finished, with a call for each step. What one thread alone does,
// as the lane of index 0 of one lane, the thread does that was last to end what was before:
// any of them. Here each operator begins once, and lane 0 is always the thread of the graph.
type stepping struct {
	main    int32            // the thread of the newest graph, 0 none
	began   map[int32]uint64 // by thread that began graphs: the operator that its lane 0 began last, 0 none
	again   map[int32]bool   // by thread: its newest begin was that of another step
	lanes   uint16           // of the graph before, or more
	counted uint16           // in this graph so far
}

func newStepping() stepping { return stepping{began: map[int32]uint64{}, again: map[int32]bool{}} }

// graph takes in that a thread begins a graph.
func (s *stepping) graph(tid int32) {
	if len(s.began) >= maxSteppers {
		clear(s.began)
	}
	s.main, s.began[tid] = tid, 0
	if s.counted > 0 {
		s.lanes = s.counted
	}
	s.counted = 0
}

// begins says whether an operator begins, and not another step of one.
func (s *stepping) begins(e *optrace.Event) bool {
	s.counted = max(s.counted, e.Lanes)
	s.lanes = max(s.lanes, e.Lanes)
	e.Lanes = s.lanes
	if len(s.again) >= maxSteppers {
		clear(s.again)
	}
	by := e.TID
	s.again[by] = false
	if e.Lane != 0 || s.main == 0 {
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
