package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/rooftop-dev/rooftop/engine/optrace"
)

const (
	// measureWindow is how long watching is on, or off. It is long beside the 1 to 6 ms
	// that a change takes, and short beside what drifts (clocks, other load, a context
	// that grows).
	measureWindow = 300 * time.Millisecond
	// measurePairs are windows with watching on: so many resolve 1 to 2 % on a target
	// that has its CPUs to itself.
	measurePairs = 20
	// pauseFactor is how many times longer than the window's middle one the time between
	// two calls is a pause of the target and none of its tokens.
	pauseFactor = 10
	// measureSeed makes the interval the same for the same windows.
	measureSeed = 1
)

// callPace is a call of the target and the time from its begin to the next one's.
type callPace struct {
	tokens int64
	every  time.Duration
}

// paceWindow is what was called while watching was on, or off.
type paceWindow struct {
	on    bool
	calls []callPace
	begun map[int32]optrace.Event // the newest call of each process
	over  bool                    // the target is gone
}

// take takes in events; what was called before the change of detail is no part of it.
func (p *paceWindow) take(events []optrace.Event) {
	for _, e := range events {
		switch e.Kind {
		case optrace.DetailChanged:
			p.calls, p.begun = nil, map[int32]optrace.Event{}
		case optrace.CallBegin:
			p.call(e)
		case optrace.TargetExit, optrace.TargetExec:
			p.over = true
		}
	}
}

// call ends the call before. A llama_process within a llama_decode is the same call.
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

// rate is the calls of so many tokens a second, without pauses between requests; 0 where
// there were none.
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

// decodeSize is the number of tokens of most calls: those of a decode.
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

// slowdowns are what watching costs, from windows that begin and end without it and have
// it in every other one, and the same of windows without it alone: how far apart two are
// that do not differ.
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

// measure turns watching on and off in turn while the target decodes, and says how much
// slower it is with it, where that can be told. Calls are seen in both.
func (t *tracing) measure(ctx context.Context, stderr io.Writer) error {
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
		t.show.say(fmt.Sprintf("measures what watching costs %2d/%d", i+1, 2*measurePairs+1))
	}
	t.show.say("")
	cost, control, ok := slowdowns(windows)
	if !ok {
		why := fmt.Sprintf("the target decoded in %d of %d pairs of windows, and 6 are needed", cost.Pairs, measurePairs)
		fmt.Fprintf(stderr, "rooftop: what watching costs was not measured: %s\n", why)
		t.notes = append(t.notes, optrace.Gap{What: "what tracing costs, measured", Why: why, Next: "measure while the target decodes for 12 s and more"})
		return nil
	}
	cost.Into(&t.observer)
	fmt.Fprintf(stderr, "rooftop: watching at this level makes a token take %+.1f %% longer, 95 %% interval %+.1f to %+.1f %%, measured in %d windows", 100*cost.Median, 100*cost.Low, 100*cost.High, cost.Pairs)
	if control.Median != 0 || control.Low != 0 || control.High != 0 {
		fmt.Fprintf(stderr, "; windows without it differ by %+.1f %% (%+.1f to %+.1f)", 100*control.Median, 100*control.Low, 100*control.High)
	}
	fmt.Fprintln(stderr)
	return nil
}

// window watches for one window; false where it was not whole: the target or the trace
// ended.
func (t *tracing) window(ctx context.Context, w *paceWindow) (whole bool, err error) {
	detail := optrace.LevelToken
	if w.on {
		detail = t.o.detail
	}
	if err := t.source.SetDetail(detail); err != nil {
		return false, fail(exitError, fmt.Errorf("trace: %w", err))
	}
	timed, cancel := context.WithTimeout(ctx, measureWindow)
	defer cancel()
	if err := t.drain(timed, w.take, func() bool { return w.over }); err != nil {
		return false, err
	}
	return !w.over && !t.ended() && timed.Err() != nil && ctx.Err() == nil, nil
}
