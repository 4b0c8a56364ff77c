package capture

import (
	"strings"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

// beside adds five samples of a gauge of running requests to a run.
func beside(c *Capture, running, counted float64) *Capture {
	before, after := PageSample{At: c.Begin - time.Millisecond}, PageSample{At: c.End + time.Millisecond}
	before.GenerationTokens, after.GenerationTokens = stat.Some(5000), stat.Some(5000+counted)
	c.Pages = []PageSample{before}
	for i := range 5 {
		c.Pages = append(c.Pages, PageSample{At: c.Begin + time.Duration(2*i+1)*c.Span()/10, Running: stat.Some(running)})
	}
	c.Pages = append(c.Pages, after)
	return c
}

// TestOthersRan checks that other clients are detected by requests that run in addition to ours,
// and not by our own prompts.
func TestOthersRan(t *testing.T) {
	// Four at once, with prompts so long that they decode one after another.
	prompts := func() *Capture {
		c := streams(4, 11, time.Second, 10*time.Millisecond)
		for i := range c.Requests {
			r := &c.Requests[i]
			for j := range r.Chunks {
				r.Chunks[j].At += time.Duration(i) * time.Second
			}
			r.End = r.Chunks[len(r.Chunks)-1].At
			c.End = r.End
		}
		// They end while decoding, so the gauge decreases.
		beside(c, 4, 44)
		for i := range c.Pages {
			left := 0.0
			for _, r := range c.Requests {
				if r.End >= c.Pages[i].At {
					left++
				}
			}
			c.Pages[i].Running = stat.Some(left)
		}
		return c
	}
	for name, tt := range map[string]struct {
		c      *Capture
		others bool
	}{
		"our own prompts": {prompts(), false},
		"one beside one":  {beside(streams(1, 501, 0, 10*time.Millisecond), 2, 501), true},
		"one beside four": {beside(streams(4, 501, 0, 10*time.Millisecond), 5, 2004), true},
		"none beside four, of which two wait at times":     {beside(streams(4, 501, 0, 10*time.Millisecond), 3, 2004), false},
		"others hold our prompts up, and the counter says": {beside(streams(4, 501, 0, 10*time.Millisecond), 4, 9000), false}, // not more than are under way
	} {
		o := tt.c.operating(tt.c.tokens())
		if o.Others != tt.others {
			t.Errorf("%s: others %v (%v at once, %s)", name, o.Others, o.Batch, o.BatchFrom)
		}
		told := strings.Contains(strings.Join(tt.c.tokens().Differences, "\n"), "requests ran at once")
		if told != tt.others {
			t.Errorf("%s: told %v", name, told)
		}
	}
	waiting := prompts()
	waiting.Pages[len(waiting.Pages)-1].GenerationTokens = stat.Some(9000)
	if o := waiting.operating(waiting.tokens()); !o.Others {
		t.Error("the counter has thousands of tokens that are not ours, and more ran than decoded")
	}
}

// A request so short that the page was read twice beside it says nothing about the batch once the server has finished
// more requests than were sent from here.
func TestOthersBesideAShortRequest(t *testing.T) {
	c := beside(streams(1, 101, 0, 10*time.Millisecond), 64, 6400)
	c.Pages = []PageSample{c.Pages[0], c.Pages[len(c.Pages)-1]}
	for i, finished := range []float64{100, 180} {
		c.Pages[i].Requests = stat.Some(finished)
	}
	if o := c.operating(c.tokens()); o.Batch.OK || o.Rate.OK || !o.Others || !strings.HasPrefix(o.Reason, "other clients used the server, and ") {
		t.Errorf("%+v", o)
	}
	c.Pages[1].Requests = stat.Some(101)
	if o := c.operating(c.tokens()); !o.Batch.OK || o.Others {
		t.Errorf("alone: %+v", o)
	}
}
