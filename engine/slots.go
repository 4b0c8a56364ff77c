package engine

import "math"

// The numbers of slots to propose are those for which vLLM captures CUDA graphs: 1, 2, 4, then
// steps of 8 to 256, then of 16. A full batch then runs in a graph of its own size.
const (
	SlotStep    = 8
	coarseSlots = 16
	coarseFrom  = 256
	// partOfSlot is the part of a request that needs no slot of its own.
	partOfSlot = 0.5
)

// SlotsFor returns the smallest proposed number of slots that fits n requests.
func SlotsFor(n float64) int {
	need := int(math.Ceil(n - partOfSlot))
	switch {
	case need <= 1:
		return 1
	case need <= 2:
		return 2
	case need <= 4:
		return 4
	case need <= coarseFrom:
		return roundUp(need, SlotStep)
	}
	return roundUp(need, coarseSlots)
}

// SlotsWithin returns the largest proposed number of slots up to n, 0 if n is below one.
func SlotsWithin(n float64) int {
	most := int(math.Floor(n + 1e-9))
	switch {
	case most < 1:
		return 0
	case most < 2:
		return 1
	case most < 4:
		return 2
	case most < SlotStep:
		return 4
	case most < coarseFrom:
		return most / SlotStep * SlotStep
	}
	return most / coarseSlots * coarseSlots
}

func roundUp(n, step int) int { return (n + step - 1) / step * step }
