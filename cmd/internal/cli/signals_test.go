package cli

import (
	"slices"
	"testing"
	"time"
)

func TestSignalsThatBelongTogetherCountOnce(t *testing.T) {
	for name, c := range map[string]struct {
		at   []time.Duration
		want []int
	}{
		"one":                               {[]time.Duration{0}, []int{1}},
		"to the process and to its group":   {[]time.Duration{0, time.Millisecond}, []int{1, 0}},
		"twice within 100 ms":               {[]time.Duration{0, 100 * time.Millisecond}, []int{1, 0}},
		"TERM, HUP half a second later":     {[]time.Duration{0, 500 * time.Millisecond}, []int{1, 2}},
		"a burst":                           {[]time.Duration{0, 100 * time.Millisecond, 200 * time.Millisecond, 300 * time.Millisecond}, []int{1, 0, 0, 2}},
		"no third within 2 s of the second": {[]time.Duration{0, time.Second, 1100 * time.Millisecond, 2 * time.Second, 2900 * time.Millisecond, 3 * time.Second}, []int{1, 2, 0, 0, 0, 3}},
		"more":                              {[]time.Duration{0, 10 * time.Second, 20 * time.Second, 21 * time.Second}, []int{1, 2, 3, 4}},
	} {
		t.Run(name, func(t *testing.T) {
			var counted counter
			var got []int
			began := time.Now()
			for _, at := range c.at {
				got = append(got, counted.count(began.Add(at)))
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("counted %v, want %v", got, c.want)
			}
		})
	}
}
