// Package tracing controls traces of GGML runtimes: it attaches, estimates and measures the cost, records,
// saves, shows recordings, and writes them in the Trace Event Format and their graphs for Graphviz.
package tracing

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/rooftop-dev/rooftop/cmd/internal/cli"
	"github.com/rooftop-dev/rooftop/engine/optrace"
)

// Suffix is the suffix of recording files.
const Suffix = ".jsonl.gz"

// Source supplies the events of a runtime: an attached session, or a test's.
type Source interface {
	SetDetail(optrace.Detail) error
	Next(context.Context) ([]optrace.Event, error)
	Tables() *optrace.Tables
	Target() optrace.Target
	Dropped() int64
	Gaps() []optrace.Gap
	Close() error
}

// maxKept limits the events that are kept for files: 192 MB of memory. Figures cover all events.
const maxKept = 4 << 20

// watch attaches to a runtime, reports the expected cost, and records. A trace that is returned
// with an error has no events, but gaps with the reasons.
func (o *Options) watch(ctx context.Context, w *cli.World) (watched *traced, err error) {
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
	t := &tracing{o: o, w: w, source: source, show: cli.NewProgress(w, &o.Output), save: save}
	defer t.show.Done()
	if o.detail&optrace.DetailOperator != 0 {
		t.show.Show("attached; waiting for the target to compute")
		if err := t.calibrate(ctx); err != nil {
			return nil, err
		}
		switch {
		case ctx.Err() != nil:
			o.detail = calibrationDetail // there is no time for more
		case !t.ended():
			if err := t.checkCost(ctx); err != nil {
				return t.refused(), err
			}
		}
	}
	return t.record(ctx)
}

// tracing is a trace in progress.
type tracing struct {
	o      *Options
	w      *cli.World
	source Source
	show   *cli.Progress
	// expectation has the inputs of the expected cost.
	expectation optrace.Expectation
	observer    optrace.Observer
	why         string        // why there is no estimate; "" if there is one, or nothing was computed
	notes       []optrace.Gap // about the trace itself
	save        *saving       // of the recording in progress; nil without one
	others      others        // programs beside the target
	end         string        // how the target ended; "" if it is running
}

// ended reports whether the target ended, or became another program.
func (t *tracing) ended() bool { return t.end != "" }

// name returns the target for a sentence.
func (t *tracing) name() string {
	if pid := t.source.Target().PID; pid != 0 {
		return fmt.Sprintf("process %d", pid)
	}
	return "the target"
}

// drain passes events on until the context ends, the target ends, or enough returns true.
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
	case err != nil && ctx.Err() == nil && !t.ended():
		return fmt.Errorf("trace: %w", err)
	}
	return nil
}

// Run traces the named process or that of the flags, or shows a recording.
func (o *Options) Run(ctx context.Context, w *cli.World, name ...string) error {
	if len(name) > 0 {
		o.name = name[0]
	}
	if err := o.check(); err != nil {
		return err
	}
	if o.recording() {
		return o.showRecording(w)
	}
	watched, err := o.watch(ctx, w)
	if err != nil {
		if watched != nil && o.JSON {
			if unsaid := watched.print(w, o); unsaid != nil {
				return cli.Fail(cli.ExitError, errors.Join(err, unsaid))
			}
		}
		return err
	}
	if err := o.finish(w, watched); err != nil {
		return err
	}
	switch ended := cli.SignalCode(ctx); {
	case ended != 0:
		return cli.Exit(ended)
	case watched.summary.Empty():
		return cli.Exit(cli.ExitNothing) // the report says so
	}
	return nil
}

// recording reports whether the name is that of a recording rather than a process.
func (o *Options) recording() bool {
	if strings.HasSuffix(o.name, Suffix) || strings.HasSuffix(o.name, ".json") {
		return true
	}
	info, err := os.Stat(o.name)
	return o.name != "" && err == nil && info.Mode().IsRegular()
}

// traced is a completed trace: its figures, and its events as far as they were kept.
type traced struct {
	recording *optrace.Recording
	saving    *saving // of the recording; nil without one
	summary   *optrace.Summary
}
