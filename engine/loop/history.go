package loop

import (
	"slices"

	"github.com/rooftop-dev/rooftop/engine"
)

// history is the list of changes with their outcomes.
type history struct {
	iterations []Iteration
	numbered   int   // number of the latest iteration, also of one that was dropped
	score      Score // score of the iterations, as of the latest modification
}

// iteration returns the number of the latest iteration, 0 if there is none.
func (h *history) iteration() int {
	if it := h.lastIteration(); it != nil {
		return it.N
	}
	return 0
}

// nextIteration returns the number that the next iteration gets.
func (h *history) nextIteration() int { return h.numbered + 1 }

// lastIteration returns the latest iteration, or nil. It must not be modified.
func (h *history) lastIteration() *Iteration {
	if n := len(h.iterations); n > 0 {
		return &h.iterations[n-1]
	}
	return nil
}

// alterLatest alters the latest iteration, if there is one.
func (h *history) alterLatest(alter func(*Iteration)) { h.alter(h.iteration(), alter) }

// alter replaces the iteration with this number by a modified copy, because snapshots share it.
func (h *history) alter(number int, alter func(*Iteration)) {
	i := slices.IndexFunc(h.iterations, func(it Iteration) bool { return it.N == number })
	if i < 0 {
		return
	}
	h.iterations = slices.Clone(h.iterations)
	alter(&h.iterations[i])
	h.score = score(h.iterations)
}

// add appends an iteration and returns its number.
func (h *history) add(it Iteration) int {
	it.N = h.nextIteration()
	h.numbered = it.N
	from := max(0, len(h.iterations)+1-keepIterations)
	h.iterations = append(slices.Clone(h.iterations[from:]), it)
	return it.N
}

// dropLatest removes the latest iteration. Its number is not used again.
func (h *history) dropLatest() {
	h.iterations = slices.Clone(h.iterations[:len(h.iterations)-1])
	h.score = score(h.iterations)
}

// keptName names the configuration that a revert restores: the original one as long as no change is kept.
func (h *history) keptName() string {
	if h.keptCount() == 0 {
		return "the original configuration"
	}
	return "the kept configuration"
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
