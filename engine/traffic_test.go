package engine

import (
	"strings"
	"testing"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

// load makes a diagnosis of a traffic.
func load(running, waiting, prompt, output, hits, finished float64) *Diagnosis {
	var d Diagnosis
	for _, q := range []struct {
		name string
		v    float64
	}{
		{"running_mean", running}, {"waiting_mean", waiting}, {"prompt_tokens_mean", prompt}, {"output_tokens_mean", output},
		{"prefix_hit_rate", hits}, {"requests_per_s", finished},
	} {
		d.Measured = append(d.Measured, NamedQuantity{q.name, Quantity{Value: stat.Opt{V: q.v, OK: q.v >= 0}}})
	}
	return &d
}

func TestTraffic(t *testing.T) {
	for _, c := range []struct {
		name          string
		before, after *Diagnosis
		want          string
	}{
		{"the same", load(8, 0, 200, 100, 0.5, 4), load(8, 0, 210, 95, 0.55, 4.2), ""},
		{"a closed loop that is faster", load(4, 28, 200, 100, 0, 1), load(32, 0, 200, 100, 0, 6), ""},
		{"saturated on both sides", load(4, 28, 200, 100, 0, 1), load(4, 90, 200, 100, 0, 1), ""},
		{"no queue is left", load(16, 84, 200, 100, 0, 4), load(40, 0, 200, 100, 0, 6), "requests in 100 → 40 (−60 %); no queue is left, so a gain is a lower bound"},
		{"fewer come", load(8, 0, 200, 100, 0, 4), load(4, 0, 200, 100, 0, 2), "requests in 8 → 4 (−50 %)|requests finished 4.00/s → 2.00/s (−50 %)"},
		{"longer prompts", load(8, 0, 200, 100, 0, 4), load(8, 0, 400, 100, 0, 4), "prompts 200 tok → 400 tok (+100 %)"},
		{"cached ones", load(8, 0, 200, 100, 0.1, 4), load(8, 0, 200, 100, 0.8, 4), "prefix hits 10 % → 80 %"},
		{"unknown is no difference", load(8, 0, -1, 100, -1, 4), load(8, 0, 400, -1, 0.8, 4), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := strings.ReplaceAll(strings.Join(traffic(c.before, c.after), "|"), "\u00a0", " ")
			if got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}
