package perf

import (
	"sort"

	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/perf/device"
)

// interpolate returns a step time between the measured ones, linear in context and batch. Below the table it
// returns the value at the edge; above, it extrapolates the last two.
func interpolate(t *device.Table, context, batch float64) float64 {
	i, fi := place(t.Contexts, context)
	j, fj := place(t.Batches, batch)
	at := func(i, j int) float64 {
		return t.Seconds[min(i, len(t.Contexts)-1)*len(t.Batches)+min(j, len(t.Batches)-1)]
	}
	low := at(i, j) + fj*(at(i, j+1)-at(i, j))
	high := at(i+1, j) + fj*(at(i+1, j+1)-at(i+1, j))
	return max(low+fi*(high-low), 0)
}

// place returns the index of the lower of two ascending points around x, and the relative position of x between
// them.
func place(points []int, x float64) (i int, f float64) {
	n := len(points)
	if n == 1 || x <= float64(points[0]) {
		return 0, 0
	}
	i = sort.Search(n, func(k int) bool { return float64(points[k]) >= x }) - 1
	i = min(i, n-2)
	return i, (x - float64(points[i])) / float64(points[i+1]-points[i])
}
