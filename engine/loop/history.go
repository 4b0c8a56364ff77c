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

// lastIteration returns the latest iteration that was not refused, or nil. It must not be modified.
func (h *history) lastIteration() *Iteration {
	if i := h.lastIndex(); i >= 0 {
		return &h.iterations[i]
	}
	return nil
}

// lastIndex returns the index of the latest iteration that was not refused, or -1.
func (h *history) lastIndex() int {
	i := len(h.iterations) - 1
	for i >= 0 && h.iterations[i].refused {
		i--
	}
	return i
}

// alterLatest replaces the latest iteration by a modified copy, because snapshots share it.
func (h *history) alterLatest(alter func(*Iteration)) {
	i := h.lastIndex()
	if i < 0 {
		return
	}
	h.iterations = slices.Clone(h.iterations)
	alter(&h.iterations[i])
	h.score = score(h.iterations)
}

// add appends an iteration and returns its number.
func (h *history) add(it Iteration) int {
	it.N = 1
	if n := len(h.iterations); n > 0 {
		it.N = h.iterations[n-1].N + 1
	}
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
		if h.iterations[i].refused {
			continue
		}
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
