package gpu

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestThrottle(t *testing.T) {
	tests := []struct {
		name                                  string
		mask                                  uint64
		words                                 []string
		throttled, powerCapped, thermal, hard bool
	}{
		{name: "full clocks"},
		{name: "idle", mask: 0x1},
		{name: "clocks that somebody set", mask: 0x2 | 0x100},
		{name: "power cap", mask: 0x4, words: []string{"software power cap"}, throttled: true, powerCapped: true},
		{name: "power cap while clocks are set", mask: 0x6, words: []string{"software power cap"}, throttled: true, powerCapped: true},
		{name: "hardware slowdown", mask: 0x8, words: []string{"hardware slowdown"}, throttled: true, hard: true},
		{name: "sync boost", mask: 0x10, words: []string{"sync boost with a slower GPU"}, throttled: true},
		{name: "software thermal", mask: 0x20, words: []string{"software thermal slowdown"}, throttled: true, thermal: true},
		{name: "hardware thermal", mask: 0x48, words: []string{"hardware slowdown", "hardware thermal slowdown"}, throttled: true, thermal: true, hard: true},
		{name: "power brake", mask: 0x88, words: []string{"hardware slowdown", "hardware power brake"}, throttled: true, powerCapped: true, hard: true},
		{name: "a bit of a newer driver", mask: 1 << 40, words: []string{"reason 0x10000000000"}, throttled: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.words, ThrottleReasons(tt.mask)); diff != "" {
				t.Errorf("ThrottleReasons (-want +got):\n%s", diff)
			}
			got := []bool{Throttled(tt.mask), PowerCapped(tt.mask), Thermal(tt.mask), HardwareSlowdown(tt.mask)}
			if diff := cmp.Diff([]bool{tt.throttled, tt.powerCapped, tt.thermal, tt.hard}, got); diff != "" {
				t.Errorf("throttled, power capped, thermal, hardware (-want +got):\n%s", diff)
			}
		})
	}
}
