package enginepage

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/engine/figure"
)

func TestPacer(t *testing.T) {
	const ms = time.Millisecond
	repeat := func(d time.Duration, n int) []time.Duration { return slices.Repeat([]time.Duration{d}, n) }
	tests := []struct {
		name string
		base time.Duration
		took []time.Duration
		want time.Duration
	}{
		{"before the first page", 0, nil, 250 * ms},
		{"fast pages", 0, repeat(5*ms, 20), 250 * ms},
		{"at the limit", 0, repeat(12500*time.Microsecond, 9), 250 * ms},
		{"slow pages", 0, repeat(30*ms, 9), 600 * ms},
		{"the first page alone proves nothing", 0, []time.Duration{600 * ms}, 250 * ms},
		{"nor do two", 0, repeat(600*ms, 2), 250 * ms},
		{"three do, step by step", 0, repeat(40*ms, 3), 500 * ms},
		{"and with the next", 0, repeat(40*ms, 4), 800 * ms},
		{"a slow first page is outvoted", 0, []time.Duration{600 * ms, 5 * ms, 5 * ms}, 250 * ms},
		{"one slow page among nine", 0, append(repeat(5*ms, 8), time.Second), 250 * ms},
		{"pages that wait for the server's work", 0, append(repeat(200*ms, 8), 6*ms), 250 * ms},
		{"a page that costs more from now on", 0, append(repeat(5*ms, 9), repeat(50*ms, 20)...), time.Second},
		{"only the last nine count", 0, append(repeat(5*ms, 9), repeat(time.Second, 50)...), 20 * time.Second},
		{"another base", 50 * ms, repeat(2*ms, 9), 50 * ms},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := Pacer{Base: tt.base}
			for _, took := range tt.took {
				p.Observe(took)
			}
			if got := p.Interval(); got != tt.want {
				t.Errorf("interval %s, want %s", got, tt.want)
			}
			why, slowed := p.Slowed()
			grown := tt.want == pacerFactor*p.Shortest()
			if base := max(tt.base, 50*ms); slowed != (tt.want > base && tt.want > 250*ms && grown) || slowed != strings.Contains(why, "every "+figure.Duration(tt.want)+" instead") {
				t.Errorf("slowed %v, %q", slowed, why)
			}
		})
	}
}
