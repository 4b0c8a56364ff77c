package catalog_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rooftop-dev/rooftop/catalog"
)

func TestReasons(t *testing.T) {
	tests := []struct {
		name                    string
		mask                    uint64
		words, keys             []string
		harmful, power, thermal bool
	}{
		{name: "full clocks"},
		{name: "idle", mask: 0x1, keys: []string{"gpu_idle"}},
		{
			name: "clocks that someone set", mask: 0x2 | 0x100,
			words: []string{"application clocks", "display clocks"}, keys: []string{"applications_clocks_setting", "display_clock_setting"},
		},
		{name: "power cap", mask: 0x4, words: []string{"power limit"}, keys: []string{"sw_power_cap"}, harmful: true, power: true},
		{
			name: "power cap while clocks are set", mask: 0x6, words: []string{"application clocks", "power limit"},
			keys: []string{"applications_clocks_setting", "sw_power_cap"}, harmful: true, power: true,
		},
		{name: "hardware slowdown", mask: 0x8, words: []string{"hardware slowdown"}, keys: []string{"hw_slowdown"}, harmful: true, thermal: true},
		{name: "sync boost", mask: 0x10, words: []string{"sync boost with a slower GPU"}, keys: []string{"sync_boost"}},
		{name: "software thermal", mask: 0x20, words: []string{"temperature (driver)"}, keys: []string{"sw_thermal_slowdown"}, harmful: true, thermal: true},
		{
			name: "hardware thermal", mask: 0x48, words: []string{"hardware slowdown", "temperature (hardware)"},
			keys: []string{"hw_slowdown", "hw_thermal_slowdown"}, harmful: true, thermal: true,
		},
		{name: "power brake", mask: 0x80, words: []string{"power brake"}, keys: []string{"hw_power_brake_slowdown"}, harmful: true, power: true},
		{name: "a bit of a newer driver", mask: 1 << 40, words: []string{"reason 0x10000000000"}, keys: []string{"bit_40"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.words, catalog.ThrottleWords(tt.mask)); diff != "" {
				t.Errorf("Words (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(append([]string{}, tt.keys...), catalog.ThrottleKeys(tt.mask)); diff != "" {
				t.Errorf("Keys (-want +got):\n%s", diff)
			}
			got := []bool{tt.mask&catalog.Harmful != 0, tt.mask&catalog.Power != 0, tt.mask&catalog.Thermal != 0}
			if diff := cmp.Diff([]bool{tt.harmful, tt.power, tt.thermal}, got); diff != "" {
				t.Errorf("harmful, power, thermal (-want +got):\n%s", diff)
			}
		})
	}
}
