package bench

import (
	"errors"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim"
	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/core"
	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/perf"
	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/settings"
)

// fake answers each request with one token every tick, as many as it asks for.
type fake struct {
	healthy time.Duration
	tick    time.Duration
	now     time.Duration
	next    core.ID
	calls   []*fakeCall
	cancels int
	refuse  error
}

type fakeCall struct {
	id   core.ID
	at   time.Duration // of its next token
	left int
	sink vllmsim.Sink
}

func (f *fake) Healthy() time.Duration { return f.healthy }

func (f *fake) Submit(now time.Duration, c vllmsim.Call, sink vllmsim.Sink) (core.ID, error) {
	if f.refuse != nil {
		return 0, f.refuse
	}
	f.next++
	f.calls = append(f.calls, &fakeCall{id: f.next, at: now + f.tick, left: c.MaxTokens, sink: sink})
	return f.next, nil
}

func (f *fake) Cancel(_ time.Duration, id core.ID) {
	for i, c := range f.calls {
		if c.id == id {
			f.calls = append(f.calls[:i:i], f.calls[i+1:]...)
			f.cancels++
			return
		}
	}
}

func (f *fake) Next() (time.Duration, bool) {
	var at time.Duration
	for i, c := range f.calls {
		if i == 0 || c.at < at {
			at = c.at
		}
	}
	return at, len(f.calls) > 0
}

func (f *fake) Advance(now time.Duration) {
	for {
		at, ok := f.Next()
		if !ok || at > now {
			f.now = now
			return
		}
		for i, c := range f.calls {
			if c.at != at {
				continue
			}
			c.left--
			c.at += f.tick
			u := vllmsim.Update{At: at, Tokens: []core.Token{1}, Text: " word"}
			if c.left <= 0 {
				u.Finish = core.Length
				f.calls = append(f.calls[:i:i], f.calls[i+1:]...)
			}
			c.sink(u)
			break
		}
	}
}

func (f *fake) Page(buf []byte, _ time.Duration) []byte { return append(buf, "# no page\n"...) }
func (f *fake) Dead() bool                              { return false }
func (f *fake) GPUs(time.Duration) []perf.Reading       { return nil }

var errRefusal = errors.New("the maximum context length is 4")

// fakeWorld is a world whose servers are fakes that listen a second after their
// start.
func fakeWorld(servers *[]*fake) *World {
	w := NewWorld(nil)
	w.start = func(_ *settings.Settings, _ []byte, now time.Duration, _ time.Time) (vllmsim.Machine, error) {
		f := &fake{healthy: now + time.Second, tick: 100 * time.Millisecond}
		*servers = append(*servers, f)
		return f, nil
	}
	return w
}
