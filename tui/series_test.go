package tui

import (
	"testing"

	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/loop"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// TestChartsShowQuantilesWithinTheirBuckets checks that the figures of charts have no more digits than the
// histogram bucket of their window allows.
func TestChartsShowQuantilesWithinTheirBuckets(t *testing.T) {
	points := []loop.Point{
		{TTFT: stat.Some(0.244), TTFTBucket: stat.Bucket{0.1, 0.25}},
		{TTFT: stat.Some(0.0379), TTFTBucket: stat.Bucket{0.036, 0.038}},
		{TTFT: stat.Some(0.244)},
	}
	for _, m := range timeMeasures() {
		if m.name != "TTFT p99" {
			continue
		}
		for i, want := range []string{"240 ms", "38 ms", "244 ms"} {
			if got, want := m.show(points[i].TTFT, points[i:i+1]), figure.Unbroken(want); got != want {
				t.Errorf("window %d: %q, want %q", i, got, want)
			}
		}
	}
}
