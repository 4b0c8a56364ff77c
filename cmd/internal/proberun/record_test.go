package proberun

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/capture"
)

// fakeTree is a process tree whose samples take a while.
type fakeTree struct {
	clock      Clock
	look, deep time.Duration
	tree       capture.Tree
}

// take reads CPU times first, which is the time of the sample.
func (f *fakeTree) take(takes time.Duration) {
	at := f.clock.Now() + f.look/2
	time.Sleep(takes)
	f.tree.Samples = append(f.tree.Samples, capture.TreeSample{At: at, Took: takes})
}
func (f *fakeTree) Sample()            { f.take(f.look) }
func (f *fakeTree) Deep()              { f.take(f.deep) }
func (f *fakeTree) Tree() capture.Tree { return f.tree }

type fakeGPUs struct {
	clock Clock
	takes time.Duration
	fail  bool
}

func (f *fakeGPUs) Read(ctx context.Context) (engine.GPUReading, error) {
	select {
	case <-time.After(f.takes):
	case <-ctx.Done():
		return engine.GPUReading{}, ctx.Err()
	}
	if f.fail {
		return engine.GPUReading{}, errors.New("the device fell off the bus")
	}
	return engine.GPUReading{T: f.clock.Now(), Took: f.takes}, nil
}

type fakePage struct {
	clock Clock
	takes time.Duration
}

func (f *fakePage) Interval() time.Duration { return 250 * time.Millisecond }
func (f *fakePage) Sample(context.Context, func() time.Duration) capture.PageSample {
	time.Sleep(f.takes)
	return capture.PageSample{At: f.clock.Now(), Took: f.takes}
}

// sending returns a function that sends requests one after another, each of the same duration. The
// request in flight when ctx ends is returned with what it had.
func sending(clock Clock, n int, each, drain time.Duration) func(context.Context) []capture.Request {
	return func(ctx context.Context) []capture.Request {
		var list []capture.Request
		for i := range n {
			r := capture.Request{ID: i, Sent: clock.Now()}
			select {
			case <-time.After(each):
				r.Chunks = []capture.Chunk{{At: clock.Now()}}
			case <-ctx.Done():
				r.Error = "cut off"
			}
			r.End = clock.Now()
			list = append(list, r)
			if ctx.Err() != nil {
				break
			}
		}
		time.Sleep(drain)
		return list
	}
}

// TestSamplesEncloseTheRun checks that a run of any length is enclosed by samples, at most one
// period away.
func TestSamplesEncloseTheRun(t *testing.T) {
	tests := []struct {
		name        string
		requests    int
		each, drain time.Duration
		look, deep  time.Duration
		window      time.Duration
		least       int // looks at the processes
	}{
		{name: "a run shorter than a period", requests: 1, each: 7 * time.Millisecond, look: time.Millisecond, deep: 20 * time.Millisecond, least: 3},
		{name: "a run of seconds", requests: 3, each: time.Second, look: time.Millisecond, deep: 30 * time.Millisecond, least: 60},
		{name: "a connection that closes late", requests: 1, each: 300 * time.Millisecond, drain: time.Second, look: time.Millisecond, deep: 5 * time.Millisecond, least: 8},
		{name: "looks that take longer than the period", requests: 1, each: time.Second, look: 80 * time.Millisecond, deep: 90 * time.Millisecond, least: 10},
		{name: "a window", window: 500 * time.Millisecond, look: time.Millisecond, deep: 5 * time.Millisecond, least: 11},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				clock := NewClock()
				plan := Plan{
					Clock: clock, Period: DefaultPeriod, Window: tt.window,
					Processes: &fakeTree{clock: clock, look: tt.look, deep: tt.deep},
					GPUs:      &fakeGPUs{clock: clock, takes: 3 * time.Millisecond},
					Page:      &fakePage{clock: clock, takes: 5 * time.Millisecond},
				}
				if tt.requests > 0 {
					plan.Send = sending(clock, tt.requests, tt.each, tt.drain)
				}
				c := Run(t.Context(), plan)
				moments := map[string][]time.Duration{}
				for _, s := range c.Tree.Samples {
					moments["processes"] = append(moments["processes"], s.At)
				}
				for _, r := range c.GPUs.Readings {
					moments["GPUs"] = append(moments["GPUs"], r.T)
				}
				for _, p := range c.Pages {
					moments["page"] = append(moments["page"], p.At)
				}
				if got := len(moments["processes"]); got < tt.least {
					t.Errorf("%d looks at the processes, want at least %d", got, tt.least)
				}
				for what, at := range moments {
					// Within a period of the source, plus the duration of one sample, of the run.
					slack := c.Period + max(tt.look, tt.deep)
					if what == "page" {
						slack = 255 * time.Millisecond
					}
					if at[0] > c.Begin || at[len(at)-1] < c.End {
						t.Errorf("%s: samples from %v to %v do not enclose the run from %v to %v", what, at[0], at[len(at)-1], c.Begin, c.End)
					}
					if first, last := at[0], at[len(at)-1]; first < c.Begin-2*slack || last > c.End+slack {
						t.Errorf("%s: samples from %v to %v lie far outside of the run from %v to %v", what, first, last, c.Begin, c.End)
					}
					for i := 1; i < len(at); i++ {
						if at[i] < at[i-1] {
							t.Errorf("%s: sample %d at %v comes after one at %v", what, i, at[i], at[i-1])
						}
					}
				}
			})
		})
	}
}

func TestInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := NewClock()
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(1500*time.Millisecond, cancel)
		tree := &fakeTree{clock: clock, look: time.Millisecond, deep: time.Millisecond}
		c := Run(ctx, Plan{
			Clock: clock, Period: DefaultPeriod, Processes: tree,
			GPUs: &fakeGPUs{clock: clock, takes: time.Millisecond, fail: true},
			Send: sending(clock, 5, time.Second, 0),
		})
		if c.Ended != "interrupt" || len(c.Requests) != 2 || c.Requests[1].Error == "" {
			t.Errorf("ended %q with %d requests; want an interrupt with the second cut off", c.Ended, len(c.Requests))
		}
		if last := c.Tree.Samples[len(c.Tree.Samples)-1]; last.At < c.End {
			t.Errorf("no closing sample: the last is at %v, the end at %v", last.At, c.End)
		}
		if len(c.GPUs.Readings) != 0 || len(c.Notes) != 1 || !strings.Contains(c.Notes[0], "fell off the bus") {
			t.Errorf("%d readings and the notes %q of a GPU that fails", len(c.GPUs.Readings), c.Notes)
		}
	})
}

// TestSlowSourceHoldsUpNone has a GPU with a hanging driver.
func TestSlowSourceHoldsUpNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := NewClock()
		tree := &fakeTree{clock: clock, look: time.Millisecond, deep: time.Millisecond}
		c := Run(t.Context(), Plan{
			Clock: clock, Period: DefaultPeriod, Processes: tree, Window: 3 * time.Second,
			GPUs: &fakeGPUs{clock: clock, takes: time.Hour},
		})
		if n := len(c.Tree.Samples); n < 60 {
			t.Errorf("%d looks at the processes in 3 s beside a GPU that hangs, want 60", n)
		}
		if text := Missed(c); text != "" {
			t.Errorf("nothing was missed, but: %s", text)
		}
		c.Tree.Samples = c.Tree.Samples[:20]
		if text := Missed(c); !strings.Contains(text, "20 of") {
			t.Errorf("two thirds of the samples are missing, and it says %q", text)
		}
	})
}
