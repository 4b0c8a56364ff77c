package tracing

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/rooftop-dev/rooftop/engine/optrace"
)

const (
	// measureWindow is how long tracing is on or off. It is long compared to the 1 to 6 ms of a
	// change, and short compared to drifts (clocks, other load, a growing context).
	measureWindow = 300 * time.Millisecond
	// measurePairs is the number of windows with tracing: enough to resolve 1 to 2 % on a target
	// with its own CPUs.
	measurePairs = 20
	// pauseFactor is the ratio to the window's median from which the time between two calls is a
	// pause of the target rather than a token.
	pauseFactor = 10
	// measureSeed makes the interval reproducible for the same windows.
	measureSeed = 1
)

// callPace is a call of the target and the time from its start to the next call's start.
type callPace struct {
	tokens int64
	every  time.Duration
}

// paceWindow has the calls in a window with tracing on or off.
type paceWindow struct {
	on    bool
	calls []callPace
	begun map[int32]optrace.Event // the latest call of each process
}

// addEvents adds events. It ignores calls from before the change of detail.
func (p *paceWindow) addEvents(events []optrace.Event) {
	for _, e := range events {
		switch e.Kind {
		case optrace.DetailChanged:
			p.calls, p.begun = nil, map[int32]optrace.Event{}
		case optrace.CallBegin:
			p.call(e)
		}
	}
}

// call ends the previous call. A llama_process within a llama_decode is the same call.
func (p *paceWindow) call(e optrace.Event) {
	before, known := p.begun[e.PID]
	if known && before.Ref != e.Ref && before.Ref != uint32(optrace.CallProcess) {
		return
	}
	if known && before.Ref == e.Ref {
		p.calls = append(p.calls, callPace{tokens: before.N, every: e.At - before.At})
	}
	if p.begun == nil {
		p.begun = map[int32]optrace.Event{}
	}
	p.begun[e.PID] = e
}

// rate returns the calls per second with a number of tokens, without pauses between requests, 0 if
// there are none.
func (p *paceWindow) rate(tokens int64) float64 {
	var every []time.Duration
	for _, c := range p.calls {
		if c.tokens == tokens {
			every = append(every, c.every)
		}
	}
	if len(every) == 0 {
		return 0
	}
	slices.Sort(every)
	longest := pauseFactor * every[len(every)/2]
	var count, sum time.Duration
	for _, one := range every {
		if one <= longest {
			count++
			sum += one
		}
	}
	if sum == 0 {
		return 0
	}
	return float64(count) / sum.Seconds()
}

// decodeSize returns the most frequent number of tokens of calls: that of decoding.
func decodeSize(windows []*paceWindow) int64 {
	count := map[int64]int{}
	var size int64
	for _, w := range windows {
		for _, c := range w.calls {
			if count[c.tokens]++; count[c.tokens] > count[size] || count[c.tokens] == count[size] && c.tokens < size {
				size = c.tokens
			}
		}
	}
	return size
}

// slowdowns returns the cost of tracing, from windows that alternate between off and on, beginning
// and ending with off. control is the same statistic of windows without tracing alone: the
// difference between two equal states.
func slowdowns(windows []*paceWindow) (cost, control optrace.Slowdown, ok bool) {
	size := decodeSize(windows)
	var all, off []optrace.Window
	for _, w := range windows {
		one := optrace.Window{On: w.on, Rate: w.rate(size)}
		all = append(all, one)
		if !w.on {
			off = append(off, optrace.Window{On: len(off)%2 == 1, Rate: one.Rate})
		}
	}
	cost, ok = optrace.Toggled(all, measureSeed)
	control, _ = optrace.Toggled(off, measureSeed)
	return cost, control, ok
}

// measure alternates tracing on and off while the target decodes, and reports the slowdown if it
// can be resolved. Calls are recorded in both states.
func (t *tracing) measure(ctx context.Context) error {
	var windows []*paceWindow
	for i := range 2*measurePairs + 1 {
		w := &paceWindow{on: i%2 == 1}
		whole, err := t.window(ctx, w)
		if err != nil {
			return err
		}
		if !whole {
			break
		}
		windows = append(windows, w)
		t.show.Show(fmt.Sprintf("measuring the cost of tracing %2d/%d", i+1, 2*measurePairs+1))
	}
	t.show.Show("")
	cost, control, ok := slowdowns(windows)
	if !ok {
		why := fmt.Sprintf("the target decoded in %d of %d pairs of windows, and 6 are needed", cost.Pairs, measurePairs)
		t.w.Notef("the cost of tracing was not measured: %s", why)
		t.notes = append(t.notes, optrace.Gap{What: "what tracing costs, measured", Why: why, Next: "measure while the target decodes for 12 s and more"})
		return nil
	}
	cost.WriteTo(&t.observer)
	text := fmt.Sprintf("tracing at this level makes a token take %+.1f %% longer, 95 %% interval %+.1f to %+.1f %%, measured in %d windows", 100*cost.Median, 100*cost.Low, 100*cost.High, cost.Pairs)
	if control.Median != 0 || control.Low != 0 || control.High != 0 {
		text += fmt.Sprintf("; windows without it differ by %+.1f %% (%+.1f to %+.1f)", 100*control.Median, 100*control.Low, 100*control.High)
	}
	t.w.Notef("%s", text)
	return nil
}

// window traces for one window. whole is false if the target or the trace ended during it.
func (t *tracing) window(ctx context.Context, w *paceWindow) (whole bool, err error) {
	detail := optrace.LevelToken
	if w.on {
		detail = t.o.detail
	}
	if err := t.source.SetDetail(detail); err != nil {
		return false, fmt.Errorf("trace: %w", err)
	}
	timed, cancel := context.WithTimeout(ctx, measureWindow)
	defer cancel()
	if err := t.drain(timed, w.addEvents, func() bool { return false }); err != nil {
		return false, err
	}
	return !t.ended() && timed.Err() != nil && ctx.Err() == nil, nil
}
