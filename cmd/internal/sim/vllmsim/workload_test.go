package vllmsim

import (
	"testing"
	"time"
)

// TestYoungServerIsSlow checks that the first steps of a server take longer.
func TestYoungServerIsSlow(t *testing.T) {
	v := start(t, parsed(t))
	call := Call{Prompt: prompt(100, 1), MaxTokens: 10, IgnoreEOS: true}
	first, _ := submit(t, v, v.Healthy(), call)
	drain(t, v)
	call.Prompt = prompt(100, 2)
	second, _ := submit(t, v, v.now+time.Second, call)
	drain(t, v)
	took := func(c *tally) time.Duration { return c.history.LastToken - c.history.Scheduled }
	if extra := took(first) - took(second); extra < warmUp || extra > 3*warmUp {
		t.Errorf("first request took %v, the second %v", took(first), took(second))
	}
}
