package loop

import (
	"strings"
	"testing"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Load returns a diagnosis with the given traffic.
func measuredLoad(running, waiting, prompt, output, hits, finished float64) *engine.Diagnosis {
	var d engine.Diagnosis
	for _, q := range []struct {
		name string
		v    float64
	}{
		{"running_mean", running}, {"waiting_mean", waiting}, {"prompt_tokens_mean", prompt}, {"output_tokens_mean", output},
		{"prefix_hit_rate", hits}, {"requests_per_s", finished},
	} {
		d.Measured = append(d.Measured, engine.NamedQuantity{Name: q.name, Quantity: engine.Quantity{Value: stat.Opt{V: q.v, OK: q.v >= 0}}})
	}
	return &d
}

func TestTraffic(t *testing.T) {
	for _, c := range []struct {
		name          string
		before, after *engine.Diagnosis
		want          string
	}{
		{"the same", measuredLoad(8, 0, 200, 100, 0.5, 4), measuredLoad(8, 0, 210, 95, 0.55, 4.2), ""},
		{"a closed loop that is faster", measuredLoad(4, 28, 200, 100, 0, 1), measuredLoad(32, 0, 200, 100, 0, 6), ""},
		{"saturated on both sides", measuredLoad(4, 28, 200, 100, 0, 1), measuredLoad(4, 90, 200, 100, 0, 1), ""},
		{"no queue is left", measuredLoad(16, 84, 200, 100, 0, 4), measuredLoad(40, 0, 200, 100, 0, 6), "requests in 100 → 40 (−60 %); the queue is now empty, so a gain is a lower bound"},
		{"fewer come", measuredLoad(8, 0, 200, 100, 0, 4), measuredLoad(4, 0, 200, 100, 0, 2), "requests in 8 → 4 (−50 %)|requests finished 4.00/s → 2.00/s (−50 %)"},
		{"longer prompts", measuredLoad(8, 0, 200, 100, 0, 4), measuredLoad(8, 0, 400, 100, 0, 4), "prompts 200 tok → 400 tok (+100 %)"},
		{"cached ones", measuredLoad(8, 0, 200, 100, 0.1, 4), measuredLoad(8, 0, 200, 100, 0.8, 4), "prefix hits 10 % → 80 %"},
		{"unknown is not a difference", measuredLoad(8, 0, -1, 100, -1, 4), measuredLoad(8, 0, 400, -1, 0.8, 4), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := strings.ReplaceAll(strings.Join(traffic(c.before, c.after), "|"), "\u00a0", " ")
			if got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}
