package loop

import (
	"slices"

	"github.com/rooftop-dev/rooftop/engine"
)

// history is the list of changes with their outcomes.
type history struct {
	iterations []Iteration
	score      Score // score of the iterations, as of the latest modification
}

// iteration returns the number of the latest iteration, 0 if there is none.
func (h *history) iteration() int {
	if it := h.lastIteration(); it != nil {
		return it.N
	}
	return 0
}

// lastIteration returns the latest iteration, or nil. It must not be modified.
func (h *history) lastIteration() *Iteration {
	if n := len(h.iterations); n > 0 {
		return &h.iterations[n-1]
	}
	return nil
}

// alterLatest replaces the latest iteration by a modified copy, because snapshots share it.
func (h *history) alterLatest(alter func(*Iteration)) {
	if len(h.iterations) == 0 {
		return
	}
	h.iterations = slices.Clone(h.iterations)
	alter(&h.iterations[len(h.iterations)-1])
	h.score = score(h.iterations)
}

// add appends an iteration and returns its number.
func (h *history) add(it Iteration) int {
	it.N = h.iteration() + 1
	from := max(0, len(h.iterations)+1-keepIterations)
	h.iterations = append(slices.Clone(h.iterations[from:]), it)
	return it.N
}

// keptCount returns the number of kept changes.
func (h *history) keptCount() int {
	n := 0
	for i := range h.iterations {
		if e := h.iterations[i].End; e == IterationKept || e == IterationContinued {
			n++
		}
	}
	return n
}

func (h *history) revertingChanges() []engine.Change {
	if it := h.lastIteration(); it != nil {
		return inverses(it.Changes)
	}
	return nil
}

// markReverted marks the change without a gain as no longer running: the latest iteration that
// changed something.
func (h *history) markReverted() {
	for i := len(h.iterations) - 1; i >= 0; i-- {
		switch h.iterations[i].End {
		case IterationNoise:
		case IterationNoGain:
			h.iterations = slices.Clone(h.iterations)
			h.iterations[i].End = IterationReverted
			return
		default:
			return
		}
	}
}

func (h *history) latestChange() engine.Change {
	if it := h.lastIteration(); it != nil {
		return firstOf(it.Changes)
	}
	return engine.Change{}
}
