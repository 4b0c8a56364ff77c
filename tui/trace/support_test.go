package trace

import (
	"github.com/rooftop-dev/rooftop/engine/stat"
	"github.com/rooftop-dev/rooftop/tui/cell"
	"github.com/rooftop-dev/rooftop/tui/frame"
)

func some(v float64) stat.Opt { return stat.Some(v) }

func plainLook() *frame.Settings { return &frame.Settings{Glyphs: cell.Unicode()} }

// highestShare returns the share of choices of the most chosen expert.
func highestShare(chosen []int64) float64 {
	sum, most := int64(0), int64(0)
	for _, n := range chosen {
		sum, most = sum+n, max(most, n)
	}
	return float64(most) / float64(max(1, sum))
}
