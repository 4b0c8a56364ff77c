package engine

import "testing"

func TestSlotsLadder(t *testing.T) {
	for _, c := range []struct {
		n           float64
		want, below int
	}{
		{0.2, 1, 0}, {1, 1, 1}, {1.5, 1, 1}, {1.6, 2, 1}, {3, 4, 2}, {4.5, 4, 4}, {5, 8, 4}, {8, 8, 8}, {31.8, 32, 24}, {32, 32, 32}, {32.4, 32, 32}, {32.6, 40, 32},
		{248, 248, 248}, {250, 256, 248}, {256, 256, 256}, {257, 272, 256}, {1000, 1008, 992},
	} {
		if got := SlotsFor(c.n); got != c.want {
			t.Errorf("SlotsFor(%v) = %d, want %d", c.n, got, c.want)
		}
		if got := SlotsWithin(c.n); got != c.below {
			t.Errorf("SlotsWithin(%v) = %d, want %d", c.n, got, c.below)
		}
	}
}
