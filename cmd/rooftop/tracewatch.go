package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/rooftop-dev/rooftop/collect/ggml"
	"github.com/rooftop-dev/rooftop/engine/optrace"
)

// operatorSource hands over what a runtime does: an attached session, or a test's.
type operatorSource interface {
	SetDetail(optrace.Detail) error
	Next(context.Context) ([]optrace.Event, error)
	Tables() *optrace.Tables
	Target() optrace.Target
	Dropped() int64
	Gaps() []optrace.Gap
	Close() error
}

// maxKept bounds the events that are kept for files: 192 MB of memory. Figures are of all
// events.
const maxKept = 4 << 20

// watch attaches to a runtime, says what watching will cost, and records. A trace that
// comes with an error has no events, and gaps that say why.
func (o *traceOptions) watch(ctx context.Context, w *world) (watched *traced, err error) {
	save, err := newSaving(o.save, o.owner())
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			save.unused()
		}
	}()
	source, err := o.attach()
	if err != nil {
		return nil, err
	}
	defer source.Close()
	t := &tracing{o: o, source: source, show: newProgress(w, &o.output), save: save}
	defer t.show.done()
	if o.detail&optrace.DetailOperator != 0 {
		t.show.say("attached; waits for the target to compute")
		if err := t.weigh(ctx, w.stderr); err != nil {
			return nil, err
		}
		switch {
		case ctx.Err() != nil:
			o.detail = weighed // there is no time for more
		case !t.ended():
			if err := t.afford(ctx, w); err != nil {
				return t.nothing(), err
			}
		}
	}
	return t.record(ctx, w)
}

// tracing is a trace that goes on.
type tracing struct {
	o      *traceOptions
	source operatorSource
	show   *progress
	// expectation is what the expected cost is reckoned from.
	expectation optrace.Expectation
	observer    optrace.Observer
	why         string        // that could not be reckoned; "" it was, or nothing was computed
	notes       []optrace.Gap // on the trace itself
	save        *saving       // what is recorded; nil in memory alone
	others      others        // programs beside the target
	end         string        // what became of the target, at whatever step; "" it goes on
}

// ended says that the target did, or became another program.
func (t *tracing) ended() bool { return t.end != "" }

// name is the target in a sentence.
func (t *tracing) name() string {
	if pid := t.source.Target().PID; pid != 0 {
		return fmt.Sprintf("process %d", pid)
	}
	return "the target"
}

// drain hands events over until the context ends, the target does, or enough says so.
func (t *tracing) drain(ctx context.Context, take func([]optrace.Event), enough func() bool) error {
	var err error
	for err == nil && !t.ended() && !enough() {
		var events []optrace.Event
		events, err = t.source.Next(ctx)
		take(events)
		for i := range events {
			switch events[i].Kind {
			case optrace.TargetExit:
				t.end = t.name() + " ended"
			case optrace.TargetExec:
				t.end = t.name() + " became another program"
			}
		}
	}
	switch {
	case errors.Is(err, io.EOF) && !t.ended():
		t.end = t.name() + " ended"
	case errors.Is(err, ggml.ErrGone) && !t.ended():
		t.end = err.Error()
	case err != nil && ctx.Err() == nil && !t.ended():
		return fail(exitError, fmt.Errorf("trace: %w", err))
	}
	return nil
}
